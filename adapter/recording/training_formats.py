"""Convert training samples to OpenAI messages, ShareGPT conversations, or a chat template's text with a loss mask.

::

    openai     {"messages": [..., {"role": "assistant", ..., "weight": 1}], "tools": [...]}
    sharegpt   {"conversations": [{"from": "human", "value": ...}, ..., {"from": "gpt", ...}], "tools": "[...]"}
    text       {"text": ..., "spans": [[start, end]]}

Only the last answer of a sample counts towards the loss: earlier answers have ``weight`` 0, as in OpenAI's fine-tuning
format, or are outside of the spans. In ShareGPT, calls and results are ``function_call`` and ``observation``, as in
LLaMA-Factory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from adapter.conversation.message_content import get_text
from adapter.core.events import Json, JsonObject
from adapter.core.text.lines import count_common_prefix
from adapter.recording.training_samples import TrainingSample

Render: TypeAlias = Callable[[Sequence[JsonObject], Sequence[Json], bool], str]
"""Renders messages and tools, with a generation prompt if the third argument is True. Raises `ChatTemplateError`."""


class UnrepresentableSample(Exception):
    """Raised if a sample cannot be converted to the selected format. The message names what cannot be converted."""


def to_openai(sample: TrainingSample) -> JsonObject:
    """Convert a sample to OpenAI's fine-tuning format."""
    before = [{**each, "weight": 0} if each.get("role") == "assistant" else each for each in sample.messages]
    row: JsonObject = {"messages": [*before, {**sample.answer, "weight": 1}]}
    return {**row, "tools": list(sample.tools)} if sample.tools else row


_FROM = {"system": "system", "developer": "system", "user": "human", "tool": "observation", "function": "observation"}


def to_sharegpt(sample: TrainingSample) -> JsonObject:
    """Convert a sample to ShareGPT. Raises UnrepresentableSample for images, because ShareGPT contains only text."""
    turns = [turn for message in (*sample.messages, sample.answer) for turn in _to_turns(message)]
    row: JsonObject = {"conversations": turns}
    return {**row, "tools": json.dumps(list(sample.tools), ensure_ascii=False)} if sample.tools else row


def _to_turns(message: JsonObject) -> Iterator[JsonObject]:
    content = message.get("content") or ""
    if isinstance(content, list) and any(not isinstance(part, dict) or part.get("type") != "text" for part in content):
        raise UnrepresentableSample("a message with images or other parts")
    content = get_text(content)
    if message.get("role") != "assistant":
        yield {"from": _FROM.get(str(message.get("role")), "human"), "value": content}
        return
    reasoning = message.get("reasoning_content")
    text = (f"<think>\n{reasoning}\n</think>\n" if reasoning else "") + content
    calls = message.get("tool_calls") or []
    if text or not calls:
        yield {"from": "gpt", "value": text}
    if calls:
        functions = [_decode_function(call["function"]) for call in calls]
        yield {"from": "function_call", "value": json.dumps(functions, ensure_ascii=False)}


def to_templated_text(sample: TrainingSample, render: Render) -> JsonObject:
    """Render a sample with a chat template. Return the text, and the span of the answer including its end token.

    Raises UnrepresentableSample if the template omits the answer, or renders earlier messages differently before it.
    """
    before = [_decode_arguments(each) for each in sample.messages]
    tools = list(sample.tools)
    with_prompt, without_prompt = render(before, tools, True), render(before, tools, False)
    text = render([*before, _decode_arguments(sample.answer)], tools, False)
    start = len(with_prompt)
    if not text.startswith(with_prompt):  # e.g. the prompt opens the reasoning, but the answer has none
        other = render([*before, {"role": "assistant", "content": _PLACEHOLDER}], tools, False)
        start = min(count_common_prefix(with_prompt, text), count_common_prefix(text, other))
    if start < len(without_prompt.rstrip()):
        raise UnrepresentableSample("a template that renders earlier messages differently once there is an answer")
    end = len(text.rstrip())
    if end <= start:
        raise UnrepresentableSample("a template that omits the answer")
    return {"text": text, "spans": [[start, end]]}


_PLACEHOLDER = "\ue000"
"""A character that no real answer begins with. Rendered as the answer, it shows where answers begin in the text."""


def _decode_arguments(message: JsonObject) -> JsonObject:
    """Decode the JSON arguments of calls, because templates encode arguments themselves."""
    if not (calls := message.get("tool_calls")):
        return message
    return {**message, "tool_calls": [{**call, "function": _decode_function(call["function"])} for call in calls]}


def _decode_function(function: JsonObject) -> JsonObject:
    arguments = function.get("arguments")
    try:
        return {**function, "arguments": json.loads(arguments) if isinstance(arguments, str) else arguments}
    except ValueError:
        return function
