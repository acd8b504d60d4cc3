"""A conversation with tool calls as one without: calls and results as the text that the model was trained on.

Everything a template might refuse is evened out: calls and results become text of the
assistant and of the user, messages of the user that follow one another become one,
``developer`` is ``system``, whose messages are one at the beginning, later ones the user's. Parts that are no text
(images) stay as they are. What tools and users say, and the arguments of past calls, is neutralised: nothing in it is a
token or a call (`adapter.prompting.escaping`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from adapter.conversation.message_content import Content, concat_content
from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.prompting.escaping import escape_control_tokens, map_strings, unescape_control_tokens
from adapter.prompting.template_capabilities import System
from adapter.protocols.openai_errors import RequestError
from adapter.protocols.verbatim_calls import Call, VerbatimCallCache
from adapter.tools.tool import ToolSet


def plain_messages(
    messages: Json, format: Format, system: str, closing: str, tools: ToolSet, memory: VerbatimCallCache | None = None
) -> list[JsonObject]:
    """``messages`` for a model that reads plain text.

    ``tools``: those of the request. ``system`` follows the conversation's own system message, ``closing`` its last
    words. Calls that ``memory`` has are shown as the model wrote them, others in its format.
    Raises RequestError for what is no conversation.
    """
    if not isinstance(messages, list) or not messages:
        raise RequestError(
            f"'messages' must be a list with at least one message, got {truncate_repr(messages)}", "messages"
        )
    evened = list(with_system(list(_plain(messages, format, tools, memory or VerbatimCallCache())), "first"))
    if closing:
        evened.append({"role": "user", "content": closing})
    if system and evened and evened[0]["role"] == "system":
        evened[0] = {**evened[0], "content": concat_content(evened[0]["content"], system, "\n\n")}
    elif system:
        evened.insert(0, {"role": "system", "content": system})
    return list(_joined(evened))


def _plain(messages: Sequence[Json], format: Format, tools: ToolSet, memory: VerbatimCallCache) -> Iterator[JsonObject]:
    names: dict[str, str] = {}

    def neutral(text: str) -> str:
        return escape_control_tokens(text, format, tools)

    def again(text: str) -> str:
        return neutral(unescape_control_tokens(text))

    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RequestError(f'{place} must be an object with a "role", got {truncate_repr(message)}', place)
        role, content = message["role"], content_of(message.get("content"), place)
        if role == "assistant" and message.get("tool_calls"):
            calls = calls_of(message["tool_calls"], f"{place}.tool_calls")
            names |= {call_id: name for call_id, name, _ in calls}
            written = memory.recall(format.name, content, calls) if isinstance(content, str) else None
            encoded = format.encode_calls([(name, map_strings(again, arguments)) for _, name, arguments in calls])
            yield {"role": "assistant", "content": written or concat_content(content, encoded, "\n")}
        elif role in ("tool", "function"):
            call_id = str(message.get("tool_call_id") or "")
            name = names.get(call_id) or str(message.get("name") or "tool")
            text, others = split_texts(content)
            result: Content = format.encode_result(name, neutral(text), call_id)
            yield {"role": "user", "content": concat_content(result, others, "\n") if others else result}
        else:
            # A field such as `name` goes along; past reasoning does not: no template shows it to the model.
            kept = {key: value for key, value in message.items() if key not in _DROPPED}
            if role == "assistant" and isinstance(content, str):
                content = memory.recall(format.name, content, []) or content
            if role == "user":
                content = with_texts(neutral, content)
            yield {**kept, "role": "system" if role == "developer" else role, "content": content}


def has_misplaced_system(messages: Sequence[Json]) -> bool:
    """Whether a message of the system stands where a template may refuse it, or is the developer's."""
    roles = [message.get("role") if isinstance(message, dict) else None for message in messages]
    return "developer" in roles or "system" in roles[1:]


