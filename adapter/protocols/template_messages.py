"""A conversation with tool calls as a chat template takes it: calls as calls, results as results.

What the template at hand refuses, or would leave out without a word, is evened out by its `TemplateCapabilities`, and nothing is
lost: messages of the system that it has no place for go to the user's, messages that must not follow one another become
one, calls that it takes one at a time are put one at a time, results follow their calls in order. What tools and users
say, and the arguments of past calls, is neutralised, as in `adapter.protocols.plain_messages`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from secrets import token_hex

from adapter.conversation.message_content import Content, concat_content
from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.prompting.escaping import escape_control_tokens, map_strings, unescape_control_tokens
from adapter.prompting.template_capabilities import TemplateCapabilities, is_mistral_call_id
from adapter.protocols.openai_errors import RequestError
from adapter.protocols.plain_messages import calls_of, content_of, split_texts, truncate_repr, with_system, with_texts
from adapter.protocols.tool_definitions import CACHE_SIZE, MAX_CACHED_CHARACTERS
from adapter.protocols.verbatim_calls import Call, VerbatimCallCache
from adapter.tools.tool import Tool, ToolSet


@dataclass(frozen=True, slots=True)
class TemplateMessages:
    """``messages``: for the template. ``written``: what the model wrote, by the words that stand for it in them and are
    to be replaced in the prompt."""

    messages: list[JsonObject]
    written: Mapping[str, str] = field(default_factory=dict)


def template_messages(
    messages: Json,
    traits: TemplateCapabilities,
    format: Format,
    tools: ToolSet,
    *,
    closing: str = "",
    memory: VerbatimCallCache | None = None,
    written: Mapping[int, str] | None = None,
    is_neutral: bool = False,
) -> TemplateMessages:
    """``messages`` for the model's own template. ``closing``: the user's last words.

    Calls that ``memory`` has, or whose message's place ``written`` has, are what the model wrote, where the template
    puts that as it puts a text. ``is_neutral``: nothing in the messages acts any more.
    Raises RequestError for what is no conversation.
    """
    if not isinstance(messages, list) or not messages:
        raise RequestError(
            f"'messages' must be a list with at least one message, got {truncate_repr(messages)}", "messages"
        )
    reader = _MessageReader(traits, format, tools, memory or VerbatimCallCache(), written or {}, is_neutral)
    read = list(reader.read(messages))
    if closing:
        read.append({"role": "user", "content": closing})
    read = list(_in_order(read, reader.order))
    if not traits.parallel_calls:
        read = list(_one_by_one(read, traits))
    read = list(with_system(read, traits.system))
    if not traits.users:
        read = list(_alternating(read))
    if traits.between is not None:
        read = list(_with_answers(read, traits.between))
    return TemplateMessages(read, reader.written)


def template_tool_definitions(given: Json, shown: ToolSet, format: Format) -> list[Json]:
    """The tools as the client has them, but that nothing in them acts on the model; and those of ``shown`` that are
    ours."""
    functions = ((each["function"]["name"], each) for each in map(_as_function, given or ()))
    definitions = {name: each for name, each in functions if name in shown}
    definitions |= {name: tool.to_openai() for name, tool in shown.items() if name not in definitions}

    text = json.dumps(list(definitions.values()), ensure_ascii=False)
    escape = _escape_definitions if len(text) <= MAX_CACHED_CHARACTERS else _escape_definitions.__wrapped__
    return escape(text, shown, format)


@lru_cache(CACHE_SIZE)
def _escape_definitions(definitions: str, shown: ToolSet, format: Format) -> list[Json]:
    def neutral(text: str) -> str:
        return escape_control_tokens(text, format, shown)

    return [_neutral_definition(definition, neutral) for definition in json.loads(definitions)]


def _as_function(definition: JsonObject) -> JsonObject:
    """In OpenAI's nested shape, which templates know."""
    if isinstance(definition.get("function"), dict):
        return definition
    return Tool.from_definition(definition).to_openai()


def _neutral_definition(definition: JsonObject, neutral: Callable[[str], str]) -> JsonObject:
    """All but the name: what a server says of its tools is foreign text."""
    function = {
        key: value if key == "name" else map_strings(neutral, value) for key, value in definition["function"].items()
    }
    return {**definition, "function": function}


