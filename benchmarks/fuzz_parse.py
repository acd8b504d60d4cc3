"""Parse millions of generated texts, and check claims that hold for every text.

    python -m benchmarks.fuzz_parse --count 2000000 --seed 1 --jobs 2

Inputs are real outputs (``fixtures/``, and canitoolcall's if installed) and encoded calls, both also damaged, markers
in any order, random characters, and repetitions, with a given and with a detected format. The claims: `Parser` does not
raise; the joined raw text is the input; the events do not depend on the split; every call can be sent as JSON; encoded
calls are parsed back; a text that is cut off (finish reason ``length``) has no call that the whole text lacks at that
place; no text takes 50 times as long per character as other texts of its length.

Input N of a seed is always the same, so ``--start N --count 1`` repeats it, and ``--start`` continues a stopped run.
Prints failures as Python, shortened as far as possible, and then exits with 1.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from adapter.core.events import Event, InvalidToolCall, JsonObject, ToolCall
from adapter.core.repair_codes import REPAIRS
from adapter.core.turn import merge_deltas
from adapter.parsing.formats import FORMATS, guess_format
from adapter.parsing.parser import Parser
from adapter.tools.tool_set import ToolSet
from benchmarks import stopping
from tests.parsing.checks import stream_fault
from tests.parsing.formats.soup import EVERYTHING, FORMAT_NAMES, PIECES, TOOLS

FIXTURES = Path(__file__).parents[1] / "fixtures"
SOUP: list[str] = sorted(set(PIECES))  # a set's order differs from process to process
WELL_FORMED = [piece for piece in SOUP if piece.isprintable() or piece.isspace()]
ALL_TOOLS = ToolSet([*TOOLS, EVERYTHING])
RANGE = 500
"""Number of inputs per task of a worker."""

SLOW = 50
"""Multiple of the usual time per character that counts as a failure."""

HANGS_S = 20
"""Maximum processor time for one input, in seconds. Beyond it, the parser counts as hanging."""

SHORTENING_S = 15
"""Maximum time for shortening one failure, in seconds."""

_SEVERAL = re.compile(r"[}\]][\s;,]*[{\[]")
"""Matches a boundary between two values."""

MAX_SHOWN = 2
"""Maximum number of failures shown for each kind and format. The others are only counted."""

Pieces = Sequence[str]


@dataclass(frozen=True, slots=True)
class Sample:
    """A real output, the offered tools, and its format."""

    text: str
    tools: ToolSet = field(repr=False)
    format: str | None
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Input:
    text: str
    format: str | None
    finish_reason: str | None = "stop"
    prompt: str = ""
    tools: ToolSet = field(default_factory=lambda: ALL_TOOLS, repr=False)
    written: tuple[tuple[str, JsonObject], ...] | None = None
    """The calls that ``text`` encodes, undamaged."""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    index: int
    claim: str
    detail: str
    given: Input


@dataclass(slots=True)
class Report:
    """The results of a range of inputs. ``calls_at_a_cut``: see `check_cut`."""

    done: int = 0
    characters: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    calls_at_a_cut: int = 0
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Report) -> None:
        self.done += other.done
        self.characters += other.characters
        self.kinds += other.kinds
        self.calls += other.calls
        self.calls_at_a_cut += other.calls_at_a_cut
        self.failures += other.failures


class Broken(Exception):
    """Raised if a claim does not hold. ``claim`` is its name."""

    def __init__(self, claim: str, detail: str) -> None:
        super().__init__(f"{claim}: {detail}")
        self.claim, self.detail = claim, detail


# ---------------------------------------------------------------- making inputs


def make(seed: int, index: int) -> tuple[Input, Random]:
    chance = Random((seed << 40) + index)
    kind = chance.choices(list(KINDS), KIND_WEIGHTS)[0]
    return replace(KINDS[kind](chance), kind=kind), chance


def recorded(chance: Random) -> Input:
    """Return a real output, usually damaged. A long output is usually shortened."""
    sample = chance.choice(samples())
    text = sample.text
    if len(text) > 600 and chance.random() < 0.8:
        start = 0 if chance.random() < 0.5 else chance.randrange(len(text))
        text = text[start : start + chance.randint(50, 600)]
    for _ in range(chance.choice((0, 1, 1, 2, 3, 5))):
        text = damage(text, chance)
    told = sample.format if chance.random() < 0.5 else some_format(chance)
    prompt = sample.prompt if chance.random() < 0.8 else some_prompt(chance)
    return Input(text, told, some_finish(chance), prompt, sample.tools)


def soup(chance: Random) -> Input:
    text = "".join(chance.choices(SOUP, k=chance.randint(1, 25)))
    return Input(text, some_format(chance), some_finish(chance), some_prompt(chance))


def encoded(chance: Random) -> Input:
    name = chance.choice(list(FORMATS))
    calls = tuple(("do_everything", some_arguments(chance)) for _ in range(chance.choice((1, 1, 2))))
    told = name if chance.random() < 0.7 else None
    return Input(FORMATS[name].encode_calls(list(calls)), told, written=calls)


def damaged(chance: Random) -> Input:
    given = encoded(chance)
    text = chance.choice(("", "", "Now:\n", "<think>\nHm.\n</think>\n\n", "<think>\nHm.\n")) + given.text
    for _ in range(chance.randint(1, 4)):
        text = damage(text, chance)
    told = given.format if chance.random() < 0.8 else some_format(chance)
    return Input(text, told, some_finish(chance), some_prompt(chance))


def characters(chance: Random) -> Input:
    """Return random characters (surrogates, NUL, combining characters, all planes), mixed with some markers."""
    parts = []
    for _ in range(chance.randint(1, 30)):
        low, high = chance.choice(BLOCKS)
        parts.append("".join(chr(chance.randint(low, high)) for _ in range(chance.randint(1, 5))))
        if chance.random() < 0.3:
            parts.append(chance.choice(SOUP))
    return Input("".join(parts), some_format(chance), some_finish(chance), some_prompt(chance))


def repetition(chance: Random) -> Input:
    """Return a repetition of a few pieces."""
    size = chance.choice((30, 100, 300, 1000))
    start, unit = "".join(chance.choices(SOUP, k=chance.randint(0, 3))), ""
    while not unit:
        unit = "".join(chance.choices(SOUP, k=chance.randint(1, 3)))
    end = "".join(chance.choices(SOUP, k=chance.randint(0, 2)))
    text = start + unit * (size // len(unit) + 1) + end
    return Input(text, some_format(chance), some_finish(chance), some_prompt(chance))


KINDS: dict[str, Callable[[Random], Input]] = {
    "recorded": recorded,
    "soup": soup,
    "encoded": encoded,
    "damaged": damaged,
    "characters": characters,
    "repetition": repetition,
}
KIND_WEIGHTS = (300, 200, 150, 200, 100, 50)
BLOCKS = ((0, 31), (32, 126), (32, 126), (127, 255), (0x300, 0x36F), (0x200B, 0x2060), (0x3000, 0x30FF),
          (0xD800, 0xDFFF), (0xFE00, 0xFE0F), (0xFEFF, 0xFFFF), (0x1F300, 0x1FAFF), (0x10000, 0x10FFFF))  # fmt: skip


def some_format(chance: Random) -> str | None:
    return None if chance.random() < 0.4 else chance.choice(FORMAT_NAMES)


def some_finish(chance: Random) -> str | None:
    return chance.choice(("stop", "stop", "length", None))


def some_prompt(chance: Random) -> str:
    return "<think>\n" if chance.random() < 0.1 else ""


def damage(text: str, chance: Random) -> str:
    start = chance.randint(0, len(text))
    end = min(len(text), start + chance.choice((1, 1, 2, 5, 12, 40)))
    match chance.randrange(7):
        case 0:
            return text[:start] + text[end:]
        case 1:
            return text[:end] + text[start:]
        case 2:
            return text[:start] + text[end : end + 12] + text[start:end] + text[end + 12 :]
        case 3:
            return text[: start + (len(text) - start) * chance.randint(0, 3) // 4]
        case 4:
            return text + chance.choice(samples()).text[: chance.randint(1, 200)]
        case _:
            return text[:start] + chance.choice(SOUP) + text[start:]


def some_arguments(chance: Random) -> JsonObject:
    made: JsonObject = {}
    for name, make_value in PARAMETERS.items():
        if chance.random() < 0.4:
            made[name] = make_value(chance)
    return made


def some_string(chance: Random) -> str:
    if chance.random() < 0.3:
        return chance.choice(
            ("", "a.py", "x = 1\n", "null", "5", 'say "hi"', "it's", "C:\\new", "def f():\n    return 1\n")
        )
    return "".join(chance.choices(WELL_FORMED, k=chance.randint(1, 5)))


def some_number(chance: Random) -> int | float:
    return chance.choice((0, -1, 7, 2**64, 10**30, -0.0, 1.5, 1e-7, 1e300, chance.randint(-1000, 1000)))


def some_value(chance: Random, depth: int = 2) -> Any:
    match chance.randrange(7 if depth else 5):
        case 0:
            return None
        case 1:
            return chance.random() < 0.5
        case 2:
            return some_number(chance)
        case 5:
            return [some_value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
        case 6:
            return {some_string(chance): some_value(chance, depth - 1) for _ in range(chance.randint(0, 2))}
        case _:
            return some_string(chance)


PARAMETERS: dict[str, Callable[[Random], Any]] = {
    "text": some_string,
    "count": lambda chance: chance.choice((0, -1, 12, 2**64, 10**30)),
    "ratio": some_number,
    "flag": lambda chance: chance.random() < 0.5,
    "items": lambda chance: [some_value(chance) for _ in range(chance.randint(0, 3))],
    "options": lambda chance: {some_string(chance): some_value(chance) for _ in range(chance.randint(0, 2))},
}


@cache
def samples() -> list[Sample]:
    """Return real outputs from this project's fixtures, and from canitoolcall if installed."""
    found = []
    for path in sorted(FIXTURES.glob("cases/*/*.toml")):
        file = tomllib.loads(path.read_text(encoding="utf-8"))
        folder = path.parent.name if path.parent.name in FORMATS else None
        for case in file.get("case", [file]):
            told = case.get("format", folder)
            found.append(Sample(case["text"], ALL_TOOLS, told, case.get("generation_prompt", "")))
    for path in sorted(FIXTURES.glob("transcripts/*.jsonl")):
        steps = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        text = "".join(step["text"] for step in steps if step["kind"] == "chunk")
        found.append(Sample(text, ALL_TOOLS, steps[0]["format"]))
    try:
        from canitoolcall.fixtures import load_fixtures
    except ImportError:
        print("canitoolcall is not installed: without its outputs", file=sys.stderr)
        return found
    for fixture in sorted(load_fixtures(), key=lambda fixture: fixture.id):
        told = guess_format(fixture.models[0]) if fixture.models else None
        found.append(Sample(fixture.raw_output, ToolSet(fixture.tools), told, fixture.generation_prompt or ""))
    return found


