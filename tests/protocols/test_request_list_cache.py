"""Requests that repeat the messages and tools of an earlier request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy

import pytest

from adapter.core.json.load import load_json
from adapter.protocols import ollama, request_list_cache
from adapter.protocols.anthropic_request import convert_to_openai as convert_message
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.openai_responses_request import convert_to_openai as convert_response
from adapter.protocols.request_list_cache import MAX_BYTES, MAX_KNOWN, MAX_NEW_BYTES, load_request
from adapter.protocols.tool_definitions import parse_tool_set
from adapter.protocols.translation_options import TranslationOptions
from tests.server.test_public_reports import ANTHROPIC, CHATS, FLAT, USER

TOOLS = json.dumps(CHATS)
REQUESTS = [
    f'{{"tools": {TOOLS}, "model": "m", "messages": []}}',
    f'{{"model": "é", "tools": {TOOLS}}}',
    f'{{"model": "m","tools": {TOOLS} ,"stream":true}}',
    f'{{"messages": [{{"tools": {TOOLS}}}], "tools": []}}',
    f'{{"messages": [{{"tools": {TOOLS}}}], "model": "m"}}',
    f'{{"messages": [{{"tools": {TOOLS}}}], "tools": {TOOLS}}}',
    f'{{"tools": {TOOLS}, "tools": [1]}}',
    f'{{"tools": [1], "tools": {TOOLS}}}',
    f'{{"tools": {TOOLS[:-1]}, {{}}]}}',
    '{"content": ' + json.dumps(f'"tools": {TOOLS}') + f', "tools": {TOOLS}}}',
    '{"type": "tools", "tools": null}',
    '{"tools": ["\\u0000known"], "messages": ["\\u0000known", 1]}',
    '{"messages": [1, 2.5], "messages": [3]}',
    '{"messages": [12], "input": [1, 2]}',
    '{"input": [1\n], "metadata": {"messages": [1]}}',
    '{"metadata": {"messages": [1, 4]}, "messages": [1]}',
    '{"messages": [NaN, "\\ud800"], "tools": [1]}',
    f'[{{"tools": {TOOLS}}}]',
]
ENDS = ["", "}}", ", model: 1}", "]"]


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    request_list_cache._KNOWN.clear()
    yield
    request_list_cache._KNOWN.clear()


@pytest.mark.parametrize("text", REQUESTS)
@pytest.mark.parametrize("is_known", [True, False])
def test_result_is_that_of_a_decoder(text, is_known):
    if is_known:
        for known in (REQUESTS[0], '{"messages": [1], "tools": [1]}', '{"input": [ 1 ] }'):
            load_request(known.encode())
    for _ in range(2):
        assert repr(load_request(text.encode())) == repr(json.loads(text))


@pytest.mark.parametrize("end", ENDS)
def test_error_is_that_of_a_decoder(end):
    content = f'{{"tools": {TOOLS}{end}'.encode()
    load_request(REQUESTS[0].encode())
    with pytest.raises(ValueError, match="line 1 column") as expected:
        load_json(content)
    with pytest.raises(ValueError, match=re.escape(str(expected.value))):
        load_request(content)


def test_equal_tools_are_parsed_once():
    first, second = load_request(REQUESTS[0].encode()), load_request(REQUESTS[1].encode())
    assert first["tools"] is second["tools"]
    assert parse_tool_set(first["tools"]) is parse_tool_set(second["tools"])
    other = load_request(REQUESTS[1].replace("read_file", "write_file").encode())
    assert set(parse_tool_set(other["tools"])) == {"write_file", "bash"}


def test_messages_are_those_of_an_earlier_request():
    turns = [{"role": "user", "content": "é"}, {"role": "assistant", "content": "B"}, USER, {"role": "user"}]
    before: list[object] = []
    for count, indent in ((1, None), (3, None), (3, None), (4, None), (2, 1), (3, 1)):
        body = {"model": str(count), "messages": turns[:count], "tools": CHATS}
        loaded = load_request(json.dumps(body, indent=indent, ensure_ascii=False).encode())
        assert loaded == body
        is_known = indent is None or count > 2
        assert [a is b for a, b in zip(before, loaded["messages"], strict=False)] == [is_known] * min(
            len(before), count
        )
        before = loaded["messages"]


def test_conversions_of_two_apis_do_not_mix():
    """Both get the same bytes. What one of them drops is named each time."""
    tools = [{"name": "a", "description": "A", "input_schema": {}}, {"type": "web_search", "name": "b"}, *FLAT]
    content = json.dumps({"model": "m", "messages": [USER], "input": "Hi", "tools": tools}).encode()
    for _ in range(2):
        left_out: list[str] = []
        chat = convert_message(load_request(content), left_out)
        assert (set(parse_tool_set(chat["tools"])), "tool web_search" in left_out) == ({"a"}, True)
        left_out = []
        chat = convert_response(load_request(content), None, left_out)
        assert (set(parse_tool_set(chat["tools"])), "tool web_search" in left_out) == ({"read_file", "bash"}, True)


def test_added_tools_are_converted_too():
    """The tools in the request are the same."""
    addition = {"type": "tool_addition", "tool": {"definition": {"name": "late", "input_schema": {}}}}
    messages = [USER, {"role": "user", "content": [addition]}, USER]
    names = []
    for conversation in (messages[:1], messages, messages[:1]):
        body = {"model": "m", "max_tokens": 9, "messages": conversation, "tools": ANTHROPIC}
        chat = convert_message(load_request(json.dumps(body).encode()), [])
        names.append(sorted(parse_tool_set(chat["tools"])))
    assert names == [["bash", "read_file"], ["bash", "late", "read_file"], ["bash", "read_file"]]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("convert", [lambda body: body, convert_message, convert_response, ollama.convert_to_openai])
def test_translation_does_not_change_a_request(native, convert):
    parts = [{"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}}]
    turns = [{"role": "developer", "content": "A"}, USER, {"role": "assistant", "content": parts}, USER]
    tools = {convert_message: ANTHROPIC, convert_response: FLAT}.get(convert, CHATS)
    content = json.dumps({"model": "m", "max_tokens": 9, "messages": turns, "input": turns, "tools": tools}).encode()
    body = load_request(content)
    before = deepcopy(body)
    translate_chat_request(convert(body), TranslationOptions(native=native))
    assert body == before


def test_memory_is_bounded():
    for number in range(3 * MAX_KNOWN):
        load_request(f'{{"tools": ["{number}"]}}'.encode())
    load_request(json.dumps({"tools": ["x" * MAX_NEW_BYTES]}).encode())
    assert len(request_list_cache._KNOWN) == MAX_KNOWN
    for number in range(12):
        load_request(json.dumps({"messages": [number, "x" * (MAX_NEW_BYTES - 99)]}).encode())
    assert sum(len(each.encoded) for each in request_list_cache._KNOWN) <= MAX_BYTES
