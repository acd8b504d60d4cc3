"""A call at the end of reasoning that never closes may not be intended, so only reading tools are called."""

from __future__ import annotations

import pytest

from adapter.core.turn import Turn
from adapter.dialects import get_dialect
from adapter.parsing.formats import get_format
from adapter.parsing.parser import Parser, parse
from adapter.tools.tool_set import ToolSet

BLADE = get_dialect("blade").tools
READ = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'
WRITE = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a", "content": "x"}}\n</tool_call>'
RUN = '<tool_call>\n{"name": "run_command", "arguments": {"command": "ls", "cwd": "."}}\n</tool_call>'


@pytest.mark.parametrize(
    ("calls", "count"), [((READ,), 1), ((READ, READ), 2), ((WRITE,), 0), ((RUN,), 0), ((READ, WRITE), 0)]
)
def test_unclosed_reasoning_calls_only_reading_tools(calls, count):
    """All of the calls, or none; after a closing marker each is accepted."""
    text = "\n".join(calls)
    assert len(parse(f"<think>\nI should do this.\n{text}", BLADE, "hermes").calls) == count
    assert len(parse(f"<think>\nI should do this.\n</think>\n{text}", BLADE, "hermes").calls) == len(calls)


def test_unclosed_reasoning_rejects_alias_of_writing_tool():
    assert parse("<think>\nHm.\n" + WRITE.replace("write_file", "WriteFile"), BLADE, "hermes").calls == ()


def test_unclosed_reasoning_accepts_calls_without_definitions():
    """Without definitions a tool's effect is unknown."""
    assert len(parse(f"<think>\nHm.\n{WRITE}", ToolSet(), "hermes").calls) == 1


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "glm45", "kimi_k2", "deepseek_v31", None])
@pytest.mark.parametrize("generation_prompt", ["<think>\n", None])
def test_text_after_call_in_unclosed_reasoning_is_reasoning(format, generation_prompt):
    """The call begins a line, and its tool only reads."""
    call = get_format(format or "hermes").encode_calls([("read_file", {"path": "a"})]).strip()
    text = f"I read it first.\n{call}\nNow I wait for the text."
    opened = text if generation_prompt else f"<think>\n{text}"
    turn = parse(opened, BLADE, format, "stop", generation_prompt=generation_prompt)
    assert [(each.name, each.arguments) for each in turn.calls] == [("read_file", {"path": "a"})]
    assert (turn.reasoning.split(), turn.content) == (
        ["I", "read", "it", "first.", "Now", "I", "wait", "for", "the", "text."],
        "",
    )


@pytest.mark.parametrize(
    ("text", "finish_reason"),
    [
        (f"I could write {READ} there, or not.", "stop"),
        (f"Perhaps\n{READ}\nor not.", "stop"),
        (f"I read it.\n{READ}\nNo, that is wr", "length"),
        (f"I write it.\n{WRITE}\nNow I wait.", "stop"),
    ],
)
def test_draft_before_text_in_unclosed_reasoning_is_reasoning(text, finish_reason):
    """With a reason."""
    turn = parse(text, BLADE, "hermes", finish_reason, generation_prompt="<think>\n")
    assert (turn.calls, turn.content) == ((), "")
    assert [each.reason for each in turn.rejected] == ["reasoning"]


@pytest.mark.parametrize(
    ("end", "count"), [("</think>", 1), ("</think>\n", 1), ("</think>\nNo.", 0), ("No.\n</think>", 0)]
)
def test_call_at_the_end_of_closed_reasoning_needs_no_answer(end, count):
    """An answer shows that the call was a draft, as does more reasoning."""
    turn = parse(f"<think>I read it. {READ}{end}", BLADE, "hermes", "stop", generation_prompt="")
    assert len(turn.calls) == count
    assert bool(turn.rejected) == (not count)


@pytest.mark.parametrize("name", ["glm47", "kimi_k3", "minimax_m2", "step3p5"])
@pytest.mark.parametrize("stream_arguments", [False, True])
def test_answer_that_never_closes_assumed_reasoning_is_read_as_content(name, stream_arguments):
    """The template may have closed the reasoning in the prompt, which is not known. Calls in the answer were lost if
    text followed them."""
    calls = [("read_file", {"path": path}) for path in ("a", "b")]
    first, second = (get_format(name).encode_calls([call]).strip() for call in calls)
    text = f"I look.\n{first} and then\n{second}\nDone."
    parser = Parser(name, BLADE, stream_arguments=stream_arguments)
    turn = Turn.from_events([event for char in text for event in parser.feed(char)] + parser.close("stop"))
    assert [(call.name, call.arguments) for call in turn.calls] == calls
    assert (turn.reasoning, turn.content.split()) == ("", ["I", "look.", "and", "then", "Done."])
    assert parse(text, BLADE, name, "length").calls == ()


def test_example_in_an_answer_that_never_closes_assumed_reasoning_is_text():
    text = f"The format:\n```xml\n{get_format('glm47').encode_calls([('read_file', {'path': 'a'})])}\n```\nThat is all."
    turn = parse(text, BLADE, "glm47", "stop")
    assert (turn.calls, turn.content) == ((), text)
