"""Probe a chat template's capabilities by rendering short conversations.

A template may reject unsupported input (a second system message, a call id that does not have nine characters) or drop
it silently, and documents neither. `probe_template` therefore requests a few rendered prompts, and returns the form in
which the template renders a conversation completely.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, TypeAlias

from adapter.core.events import Json, JsonObject

MARK = "zq"
"""Prefix of every word in the probes, which no template contains."""

_NAME, _OTHER, _KEY, _VALUE = "zqread", "zqlist", "zqkey", "zqvalue"
_SYSTEM, _LATER, _REQUEST, _MORE, _ANSWER, _TEXT = "zqsystem", "zqlater", "zqasked", "zqmore", "zqsaid", "zqtext"
_RESULTS = ("zqfirst", "zqsecond")
_USER: JsonObject = {"role": "user", "content": _REQUEST}
_LATER_USER: JsonObject = {"role": "user", "content": _MORE}

TOOLS: list[Json] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "zqdescription",
            "parameters": {
                "type": "object",
                "properties": {_KEY: {"type": "string", "description": "zqdescribed"}},
                "required": [_KEY],
            },
        },
    }
    for name in ("zqtool", _OTHER)
]

Arguments: TypeAlias = Literal["object", "text"]
Ids: TypeAlias = Literal["any", "nine", "named"]
System: TypeAlias = Literal["anywhere", "first", "none"]


@dataclass(frozen=True, slots=True)
class TemplateCapabilities:
    """The requirements that messages must meet for a chat template to render them completely."""

    arguments: Arguments = "object"
    """Type of the arguments of earlier calls: an object, or a string with the object's JSON."""
    empty_content: Literal[""] | None = None
    """Content of an assistant message that has only calls."""
    ids: Ids = "any"
    """Format of call ids: any, nine letters or digits, or ``functions.NAME:NUMBER``."""
    parallel_calls: bool = True
    """True if an answer can contain several calls."""
    system: System = "anywhere"
    """Allowed position of system messages."""
    users: bool = True
    """True if consecutive user messages are allowed."""
    between: str | None = None
    """Content of the assistant message that is required between a result and a user message, or None."""
    as_text: bool = False
    """True if earlier calls can be written as text in the content of assistant messages."""
    only_text: bool = False
    """True if earlier calls must be written as text, because the template drops calls (Granite 3, LFM2)."""
    generation_prompt: str | None = None
    """Text between the conversation and the model's answer."""
    closers: tuple[str, ...] = ()
    """Tags that end a result."""


CAREFUL = TemplateCapabilities(empty_content="", system="first", users=False)
"""The capabilities to assume for templates that cannot be probed. Most templates accept such messages."""


@dataclass(frozen=True, slots=True)
class ProbeConversation:
    """A conversation that `probe_template` asks its caller to render with the chat template."""

    messages: Sequence[JsonObject]
    tools: Sequence[Json] = ()


Trials: TypeAlias = Generator[ProbeConversation, str | None, TemplateCapabilities | None]


def probe_template() -> Trials:
    """Probe a template by rendering conversations.

    This generator yields each conversation, and must be sent the rendered prompt, or None if the template rejects it.
    It returns the capabilities, or None if the template does not support tools and tool results.
    """
    prompt = yield ProbeConversation([_USER], TOOLS)
    if prompt is None or not _contains(prompt, _OTHER, _KEY, "zqdescription"):
        return None
    generation_prompt = prompt.rpartition(_REQUEST)[2] if _REQUEST in prompt else None
    basis = yield from _probe_calls()
    only_text = basis is None
    form = basis or TemplateCapabilities(empty_content="")
    answer: JsonObject = {"role": "assistant", "content": _TEXT}
    answers = (answer, answer) if only_text else (_build_answer(form, _NAME), _build_answer(form, _NAME, _NAME))
    one = [_USER, answers[0], _build_result(form, 0)]
    two = [_USER, answers[1], _build_result(form, 0), _build_result(form, 1)]
    with_result = (yield ProbeConversation(one, TOOLS)) or ""
    if only_text and not _contains(with_result, _TEXT, _RESULTS[0]):
        return None
    values = () if only_text else (f"{_VALUE}0", f"{_VALUE}1")
    return replace(
        form,
        parallel_calls=_contains((yield ProbeConversation(two, TOOLS)), *values, *_RESULTS),
        as_text=only_text or (yield from _probe_text(one)),
        system=(yield from _probe_system()),
        users=_contains((yield ProbeConversation([_USER, _LATER_USER], TOOLS)), _REQUEST, _MORE),
        between=(yield from _probe_between(one)),
        only_text=only_text,
        closers=tuple(dict.fromkeys(_CLOSERS.findall(with_result.rpartition(_RESULTS[0])[2]))),
        generation_prompt=generation_prompt,
    )


