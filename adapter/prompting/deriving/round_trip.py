"""Check a format against a chat template by parsing sample calls that both have written.

Each text is parsed in one chunk and in single characters. The arguments contain values that often break parsers:
quotes, line breaks, non-Latin scripts, empty strings, numbers as strings, and the model family's markers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.parsing.parse_policy import LENIENT
from adapter.parsing.parser import Parser
from adapter.prompting.deriving.probe_conversations import (
    ANSWER,
    KEY,
    NAME,
    NO_ARGUMENTS,
    ONE_CALL,
    OTHER_KEY,
    TOOL_SET,
    TWO_CALLS,
    Call,
)
from adapter.prompting.deriving.prompt_layout import PromptFrame

_OWN_ONLY = replace(LENIENT, allow_other_formats=False)

MAX_QUOTED = 500
"""Maximum length of text quoted in messages, in characters."""

QUOTED = 'a "b" \'c\' \\d\\n `e` {"f": [1]} <g> & %h'
ONE_CALL_SAMPLE, TWO_CALLS_SAMPLE = "one string", "two calls"
_QUOTES = "quotes and brackets"
_CALLS: dict[str, list[Call]] = {
    ONE_CALL_SAMPLE: ONE_CALL,
    TWO_CALLS_SAMPLE: TWO_CALLS,
    "no arguments": NO_ARGUMENTS,
    _QUOTES: [(NAME, {KEY: QUOTED})],
    "line breaks": [(NAME, {KEY: "first\n\n  second\ttab\nlast", OTHER_KEY: "x"})],
    "a last line break": [(NAME, {KEY: "text\n"})],
    "other scripts": [(NAME, {KEY: "Ünï 漢字 🙂 \u00a0"})],
    "an empty string": [(NAME, {KEY: "", OTHER_KEY: "y"})],
    "strings that look like other types": [(NAME, {KEY: "12", OTHER_KEY: "true"})],
    "types": [(NAME, {"zqcount": 3, "zqratio": -0.25, "zqflag": False, "zqlist": [1, "é", {"k": []}]})],
    "nested": [(NAME, {"zqmap": {"a": {"b": ["c\nd", 'e"f', 1.5, None, True]}}, KEY: "z"})],
    "three calls": [*TWO_CALLS, (NAME, {KEY: "third\n"})],
}


@dataclass(frozen=True, slots=True)
class RoundTripSample:
    """A sample answer, with its calls and content.

    ``rendered`` is the answer as rendered by the template, or None if the template cannot render the answer.
    ``is_ambiguous``: whether ``rendered`` can be parsed in several ways, because the template does not escape values.
    """

    name: str
    calls: Sequence[Call]
    rendered: str | None
    content: str = ""
    is_ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class RoundTripFailure:
    """A sample that was parsed wrongly: the text ``written`` was parsed as ``parsed`` instead of ``expected``.

    ``writer`` names the writer of the text: the template or the format.
    """

    sample: str
    writer: str
    written: str
    expected: str
    parsed: str
    is_ambiguous: bool = False

    def __str__(self) -> str:
        written, parsed, expected = (text[:MAX_QUOTED] for text in (self.written, self.parsed, self.expected))
        return f"{self.sample}, by {self.writer}: {written!r} was parsed as {parsed}, not as {expected}"


def render_round_trip_samples(
    frame: PromptFrame, markers: Sequence[str], *, ends_line: bool = False
) -> tuple[RoundTripSample, ...]:
    """Render the sample answers. In one of them, a string contains the model family's ``markers``.

    ``ends_line``: whether only a line break ends a value. It is then ambiguous whether a second line break belongs to
    the value.
    """
    with_markers: list[Call] = [(NAME, {KEY: f"a {' b '.join(markers)} c", OTHER_KEY: "d"})]
    quoted = frame.render_calls(_CALLS[_QUOTES])
    # Without escapes, a quote or marker in a string looks like a real one.
    is_raw = quoted is not None and QUOTED in quoted
    is_quoted = quoted is not None and any(QUOTED.join((quote, quote)) in quoted for quote in "\"'")
    samples = [
        RoundTripSample(
            name,
            calls,
            frame.render_calls(calls),
            is_ambiguous=(is_quoted and name in (_QUOTES, "nested", "types"))
            or (ends_line and any(str(value).endswith("\n") for _, values in calls for value in values.values())),
        )
        for name, calls in _CALLS.items()
    ]
    samples.append(
        RoundTripSample(
            "the format's markers in a string", with_markers, frame.render_calls(with_markers), is_ambiguous=is_raw
        )
    )
    one = samples[0].rendered
    if one is not None:
        samples.append(RoundTripSample("with the end of the turn", ONE_CALL, one + frame.end))
    for name, calls in {"one call after text": ONE_CALL, "two calls after text": TWO_CALLS}.items():
        answer = frame.render_answer(calls, ANSWER)
        # After text, a call without a marker or line break is part of the text.
        is_glued = answer is not None and re.match(r"\w|[{\[\"]", answer.partition(ANSWER)[2]) is not None
        samples.append(RoundTripSample(name, calls, answer, ANSWER, is_ambiguous=is_glued))
    samples.append(RoundTripSample("text without a call", (), _render_plain(frame), ANSWER))
    return tuple(samples)


def _render_plain(frame: PromptFrame) -> str | None:
    if frame.turns.plain is None:
        return None
    before, generation_prompt = frame.turns.plain[0], frame.turns.generation_prompt
    return f"{before.removeprefix(generation_prompt) if before.startswith(generation_prompt) else ''}{ANSWER}"


def find_round_trip_failures(
    format: Format, samples: Sequence[RoundTripSample], *, writes: bool = True
) -> tuple[RoundTripFailure, ...]:
    """Return a failure for each sample that ``format`` parses wrongly.

    The samples' rendered texts are parsed and, if ``writes`` is true, also the texts that the format's encoder writes.
    """
    failures = []
    for sample in samples:
        texts = {} if sample.rendered is None else {"the template": sample.rendered}
        if writes and sample.calls and not sample.content:
            texts["the format"] = format.encode_calls(list(sample.calls))
        expected = _format(sample.calls, sample.content)
        for writer, text in texts.items():
            # Whole and in single characters; text much longer than real calls, in longer chunks.
            for size in (len(text), 1 + len(text) // 4_000):
                parsed = _parse(text, size, format)
                if parsed != expected:
                    failures.append(RoundTripFailure(sample.name, writer, text, expected, parsed, sample.is_ambiguous))
                    break
    return tuple(failures)


def _parse(text: str, size: int, format: Format) -> str:
    """Parse ``text`` in chunks of ``size`` characters, and return its calls and content in readable form."""
    parser = Parser(format, TOOL_SET, policy=_OWN_ONLY, generation_prompt="")
    events = [event for start in range(0, len(text), size or 1) for event in parser.feed(text[start : start + size])]
    turn = Turn.from_events([*events, *parser.close("stop")])
    if turn.invalid:
        return f"an error: {turn.invalid[0].error}"
    return _format([(call.name, call.arguments) for call in turn.calls], turn.content.strip())


def _format(calls: Sequence[Call], content: str) -> str:
    """Return calls and content in readable form. Arguments are sorted, because some templates sort them."""
    text = ", ".join(f"{name}({json.dumps(values, sort_keys=True, ensure_ascii=False)})" for name, values in calls)
    return f"{content!r} and [{text}]" if content else f"[{text}]"
