"""Convert a conversation with tool calls to plain messages, with calls and results as text in the model's format.

Chat templates may reject some messages, so they are normalized: calls become assistant text and results user text;
consecutive user messages are merged; the role ``developer`` becomes ``system``; leading system messages are merged, and
later ones become user messages. Parts that are not text, such as images, are kept. Control tokens and calls are escaped
in user messages, tool results and the arguments of earlier calls (`adapter.prompting.escaping`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from adapter.conversation.message_content import REASONING_FIELDS, Content, concat_content
from adapter.core.events import Json, JsonObject
from adapter.core.json.load import load_json
from adapter.parsing.format import Format
from adapter.prompting.escaping import escape_control_tokens, map_strings, unescape_control_tokens
from adapter.prompting.template_capabilities import System
from adapter.protocols.conversation_cache import (
    NOTHING,
    Blake2b,
    Call,
    Conversation,
    ConvertedMessages,
    VerbatimCallCache,
    encode_messages,
)
from adapter.protocols.request_errors import RequestError
from adapter.tools.tool_set import ToolSet


def render_plain_messages(
    conversation: Conversation, format: Format, system: str, closing: str, tools: ToolSet, memory: VerbatimCallCache
) -> tuple[list[JsonObject], str]:
    """Return the messages of a conversation as plain text, and the hash of the client's messages.

    Answers in ``memory`` are shown exactly as the model wrote them; other calls are encoded in ``format``. ``tools``
    are the request's tools. ``system`` is appended to the system message, and ``closing``, if not empty, is added as
    the last user message. Raises RequestError for an invalid message.
    """
    converted = _convert(conversation, format, system, tools, memory)
    ending = converted.messages[-1:] + ([{"role": "user", "content": closing}] if closing else [])
    ending = list(_merge_user_messages(ending))
    return converted.messages[:-1] + ending, conversation.hash_before(-1, converted.beginning)


def _convert(
    conversation: Conversation, format: Format, system: str, tools: ToolSet, memory: VerbatimCallCache
) -> ConvertedMessages:
    """Convert the messages of a conversation. Messages that were converted for an earlier request are reused."""
    messages, key = conversation.messages, (format, tools, system)
    before = conversation.get_built(key, NOTHING)
    if before.count and before.count == len(messages):
        return before
    if before.count and not _is_answer(messages[before.count]):  # it may be merged with the last one
        before = NOTHING
    names = dict(before.names)
    beginning = before.beginning.copy()
    plain = list(_convert_messages(conversation, before.count, beginning, names, format, tools, memory))
    added = list(_merge_user_messages(list(with_system(plain, "first"))))
    if system and not before.count:
        own = added.pop(0) if added and added[0]["role"] == "system" else {"role": "system", "content": ""}
        added.insert(0, {**own, "content": concat_content(own["content"], system, "\n\n")})
    converted = ConvertedMessages(len(messages), [*before.messages, *added], names, beginning)
    conversation.store_built(key, converted)
    return converted


def _is_answer(message: Json) -> bool:
    return isinstance(message, dict) and message.get("role") == "assistant"


def _convert_messages(
    conversation: Conversation,
    start: int,
    beginning: Blake2b,
    names: dict[str, str],
    format: Format,
    tools: ToolSet,
    memory: VerbatimCallCache,
) -> Iterator[JsonObject]:
    """Yield the converted messages from the index ``start`` on. Update ``beginning``, the hash of the messages so far,
    and ``names``, the called tools by call id."""

    def escape(text: str) -> str:
        return escape_control_tokens(text, format, tools)

    def escape_again(text: str) -> str:
        return escape(unescape_control_tokens(text))

    def recall(index: int, content: Content, calls: Sequence[Call]) -> Content | None:
        before = conversation.hash_before(index, beginning)
        return memory.recall(format.name, before, content, calls) if isinstance(content, str) else None

    results: dict[str, list[JsonObject]] = {}  # consecutive results by call id
    for index, (path, message, content) in enumerate(iter_messages(conversation.messages, start), start):
        role = message["role"]
        if role not in _RESULTS:
            yield from _sort_by_call_order(results, names)
            results = {}
        if role == "assistant" and message.get("tool_calls"):
            calls = parse_calls(message["tool_calls"], f"{path}.tool_calls")
            for call_id, name, _ in calls:
                names.pop(call_id, None)  # the order of names is the order of the last calls
                names[call_id] = name
            if not (verbatim := recall(index, content, calls)):
                pairs = [(name, map_strings(escape_again, arguments)) for _, name, arguments in calls]
                verbatim = concat_content(content, format.encode_calls(pairs), "\n")
            yield {"role": "assistant", "content": verbatim}
        elif role in _RESULTS:
            call_id = str(message.get("tool_call_id") or "")
            name = names.get(call_id) or str(message.get("name") or "tool")
            text, others = split_texts(content)
            result: Content = format.encode_result(name, escape(text), call_id)
            result = concat_content(result, others, "\n") if others else result
            results.setdefault(call_id, []).append({"role": "user", "content": result})
        else:
            # Keep fields such as `name`, but not past reasoning, which a generated prompt does not show.
            fields = {key: value for key, value in message.items() if key not in _DROPPED and value is not None}
            if role == "assistant":
                content = recall(index, content, []) or content
            if role == "user":
                content = with_texts(escape, content)
            yield {**fields, "role": "system" if role == "developer" else role, "content": content}
        beginning.update(encode_messages([message]))
    yield from _sort_by_call_order(results, names)


def _sort_by_call_order(results: Mapping[str, list[JsonObject]], names: Mapping[str, str]) -> Iterator[JsonObject]:
    """Yield consecutive tool results in the order of their calls, because few formats repeat a call's id in its result.
    ``results`` has messages by call id, and ``names`` has the call ids in order."""
    order = {call_id: position for position, call_id in enumerate(names)} if len(results) > 1 else {}
    for call_id in sorted(results, key=lambda each: order.get(each, len(order))):
        yield from results[call_id]


def iter_messages(messages: Json, start: int = 0) -> Iterator[tuple[str, JsonObject, Content]]:
    """Yield the path (such as ``messages[0]``), the message and its parsed content, for each message from ``start`` on.

    Raises RequestError if a message is invalid.
    """
    if not isinstance(messages, list) or not messages:
        error = f"'messages' must be a list with at least one message, got {truncate_repr(messages)}"
        raise RequestError(error, "messages")
    for index, message in enumerate(messages[start:] if start else messages, start):
        path = f"messages[{index}]"
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RequestError(f'{path} must be an object with a "role", got {truncate_repr(message)}', path)
        content = message.get("content")
        yield path, message, parse_content(message.get("refusal") if content in (None, "") else content, path)


def has_misplaced_system(messages: Sequence[Json]) -> bool:
    """Return whether there is a ``developer`` message or a late system message, which templates may reject."""
    roles = [message.get("role") if isinstance(message, dict) else None for message in messages]
    return "developer" in roles or "system" in roles[1:]


def find_last_request(messages: Json) -> tuple[str, bool]:
    """Return the user's last message, and whether a tool result follows it."""
    has_result = False
    for message in reversed(messages) if isinstance(messages, list) else ():
        role = message.get("role") if isinstance(message, dict) else None
        if role == "user":
            text, _ = split_texts(parse_content(message.get("content"), "messages"))
            return text, has_result
        has_result = has_result or role in ("tool", "function")
    return "", has_result


