"""Shapes that belong to no format are calls only with a tool of the session; similar text is an answer."""

from __future__ import annotations

import tomllib
from itertools import product
from pathlib import Path

import pytest

from adapter.core.events import TextDelta, ToolCall
from adapter.parsing.echoed_header import HEADERS
from adapter.parsing.parser import parse
from tests.each import each
from tests.parsing.checks import read
from tests.parsing.formats.test_wild import definition_of

TOOLS = [definition_of("read_file(path, limit?: integer)"), definition_of("tag(tags: string[])")]
CALL = ("read_file", {"path": "a.py"})

TEXTS = tomllib.loads((Path(__file__).parents[3] / "fixtures" / "unknown_shapes.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("expected_format", [None, "hermes", "llama3_json", "deepseek_v31"])
def test_unknown_shape_with_known_tool_is_a_call(expected_format):
    """With any expected format, in every split."""

    def is_call(text: str) -> None:
        events = read(text, format=expected_format, tools=TOOLS, text_may_follow=False)
        assert [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)] == [CALL]

    each({text: text for text in TEXTS["calls"]}, is_call)


MARKERS = {
    "<tool_call>": "</tool_call>",
    "<tool_calls>": "</tool_calls>",
    "<tool>": "</tool>",
    "<|tool_call|>": "<|/tool_call|>",
    "<|tool_call>": "<tool_call|>",
    "<|tool_call_start|>": "<|tool_call_end|>",
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",
    "<|tool_call_begin|>": "<|tool_call_end|>",
    "<|action_start|>": "<|action_end|>",
    "<minimax:tool_call>": "</minimax:tool_call>",
    "<longcat_tool_call>": "</longcat_tool_call>",
    "```tool_call\n": "\n```",
    "[TOOL_CALLS]": "",
}
BODIES = (
    'read_file(path="@")',
    '[read_file(path="@")]',
    '{"name": "read_file", "arguments": {"path": "@"}}',
    'read_file {"path": "@"}',
    '{"read_file": {"path": "@"}}',
)


@pytest.mark.parametrize("opening", MARKERS)
def test_body_of_another_family_is_a_call(opening):
    """Alone, and with a second one directly after it or on the next line."""
    for body, between in product(BODIES, ("", "\n")):
        first, second = (f"{opening}{body.replace('@', path)}{MARKERS[opening]}" for path in ("a.py", "b.py"))
        for text, paths in (first, ["a.py"]), (f"I look.\n{first}{between}{second}", ["a.py", "b.py"]):
            turn = parse(text, TOOLS, None, "stop")
            assert [(call.name, call.arguments["path"]) for call in turn.calls] == [
                ("read_file", path) for path in paths
            ]
            assert turn.content.strip() == text[: text.index(opening)].strip()


def test_text_after_a_call_whose_marker_has_no_end_is_content():
    (call, text) = read('[TOOL_CALLS] read_file(path="a.py")\nIt is short.', tools=TOOLS, text_may_follow=False)
    assert isinstance(call, ToolCall)
    assert isinstance(text, TextDelta)
    assert (call.name, call.arguments, text.text) == (*CALL, "It is short.")


@pytest.mark.parametrize("expected_format", [None, "hermes", "gemma4", "kimi_k2", "cohere"])
def test_text_similar_to_unknown_shape_is_content(expected_format):
    def is_answer(text: str) -> None:
        turn = parse(text, TOOLS, expected_format, "stop", generation_prompt="")
        assert turn.calls == ()
        assert turn.content == text or (turn.invalid == () and turn.content == text.strip())

    each({text: text for text in TEXTS["answers"]}, is_answer)


@pytest.mark.parametrize("expected_format", [None, "hermes", "llama3_json", "gemma3", "gemma4", "glm45"])
def test_echoed_header_is_skipped(expected_format):
    """The answer and its calls follow the header."""
    written = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'

    def is_header(header: str) -> None:
        events = read(f"{header}\nHello.\n{written}", format=expected_format, tools=TOOLS, text_may_follow=False)
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hello."]
        assert [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)] == [CALL]

    each({header: header for header in HEADERS}, is_header)


def test_header_of_other_role_ends_turn():
    turn = parse("<|im_start|>user\nHello", TOOLS, "hermes", "stop", generation_prompt="")
    assert turn.content == ""
