"""Checks a derived format before it is used: what the template writes is read back, and so is what the format writes.

The values are those that break parsers: quotes, line breaks, other scripts, nothing, numbers in texts, and the
family's own markers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from adapter.deriving.frame import Frame
from adapter.deriving.trials import KEY, NAME, NO_ARGUMENTS, ONE, SAID, SECOND, TOOL_SET, TWO_CALLS, Call
from adapter.formats.parser import Parser
from adapter.reading.format import Format
from adapter.reading.policy import LENIENT
from adapter.values.turn import Turn

_OWN_ONLY = replace(LENIENT, foreign=False)

QUOTED = "a \"b\" 'c' \\d\\n `e` {\"f\": [1]} <g> & %h"
LINES = "first\n\n  second\ttab\nlast"
SAMPLES: dict[str, list[Call]] = {
    "a text": ONE,
    "no arguments": NO_ARGUMENTS,
    "quotes and brackets": [(NAME, {KEY: QUOTED})],
    "line breaks": [(NAME, {KEY: LINES, SECOND: "x"})],
    "a last line break": [(NAME, {KEY: "text\n"})],
    "other scripts": [(NAME, {KEY: "Ünï 漢字 🙂 \u00a0"})],
    "an empty text": [(NAME, {KEY: "", SECOND: "y"})],
    "texts like other types": [(NAME, {KEY: "12", SECOND: "true"})],
    "types": [(NAME, {"zqcount": 3, "zqratio": -0.25, "zqflag": False, "zqlist": [1, "é", {"k": []}]})],
    "nested": [(NAME, {"zqmap": {"a": {"b": ["c\nd", 'e"f', 1.5, None, True]}}, KEY: "z"})],
    "several": [*TWO_CALLS, (NAME, {KEY: "third\n"})],
}


@dataclass(frozen=True, slots=True)
class Miss:
    """``what`` was written and how it was read. ``is_limit``: the family's form cannot say it, whoever reads."""

    what: str
    written: str
    expected: str
    read: str
    is_limit: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.written!r} was read as {self.read}, not as {self.expected}"


def check(frame: Frame, format: Format, markers: Sequence[str], *, escapes: bool) -> list[Miss]:
    """All misses. ``markers``: the family's own. ``escapes``: its values can hold these."""
    return list(_misses(frame, format, markers, escapes))


def _misses(frame: Frame, format: Format, markers: Sequence[str], escapes: bool) -> Iterator[Miss]:
    acting: list[Call] = [(NAME, {KEY: f"a {' b '.join(markers)} c", SECOND: "d"})]
    for what, calls in {**SAMPLES, "its own markers in a text": acting}.items():
        is_limit = calls is acting and not escapes
        written = frame.calls(calls)
        if written is not None:
            yield from _compare(f"{what}, by the template", written, calls, "", format, is_limit=is_limit)
            if calls is ONE:
                yield from _compare("with the end of the turn", written + frame.end, calls, "", format)
        yield from _compare(f"{what}, by the format", format.encode_calls(calls), calls, "", format, is_limit=is_limit)
    for what, calls in {"after words": ONE, "several after words": TWO_CALLS, "words alone": []}.items():
        answer = frame.answer(calls, SAID) if calls else _plain(frame)
        if answer is not None:
            yield from _compare(what, answer, calls, SAID, format)


def _plain(frame: Frame) -> str | None:
    if frame.turns.plain is None:
        return None
    before, opened = frame.turns.plain[0], frame.turns.opened
    return f"{before.removeprefix(opened) if before.startswith(opened) else ''}{SAID}"


def _compare(
    what: str, written: str, calls: Sequence[Call], content: str, format: Format, *, is_limit: bool = False
) -> Iterator[Miss]:
    expected = _shown(calls, content)
    for pieces in ([written], list(written)):
        read = _read(pieces, format)
        if read != expected:
            yield Miss(what, written, expected, read, is_limit)
            return


def _read(pieces: Sequence[str], format: Format) -> str:
    parser = Parser(format, TOOL_SET, policy=_OWN_ONLY, generation_prompt="")
    events = [event for piece in pieces for event in parser.feed(piece)]
    turn = Turn.from_events([*events, *parser.close("stop")])
    if turn.invalid:
        return f"an error: {turn.invalid[0].error}"
    return _shown([(call.name, call.arguments) for call in turn.calls], turn.content.strip())


def _shown(calls: Sequence[Call], content: str) -> str:
    """For people, and equal where the content and the calls are: some templates sort the arguments."""
    written = ", ".join(f"{name}({json.dumps(arguments, sort_keys=True, ensure_ascii=False)})" for name, arguments in calls)
    return f"{content!r} and [{written}]" if content else f"[{written}]"