def list_last_calls(messages: Json) -> list[tuple[str, JsonObject]]:
    """If the last messages are tool results, return the names and arguments of their calls. Otherwise, return []."""
    for index in reversed(range(len(messages))):
        message = messages[index]
        if message["role"] not in ("tool", "function"):
            has_results = index < len(messages) - 1 and message.get("tool_calls")
            calls = parse_calls(message["tool_calls"], f"messages[{index}].tool_calls") if has_results else []
            return [(name, arguments) for _, name, arguments in calls]
    return []


_DROPPED = frozenset({"tool_calls", "reasoning_details", "refusal", "audio", "annotations", *REASONING_FIELDS})
_RESULTS = ("tool", "function")
"""Roles of tool results."""
_REASONING = ("thinking", "redacted_thinking", "reasoning")
"""Types of parts with past reasoning."""


def parse_content(content: Json, path: str) -> Content:
    """Return a message's content as text, or as a list of parts if some are not text. Past reasoning is left out.

    Raises RequestError, which names ``path``, if the content is invalid.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict | str) for part in content):
        parts = [_parse_part(part) for part in content if isinstance(part, str) or part.get("type") not in _REASONING]
        text, others = split_texts(parts)
        return parts if others else text
    raise RequestError(f"{path}.content must be text, a list of parts or null, got {truncate_repr(content)}", path)


def _parse_part(part: str | JsonObject) -> Json:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    is_refusal = part.get("type") == "refusal" and isinstance(part.get("refusal"), str)
    return {"type": "text", "text": part["refusal"]} if is_refusal else part


def split_texts(content: Content) -> tuple[str, list[Json]]:
    """Return the text of ``content``, and its parts that are not text."""
    if isinstance(content, str):
        return content, []
    is_text = [isinstance(part.get("text"), str) for part in content]
    texts = [part["text"] for part, text in zip(content, is_text, strict=True) if text]
    return "\n".join(texts), [part for part, text in zip(content, is_text, strict=True) if not text]


def with_texts(change: Callable[[str], str], content: Content) -> Content:
    """Apply ``change`` to the text of each part of ``content``."""
    if isinstance(content, str):
        return change(content)
    return [{**part, "text": change(part["text"])} if isinstance(part.get("text"), str) else part for part in content]


def parse_calls(calls: Json, path: str) -> list[Call]:
    """Return a message's calls. Raises RequestError, which names ``path``, if one is invalid."""
    parsed = []
    for index, call in enumerate(calls if isinstance(calls, list) else [calls]):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise RequestError(
                f'{path}[{index}] must be {{"id", "type": "function", "function": {{"name", "arguments"}}}}, '
                f"got {truncate_repr(call)}",
                f"{path}[{index}]",
            )
        parsed.append((str(call.get("id") or ""), function["name"], _parse_arguments(function.get("arguments"))))
    return parsed


