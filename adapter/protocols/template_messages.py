"""Convert a conversation with tool calls to messages for a chat template, with structured calls and results.

Messages that the template would reject or silently drop are adapted according to its `TemplateCapabilities`. No content
is lost: unsupported system messages become user messages, messages that must not be consecutive are merged, parallel
calls are sent one at a time, and results follow the order of their calls. User messages, tool results and the arguments
of earlier calls are escaped, as in `adapter.protocols.plain_text_messages`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from hashlib import sha256
from itertools import groupby
from secrets import token_hex

from adapter.conversation.message_content import Content, concat_content, get_reasoning
from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.prompting.escaping import escape_control_tokens, map_strings, unescape_control_tokens
from adapter.prompting.template_capabilities import TemplateCapabilities, is_mistral_call_id
from adapter.protocols.conversation_cache import (
    Blake2b,
    Call,
    Conversation,
    ConvertedTemplateMessages,
    VerbatimCallCache,
    encode_messages,
)
from adapter.protocols.plain_text_messages import iter_messages, parse_calls, split_texts, with_system, with_texts
from adapter.protocols.request_list_cache import build_once
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet


@dataclass(frozen=True, slots=True)
class TemplateMessages:
    """Messages for a chat template.

    Earlier answers that must appear in the prompt exactly as the model wrote them are placeholders. ``written`` has the
    text of each placeholder, which must replace it in the rendered prompt.
    """

    messages: list[JsonObject]
    written: Mapping[str, str]
    beginning: str
    """Hash of the client's messages."""


def prepare_template_messages(
    conversation: Conversation,
    traits: TemplateCapabilities,
    format: Format,
    tools: ToolSet,
    *,
    closing: str = "",
    memory: VerbatimCallCache | None = None,
    written: Mapping[int, str] | None = None,
    is_escaped: bool = False,
) -> TemplateMessages:
    """Convert a conversation to messages for the chat template described by ``traits``.

    ``closing``, if not empty, is added as the last user message. If the template inserts text unchanged, answers with
    calls are replaced by the text as the model wrote it, found in ``memory`` or, by message index, in ``written``.
    ``is_escaped`` is True if the messages are already escaped. Raises RequestError for an invalid message.
    """
    memory, key = memory or VerbatimCallCache(), (traits, format, tools)
    state = conversation.get_built(key, ConvertedTemplateMessages()).copy()
    reader = _MessageReader(traits, format, tools, memory, written or {}, is_escaped, state)
    state.messages.extend(reader.read(conversation, len(state.messages), state.beginning))
    conversation.store_built(key, state)
    converted = [*state.messages]
    if closing:
        converted.append({"role": "user", "content": closing})
    converted = list(_sort_by_call_order(converted, state.order))
    if not traits.parallel_calls:
        converted = list(_split_parallel_calls(converted, traits))
    converted = list(with_system(converted, traits.system))
    if not traits.users:
        converted = list(_merge_consecutive(converted))
    if traits.between is not None:
        converted = list(_with_answers(converted, traits.between))
    return TemplateMessages(converted, state.written, conversation.hash_before(-1, state.beginning))


def prepare_tool_definitions(definitions_json: Json, shown: ToolSet, format: Format) -> list[Json]:
    """Return the escaped definitions of the ``shown`` tools, as the client wrote them in ``definitions_json`` or, for
    tools that this library adds, in OpenAI's format."""
    prepare = partial(_prepare_tool_definitions, definitions_json, shown, format)
    return build_once(definitions_json, (shown, format), prepare)


def _prepare_tool_definitions(definitions_json: Json, shown: ToolSet, format: Format) -> list[Json]:
    functions = ((each["function"]["name"], each) for each in map(_to_function, definitions_json or ()))
    definitions = {name: each for name, each in functions if name in shown}
    definitions |= {name: tool.to_openai() for name, tool in shown.items() if name not in definitions}

    def escape(text: str) -> str:
        return escape_control_tokens(text, format, shown)

    return [_escape_definition(definition, escape) for definition in definitions.values()]


