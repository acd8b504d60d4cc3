"""The tool definitions of a conversation are validated once."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from adapter.protocols.anthropic_request import convert_to_openai
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.token_budgets import Budgets
from adapter.protocols.tool_definitions import parse_tool_set
from adapter.protocols.translation_options import TranslationOptions
from tests.server.test_public_reports import ANTHROPIC, CHATS, USER


def definitions(default: Any) -> list[dict[str, Any]]:
    properties = {"a": {"type": "string", "default": default}}
    function = {"name": "f", "parameters": {"type": "object", "properties": properties, "required": ("a",)}}
    return [{"type": "function", "function": function}]


def test_equal_definitions_are_validated_once():
    assert parse_tool_set(definitions("é")) is parse_tool_set(definitions("é"))


def test_equal_numbers_of_different_types_remain_different():
    defaults = [parse_tool_set(definitions(each))["f"].parameters["properties"]["a"]["default"] for each in (1, True)]
    assert json.dumps(defaults) == "[1, true]"


def test_the_client_s_definitions_are_not_changed():
    given = definitions("x")
    assert parse_tool_set(given)["f"].required == ("a",)
    assert given == definitions("x")


def test_the_rest_of_a_prompt_counts_against_its_budget():
    messages = [{"role": "user", "content": f"{number} " + "word " * 100} for number in range(20)]
    budgets = Budgets(context=4_096)
    assert not budgets.fit(messages, "").summary
    assert budgets.fit(messages, "word " * 3_000).summary


@pytest.mark.parametrize("native", [True, False])
def test_translation_does_not_change_the_tools(native):
    chat: dict[str, Any] = {"model": "m", "messages": [USER], "tools": CHATS}
    message: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [USER], "tools": ANTHROPIC}
    before = deepcopy([chat, message])
    translate_chat_request(chat, TranslationOptions(native=native))
    translate_chat_request(convert_to_openai(message, []), TranslationOptions(native=native))
    assert [chat["tools"], message["tools"]] == [each["tools"] for each in before]
