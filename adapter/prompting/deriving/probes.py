"""The conversations that a template is filled with to see how it writes calls, and how their texts are had.

Every word of them begins with ``zq``, so that it stands nowhere else. A template never sees anything but these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.prompting.control_tokens import CHAT_TOKENS
from adapter.prompting.template_capabilities import MARK
from adapter.tools.tool import ToolSet

Call: TypeAlias = tuple[str, JsonObject]
Fill: TypeAlias = Callable[[Sequence[JsonObject], Sequence[Json], bool], str | None]
"""The prompt of messages and tools, with the generation prompt or without; None where the template refuses them."""

NAME, OTHER = "zqname", "zqother"
KEY, SECOND = "zqkey", "zqsecond"
VALUE, FURTHER = "zqvalue", "zqfurther"
ASKED, SAID, MORE, THOUGHT, RESULT = "zqasked", "zqsaid", "zqmore", "zqthought", "zqresult"
BOS, EOS = "<zqbos>", "<zqeos>"
"""In place of a template's own tokens where nobody says what these are."""

MAX_TALK = 10_000
"""Characters that follow the user's words in a prompt that is looked at; real templates write some hundred."""

_PROPERTIES: JsonObject = {
    KEY: {"type": "string", "description": "zqtext"},
    SECOND: {"type": "string", "description": "zqtext"},
    "zqcount": {"type": "integer", "description": "zqtext"},
    "zqratio": {"type": "number", "description": "zqtext"},
    "zqflag": {"type": "boolean", "description": "zqtext"},
    "zqlist": {"type": "array", "items": {"type": "string"}, "description": "zqtext"},
    "zqmap": {"type": "object", "additionalProperties": {"type": "string"}, "description": "zqtext"},
}
TOOLS: list[Json] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "zqdescription",
            "parameters": {"type": "object", "properties": _PROPERTIES, "required": []},
        },
    }
    for name in (NAME, OTHER)
]
_LOOSE = {key: {"type": value["type"]} for key, value in _PROPERTIES.items()}
TOOL_SET = ToolSet([{"name": name, "parameters": {"type": "object", "properties": _LOOSE}} for name in (NAME, OTHER)])
"""The same for reading: lists and objects may hold anything."""

ONE: list[Call] = [(NAME, {KEY: VALUE})]
TWO_ARGUMENTS: list[Call] = [(NAME, {KEY: VALUE, SECOND: FURTHER})]
NO_ARGUMENTS: list[Call] = [(NAME, {})]
TWO_CALLS: list[Call] = [(NAME, {KEY: VALUE}), (OTHER, {SECOND: FURTHER})]


@dataclass(frozen=True, slots=True)
class TemplateConventions:
    """How a template takes a call: its arguments as an object or as JSON, the content of a silent answer as null or
    empty, ids of which kind, whether results must follow, and whether it is told of the tools."""

    arguments: Literal["object", "text"]
    silence: Literal[""] | None
    named_ids: bool
    with_results: bool
    with_tools: bool

    def id(self, call: str, number: int) -> str:
        """Nine letters and digits, which all take, or with the tool's name in it, where it stands nowhere else."""
        return f"functions.{call}:{number}" if self.named_ids else f"zqid0000{number}"

    def answer(self, calls: Sequence[Call], content: str | None = None, thought: str | None = None) -> JsonObject:
        """The message of the assistant."""
        message: JsonObject = {"role": "assistant", "content": content if content is not None else self.silence}
        if thought is not None:
            message["reasoning_content"] = thought
        if calls:
            message["tool_calls"] = [
                {
                    "id": self.id(name, number),
                    "type": "function",
                    "function": {
                        "name": name,
                        "arguments": arguments
                        if self.arguments == "object"
                        else json.dumps(arguments, ensure_ascii=False),
                    },
                }
                for number, (name, arguments) in enumerate(calls)
            ]
        return message

    def result(self, call: str, number: int = 0, text: str = RESULT) -> JsonObject:
        return {"role": "tool", "tool_call_id": self.id(call, number), "name": call, "content": text}


USER: JsonObject = {"role": "user", "content": ASKED}


class RenderedConversations:
    """What the template writes after the user's words, by conversation. ``way``: as `find_way` found it."""

    def __init__(self, fill: Fill, way: TemplateConventions) -> None:
        self._fill, self.way = fill, way

    def talk(self, *messages: JsonObject, opened: bool = False) -> str | None:
        """``opened``: with the generation prompt."""
        prompt = self._fill([USER, *messages], TOOLS if self.way.with_tools else [], opened)
        if prompt is None or ASKED not in prompt:
            return None
        text = prompt.rpartition(ASKED)[2]
        return text if len(text) <= MAX_TALK else None

    def calls(self, calls: Sequence[Call], content: str | None = None, thought: str | None = None) -> str | None:
        """Up to the first result, where these must follow."""
        messages = [self.way.answer(calls, content, thought)]
        if self.way.with_results:
            messages += [self.way.result(name, number) for number, (name, _) in enumerate(calls)]
        text = self.talk(*messages)
        return text.partition(RESULT)[0] if text is not None and self.way.with_results else text


def detect_conventions(fill: Fill) -> TemplateConventions | None:
    """The first way in which a call's name, key and value are shown; None where there is none."""
    for way in _ways():
        text = RenderedConversations(fill, way).calls(ONE)
        if text is None or any(word not in text for word in (KEY, VALUE)) or is_altered(text):
            continue
        if NAME in text and not (way.named_ids and f"functions.{NAME}" not in text):
            return way
    return None


def _ways() -> Iterator[TemplateConventions]:
    for tools, named, results, silence, arguments in product(
        (True, False), (False, True), (False, True), (None, ""), ("object", "text")
    ):
        yield TemplateConventions(arguments, silence, named, results, tools)  # type: ignore[arg-type]


def is_altered(text: str) -> bool:
    """Whether an object was put as Python shows it, or a text of JSON as one more JSON text."""
    return f"'{KEY}'" in text or f"{{'{KEY}" in text


_TOKEN = re.compile(
    r"<[^<>\s]{1,80}>|</?[\w｜|:▁-]+|\[/?[A-Z][A-Z_]*\]|\s|\w+|.",
    re.DOTALL,
)


def split_tokens(text: str) -> list[str]:
    """``text`` cut where markers begin and end, each character of white space apart."""
    return _TOKEN.findall(text)


def shared_start(one: str, other: str) -> str:
    """What both begin with, up to the end of a marker or word."""
    shared = []
    for mine, theirs in zip(split_tokens(one), split_tokens(other), strict=False):
        if mine != theirs:
            break
        shared.append(mine)
    return "".join(shared)


def shared_end(one: str, other: str) -> str:
    """What both end with, from the beginning of a marker or word."""
    shared = []
    for mine, theirs in zip(reversed(split_tokens(one)), reversed(split_tokens(other)), strict=False):
        if mine != theirs:
            break
        shared.append(mine)
    return "".join(reversed(shared))


def is_control(token: str) -> bool:
    """Whether ``token`` can only be a control token: what looks like a tag of XML may also stand in an answer."""
    return token in CHAT_TOKENS or bool(re.fullmatch(r"<[|｜].*|.*[|｜]>", token))


def is_special(token: str) -> bool:
    """Whether ``token`` has the look of one that nobody writes: in brackets, with a bar, a slash or capitals."""
    return bool(re.fullmatch(r"<[^<>\s]+>|\[/?[A-Z_]+\]|<[|｜][^<>]*[|｜]>", token)) and MARK not in token
