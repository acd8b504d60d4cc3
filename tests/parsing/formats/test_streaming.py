"""A call while it is being written: progress for displays, and argument deltas for clients that request them."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.core.events import Event, InvalidToolCall, ToolCall, ToolCallDelta, ToolCallProgress
from adapter.core.turn import Turn, merge_deltas
from adapter.parsing import call_progress
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import Parser
from adapter.tools.tool_set import ToolSet
from tests.parsing.checks import random_pieces, stream_fault
from tests.parsing.formats.soup import EVERYTHING, damaged, soup
from tests.parsing.formats.test_cases import FOLDER, load
from tests.parsing.formats.test_cases import TOOLS as CASE_TOOL_DEFINITIONS
from tests.processor_time import processor_limit

TOOLS = ToolSet(
    [
        {
            "name": "write_file",
            "parameters": {
                "properties": {
                    "path": {"type": "string"},
                    "content": {"type": "string"},
                    "mode": {"type": "integer"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                }
            },
        },
        {"name": "read_file", "parameters": {"properties": {"path": {"type": "string"}}}},
        {"name": "bash", "parameters": {"properties": {"command": {"type": "string"}}}},
        EVERYTHING,
    ]
)
CASE_TOOLS = ToolSet([*CASE_TOOL_DEFINITIONS, EVERYTHING])
ARGUMENTS = {"path": "src/a.py", "content": 'def f():\n\treturn "x"  # é😀 {}\n' * 40}
WRITE_JSON = ["hermes", "kimi_k2", "deepseek_v3", "deepseek_v31", "mistral", "harmony", "granite", "cohere", "react"]
"""Formats of every kind in which the arguments are one JSON object behind markers."""


@pytest.fixture(autouse=True, scope="module")
def emitted_at_once():
    """Emit the first piece of the arguments at once, so that short calls show when each piece is certain."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call_progress, "FIRST_PIECE", 0)
        yield


def stream(text: str, name: str | None, size: int = 4, **options: Any) -> list[Event]:
    return in_pieces([text[at : at + size] for at in range(0, len(text), size)], name, **options)


def in_pieces(
    pieces: list[str],
    name: str | None,
    finish_reason: str = "stop",
    *,
    tools: ToolSet = TOOLS,
    prompt: str = "",
    **options: Any,
) -> list[Event]:
    parser = Parser(name, tools, generation_prompt=prompt, **options)
    return [event for piece in pieces for event in parser.feed(piece)] + parser.close(finish_reason)


def streamed(events: list[Event]) -> dict[str, str]:
    """Return the joined pieces by call id."""
    joined: dict[str, str] = {}
    for event in events:
        if isinstance(event, ToolCallDelta):
            joined[event.id] = joined.get(event.id, "") + event.arguments
    return joined


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("tools", ["known", "unknown"])
def test_progress_reports_name_and_size(name, tools):
    """Early, in every format; the joined pieces are the call as far as it was open."""
    text = FORMATS[name].encode_calls([("write_file", ARGUMENTS)])
    parser = Parser(name, TOOLS if tools == "known" or name == "tool_elements" else (), generation_prompt="")
    events = [event for at in range(0, len(text), 4) for event in parser.feed(text[at : at + 4])]
    progress = [event for event in events if isinstance(event, ToolCallProgress)]
    so_far = "".join(event.text for event in progress)
    assert so_far in text
    assert len(so_far) > len(text) - 80
    assert [event.size for event in progress] == [
        sum(len(event.text) for event in progress[: count + 1]) for count in range(len(progress))
    ]
    names = [event.name for event in progress]
    assert set(names) <= {None, "write_file"}
    if tools == "known" or name in ("hermes", "qwen3_coder", "harmony", "kimi_k2"):
        assert "write_file" in names[:30]


@pytest.mark.parametrize("name", FORMATS)
def test_argument_deltas_join_to_call_arguments(name):
    """In every format, for two calls with ids of their own."""
    text = FORMATS[name].encode_calls([("write_file", ARGUMENTS), ("read_file", {"path": "b"})])
    events = stream(text, name, stream_arguments=True)
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [("write_file", ARGUMENTS), ("read_file", {"path": "b"})]
    assert {key: json.loads(value) for key, value in streamed(events).items()} == {
        call.id: call.arguments for call in calls
    }
    assert [event.raw for event in merge_deltas(events)] == [event.raw for event in merge_deltas(stream(text, name))]


