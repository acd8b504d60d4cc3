"""The mistakes of the simulated model in `benchmarks.faulty_model`, and the words by which a message names a mistake.

The kinds are the ones that public reports on tool calling mention most often; their frequencies are not published.
Announcements, refusals and early ends are worded as such models word them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from adapter.core.events import Json
from adapter.evaluation.scenario import ExecutedCall, ExpectedCall, Scenario
from adapter.parsing.formats.hermes import encode_calls

RESPOND = "respond"
"""A tool that some harnesses add for text answers, with the parameter ``message``."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The position of a mistake: before these calls, before the final answer (``answer``), or after it."""

    scenario: Scenario
    calls: tuple[ExpectedCall, ...]
    answer: str
    made: Sequence[ExecutedCall]
    random: Random
    responds: bool
    """True if text answers are calls of `RESPOND`."""

    def written(self, calls: Sequence[ExpectedCall]) -> str:
        return encode_calls([(call.name, dict(call.arguments)) for call in calls])

    def said(self, text: str) -> str:
        """Return a text answer, in half of the cases as a call of `RESPOND`, if that tool exists."""
        return (
            self.written([ExpectedCall(RESPOND, {"message": text})])
            if self.responds and self.random.random() < 0.5
            else text
        )

    def right(self) -> str:
        if self.calls:
            return self.written(self.calls)
        return self.written([ExpectedCall(RESPOND, {"message": self.answer})]) if self.responds else self.answer

    def change_one_call(self, change: Callable[[ExpectedCall], ExpectedCall]) -> str:
        """Return the calls as text, with one of them changed."""
        at = self.random.randrange(len(self.calls))
        return self.written([change(call) if n == at else call for n, call in enumerate(self.calls)])


