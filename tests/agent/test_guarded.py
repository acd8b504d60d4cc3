"""The loop of an agent with guardrails: what is asked again, what stays in the conversation, what ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.agent.agent import Agent
from adapter.backends.chat_client import Chunk
from adapter.conversation.session import AskModel, Finished
from adapter.core.errors import UsageError
from adapter.tools.function_tools import tool


class Script:
    """A model that says what it is told to, and keeps what it was shown."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.seen: list[list[dict[str, Any]]] = []

    def stream(self, messages: Any, *, stop: Any = ()) -> Any:
        self.seen.append(list(messages))
        yield Chunk(self.answers.pop(0), finish_reason="stop")


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word} means something"


@tool
def submit(text: str) -> str:
    """Hand the answer in."""
    return "thanks"


def call(name: str, **arguments: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def run(tmp_path: Any, script: Script, **settings: Any) -> Finished:
    with Agent(tmp_path, script, tools=[look_up, submit], approve="yolo", **settings) as agent:
        return agent.run("What does foo mean?")


def test_a_failed_try_is_forgotten_once_a_better_one_has_come(tmp_path):
    """The model sees its fault once; the next prompt begins like the one before it."""
    script = Script("Let me check the word:", call("look_up", word="foo"), "It means something.")
    assert run(tmp_path, script).content == "It means something."
    first, again, last = script.seen
    assert "did not do it" in str(again[-1]["content"])
    assert "Let me check" in str(again[-2]["content"])
    assert "Let me check" not in str(last)
    assert "did not do it" not in str(last)
    assert last[: len(first)] == first


def test_who_watches_sees_what_was_asked_again(tmp_path):
    seen: list[Any] = []
    run(tmp_path, Script("", "It means something."), observe=seen.append)
    assert [each.again for each in seen if isinstance(each, AskModel)] == ["", "empty_answer"]


def test_without_guardrails_nothing_is_asked_again(tmp_path):
    """An empty answer is then an answer."""
    assert run(tmp_path, Script(""), guardrails="off") == Finished("answered", "")
    assert run(tmp_path, Script(""), retries=0).content == ""


def test_a_model_that_says_nothing_is_stuck(tmp_path):
    """After three tries there is no use in a fourth."""
    script = Script("", "", "", "")
    assert run(tmp_path, script).reason == "stuck"
    assert len({str(messages[-1]["content"]) for messages in script.seen}) == 4


def test_a_broken_call_among_good_ones_is_told_and_the_good_ones_run(tmp_path):
    """Nothing that can be done is asked again."""
    broken = '<tool_call>\n{"name": "look_up", "arguments": {"wo\n</tool_call>'
    script = Script(call("look_up", word="foo") + "\n" + broken, "It means something.")
    assert run(tmp_path, script).reason == "answered"
    assert "foo means something" in str(script.seen[1])


STEPS = {"required": ["look_up"], "before": {"submit": ["look_up"]}, "ends_with": ["submit"]}


def test_steps_are_enforced_and_end_the_run(tmp_path):
    """Neither an early answer nor an early end; the last step is the end, without another call of the model."""
    script = Script(
        "It means nothing.", call("submit", text="x"), call("look_up", word="foo"), call("submit", text="y")
    )
    assert run(tmp_path, script, steps=STEPS).reason == "exited"
    assert script.answers == []
    assert "look_up" in str(script.seen[1][-1]["content"])
    assert "first call look_up" in str(script.seen[2][-1]["content"])


def test_a_cycle_is_told(tmp_path):
    """Two calls in turn, twice: the third round is not run."""
    one, other = call("look_up", word="foo"), call("submit", text="x")
    script = Script(one, other, one, other, one, "I do not know.")
    assert run(tmp_path, script).content == "I do not know."
    assert "You go in circles: look_up -> submit" in str(script.seen[-1][-1]["content"])


def test_steps_of_tools_that_are_none_are_refused_at_once(tmp_path):
    with pytest.raises(UsageError, match="steps name the tool 'lookup', which there is not"):
        run(tmp_path, Script(), steps={"required": ["lookup"]})
    with pytest.raises(UsageError, match="unknown guardrail 'nonsense'"):
        run(tmp_path, Script(), guardrails="nonsense")


def test_retries_below_zero_are_refused_at_once(tmp_path):
    with pytest.raises(UsageError, match="retries cannot be -1; give a number from 0 on"):
        run(tmp_path, Script(), retries=-1)
