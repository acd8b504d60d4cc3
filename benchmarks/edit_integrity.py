r"""Patch random files, and compare every byte: `python -m benchmarks.edit_integrity --count 1000000`.

Files have up to 14 lines with mixed \n, \r\n and \r, a byte order mark, U+2028, form feeds, FS, NEL and vertical tabs
(which do not end lines), bytes that are not UTF-8, or no final newline. One to three patches at a time have old texts
that begin and end anywhere, with the file's line ends or, as models write them, with \n. The oracle shares no code with
the editor: it knows the bytes before, between and after the places, which must stay the same. The places must contain
the lines of the new text, with any line ends and indentation. A rejected patch must be ambiguous, or its new text must
already be present. Input N of a seed is always the same. Exits with 1 if a byte is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from adapter.core.errors import EditError, ToolError
from adapter.tools.operations import Patch, PatchText
from adapter.workspace.changes.text_codec import decode
from adapter.workspace.files.file_patching import patch_bytes
from benchmarks import stopping

ENDS = ("\n", "\r\n", "\r")
WORDS = (
    *(
        "alpha",
        "if x:",
        "    return y",
        "\tz = 1",
        "}",
        "é – “q”",
        "漢字",
        "🎉",
        "a\u2028b",
        "a\x0cb",
        "a\x1cb",
        "a\x85b",
    ),
    *("a\x0bb", "trailing  ", "x" * 60, "\\1 \\g<0>", "$& {0} %s", "", " ", "\u00a0nbsp", "e\u0301", "\ufb01"),
)
NO_UTF8 = (b"\xfe", b"\xe9 ", b"\xc3", b"caf\xe9", b"\x80\x81")
ANY_END, BLANKS = b"(?:\r\n|\r|\n)", b"(?:[ \t]|\xc2\xa0)*"


@dataclass(frozen=True, slots=True)
class Trial:
    """A file, its patches, and the bytes before, between and after the patched places (``kept``)."""

    data: bytes
    patches: tuple[Patch, ...]
    kept: tuple[bytes, ...]
    written: tuple[str, ...]
    """The new texts in the order of the file."""
    is_sure: bool
    """True if each old text occurs once in the file, and does not occur in its own new text."""


@dataclass(slots=True)
class Tally:
    done: int = 0
    verified: int = 0
    """Number of patches whose file was compared."""
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def make(seed: int, index: int) -> Trial:
    chance = Random((seed << 40) + index)
    broken = chance.random() < 0.02
    words = [word for word in WORDS if word.isascii()] if broken else WORDS  # others have no known encoding
    text, starts = _text(chance, words)
    spans = _spans(chance, text, starts)
    patches, written, kept, at = [], [], [], 0
    encoded = (lambda part: part.encode()) if not broken else _with_bytes(chance)
    for start, end in spans:
        old = text[start:end]
        given = old if chance.random() < 0.5 else _lf(old)
        new = _new_text(chance, words, old)
        patches.append(Patch(given, new))
        written.append(new)
        kept.append(encoded(text[at:start]))
        at = end
    kept.append(encoded(text[at:]))
    places = [text[start:end].encode() for start, end in spans]
    data = b"".join(part for pair in zip(kept, [*places, b""], strict=True) for part in pair)
    lf = _lf(text)
    sure = all(_count(_lf(patch.old_text), lf) == 1 and not _is_made(patch, lf) for patch in patches)
    chance.shuffle(patches)
    return Trial(data, tuple(patches), tuple(kept), tuple(written), sure)


def _lf(text: str) -> str:
    return re.sub("\r\n|\r", "\n", text)


def _is_made(patch: Patch, text: str) -> bool:
    old, new = _lf(patch.old_text), patch.new_text
    return old in new and new in text


def _count(part: str, text: str) -> int:
    return sum(text.startswith(part, at) for at in range(len(text)))


def _text(chance: Random, words: Sequence[str]) -> tuple[str, list[int]]:
    """Return a random text, and the offsets of its lines."""
    main, mixed = chance.choice(ENDS), chance.random() < 0.4
    has_mark = chance.random() < 0.15 and words is WORDS
    parts, starts, at = (["\ufeff"] if has_mark else []), [], 0
    at = len(parts)
    count = chance.randint(1, 14)
    for number in range(count):
        line = (
            chance.choice(words) + (f" #{number}" if chance.random() < 0.8 else "") + chance.choice(("", "", "  ", ";"))
        )
        end = chance.choice(ENDS) if mixed else main
        if number == count - 1 and chance.random() < 0.4:
            end = ""
        if not line and end == "\n" and parts and parts[-1].endswith("\r"):
            end = "\r"  # otherwise, the two would form one line end
        starts.append(at)
        parts.append(line + end)
        at += len(line + end)
    return "".join(parts), starts


def _spans(chance: Random, text: str, starts: list[int]) -> list[tuple[int, int]]:
    """Return one to three places that do not touch, and that begin and end outside line ends and indentation."""
    cuts: set[int] = set()
    for _ in range(2 * chance.choice((1, 1, 2, 3))):
        at = chance.choice(starts) if chance.random() < 0.6 else chance.randint(starts[0], len(text))
        line = max(start for start in starts if start <= at)
        cuts.add(at + (text[at - 1 : at + 1] == "\r\n") if text[line:at].strip() else line)
    ordered = sorted(cuts)
    pairs = [(start, end) for start, end in zip(ordered[::2], ordered[1::2], strict=False) if text[start:end].strip()]
    return pairs or [(starts[0], len(text))]


def _new_text(chance: Random, words: Sequence[str], old: str) -> str:
    lines = [chance.choice(words) + chance.choice((" new", "", " #7")) for _ in range(chance.randint(0, 3))]
    return "\n".join(lines) + ("\n" if old.endswith(("\n", "\r")) and lines else "")


def _with_bytes(chance: Random) -> Callable[[str], bytes]:
    def encoded(part: str) -> bytes:
        return part.encode() + (
            chance.choice(NO_UTF8) if chance.random() < 0.7 and part[-1:] not in ("\r", "") else b""
        )

    return encoded


def check(trial: Trial, tally: Tally) -> str:
    try:
        encoding = decode(trial.data, "f").encoding
        _, result = patch_bytes(trial.data, PatchText("f", trial.patches), "f")
    except EditError as error:
        tally.refused["not sure" if not trial.is_sure else "though sure"] += 1
        return f"refused: {error}" if trial.is_sure and trial.data.isascii() and "no change" not in str(error) else ""
    except ToolError:
        tally.refused["no text that can be written back"] += 1
        return ""
    tally.verified += len(trial.patches)
    pattern, deletions = b"", [not new for new in trial.written]
    after_deletion = [False, *deletions]
    for number, kept in enumerate(trial.kept):
        if number:
            pattern += _written(trial.written[number - 1], encoding)
        pattern += _kept(kept, after_deletion[number], number < len(deletions) and deletions[number])
    if re.fullmatch(pattern, result, re.DOTALL):
        return ""
    return f"{trial.data!r} {trial.patches!r} gave {result!r}"


def _written(new: str, encoding: str) -> bytes:
    """Return a pattern for a new text in the file: it may be indented, and its last line end may be the file's."""
    lines = [BLANKS + re.escape(line.strip(" \t\u00a0").encode(encoding)) + BLANKS for line in new.split("\n")]
    return ANY_END.join(lines[:-1]) + b"(?:%s)?" % ANY_END if new.endswith("\n") else ANY_END.join(lines)