def unreadable(at: Situation) -> str:
    text = at.written(at.calls)
    body = json.dumps(dict(at.calls[-1].arguments), ensure_ascii=False)
    return at.random.choice(
        [
            text.replace("}}\n</tool_call>", "},}\n</tool_call>", 1),
            text.replace("}}\n</tool_call>", "}\n</tool_call>", 1),
            text.replace('"name"', "name").replace('"arguments"', "arguments"),
            text.replace('{"name": "', "{'name': '").replace('", "arguments"', "', 'arguments'"),
            text[: len(text) - len("</tool_call>") - max(4, len(body) // 2)],
            text.replace("}}\n</tool_call>", "}}}\n</tool_call>", 1),
        ]
    )


def unknown_tool(at: Situation) -> str:
    def change(call: ExpectedCall) -> ExpectedCall:
        noun = call.name.rpartition("_")[2]
        return ExpectedCall(
            at.random.choice([f"fetch_{noun}_data", f"lookup_{noun}", f"{noun}_api_query"]), call.arguments
        )

    return at.change_one_call(change)


def wrong_arguments(at: Situation) -> str:
    def change(call: ExpectedCall) -> ExpectedCall:
        if not call.arguments:
            return ExpectedCall(call.name, {"input": "x"})
        key = at.random.choice(sorted(call.arguments))
        value = call.arguments[key]
        match at.random.randrange(3):
            case 0:
                return ExpectedCall(
                    call.name, {f"the_{key}" if name == key else name: v for name, v in call.arguments.items()}
                )
            case 1 if isinstance(value, int | float):
                return ExpectedCall(call.name, {**call.arguments, key: f"{value} (number)"})
            case _:
                return ExpectedCall(call.name, {**call.arguments, key: _other(value)})

    return at.change_one_call(change)


def _other(value: Json) -> Json:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 7
        case str():
            return value[:-1] or "x"
        case dict():
            return {key: _other(each) for key, each in value.items()}
        case _:
            return ["x"]


def missing_arguments(at: Situation) -> str:
    def change(call: ExpectedCall) -> ExpectedCall:
        gone = at.random.choice(sorted(call.arguments))
        return ExpectedCall(call.name, {key: value for key, value in call.arguments.items() if key != gone})

    return at.change_one_call(change)


def announced(at: Situation) -> str:
    name = at.calls[0].name.replace("_", " ") if at.calls else "one more look"
    return at.random.choice(
        [
            f"Let me do this with {name}:",
            f"I'll use {name} to find out.",
            "Let me check that for you.",
            "Sure! I'll look that up now.",
            f"To answer this, I need to call `{name}` first.",
            f"I am going to use {name}. One moment, please...",
            f"Okay, next step: {name}.",
            f"Now I will proceed with {name}:\n",
        ]
    )


def empty(_at: Situation) -> str:
    return ""


def reasoning_only(at: Situation) -> str:
    then = f"I should call {at.calls[0].name} now." if at.calls else "Now I know all of it."
    return f"<think>\nThe user wants this to be done. {then}\n</think>\n\n"


def early_answer(at: Situation) -> str:
    return at.said(
        at.random.choice(
            [
                "Everything is done as you asked.",
                "Done! Is there anything else?",
                "The task has been completed successfully.",
                "All set. Let me know if you need more.",
                "I have taken care of it, and the result is as expected.",
            ]
        )
    )


def same_again(at: Situation) -> str:
    last = at.made[-1]
    return at.written([ExpectedCall(last.name, last.arguments)])


def invented_result(at: Situation) -> str:
    result = '<tool_response>\n{"status": "ok"}\n</tool_response>'
    return f"{at.written(at.calls)}\n{result}\nIt went well: the status is ok."


def wrong_markup(at: Situation) -> str:
    call = at.calls[0]
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    parameters = "".join(
        f"<parameter={key}>\n{value if isinstance(value, str) else json.dumps(value)}\n</parameter>\n"
        for key, value in call.arguments.items()
    )
    body = f'{{"name": "{call.name}", "arguments": {arguments}}}'
    return at.random.choice(
        [
            f"```json\n{body}\n```",
            f"<function={call.name}>\n{parameters}</function>",
            f"[TOOL_CALLS][{body}]",
            f"Action: {call.name}\nAction Input: {arguments}",
            body,
            f"<function_call>\n{body}\n</function_call>",
        ]
    )


def refusal(at: Situation) -> str:
    return at.said(
        at.random.choice(
            [
                "I'm sorry, but as a language model I have no access to this, so I can't help with it.",
                "I cannot do that: I don't have access to real-time data or external systems.",
                "Unfortunately, I'm unable to look this up. Please check it yourself.",
                "As an AI, I don't have the ability to perform actions like this.",
                "I'm sorry, I can't assist with that request.",
            ]
        )
    )


def going_on(at: Situation) -> str:
    last = at.made[-1] if at.made else ExecutedCall(at.scenario.tools[0]["function"]["name"], {}, "")
    again = at.written([ExpectedCall(last.name, last.arguments)])
    return f"{at.right()}\n\nUser: Thank you. And the next one?\nAssistant: Of course.\n{again}"


MISTAKES: dict[str, Callable[[Situation], str]] = {
    each.__name__: each
    for each in (
        unreadable, unknown_tool, wrong_arguments, missing_arguments, announced, empty, reasoning_only, early_answer,
        same_again, invented_result, wrong_markup, refusal, going_on,
    )
}  # fmt: skip
BEFORE_CALLS = [name for name in MISTAKES if name != "going_on"]
BEFORE_ANSWER = ["announced", "empty", "reasoning_only", "same_again", "refusal", "going_on"]

_CALL_IT = r"tool call|call (a|one|the|it|them)|make the call|not call|no call|without (a )?call"
NAMED: dict[str, str] = {
    "unreadable": r"json|valid tool call|could not be read|cannot be read|unreadable|malformed|syntax|cut off|parse",
    "unknown_tool": r"does not exist|unknown tool|no tool|there is no|tools are|available tools",
    "wrong_arguments": r"argument|expected|required|unexpected|not found|no such|nothing was found|there is no|refused"
    r"|does not exist|cannot|nobody|unknown",
    "missing_arguments": r"missing|required|argument",
    "announced": _CALL_IT,
    "empty": rf"empty|nothing|no answer|{_CALL_IT}",
    "reasoning_only": rf"reasoning|thought|thinking|empty|no answer|{_CALL_IT}",
    "early_answer": rf"first|before|step|not done|not yet|must|{_CALL_IT}",
    "same_again": r"already|again|same call|repeat",
    "invented_result": r"invent|wait for|made up|result",
    "wrong_markup": rf"format|markup|valid tool call|<tool_call>|could not be read|{_CALL_IT}",
    "refusal": rf"you (can|have)|tools are|available|must|{_CALL_IT}",
    "going_on": r"stop|already|end|final|answer",
}