_CLOSERS = re.compile(r"</[^\s<>]+>|\[/[A-Z_]+\]")


def _probe_calls() -> Generator[ProbeConversation, str | None, TemplateCapabilities | None]:
    """Find the type of arguments, the empty content and the call ids that the template needs.

    Yields conversations and must be sent their prompts. Returns the first capabilities that make the template render
    both a call and its result, or None.
    """
    for ids, empty_content, arguments in product(("any", "nine"), (None, ""), ("object", "text")):
        form = TemplateCapabilities(arguments, empty_content, ids)  # type: ignore[arg-type]
        result = _build_result(form, 0)
        text = _find_text_after_request((yield ProbeConversation([_USER, _build_answer(form, _NAME), result], TOOLS)))
        if not _contains(text, _KEY, _VALUE, _RESULTS[0]) or _is_mangled(text or ""):
            continue
        if _contains(text, f"functions.{_NAME}:0"):
            return replace(form, ids="named")  # results refer to calls by ids of this format
        if _contains(text, _build_id(form, 0)):  # Kimi K2 reads the name only from the id
            del result["name"]
            nameless = _find_text_after_request(
                (yield ProbeConversation([_USER, _build_answer(form, _NAME), result], TOOLS))
            )
            if nameless is not None and _NAME not in nameless:
                return replace(form, ids="named")
        if _contains(text, _NAME):
            return form
    return None


def _find_text_after_request(prompt: str | None) -> str | None:
    """Return the text after the user's message. The tools before the message contain the same keys."""
    return prompt.partition(_REQUEST)[2] if prompt and _REQUEST in prompt else prompt


def _is_mangled(text: str) -> bool:
    """Return whether an object was rendered in Python's notation, or encoded as JSON twice."""
    return f"'{_KEY}'" in text or f'\\"{_KEY}' in text


def _probe_text(one: Sequence[JsonObject]) -> Generator[ProbeConversation, str | None, bool]:
    with_call = yield ProbeConversation(one, TOOLS)
    with_text = yield ProbeConversation([one[0], {"role": "assistant", "content": _TEXT}, one[2]], TOOLS)
    if with_call is None or with_text is None or with_text.count(_TEXT) != 1:
        return False
    before, _, after = with_text.partition(_TEXT)
    return with_call.startswith(before) and with_call.endswith(after)


def _probe_system() -> Generator[ProbeConversation, str | None, System]:
    first: JsonObject = {"role": "system", "content": _SYSTEM}
    if not _contains((yield ProbeConversation([first, _USER], TOOLS)), _SYSTEM, _REQUEST):
        return "none"
    later: JsonObject = {"role": "system", "content": _LATER}
    talk = [first, _USER, {"role": "assistant", "content": _ANSWER}, later, _LATER_USER]
    return "anywhere" if _contains((yield ProbeConversation(talk, TOOLS)), _SYSTEM, _LATER, _MORE) else "first"


def _probe_between(one: Sequence[JsonObject]) -> Generator[ProbeConversation, str | None, str | None]:
    if _contains((yield ProbeConversation([*one, _LATER_USER], TOOLS)), _MORE):
        return None
    with_empty = yield ProbeConversation([*one, {"role": "assistant", "content": ""}, _LATER_USER], TOOLS)
    return "" if _contains(with_empty, _MORE) else "..."


def _contains(prompt: str | None, *words: str) -> bool:
    return prompt is not None and all(word in prompt for word in words)


def _build_id(traits: TemplateCapabilities, number: int) -> str:
    return f"zqcalled{number}" if traits.ids == "nine" else f"zq_called_{number}"


def _build_answer(traits: TemplateCapabilities, *names: str) -> JsonObject:
    calls = []
    for number, name in enumerate(names):
        arguments: Json = {_KEY: f"{_VALUE}{number}"}
        function = {"name": name, "arguments": json.dumps(arguments) if traits.arguments == "text" else arguments}
        calls.append({"id": _build_id(traits, number), "type": "function", "function": function})
    return {"role": "assistant", "content": traits.empty_content, "tool_calls": calls}


def _build_result(traits: TemplateCapabilities, number: int) -> JsonObject:
    return {"role": "tool", "tool_call_id": _build_id(traits, number), "name": _NAME, "content": _RESULTS[number]}


_NINE = re.compile(r"[A-Za-z0-9]{9}")


def is_mistral_call_id(call_id: str) -> bool:
    return _NINE.fullmatch(call_id) is not None