def _kept(kept: bytes, after_deletion: bool, before_deletion: bool) -> bytes:
    rest = re.match(rb"[ \t]*(?:\r\n|\r|\n)?", kept)[0] if after_deletion else b""  # type: ignore[index]
    kept = kept[len(rest) :]
    blanks = kept[len(kept.rstrip(b" \t")) :] if before_deletion else b""
    middle = kept[: len(kept) - len(blanks)]
    return b"(?:%s)?%s(?:%s)?" % (re.escape(rest), re.escape(middle), re.escape(blanks))


def run(
    seed: int,
    start: int,
    count: int,
    seconds: float = float("inf"),
    shown: bool = False,
    stop: threading.Event | None = None,
) -> Tally:
    tally, began = Tally(), time.monotonic()
    for index in range(start, start + count):
        found = check(make(seed, index), tally)
        tally.done += 1
        if found:
            tally.wrong.append(f"{index}: {found}")
        if tally.done % 200 == 0:
            taken = time.monotonic() - began
            if shown:
                line = f"\r{tally.done:,} of {count:,}, {tally.done / taken:,.0f} a second, {len(tally.wrong)} wrong   "
                print(line, end="", file=sys.stderr, flush=True)
            if taken > seconds or (stop is not None and stop.is_set()):
                break
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1_000_000, help="files")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    began = time.monotonic()
    with stopping.stoppable() as stop:
        tally = run(options.seed, options.start, options.count, options.seconds, shown=True, stop=stop)
    taken = time.monotonic() - began
    print(f"\nseed {options.seed}, files {options.start} to {options.start + tally.done - 1}, {taken:.0f} s, "
          f"{tally.done / taken:,.0f} a second")  # fmt: skip
    print("| files | patches verified | refused | wrong |")
    print("|--:|--:|---|--:|")
    refused = ", ".join(f"{count:,} {why}" for why, count in tally.refused.most_common())
    print(f"| {tally.done:,} | {tally.verified:,} | {refused} | {len(tally.wrong)} |")
    for line in tally.wrong[:10]:
        print("WRONG", line[:1500])
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    stopping.run(main)
