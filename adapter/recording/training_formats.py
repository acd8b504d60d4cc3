"""A sample as trainers take it: OpenAI's messages, ShareGPT's conversations, or a chat template's text with its mask.

::

    openai    {"messages": [..., {"role": "assistant", ..., "weight": 1}], "tools": [...]}
    sharegpt  {"conversations": [{"from": "human", "value": ...}, ..., {"from": "gpt", ...}], "tools": "[...]"}
    text      {"text": ..., "spans": [[start, end]]}            the characters that the loss counts

Only the last answer of each is to be learned: earlier answers have ``weight`` 0, as OpenAI's fine-tuning has it, or lie
outside of the spans. In ShareGPT calls and results are ``function_call`` and ``observation``, as LLaMA-Factory has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.recording.training_samples import TrainingSample

Render: TypeAlias = Callable[[Sequence[JsonObject], Sequence[Json], bool], str]
"""Messages, tools and whether the answer is to begin -> the template's text. Raises `ChatTemplateError`."""


class UnrepresentableSample(Exception):
    """``str(error)``: why a sample cannot be put so."""


def to_openai(sample: TrainingSample) -> JsonObject:
    before = [{**each, "weight": 0} if each.get("role") == "assistant" else each for each in sample.messages]
    made: JsonObject = {"messages": [*before, {**sample.answer, "weight": 1}]}
    return {**made, "tools": list(sample.tools)} if sample.tools else made


_FROM = {"system": "system", "developer": "system", "user": "human", "tool": "observation", "function": "observation"}


def to_sharegpt(sample: TrainingSample) -> JsonObject:
    """Raises NotPut for messages with images: ShareGPT has texts alone."""
    turns = [turn for message in (*sample.messages, sample.answer) for turn in _turns(message)]
    made: JsonObject = {"conversations": turns}
    return {**made, "tools": json.dumps(list(sample.tools), ensure_ascii=False)} if sample.tools else made


def _turns(message: JsonObject) -> Iterator[JsonObject]:
    content = message.get("content") or ""
    if not isinstance(content, str):
        raise UnrepresentableSample("a message with images or other parts")
    if message.get("role") != "assistant":
        yield {"from": _FROM.get(str(message.get("role")), "human"), "value": content}
        return
    reasoning = message.get("reasoning_content")
    said = (f"<think>\n{reasoning}\n</think>\n" if reasoning else "") + content
    calls = message.get("tool_calls") or []
    if said or not calls:
        yield {"from": "gpt", "value": said}
    if calls:
        functions = [_as_object(call["function"]) for call in calls]
        yield {"from": "function_call", "value": json.dumps(functions, ensure_ascii=False)}


def to_templated_text(sample: TrainingSample, render: Render) -> JsonObject:
    """What the template makes of the sample, and where in that the answer stands, with the token that ends it.

    Raises NotPut where the template does not leave what came before as it was.
    """
    before = [_with_objects(each) for each in sample.messages]
    tools = list(sample.tools)
    asked, alone = render(before, tools, True), render(before, tools, False)
    text = render([*before, _with_objects(sample.answer)], tools, False)
    start = len(asked)
    if not text.startswith(asked):  # the prompt opens reasoning, say, and the answer has none
        other = render([*before, {"role": "assistant", "content": _NO_ANSWER}], tools, False)
        start = min(_shared(asked, text), _shared(text, other))
    if start < len(alone.rstrip()):
        raise UnrepresentableSample("a template that writes what came before otherwise once there is an answer")
    end = len(text.rstrip())
    if end <= start:
        raise UnrepresentableSample("a template that leaves the answer out")
    return {"text": text, "spans": [[start, end]]}


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


_NO_ANSWER = "\ue000"
"""Begins as no answer does: what stands before it is the template's."""


def _with_objects(message: JsonObject) -> JsonObject:
    """Arguments as objects, which templates write themselves."""
    if not (calls := message.get("tool_calls")):
        return message
    return {**message, "tool_calls": [{**call, "function": _as_object(call["function"])} for call in calls]}


def _as_object(function: JsonObject) -> JsonObject:
    arguments = function.get("arguments")
    try:
        return {**function, "arguments": json.loads(arguments) if isinstance(arguments, str) else arguments}
    except ValueError:
        return function