def _parse_arguments(value: Json) -> JsonObject:
    """Parse the arguments of an earlier call. A value that is not a JSON object becomes the argument ``arguments``."""
    if isinstance(value, Mapping):
        return dict(value)
    try:
        arguments = load_json(value) if value else {}
    except (TypeError, ValueError):
        arguments = value
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}


def with_system(messages: Sequence[JsonObject], support: System) -> Iterator[JsonObject]:
    """Adapt system messages to the positions that a chat template accepts, which ``support`` states: leading ones are
    merged, and others are added to user messages."""
    if support == "anywhere":
        yield from messages
        return
    leading = 0
    while leading < len(messages) and messages[leading]["role"] == "system":
        leading += 1
    pending: Content = ""
    for message in messages[:leading]:
        pending = concat_content(pending, message["content"], "\n\n")
    if pending and support == "first":
        yield {**messages[0], "content": pending}
        pending = ""
    for message in messages[leading:]:
        if message["role"] == "system":
            pending = concat_content(pending, message["content"], "\n\n")
        elif message["role"] == "user":
            yield {**message, "content": concat_content(pending, message["content"], "\n\n")}
            pending = ""
        else:
            if pending:
                yield {"role": "user", "content": pending}
                pending = ""
            yield message
    if pending:
        yield {"role": "user", "content": pending}


def _merge_user_messages(messages: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Merge consecutive user messages, which the templates of Gemma and Mistral reject."""
    for role, group in groupby(messages, key=lambda message: message["role"]):
        first, *rest = group
        if role != "user" or not rest:
            yield from (first, *rest)
            continue
        content = first["content"]
        for message in rest:
            content = concat_content(content, message["content"], "\n\n")
        yield {**first, "content": content}


def truncate_repr(value: Json) -> str:
    """Return the beginning of ``value`` as JSON, for an error message."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