def _to_function(definition: JsonObject) -> JsonObject:
    """Return the definition in OpenAI's nested format, which templates expect."""
    if isinstance(definition.get("function"), dict):
        return definition
    return Tool.from_definition(definition).to_openai()


_DEFINITION = ("type", "function")


def _escape_definition(definition: JsonObject, escape: Callable[[str], str]) -> JsonObject:
    """Return a tool's definition with all strings escaped except its name, because descriptions are untrusted. Drop
    fields that are not for the model, such as a client's ``cache_control``."""
    function = {
        key: value if key == "name" else map_strings(escape, value) for key, value in definition["function"].items()
    }
    return {key: function if key == "function" else definition[key] for key in definition if key in _DEFINITION}


@dataclass(slots=True)
class _MessageReader:
    """Converts messages one by one. ``verbatim`` has answers as the model wrote them, by message index."""

    traits: TemplateCapabilities
    format: Format
    tools: ToolSet
    memory: VerbatimCallCache
    verbatim: Mapping[int, str]
    is_escaped: bool
    state: ConvertedTemplateMessages
    _closed_format: Format = field(init=False)

    def __post_init__(self) -> None:
        self._closed_format = _get_closed_format(self.format, self.traits.closers)

    def read(self, conversation: Conversation, start: int, beginning: Blake2b) -> Iterator[JsonObject]:
        for index, (path, message, content) in enumerate(iter_messages(conversation.messages, start), start):
            role = message["role"]
            if role == "assistant":
                yield self._prepare_answer(message, content, index, path, conversation.hash_before(index, beginning))
            elif role in ("tool", "function"):
                yield self._prepare_result(message, content)
            else:
                fields = {key: value for key, value in message.items() if key == "name"}
                if role == "user":
                    content = with_texts(self._escape, content)
                yield {**fields, "role": "system" if role == "developer" else role, "content": content}
            beginning.update(encode_messages([message]))

    def _prepare_answer(self, message: JsonObject, content: Content, index: int, path: str, before: str) -> JsonObject:
        calls = parse_calls(message["tool_calls"], f"{path}.tool_calls") if message.get("tool_calls") else []
        answer: JsonObject = {"role": "assistant", "content": content or (self.traits.empty_content if calls else "")}
        if reasoning := get_reasoning(message):
            answer["reasoning_content"] = self._escape_again(reasoning)
        ids = [self._take_id(call) for call in calls]
        if not calls:
            return answer
        if self.traits.as_text and isinstance(content, str):
            verbatim = self.verbatim.get(index) or self.memory.recall(self.format.name, before, content, calls)
            if verbatim is not None:
                return {**answer, "content": self._create_placeholder(verbatim)}
        if self.traits.only_text:
            pairs = [(name, map_strings(self._escape_again, arguments)) for _, name, arguments in calls]
            return {**answer, "content": concat_content(content, self.format.encode_calls(pairs), "\n")}
        answer["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": self._prepare_arguments(arguments)},
            }
            for call_id, (_, name, arguments) in zip(ids, calls, strict=True)
        ]
        return answer

    def _create_placeholder(self, verbatim: str) -> str:
        """Return a placeholder for ``verbatim``. It is random, so that no message can contain it."""
        word = f"answer-{len(self.state.written)}-{token_hex(10)}"
        self.state.written[word] = verbatim
        return word

    def _take_id(self, call: Call) -> str:
        client_id, name, _ = call
        number = len(self.state.order)
        match self.traits.ids:
            case "named":
                template_id = f"functions.{name}:{number}"
            case "nine" if not is_mistral_call_id(client_id):
                template_id = sha256(f"{client_id}:{number}".encode("utf-8", "replace")).hexdigest()[:9]
            case _:
                template_id = client_id
        self.state.calls[client_id] = (template_id, name)
        self.state.order[template_id] = number
        return template_id

    def _prepare_arguments(self, arguments: JsonObject) -> Json:
        escaped = map_strings(self._escape_again, arguments)
        return escaped if self.traits.arguments == "object" else json.dumps(escaped, ensure_ascii=False)

    def _prepare_result(self, message: JsonObject, content: Content) -> JsonObject:
        client_id = str(message.get("tool_call_id") or "")
        text, other_parts = split_texts(content)
        escaped = self._escape(text)
        if client_id not in self.state.calls and not self._is_next_result(message):
            result: Content = self.format.encode_result(str(message.get("name") or "tool"), escaped, client_id)
            return {"role": "user", "content": concat_content(result, other_parts, "\n") if other_parts else result}
        template_id, name = self.state.calls.get(client_id, (client_id, str(message.get("name") or "")))
        parts: Content = [{"type": "text", "text": escaped}, *other_parts] if other_parts else escaped
        return {"role": "tool", "tool_call_id": template_id, "name": name, "content": parts}

    def _is_next_result(self, message: JsonObject) -> bool:
        """Return whether a result without an id names an earlier call. Ollama's clients send such results."""
        name = message.get("name")
        return not message.get("tool_call_id") and any(name == call_name for _, call_name in self.state.calls.values())

    def _escape(self, text: str) -> str:
        if self.is_escaped:
            return text
        return escape_control_tokens(text, self._closed_format, self.tools)

    def _escape_again(self, text: str) -> str:
        return text if self.is_escaped else self._escape(unescape_control_tokens(text))


