"""The public conformance suite (PyPI: canitoolcall) through our parser.

It has recorded outputs of real models with the right parse. Its texts are not copied here, because of their licenses.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from adapter.parsing.formats import guess_format
from adapter.tools.tool_set import ToolSet
from tests.each import each
from tests.parsing.checks import random_pieces, read_pieces

canitoolcall = pytest.importorskip("canitoolcall", reason="the conformance suite is a development dependency")

from canitoolcall.fixtures import Fixture, load_fixtures  # noqa: E402
from canitoolcall.pytest_plugin import assert_conforms  # noqa: E402
from canitoolcall.results import ParsedToolCall, ParseResult  # noqa: E402

from adapter.core.events import Event  # noqa: E402
from adapter.core.turn import Turn  # noqa: E402

TOLD = {"qwen3-hermes": "hermes", "qwen3-xml": "qwen3_coder"}
"""The formats of these families; for the others, the model's name shows it."""

WHITE_SPACE_ONLY = {"gemma4/vllm-text-before-call"}
"""Right except for a space before the call, which Gemma's template never writes and we keep."""

NEEDS_THE_PROMPT = {
    "glm/glm47-truncated-in-reasoning",
    "kimi/k26-truncated-in-reasoning",
    "kimi/k3-bug-truncated-reasoning-recorded",
    "kimi/k3-truncated-in-reasoning",
}
"""Reasoning without any marker: only the given format or the prompt shows that it is reasoning."""

FIXTURES = list(load_fixtures())


WAYS: dict[str, Callable[[str], Sequence[str]]] = {
    "whole": lambda text: [text],
    "in chunks": lambda text: random_pieces(text, random.Random(1), 8),
    "in characters": list,
}


def expected_outcome(fixture: Fixture, *, is_told: bool) -> str:
    """Return ``pass``, ``soft`` (right except for whitespace) or ``fail``, as counted in the README's table."""
    if not is_told and fixture.id in NEEDS_THE_PROMPT:
        return "fail"
    return "soft" if fixture.id in WHITE_SPACE_ONLY else "pass"


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "detected"])
@pytest.mark.parametrize("family", sorted({fixture.family for fixture in FIXTURES}))
def test_conforms(family, is_told):
    """Content, reasoning and calls are as expected for any chunks, no better and no worse."""
    each({one.id: one for one in FIXTURES if one.family == family}, partial(conforms, is_told=is_told))


def conforms(fixture, is_told):
    expected = expected_outcome(fixture, is_told=is_told)
    for pieces in (split(fixture.raw_output) for split in WAYS.values()):
        events = read_pieces(
            pieces,
            format=(TOLD.get(fixture.family) or guess_format(fixture.models[0])) if is_told else None,
            tools=ToolSet(fixture.tools),
            finish_reason="length" if "truncated" in fixture.tags else "stop",
            generation_prompt=fixture.generation_prompt,
        )
        assert "".join(event.raw for event in events) == fixture.raw_output
        found, difference = outcome(fixture, _result(events))
        assert found == expected, difference


def test_the_suite_is_all_there():
    """A renamed family must not drop out silently."""
    assert len(FIXTURES) >= 469
    assert all(TOLD.get(fixture.family) or guess_format(fixture.models[0]) for fixture in FIXTURES)


def outcome(fixture: Fixture, result: ParseResult) -> tuple[str, str]:
    """Return the suite's outcome of a result, and a description of the difference."""
    difference = ""
    for name, soft in (("pass", False), ("soft", True)):
        try:
            assert_conforms(fixture, result, soft=soft)
        except AssertionError as error:
            difference = str(error)
        else:
            return name, difference
    return "fail", difference


def conformance_table() -> str:
    """Return the outcomes by family: passes, soft passes and failures."""
    columns = [(f"given, {way}", True) for way in WAYS] + [("detected, any way", False)]
    rows = [f"| family | outputs | {' | '.join(label for label, _ in columns)} |", "|---|--:" + "|--:" * 4 + "|"]
    families = sorted({fixture.family for fixture in FIXTURES})
    for family in (*families, "all"):
        chosen = [fixture for fixture in FIXTURES if family in (fixture.family, "all")]
        cells = []
        for _, is_told in columns:
            counts = Counter(expected_outcome(fixture, is_told=is_told) for fixture in chosen)
            cells.append(f"{counts['pass']}-{counts['soft']}-{counts['fail']}")
        rows.append(f"| {family} | {len(chosen)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _result(events: tuple[Event, ...]) -> ParseResult:
    turn = Turn.from_events(events)
    calls = tuple(ParsedToolCall(call.name, json.dumps(call.arguments)) for call in turn.calls)
    return ParseResult(turn.content or None, turn.reasoning or None, calls)