@pytest.mark.parametrize("name", WRITE_JSON)
def test_json_arguments_are_streamed_immediately(name):
    """Every piece that contains text of a string is emitted before the next piece, unless an escape in it may begin a
    LaTeX command."""
    text = FORMATS[name].encode_calls([("write_file", ARGUMENTS)])
    for expected_format, size in itertools.product((name, None), (1, 4)):
        events = stream(text, expected_format, size, stream_arguments=True)
        deltas = [event for event in events if isinstance(event, ToolCallDelta)]
        assert len(deltas) > len(json.dumps(ARGUMENTS, ensure_ascii=False)) / size * 0.7


def test_argument_deltas_need_the_option():
    assert not streamed(stream(FORMATS["hermes"].encode_calls([("write_file", ARGUMENTS)]), "hermes"))


REPAIRED = {
    "an alias": ('{"filename": "a", "contents": "b"}', {"path": "a", "content": "b"}),
    "a type": ('{"path": "a", "mode": "7", "tags": "x"}', {"path": "a", "mode": 7, "tags": ["x"]}),
    "raw line breaks": ('{"path": "a", "content": "b\n\tc\n"}', {"path": "a", "content": "b\n\tc\n"}),
    "an invalid escape": (r'{"content": "a\d", "path": "b"}', {"content": r"a\d", "path": "b"}),
    "a trailing comma": ('{"content": "a", "path": "b",}', {"content": "a", "path": "b"}),
    "a stray quote": ('{"path": "a", "content": "say "hi" now"}', {"path": "a", "content": 'say "hi" now'}),
    "quotes escaped twice": (r'{"path": "a", "content": "\\"b\\", c"}', {"path": "a", "content": '"b", c'}),
    "backslashes before a quote": (r'{"path": "a", "content": "b\\\\"}', {"path": "a", "content": r"b\\"}),
    "a missing bracket": ('{"path": "a", "content": "b"', {"path": "a", "content": "b"}),
    "a Windows path": (r'{"path": "C:\new\t.txt", "content": "b"}', {"path": r"C:\new\t.txt", "content": "b"}),
    "surrogates": (r'{"content": "\ud83d\ude00\u00e9", "path": "a"}', {"content": "😀é", "path": "a"}),
    "single quotes": ("{'path': 'a', 'content': 'b'}", {"path": "a", "content": "b"}),
    "no members": ("{}", {}),
    "half of a surrogate pair": ('{"tags": ["\ud800"], "content": "c"}', {"tags": ["\ufffd"], "content": "c"}),
    "a list of texts": ('{"tags": ["a", "b"], "content": "c"}', {"tags": ["a", "b"], "content": "c"}),
}


@pytest.mark.parametrize("written", REPAIRED, ids=list(REPAIRED))
def test_repaired_arguments_are_streamed_after_repair(written):
    """Emission waits for everything that a repair might change."""
    body, arguments = REPAIRED[written]
    text = f'<tool_call>\n{{"name": "write_file", "arguments": {body}}}\n</tool_call>'
    for size in (1, 3, 7, 1000):
        events = stream(text, "hermes", size, stream_arguments=True)
        (call,) = [event for event in events if isinstance(event, ToolCall)]
        assert call.arguments == arguments
        assert json.loads(streamed(events)[call.id]) == arguments


@pytest.mark.parametrize("arguments", [r'{"path": E:\Notes\a.md}', '{"{"path": "a"}', "{...}"])
def test_nothing_is_streamed_before_the_first_argument(arguments):
    """Not even a bracket: the call may never come."""
    text = f'<tool_call>\n{{"name": "read_file", "arguments": {arguments}}}\n</tool_call>'
    for size in (1, 7, 1000):
        assert not streamed(stream(text, "hermes", size, stream_arguments=True))


def test_contradicted_deltas_make_call_invalid():
    """A second value for an emitted argument."""
    body = '{"content": "one", "content": "two"}'
    text = f'<tool_call>\n{{"name": "write_file", "arguments": {body}}}\n</tool_call>'
    events = stream(text, "hermes", stream_arguments=True)
    assert ["Write it again" in event.error for event in events if isinstance(event, InvalidToolCall)] == [True]
    assert not [event for event in events if isinstance(event, ToolCall)]


@pytest.mark.parametrize("name", WRITE_JSON)
def test_cut_call_after_deltas_is_invalid(name):
    text = FORMATS[name].encode_calls([("write_file", ARGUMENTS)])[:-200]
    for reason in ("stop", "length"):
        events = stream(text, name, finish_reason=reason, stream_arguments=True)
        assert not [event for event in events if isinstance(event, ToolCall)]


