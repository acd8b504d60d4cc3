"""What a format's encoder writes, its reader reads back: the same calls, whatever the arguments are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from adapter.core.events import JsonObject, ToolCall
from adapter.parsing.formats import FORMATS, get_format
from adapter.parsing.parser import parse
from adapter.tools.coercion import type_name
from adapter.tools.tool import Tool
from tests.effort import EFFORT, examples

MARKERS = sorted({token for entry in FORMATS.values() for token in (*entry.special_tokens, *entry.end_tokens)})

texts = some.lists(some.text() | some.sampled_from([*MARKERS, "\n", " ", '"', "&", "null", "```"]), max_size=5).map(
    "".join
)
values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
keys = some.from_regex(r"[a-z][a-z_0-9]{0,8}", fullmatch=True) | texts
TOGETHER = max(1, 5 // EFFORT)
"""Markers of other formats that are arguments of one call."""
calls = some.lists(
    some.tuples(some.sampled_from(["save", "find_it"]), some.dictionaries(keys, values, max_size=4)),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("name", FORMATS)
@given(written=calls)
@examples(6)
def test_encoded_calls_are_read_back(name, written):
    """Markers inside strings, any characters, nesting and emptiness survive; no repair is needed."""
    _check(name, written)


@pytest.mark.parametrize("name", FORMATS)
def test_a_marker_in_an_argument_is_data(name):
    """No marker, the format's own or another's, ends a string that holds it, wherever it stands there."""
    own = {*(opener.marker for opener in get_format(name).openers), *get_format(name).stray_closers}
    for marker in sorted(own):
        _check(name, [("save", _holding(marker))])
    others = sorted({*MARKERS} - own)
    for start in range(0, len(others), TOGETHER):
        _check(name, [("save", _holding(*others[start : start + TOGETHER]))])


def _holding(*markers: str) -> JsonObject:
    """Arguments that hold each marker in four ways."""
    found: JsonObject = {}
    for at, marker in enumerate(markers):
        found |= {f"a{at}": marker, f"b{at}": f"x {marker}", f"c{at}": f"{marker}\ny", f"d{at}": [marker]}
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_a_long_name_of_an_argument_is_read_back(name):
    """Up to, at and beyond what a reader takes for the name of a tag."""
    for limit in (100, 200, 300, 400, 3_000):
        for length in (limit - 3, limit - 2, limit - 1, limit, limit + 1):
            _check(name, [("save", {"k" * length: "v"})])
    _check(name, [("save", {"&" * 100: "v"})])  # five times as long where it is escaped


def _check(name: str, written: list[tuple[str, JsonObject]]) -> None:
    entry = get_format(name)
    for told in (name, None):
        for call in written:
            _expect(entry.encode_calls([call]), [call], told)
        if len(written) > 1 and all(arguments == written[0][1] for _, arguments in written):
            _expect(entry.encode_calls(written), written, told)


def _expect(text: str, written: list[tuple[str, JsonObject]], told: str | None) -> None:
    tools = [_tool_for(tool, arguments) for tool, arguments in written]
    turn = parse(text, tools, told, "stop", generation_prompt="")
    found = [event for event in turn.events if isinstance(event, ToolCall)]
    assert [(call.name, call.arguments) for call in found] == written, text
    assert turn.content == ""
    if told is not None:
        assert not any(call.fixes for call in found), text


def _tool_for(name: str, arguments: JsonObject) -> Tool:
    properties = {key: {"type": type_name(value)} for key, value in arguments.items()}
    return Tool(name, parameters={"type": "object", "properties": properties})
