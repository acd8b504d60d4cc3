"""Encoded calls are parsed back unchanged, for any arguments."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from adapter.core.events import JsonObject, ToolCall
from adapter.parsing.formats import FORMATS, get_format
from adapter.parsing.parser import parse
from adapter.tools.coercion import get_type_name
from adapter.tools.tool import Tool
from tests.effort import EFFORT, examples
from tests.parsing.checks import read
from tests.parsing.formats.soup import FILE_FORMATS, PIECES, characters

MARKERS = sorted({token for entry in FORMATS.values() for token in (*entry.special_tokens, *entry.end_tokens)})

PARTS = [*MARKERS, *(piece for piece in PIECES if piece != "\ud800"), "\n", " ", '"', "&", "null", "```"]
texts = some.lists(some.text(characters) | some.sampled_from(PARTS), max_size=5).map("".join)
values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
keys = some.from_regex(r"[a-z][a-z_0-9]{0,8}", fullmatch=True) | texts
TOGETHER = max(1, 15 // EFFORT)
"""Markers of other formats that are arguments of one call."""
calls = some.lists(
    some.tuples(some.sampled_from(["save", "find_it"]), some.dictionaries(keys, values, max_size=4)),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("name", [*FORMATS, *FILE_FORMATS])
@given(written=calls)
@example([("save", {})])
@example([("save", {"text": "  a\n\n", "note": "\tb "})])
@example([("save", {"text": "<![CDATA[a]]>", "note": " <![CDATA[b\n"})])
@example([("save", {"text": "", "count": 10**399})])
@example([("save", {"text": "\n\n a </parameter>\n</function>\n</tool_call> \r\n"}), ("find_it", {"text": "null"})])
@examples(5)
def test_encoded_calls_are_parsed_back(name, written):
    """D9: markers inside strings, any characters, nesting and emptiness survive without a repair."""
    _check(name, written)


@pytest.mark.parametrize("name", [*FORMATS, *FILE_FORMATS])
def test_marker_in_argument_is_data(name):
    """No marker, of this format or another, ends a string that contains it."""
    own = {*(opener.marker for opener in get_format(name).openers), *get_format(name).stray_closers}
    for marker in sorted(own):
        _check(name, [("save", _holding(marker))])
    others = sorted({*MARKERS} - own)
    for start in range(0, len(others), TOGETHER):
        _check(name, [("save", _holding(*others[start : start + TOGETHER]))])


@pytest.mark.parametrize("name", [*FORMATS, *FILE_FORMATS])
def test_only_argument_may_be_a_marker_in_capitals_or_without_its_bracket(name):
    entry = get_format(name)
    own = [*(opener.marker for opener in entry.openers[:5]), *entry.stray_closers[:5], *entry.special_tokens[:5]]
    for text in ("command: {x}", "<arg_value", *(f"a {marker} b" for marker in own), *map(str.upper, own)):
        _check(name, [("save", {"text": text})])


@pytest.mark.parametrize("name", [*FORMATS, *FILE_FORMATS])
def test_value_that_ends_in_a_tag_of_its_name_is_parsed_back(name):
    """Such a tag may be the end of the value that a model wrote, so encoders avoid it."""
    _check(name, [("save", {"city": "the end tag is </city>", "area": "</area> \n"})])


@pytest.mark.parametrize("name", [*FORMATS, *FILE_FORMATS])
def test_lines_may_end_in_a_carriage_return_and_a_line_feed(name):
    written: list[tuple[str, JsonObject]] = [("save", {"text": "a b", "count": 3}), ("find_it", {"text": "c"})]
    text = get_format(name).encode_calls(written).replace("\n", "\r\n")
    _expect(text, written, name)
    read(text, tools=[_tool_for(*call) for call in written], format=name)


@pytest.mark.parametrize("name", [*FORMATS, *FILE_FORMATS])
def test_closing_marker_cut_by_the_end_is_no_text(name):
    """After a call, the beginning of any closing marker of the format is markup."""
    call = get_format(name).encode_calls([("get_weather", {"city": "Bern"})])
    for closer in get_format(name).stray_closers:
        turn = parse(f"{call}\n{closer[:-1]}", format=name)
        assert ([each.name for each in turn.calls], turn.content.strip()) == (["get_weather"], ""), closer


@pytest.mark.parametrize("name", [*FORMATS, *FILE_FORMATS])
def test_name_that_looks_like_a_tag_is_parsed_back(name):
    """A name may hold the characters between a name and a value in a model's broken tags."""
    _check(name, [("save", {"a=b": "x", "parameter=c": "y", "d e": "z", "name: f": ""})])


def _holding(*markers: str) -> JsonObject:
    """Yield arguments that contain each marker in four ways."""
    found: JsonObject = {}
    for at, marker in enumerate(markers):
        found |= {f"a{at}": marker, f"b{at}": f"x {marker}", f"c{at}": f"{marker}\ny", f"d{at}": [marker]}
    return found


@pytest.mark.parametrize("name", [*FORMATS, *FILE_FORMATS])
def test_long_argument_name_is_parsed_back(name):
    """Up to, at and beyond the limit for the name of a tag."""
    for limit in (100, 200, 300, 400, 3_000):
        for length in (limit - 3, limit - 2, limit - 1, limit, limit + 1):
            _check(name, [("save", {"k" * length: "v"})])
    _check(name, [("save", {"&" * 100: "v"})])  # five times as long where it is escaped


def _check(name: str, written: list[tuple[str, JsonObject]]) -> None:
    entry = get_format(name)
    for expected_format in (name, None) if name in FORMATS else (name,):
        for call in written:
            _expect(entry.encode_calls([call]), [call], expected_format)
        if len(written) > 1 and all(arguments == written[0][1] for _, arguments in written):
            _expect(entry.encode_calls(written), written, expected_format)


def _expect(text: str, written: list[tuple[str, JsonObject]], expected_format: str | None) -> None:
    tools = [_tool_for(tool, arguments) for tool, arguments in written]
    turn = parse(text, tools, expected_format, "stop", generation_prompt="")
    found = [event for event in turn.events if isinstance(event, ToolCall)]
    assert [(call.name, call.arguments) for call in found] == written, text
    assert turn.content == ""
    if expected_format is not None:
        assert not any(call.fixes for call in found), text


def _tool_for(name: str, arguments: JsonObject) -> Tool:
    properties = {key: {"type": get_type_name(value)} for key, value in arguments.items()}
    return Tool(name, parameters={"type": "object", "properties": properties})