@dataclass(slots=True)
class _MessageReader:
    traits: TemplateCapabilities
    format: Format
    tools: ToolSet
    memory: VerbatimCallCache
    known: Mapping[int, str]
    is_neutral: bool
    written: dict[str, str] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)  # of the calls, by the template's ids
    _called: dict[str, tuple[str, str]] = field(default_factory=dict)  # by the client's id: the template's, the name

    def read(self, messages: Sequence[Json]) -> Iterator[JsonObject]:
        for index, message in enumerate(messages):
            place = f"messages[{index}]"
            if not isinstance(message, dict) or not isinstance(message.get("role"), str):
                raise RequestError(f'{place} must be an object with a "role", got {truncate_repr(message)}', place)
            role, content = message["role"], content_of(message.get("content"), place)
            if role == "assistant":
                yield self._answer(message, content, index)
            elif role in ("tool", "function"):
                yield self._result(message, content)
            else:
                kept = {key: value for key, value in message.items() if key == "name"}
                if role == "user":
                    content = with_texts(self._neutral, content)
                yield {**kept, "role": "system" if role == "developer" else role, "content": content}

    def _answer(self, message: JsonObject, content: Content, index: int) -> JsonObject:
        place = f"messages[{index}].tool_calls"
        calls = calls_of(message["tool_calls"], place) if message.get("tool_calls") else []
        made: JsonObject = {"role": "assistant", "content": content or (self.traits.empty_content if calls else "")}
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            made["reasoning_content"] = self._again(reasoning)
        ids = [self._take_id(call) for call in calls]
        if not calls:
            return made
        if self.traits.as_text and isinstance(content, str):
            written = self.known.get(index) or self.memory.recall(self.format.name, content, calls)
            if written is not None:
                return {**made, "content": self._standing_for(written)}
        if self.traits.only_text:
            pairs = [(name, map_strings(self._again, arguments)) for _, name, arguments in calls]
            return {**made, "content": concat_content(content, self.format.encode_calls(pairs), "\n")}
        made["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": self._arguments(arguments)}}
            for call_id, (_, name, arguments) in zip(ids, calls, strict=True)
        ]
        return made

    def _standing_for(self, written: str) -> str:
        """A word that stands nowhere else and that nobody can guess, who might foresee what the model writes."""
        word = f"answer-{len(self.written)}-{token_hex(10)}"
        self.written[word] = written
        return word

    def _take_id(self, call: Call) -> str:
        given, name, _ = call
        number = len(self.order)
        match self.traits.ids:
            case "named":
                made = f"functions.{name}:{number}"
            case "nine" if not is_mistral_call_id(given):
                made = sha256(f"{given}:{number}".encode("utf-8", "replace")).hexdigest()[:9]
            case _:
                made = given
        self._called[given] = (made, name)
        self.order[made] = number
        return made

    def _arguments(self, arguments: JsonObject) -> Json:
        neutral = map_strings(self._again, arguments)
        return neutral if self.traits.arguments == "object" else json.dumps(neutral, ensure_ascii=False)

    def _result(self, message: JsonObject, content: Content) -> JsonObject:
        given = str(message.get("tool_call_id") or "")
        text, others = split_texts(content)
        neutral = self._neutral(text)
        if given not in self._called and not self._is_next(message):
            result: Content = self.format.encode_result(str(message.get("name") or "tool"), neutral, given)
            return {"role": "user", "content": concat_content(result, others, "\n") if others else result}
        made, name = self._called.get(given, (given, str(message.get("name") or "")))
        shown: Content = [{"type": "text", "text": neutral}, *others] if others else neutral
        return {"role": "tool", "tool_call_id": made, "name": name, "content": shown}

    def _is_next(self, message: JsonObject) -> bool:
        """Whether a result without an id, as Ollama's clients send them, is that of a call by its name."""
        name = message.get("name")
        return not message.get("tool_call_id") and any(name == called for _, called in self._called.values())

    def _neutral(self, text: str) -> str:
        return (
            text
            if self.is_neutral
            else escape_control_tokens(text, _closed_by(self.format, self.traits.closers), self.tools)
        )

    def _again(self, text: str) -> str:
        return text if self.is_neutral else self._neutral(unescape_control_tokens(text))


@lru_cache(maxsize=64)
def _closed_by(format: Format, closers: tuple[str, ...]) -> Format:
    """The format with results that end as the template ends them, for `neutralise`."""
    end = "".join(closers)
    return replace(format, encode_result=lambda _name, content, _id: content + end)


def _in_order(messages: Sequence[JsonObject], order: Mapping[str, int]) -> Iterator[JsonObject]:
    """Results in the order of their calls, by which some templates tell them apart."""
    for is_result, group in groupby(messages, key=lambda message: message["role"] == "tool"):
        if is_result:
            yield from sorted(group, key=lambda result: order.get(result["tool_call_id"], len(order)))
        else:
            yield from group


def _one_by_one(messages: Sequence[JsonObject], traits: TemplateCapabilities) -> Iterator[JsonObject]:
    """Each call as an answer of its own, its result behind it."""
    waiting: list[JsonObject] = []
    for message in (*messages, {"role": ""}):
        if message["role"] == "tool" and waiting:
            call = next((each for each in waiting if each["tool_calls"][0]["id"] == message["tool_call_id"]), None)
            if call is not None:
                waiting.remove(call)
                yield call
            yield message
            continue
        yield from waiting
        waiting = []
        calls = message.get("tool_calls") or ()
        if len(calls) > 1:
            silent = {"role": "assistant", "content": traits.empty_content}
            waiting = [{**silent, "tool_calls": [each]} for each in calls]
            waiting[0] = {**message, "tool_calls": calls[:1]}
        elif message["role"]:
            yield message


def _alternating(messages: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Messages of the user that follow one another as one, and answers in words, too."""
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


def _with_answers(messages: Sequence[JsonObject], said: str) -> Iterator[JsonObject]:
    """``said`` by the model between a result and what the user says next."""
    before = ""
    for message in messages:
        if before == "tool" and message["role"] == "user":
            yield {"role": "assistant", "content": said}
        before = message["role"]
        yield message