# --------------------------------------------------------------- claims


def read(given: Input, pieces: Pieces) -> tuple[Event, ...]:
    parser = Parser(given.format, given.tools, generation_prompt=given.prompt)
    events: list[Event] = []
    for piece in pieces:
        events += parser.feed(piece)
    events += parser.close(given.finish_reason)
    return merge_deltas(events)


def check_whole(given: Input) -> tuple[Event, ...]:
    """Raise Broken if parsing the whole text at once violates a claim."""
    events = read(given, [given.text])
    if "".join([event.raw for event in events]) != given.text:
        raise Broken("lost", "the joined raw text is not the input")
    calls = [event for event in events if isinstance(event, ToolCall)]
    if len({call.id for call in calls}) != len(calls):
        raise Broken("call", "two calls with one id")
    for call in calls:
        if not REPAIRS.keys() >= {*call.fixes}:
            raise Broken("call", f"unknown fixes {call.fixes}")
        try:
            json.dumps([call.name, call.arguments], ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:
            raise Broken("call", f"arguments that are not JSON: {error}") from error
    if given.written is not None and [(call.name, call.arguments) for call in calls] != list(given.written):
        raise Broken("round trip", f"wrote {list(given.written)!r}, read {[(c.name, c.arguments) for c in calls]!r}")
    return events


def check_split(given: Input, pieces: Pieces, whole: tuple[Event, ...]) -> None:
    if read(given, pieces) != whole:
        shown = "single characters" if len(pieces) == len(given.text) else repr(list(pieces))[:300]
        raise Broken("split", f"other events when split as {shown}")


def check_stream(given: Input, pieces: Pieces, whole: tuple[Event, ...]) -> None:
    """Raise Broken if streamed arguments do not belong to a later call."""
    parser = Parser(given.format, given.tools, generation_prompt=given.prompt, stream_arguments=True)
    events: list[Event] = []
    for piece in pieces:
        events += parser.feed(piece)
    fault = stream_fault([*events, *parser.close(given.finish_reason)], whole)
    if fault is not None:
        raise Broken("stream", fault[:600])


def check_cut(given: Input, end: int, whole: tuple[Event, ...]) -> int:
    parser = Parser(given.format, given.tools, generation_prompt=given.prompt)
    before = parser.feed(given.text[:end])
    after = parser.close("length")
    if not any(isinstance(event, ToolCall) for event in after):
        return 0
    late = {event.id for event in after if isinstance(event, ToolCall)}
    spans = list(with_places(whole))
    found = 0
    for start, call in with_places([*before, *after]):
        if not isinstance(call, ToolCall) or call.id not in late:
            continue
        found += 1
        # If a list contains several calls, the last has all of its text.
        here = [_key(event) for place, event in spans if place == start and isinstance(event, ToolCall)]
        for place, event in spans:
            is_over = isinstance(event, ToolCall | InvalidToolCall) and place <= start < place + len(event.raw)
            if place == start and isinstance(event, InvalidToolCall) and _SEVERAL.search(event.raw):
                continue
            if is_over and _key(call) not in here:
                raise Broken("cut", f"up to {end} of {len(given.text)} gives {_key(call)}, the whole {event!r}")
    return found


def check_cut_short(given: Input, end: int) -> None:
    shorter = replace(given, text=given.text[:end], finish_reason=None)
    for number, call in enumerate(event for event in read(shorter, [shorter.text]) if isinstance(event, ToolCall)):
        if given.written is None or number >= len(given.written) or _key(call) != given.written[number]:
            raise Broken("cut", f"up to {end} of {len(given.text)} gives {_key(call)}")


def check_time(given: Input, seconds: float, usual: dict[tuple[bool, int], list[float]]) -> None:
    """Raise Broken if this text takes far longer than others of its length. ``usual`` collects their times."""
    known = usual.setdefault((given.format is None, len(given.text).bit_length()), [])
    if len(known) < 200:
        known.append(seconds)
        known.sort()
        return
    limit = SLOW * known[100]
    if seconds > limit and (again := best_of(lambda: read(given, [given.text]))) > limit:
        raise Broken("slow", f"{again * 1e3:.1f} ms, usual for its length: {known[100] * 1e3:.2f} ms")


def best_of(run: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def with_places(events: Sequence[Event]) -> Iterator[tuple[int, Event]]:
    """Yield each event with the offset of its raw text."""
    ends = accumulate(len(event.raw) for event in events)
    return ((end - len(event.raw), event) for end, event in zip(ends, events, strict=True))


def _key(call: ToolCall) -> tuple[str, JsonObject]:
    return call.name, call.arguments


def random_pieces(text: str, chance: Random) -> list[str]:
    if chance.random() < 0.5:
        cuts = sorted(chance.randint(0, len(text)) for _ in range(3))
        return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    pieces, start, longest = [], 0, chance.choice((4, 16, 64))
    while start < len(text):
        end = start + chance.randint(1, longest)
        pieces.append(text[start:end])
        start = end
    return pieces


def check(given: Input, chance: Random, report: Report, usual: dict[tuple[bool, int], list[float]]) -> None:
    text = given.text
    start = time.perf_counter()
    events = check_whole(given)
    check_time(given, time.perf_counter() - start, usual)
    report.calls += sum(isinstance(event, ToolCall) for event in events)
    pieces = random_pieces(text, chance)
    check_split(given, pieces, events)
    check_stream(given, pieces, events)
    if chance.random() < 0.1:
        check_split(given, list(text), events)
    if text:
        report.calls_at_a_cut += check_cut(given, chance.randrange(len(text)), events)
        if given.written is not None:
            check_cut_short(given, chance.randrange(len(text)))


def check_thoroughly(given: Input, chance: Random) -> None:
    """Check the claims with every split in two and every cut, to shorten a failure."""
    events = check_whole(given)
    text = given.text
    check_split(given, list(text), events)
    check_stream(given, list(text), events)
    places = range(1, len(text)) if len(text) < 400 else sorted(chance.sample(range(1, len(text)), 400))
    for at in places:
        check_split(given, [text[:at], text[at:]], events)
        check_stream(given, [text[:at], text[at:]], events)
        check_cut(given, at, events)
        if given.written is not None:
            check_cut_short(given, at)
    for _ in range(20):
        check_split(given, random_pieces(text, chance), events)


# ------------------------------------------------------------------------- runs


def run_range(seed: int, start: int, count: int) -> Report:
    report = Report()
    signal.signal(signal.SIGVTALRM, _give_up)
    for index in range(start, start + count):
        given, chance = make(seed, index)
        signal.setitimer(signal.ITIMER_VIRTUAL, HANGS_S)
        try:
            check(given, chance, report, _usual)
        except Broken as broken:
            report.failures.append(Failure(index, broken.claim, broken.detail, given))
        except Exception as error:  # noqa: BLE001 - that none escapes is the claim
            report.failures.append(Failure(index, f"raises {type(error).__name__}", str(error)[:200], given))
        report.done += 1
        report.characters += len(given.text)
        report.kinds[given.kind] += 1
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return report


_usual: dict[tuple[bool, int], list[float]] = {}
"""Seconds by length class in this process, separately for given and detected formats."""


def _give_up(*_: object) -> None:
    raise TimeoutError(f"not read to its end within {HANGS_S} s")


def claim_broken(given: Input) -> str | None:
    try:
        check_thoroughly(given, Random(1))
    except Broken as broken:
        return broken.claim
    except Exception as error:  # noqa: BLE001
        return f"raises {type(error).__name__}"
    return None


def shorten_input(failure: Failure) -> Input:
    """Return the shortest input found that still fails, or the original one if the failure is not reproducible."""
    if failure.given.written is not None or failure.claim == "slow":
        return failure.given
    given = replace(failure.given, tools=ALL_TOOLS)
    if claim_broken(given) != failure.claim and claim_broken(given := failure.given) != failure.claim:
        return given
    text, size = given.text, max(1, len(given.text) // 2)
    ends_at = time.monotonic() + SHORTENING_S
    while time.monotonic() < ends_at:
        for start in range(0, len(text), size):
            shorter = text[:start] + text[start + size :]
            if claim_broken(replace(given, text=shorter)) == failure.claim:
                text = shorter
                break
        else:
            if size == 1:
                break
            size //= 2
    return replace(given, text=text)


def show(failure: Failure) -> None:
    given = shorten_input(failure)
    try:
        check_thoroughly(given, Random(1))
        detail = failure.detail
    except Exception as error:  # noqa: BLE001
        detail = str(error)
    offered = "ALL_TOOLS" if list(given.tools) == list(ALL_TOOLS) else f"TOOLS of {failure.index}: {list(given.tools)}"
    print(f"\n{failure.claim} (input {failure.index}, {given.kind}): {detail}")
    text = (
        repr(given.text) if len(given.text) < 3_000 else f"{given.text[:300]!r} ... of {len(given.text):,} characters"
    )
    print(
        f"    parse({text}, {offered}, {given.format!r}, {given.finish_reason!r}, generation_prompt={given.prompt!r})"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=20_000, help="inputs to read")
    parser.add_argument("--start", type=int, default=0, help="the number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    options = parser.parse_args()
    started = time.monotonic()
    ranges = [
        (options.seed, start, min(RANGE, options.start + options.count - start))
        for start in range(options.start, options.start + options.count, RANGE)
    ]
    samples()
    total = Report()
    with stopping.stoppable() as stop, multiprocessing.Pool(options.jobs, stopping.leave_to_parent) as pool:
        for report in pool.imap(run_one_range, ranges):
            total.add(report)
            progress(total, options.count, time.monotonic() - started)
            if stop.is_set() or time.monotonic() - started > options.seconds:
                pool.terminate()
                break
    seconds = time.monotonic() - started
    print(f"\nseed {options.seed}, inputs {options.start} to {options.start + total.done - 1}: {total.done:,} inputs, "
          f"{total.characters:,} characters, {len(samples())} real outputs, {len(FORMATS)} formats and none told, "
          f"{seconds:.0f} s with {options.jobs} jobs")  # fmt: skip
    print(", ".join(f"{kind} {count:,}" for kind, count in total.kinds.most_common()))
    print(f"{total.calls:,} calls read; {total.calls_at_a_cut:,} bare ones complete where a text was cut")
    report_failures(total.failures)
    if total.done < options.count:
        print(f"go on with --start {options.start + total.done}")
    return 1 if total.failures else 0


def run_one_range(arguments: tuple[int, int, int]) -> Report:
    return run_range(*arguments)


def progress(total: Report, count: int, seconds: float) -> None:
    rate = total.done / seconds
    left = (count - total.done) / rate
    line = (
        f"\r{total.done:,} of {count:,}, {rate:,.0f} a second, {left / 60:.1f} min left, {len(total.failures)} failed"
    )
    print(f"{line}   ", end="", file=sys.stderr, flush=True)


def report_failures(failures: Sequence[Failure]) -> None:
    groups: dict[tuple[str, str | None], list[Failure]] = {}
    for failure in failures:
        groups.setdefault((failure.claim, failure.given.format), []).append(failure)
    for (claim, format), group in groups.items():
        print(f"{claim}, format {format}: {len(group)}", flush=True)
    for group in groups.values():
        for failure in sorted(group, key=lambda failure: len(failure.given.text))[:MAX_SHOWN]:
            show(failure)
    print(f"{len(failures)} failures" if failures else "no failures")


if __name__ == "__main__":
    stopping.run(main)