HOLDING_CALLS = [
    '{"name": "bash", "arguments": {"command": "rm -rf /"}}',
    'bash\n{"command": "rm -rf /"}\n',
    'bash: {"command": "rm -rf /", "timeout": 5}',
    'functions.bash:0<|tool_call_argument_begin|>{"command": "rm -rf /"}',
    '<tool_call>\n{"name": "bash", "arguments": {"command": "rm -rf /"}}\n</tool_call>',
    '<function=bash>{"command": "rm -rf /"}</function>',
    '[TOOL_CALLS]bash[ARGS]{"command": "rm -rf /"}',
    'Action: bash\nAction Input: {"command": "rm -rf /"}',
]


@pytest.mark.parametrize("name", FORMATS)
def test_call_inside_value_is_not_streamed(name):
    for value, expected_format in itertools.product(HOLDING_CALLS, (name, None)):
        text = FORMATS[name].encode_calls([("write_file", {"path": "a", "content": value})])
        plain = merge_deltas(stream(text, expected_format, 1000))
        for size in (3, 1000):
            events = stream(text, expected_format, size, stream_arguments=True)
            assert {event.name for event in events if isinstance(event, ToolCallDelta)} == {"write_file"}
            assert stream_fault(events, plain) is None


ALIKE = ToolSet(
    {"name": name, "parameters": {"properties": {"query": {"type": "string"}, "text": {"type": "string"}}}}
    for name in ("search", "web_search", "read_file", "mcp__fs__read_file", "search_web", "file", "s")
)


@pytest.mark.parametrize("name", FORMATS)
def test_name_that_contains_another_is_streamed_correctly(name):
    """``web_search`` ends in ``search``."""
    for tool in ALIKE:
        text = FORMATS[name].encode_calls([(tool, {"query": "it is long enough for some pieces"})])
        plain = merge_deltas(stream(text, name, 1000, tools=ALIKE))
        for size in (3, 1000):
            events = stream(text, name, size, tools=ALIKE, stream_arguments=True)
            assert {event.name for event in events if isinstance(event, ToolCallDelta)} == {tool}
            assert stream_fault(events, plain) is None


@pytest.mark.parametrize("name", WRITE_JSON)
def test_number_is_streamed_when_it_ends(name):
    """``0`` may become ``0.5``."""
    encoded = FORMATS[name].encode_calls([("do_everything", {"ratio": 77, "text": "a"})])
    begin = encoded.index("77")
    for number in ("0.5", "-0.25", "1e3", "12", "1.0", "0"):
        text = encoded.replace("77", number)
        plain = merge_deltas(stream(text, name))
        for at in range(begin - 2, begin + len(number) + 3):
            events = in_pieces([text[:at], text[at:]], name, stream_arguments=True)
            assert [event.arguments for event in events if isinstance(event, ToolCall)] == [
                {"ratio": json.loads(number), "text": "a"}
            ]
            assert stream_fault(events, plain) is None


LATER_NAMES = {
    "an empty value, then an alias": ('{"path": "", "filename": "b"}', {"path": "b"}),
    "null, then an alias": ('{"path": null, "filename": "b"}', {"path": "b"}),
    "an alias, then the name": ('{"filename": "b", "path": "a"}', {"filename": "b", "path": "a"}),
    "an alias, then nothing": ('{"filename": "b", "path": ""}', {"path": "b"}),
    "a wrapper": ('{"arguments": {"path": "a"}}', {"path": "a"}),
    "an unknown key": ('{"colour": "red", "path": "a"}', {"colour": "red", "path": "a"}),
}


@pytest.mark.parametrize("written", LATER_NAMES, ids=list(LATER_NAMES))
def test_argument_that_an_alias_may_replace_is_not_streamed_early(written):
    """The last value of a parameter with two names is used."""
    body, arguments = LATER_NAMES[written]
    text = f'<tool_call>\n{{"name": "write_file", "arguments": {body}}}\n</tool_call>'
    for size in (1, 3, 1000):
        events = stream(text, "hermes", size, stream_arguments=True)
        (call,) = [event for event in events if isinstance(event, ToolCall)]
        assert call.arguments == arguments
        assert stream_fault(events, merge_deltas(stream(text, "hermes"))) is None


def test_unknown_tools_are_not_streamed():
    """A call of an unknown tool is one complete error."""
    text = FORMATS["hermes"].encode_calls([("format_disk", {"path": "a long enough path for some pieces"})])
    events = stream(text, "hermes", stream_arguments=True)
    assert len([event for event in events if isinstance(event, ToolCallDelta)]) == 1