@lru_cache(maxsize=64)
def _get_closed_format(format: Format, closers: tuple[str, ...]) -> Format:
    """Return ``format`` with results that end in ``closers``, the template's text after a result. Escaping messages for
    this format then also escapes that text."""
    end = "".join(closers)
    return replace(format, encode_result=lambda _name, content, _id: content + end)


def _sort_by_call_order(messages: Sequence[JsonObject], order: Mapping[str, int]) -> Iterator[JsonObject]:
    """Sort consecutive results in the order of their calls, because some templates match them by position."""
    for is_result, group in groupby(messages, key=lambda message: message["role"] == "tool"):
        if is_result:
            yield from sorted(group, key=lambda result: order.get(result["tool_call_id"], len(order)))
        else:
            yield from group


def _split_parallel_calls(messages: Sequence[JsonObject], traits: TemplateCapabilities) -> Iterator[JsonObject]:
    """Split parallel calls into messages with one call each, and put each result after its call."""
    pending: list[JsonObject] = []
    for message in (*messages, {"role": ""}):
        if message["role"] == "tool" and pending:
            call = next((each for each in pending if each["tool_calls"][0]["id"] == message["tool_call_id"]), None)
            if call is not None:
                pending.remove(call)
                yield call
            yield message
            continue
        yield from pending
        pending = []
        calls = message.get("tool_calls") or ()
        if len(calls) > 1:
            silent = {"role": "assistant", "content": traits.empty_content}
            pending = [{**silent, "tool_calls": [each]} for each in calls]
            pending[0] = {**message, "tool_calls": calls[:1]}
        elif message["role"]:
            yield message


def _merge_consecutive(messages: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Merge consecutive user messages, and consecutive assistant messages."""
    before: JsonObject | None = None
    for message in messages:
        if before is not None and _may_join(before, message):
            before = {**before, "content": concat_content(before["content"], message["content"], "\n\n")}
            continue
        if before is not None:
            yield before
        if message["role"] == "assistant" and (before is None or before["role"] == "system"):
            yield {"role": "user", "content": "..."}
        before = message
    if before is not None:
        yield before


def _may_join(first: JsonObject, second: JsonObject) -> bool:
    return (
        first["role"] == second["role"]
        and first["role"] in ("user", "assistant")
        and not (first.get("tool_calls") or second.get("tool_calls"))
    )


def _with_answers(messages: Sequence[JsonObject], answer: str) -> Iterator[JsonObject]:
    """Insert an assistant message with the text ``answer`` between a tool result and a user message."""
    before = ""
    for message in messages:
        if before == "tool" and message["role"] == "user":
            yield {"role": "assistant", "content": answer}
        before = message["role"]
        yield message