def last_request(messages: Json) -> tuple[str, bool]:
    """What the user said last, and whether a tool's result came after it."""
    has_result = False
    for message in reversed(messages) if isinstance(messages, list) else ():
        role = message.get("role") if isinstance(message, dict) else None
        if role == "user":
            text, _ = split_texts(content_of(message.get("content"), "messages"))
            return text, has_result
        has_result = has_result or role in ("tool", "function")
    return "", has_result


def last_calls(messages: Json) -> list[tuple[str, JsonObject]]:
    """(name, arguments) of the calls whose results end the conversation; none where something else does."""
    for index in reversed(range(len(messages))):
        message = messages[index]
        if message["role"] not in ("tool", "function"):
            has_results = index < len(messages) - 1 and message.get("tool_calls")
            calls = calls_of(message["tool_calls"], f"messages[{index}].tool_calls") if has_results else []
            return [(name, arguments) for _, name, arguments in calls]
    return []


_DROPPED = frozenset({"tool_calls", "reasoning_content", "reasoning", "refusal", "audio", "annotations"})


def content_of(content: Json, place: str) -> Content:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict | str) for part in content):
        parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
        text, others = split_texts(parts)
        return parts if others else text
    raise RequestError(f"{place}.content must be text, a list of parts or null, got {truncate_repr(content)}", place)


def split_texts(content: Content) -> tuple[str, list[Json]]:
    """The text, and the parts that are none."""
    if isinstance(content, str):
        return content, []
    is_text = [isinstance(part.get("text"), str) for part in content]
    texts = [part["text"] for part, text in zip(content, is_text, strict=True) if text]
    return "\n".join(texts), [part for part, text in zip(content, is_text, strict=True) if not text]


def with_texts(change: Callable[[str], str], content: Content) -> Content:
    """``content`` with ``change`` made in its texts."""
    if isinstance(content, str):
        return change(content)
    return [{**part, "text": change(part["text"])} if isinstance(part.get("text"), str) else part for part in content]


def calls_of(calls: Json, place: str) -> list[Call]:
    found = []
    for index, call in enumerate(calls if isinstance(calls, list) else [calls]):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise RequestError(
                f'{place}[{index}] must be {{"id", "type": "function", "function": {{"name", "arguments"}}}}, '
                f"got {truncate_repr(call)}",
                f"{place}[{index}]",
            )
        found.append((str(call.get("id") or ""), function["name"], _arguments(function.get("arguments"))))
    return found


def _arguments(written: Json) -> JsonObject:
    """A past call's arguments. What is no JSON object is shown as it was written, under a name of its own."""
    if isinstance(written, Mapping):
        return dict(written)
    try:
        arguments = json.loads(written) if written else {}
    except (TypeError, ValueError):
        arguments = written
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}


def with_system(messages: Sequence[JsonObject], where: System) -> Iterator[JsonObject]:
    """The system's messages where a template has a place for them, those at the beginning as one; the others as the
    user's, in their order."""
    if where == "anywhere":
        yield from messages
        return
    leading = 0
    while leading < len(messages) and messages[leading]["role"] == "system":
        leading += 1
    said: Content = ""
    for message in messages[:leading]:
        said = concat_content(said, message["content"], "\n\n")
    if said and where == "first":
        yield {**messages[0], "content": said}
        said = ""
    for message in messages[leading:]:
        if message["role"] == "system":
            said = concat_content(said, message["content"], "\n\n")
        elif message["role"] == "user":
            yield {**message, "content": concat_content(said, message["content"], "\n\n")}
            said = ""
        else:
            if said:
                yield {"role": "user", "content": said}
                said = ""
            yield message
    if said:
        yield {"role": "user", "content": said}


def _joined(messages: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """The templates of Gemma and Mistral refuse two messages of the user in a row."""
    for role, group in groupby(messages, key=lambda message: message["role"]):
        first, *rest = group
        if role != "user":
            yield from (first, *rest)
            continue
        content = first["content"]
        for message in rest:
            content = concat_content(content, message["content"], "\n\n")
        yield {**first, "content": content}


def truncate_repr(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