def test_deltas_wait_for_buffered_bare_calls():
    """Bare calls count when a marked one follows, and come before it."""
    bare = '{"name": "read_file", "arguments": {"path": "a"}}\n'
    text = bare + FORMATS["hermes"].encode_calls([("write_file", ARGUMENTS)])
    assert stream_fault(stream(text, None, stream_arguments=True), merge_deltas(stream(text, None))) is None


CASES = [(path, load(path)) for path in sorted(FOLDER.glob("*/*.toml")) if path.parent.name != "wild"]


@pytest.mark.parametrize("name", ["auto", *FORMATS])
def test_cases_stream_consistently(name):
    """The deltas of every case belong to the call that follows."""
    for path, case in CASES:
        expected_format = None if name == "auto" else name
        if name not in ("auto", path.parent.name):
            continue
        given = {"finish_reason": case.get("finish_reason", "stop"), "prompt": case.get("generation_prompt", "")}
        text, chance = case["text"], random.Random(path.stem)
        plain = merge_deltas(in_pieces([text], expected_format, tools=CASE_TOOLS, **given))
        for pieces in ([text], random_pieces(text, chance, 4), random_pieces(text, chance, 40)):
            events = in_pieces(pieces, expected_format, tools=CASE_TOOLS, stream_arguments=True, **given)
            assert stream_fault(events, plain) is None, path


@given(st.one_of(soup, damaged()), st.sampled_from([*FORMATS, None]), st.integers(0, 1 << 30))
@example('Now: functools[{"name": "read_file", "arguments": {"path": "a"}}', "phi4_mini_json", 1)  # prose in the end
@example('functools[{"name": "do_everything", "arguments": {"m\\s": 1}}]', None, 1)  # an escape that is none
@example(
    'functools[{"name": "do_everything", "arguments": {"count": {"count": 0}}, {"name": "bash", "arguments": {}}]',
    "phi4_mini_json",
    1,
)  # a damaged call before another one
def test_streaming_changes_no_other_events(text, name, seed):
    """The same calls as without it, except calls that contradict emitted deltas."""
    pieces = random_pieces(text, random.Random(seed), 6)
    events = in_pieces(pieces, name, stream_arguments=True)
    assert stream_fault(events, merge_deltas(in_pieces(pieces, name))) is None
    assert "".join(event.raw for event in events) == text


@pytest.mark.parametrize("rest", ["", '"', '"count": 1', '"text":'], ids=["brace", "key", "value", "colon"])
@pytest.mark.parametrize("filler", [" ", "a"], ids=["spaces", "letters"])
def test_an_endless_gap_or_key_takes_linear_time(rest, filler):
    """Each piece was compared with all text since the last member: in quadratic time, or cubic for spaces."""
    text = f'<tool_call>{{"name": "do_everything", "arguments": {{{rest}' + filler * 30_000
    with processor_limit(3):
        stream(text, "hermes", stream_arguments=True)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_deltas_of_a_damaged_call_are_not_those_of_the_call_after_it(size):
    """The first call, whose beginning is the same, does not count, and the id came from the beginning."""
    head = 'Action: do_everything\nAction Input: {"count": 1, "text":'
    events = stream(f'{head}, "a"}}\n{head} "a"}}', "react", size, stream_arguments=True)
    assert [type(event) for event in events if isinstance(event, ToolCall | InvalidToolCall)] == [
        InvalidToolCall,
        ToolCall,
    ]
    for call in (event for event in events if isinstance(event, ToolCall)):
        deltas = [event.arguments for event in events if isinstance(event, ToolCallDelta) and event.id == call.id]
        assert json.loads("".join(deltas)) == call.arguments


def test_id_of_a_streamed_call_does_not_depend_on_the_pieces():
    text = FORMATS["hermes"].encode_calls([("write_file", ARGUMENTS)])
    ids = {
        event.id
        for size in (1, 5, 50)
        for event in stream(text, "hermes", size, stream_arguments=True)
        if isinstance(event, ToolCall)
    }
    assert len(ids) == 1


@pytest.mark.parametrize("name", ["functionary", "inkling"])
@pytest.mark.parametrize("length", [99, 100, 300])
def test_a_long_name_is_read_alike_whole_and_in_pieces(name, length):
    call = FORMATS[name].encode_calls([("f", {})])
    text = call.replace("f", "f" * length, 1)
    turns = [Turn.from_events(read_in_pieces(text, name, size)) for size in (3, len(text))]
    assert turns[0].content == turns[1].content
    assert [call.name for call in turns[0].calls] == [call.name for call in turns[1].calls]


def read_in_pieces(text: str, format: str, size: int) -> list[Event]:
    parser = Parser(format, [])
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    return events + parser.close(finish_reason="stop")
