"""Fuzz the functions that take untrusted text: parser, JSON repair, edit formats and edits, path resolver, escaping.

    python -m benchmarks.fuzz_targets --count 10000000
    python -m benchmarks.fuzz_targets --engine atheris --target repair --count 1000000

Inputs are the project's own cases (`fixtures/`), cut and joined at random, or texts that atheris generates, guided by
coverage (``pip install 'toolcall-adapter[bench]'``). Each target checks claims that hold for any text; any other
exception is a crash. Prints inputs, seconds and crashes by target, each crash as Python, and then exits with 1.
`benchmarks.fuzz_parse` checks the parser more thoroughly, with inputs split and cut in every way.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random

from adapter.core.errors import AdapterError, ToolError
from adapter.core.json.decode import decode_json, decode_values
from adapter.editing import patch_text
from adapter.editing.notations.registry import is_known_notation, parse_notation, require_single_file
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import parse
from adapter.prompting.escaping import escape_control_tokens, unescape_control_tokens
from adapter.tools.operations import Patch
from adapter.tools.tool_set import ToolSet
from adapter.workspace.paths.resolver import WorkspaceRoot
from benchmarks import stopping
from benchmarks.fuzz_parse import SOUP, samples
from tests.parsing.formats.soup import TOOLS

LONGEST = 400
PATH_PARTS = (
    "..", ".", "", "/", "a", "link", "out", "loop", "~", "C:", "\\", "\0", "\n", ".git", "GIT~1",
    "\u202e", "é", "e\u0301", "dir", "file", "x" * 260, "\ud800", " ", "proc/self/root", "dev/fd/0", "..\\..", "%2e%2e",
    "．．", "\u2215", "..;", "a.txt",
)  # fmt: skip
TEXT = "def f(x):\n    return x\n\n\nclass A:\n    def f(self):\n        return 1\n"


def parser(text: str) -> None:
    format = [None, *FORMATS][len(text) % (len(FORMATS) + 1)]
    turn = parse(text, TOOLS, format)
    assert "".join(event.raw for event in turn.events) == text


def repair(text: str) -> None:
    for read in (decode_json, decode_values):
        try:
            read(text)
        except AdapterError:
            continue


def edits(text: str) -> None:
    """Use the text in two ways: as an edit notation, and as an old text that may match only approximately."""
    try:
        if is_known_notation(text):
            parse_notation(text)
        require_single_file(parse_notation(text))
    except AdapterError:
        pass
    half = len(text) // 2
    try:
        result = patch_text(TEXT, [Patch(text[:half], text[half:])], "f")
    except AdapterError:
        return
    assert result.matches


def gate(text: str) -> None:
    root, outside = _ground()
    for follow in (True, False):
        try:
            with root.locate(text, follow=follow) as place:
                if place.dirfd >= 0 and place.status is not None:
                    assert (place.status.st_dev, place.status.st_ino) not in outside, text
        except (ToolError, OSError):
            continue


@cache
def _ground() -> tuple[WorkspaceRoot, frozenset[tuple[int, int]]]:
    top = Path(tempfile.mkdtemp(prefix="gate-"))
    directory = top / "ws"
    (directory / "a/dir").mkdir(parents=True)
    (directory / "a/file").touch()
    (directory / "file").touch()
    (directory / "link").symlink_to("a")
    (directory / "out").symlink_to("..")
    (directory / "a/out").symlink_to("/")
    (directory / "loop").symlink_to("loop")
    (top / "file").touch()
    outside = [Path(path) for path in ("/", "/proc", "/dev", "/etc", "/etc/passwd", "/tmp", top, top / "file")]
    found = frozenset((path.stat().st_dev, path.stat().st_ino) for path in outside if path.exists())
    return WorkspaceRoot(directory), found


def neutral(text: str) -> None:
    shown = escape_control_tokens(text, FORMATS["hermes"], ToolSet(TOOLS))
    assert unescape_control_tokens(shown) == text
    assert not parse(shown, TOOLS).calls


TARGETS: dict[str, Callable[[str], None]] = {
    "parser": parser,
    "repair": repair,
    "edits": edits,
    "gate": gate,
    "neutral": neutral,
}
SHARES = {"parser": 1, "repair": 8, "edits": 4, "gate": 5, "neutral": 2}
"""Share of each target in twenty inputs, because parsing answers takes the longest."""


def make(chance: Random, target: str) -> str:
    if target == "gate":
        joint = chance.choice(("/", "/", ""))
        return joint.join(chance.choices(PATH_PARTS, k=chance.randint(1, 8)))
    text = chance.choice(corpus())
    start = chance.randrange(len(text) + 1)
    text = text[start : start + chance.randint(1, LONGEST)]
    for _ in range(chance.choice((0, 1, 2, 4))):
        at = chance.randint(0, len(text))
        piece = (
            chance.choice(SOUP)
            if chance.random() < 0.5
            else chr(chance.choice((chance.randrange(128), 0x2028, 0x1F600)))
        )
        text = text[:at] + piece + text[at + chance.choice((0, 0, 1, 5)) :]
    return text


@cache
def corpus() -> Sequence[str]:
    folders = [Path(__file__).parents[1] / "fixtures" / name for name in ("edits", "cases")]
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    return [*(sample.text for sample in samples()), *texts]


def by_chance(target: str, seed: int, count: int, is_over: Callable[[], bool]) -> Iterator[tuple[int, str]]:
    """Yield the inputs that crash. At the end, yield the number of inputs with an empty text."""
    chance, run = Random(f"{seed} {target}"), TARGETS[target]
    done = 0
    for done in range(1, count + 1):
        text = make(chance, target)
        try:
            run(text)
        except Exception as error:  # noqa: BLE001 - that none escapes is the claim
            yield done, f"{target}({text!r})  # {error!r:.200}"
        if done % 500 == 0 and is_over():
            break
    yield done, ""


def _is_over(stop: threading.Event, ends_at: float) -> bool:
    return stop.is_set() or time.monotonic() > ends_at


def by_atheris(target: str, seed: int, count: int) -> None:
    """Run atheris on the target, which ends the process."""
    import atheris

    atheris.instrument_all()
    folder = tempfile.mkdtemp(prefix="corpus-")
    for number, text in enumerate(corpus()[:2_000]):
        (Path(folder) / str(number)).write_bytes(text[:LONGEST].encode(errors="replace"))
    run = TARGETS[target]
    atheris.Setup([sys.argv[0], f"-runs={count}", f"-seed={seed}", f"-max_len={LONGEST}", folder], _decoded(run))
    atheris.Fuzz()


def _decoded(run: Callable[[str], None]) -> Callable[[bytes], None]:
    return lambda data: run(data.decode("utf-8", "replace"))


def main() -> int:
    options_of = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options_of.add_argument("--count", type=int, default=10_000_000, help="inputs over all targets")
    options_of.add_argument("--target", choices=list(TARGETS), help="only this one")
    options_of.add_argument("--engine", choices=["random", "atheris"], default="random")
    options_of.add_argument("--seed", type=int, default=1)
    options_of.add_argument("--seconds", type=float, default=float("inf"), help="for all targets together")
    options = options_of.parse_args()
    chosen = [options.target] if options.target else list(TARGETS)
    if options.engine == "atheris":
        by_atheris(options.target or "repair", options.seed, options.count)
    shares = sum(SHARES[target] for target in chosen)
    crashes: list[str] = []
    print("| target | inputs | s | crashes |\n|---|--:|--:|--:|")
    with stopping.stoppable() as stop:
        for target in chosen:
            started, share = time.monotonic(), SHARES[target] / shares
            done, found = 0, 0
            is_over = partial(_is_over, stop, started + options.seconds / len(chosen))
            for count, crash in by_chance(target, options.seed, max(int(options.count * share), 1), is_over):
                done, found = count, found + bool(crash)
                crashes += [crash] if crash else []
            print(f"| {target} | {done:,} | {time.monotonic() - started:.0f} | {found} |", flush=True)
    for crash in crashes[:20]:
        print(crash)
    return 1 if crashes else 0


if __name__ == "__main__":
    stopping.run(main)
