"""Render probe conversations that show how a chat template writes calls, and compare the rendered prompts.

Every word in a probe conversation begins with ``zq``, which no template contains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product, takewhile
from typing import Literal, TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.prompting.known_control_tokens import CHAT_TOKENS
from adapter.prompting.template_capabilities import MARK
from adapter.tools.tool_set import ToolSet

Call: TypeAlias = tuple[str, JsonObject]
PromptRenderer: TypeAlias = Callable[[Sequence[JsonObject], Sequence[Json], bool], str | None]
"""Renders a chat template. Takes the messages, the tools, and whether to add the generation prompt.

Returns the prompt, or None if the template rejects the messages.
"""

NAME, OTHER_NAME = "zqname", "zqother"
KEY, OTHER_KEY = "zqkey", "zqsecond"
VALUE, OTHER_VALUE = "zqvalue", "zqfurther"
QUESTION, ANSWER, FOLLOW_UP, THOUGHT, RESULT = "zqasked", "zqsaid", "zqmore", "zqthought", "zqresult"
BOS, EOS = "<zqbos>", "<zqeos>"
"""Placeholders for a template's BOS and EOS tokens if they are unknown."""

MAX_RENDERED = 10_000
"""Maximum length of a rendered text after the user's message, in characters. Real templates write a few hundred."""

_PROPERTIES: JsonObject = {
    KEY: {"type": "string", "description": "zqtext"},
    OTHER_KEY: {"type": "string", "description": "zqtext"},
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
    for name in (NAME, OTHER_NAME)
]
_LOOSE = {key: {"type": value["type"]} for key, value in _PROPERTIES.items()}
TOOL_SET = ToolSet(
    [{"name": name, "parameters": {"type": "object", "properties": _LOOSE}} for name in (NAME, OTHER_NAME)]
)
"""The probes' tools as a `ToolSet` for parsing. Lists and objects may contain any values."""

ONE_CALL: list[Call] = [(NAME, {KEY: VALUE})]
TWO_ARGUMENTS: list[Call] = [(NAME, {KEY: VALUE, OTHER_KEY: OTHER_VALUE})]
NO_ARGUMENTS: list[Call] = [(NAME, {})]
TWO_CALLS: list[Call] = [(NAME, {KEY: VALUE}), (OTHER_NAME, {OTHER_KEY: OTHER_VALUE})]


@dataclass(frozen=True, slots=True)
class TemplateConventions:
    """The fields and values that a chat template expects for calls in messages."""

    arguments: Literal["object", "text"]
    """The type of a call's arguments: an object, or a string with the object's JSON."""
    empty_content: Literal[""] | None
    """The content of an assistant message that has only calls."""
    named_ids: bool
    """True if call ids contain the tool's name."""
    with_results: bool
    """True if a message with calls must be followed by their results."""
    with_tools: bool
    """True if the template needs the list of tools."""

    def build_call_id(self, call: str, number: int) -> str:
        """Return an id for the call number ``number``, to the tool ``call``.

        The id has nine letters and digits, which most templates accept, or contains the tool's name.
        """
        return f"functions.{call}:{number}" if self.named_ids else f"zqid0000{number}"

    def build_answer_message(
        self, calls: Sequence[Call], content: str | None = None, reasoning: str | None = None
    ) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": content if content is not None else self.empty_content}
        if reasoning is not None:
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = [self._build_call(*call, number) for number, call in enumerate(calls)]
        return message

    def _build_call(self, name: str, arguments: JsonObject, number: int) -> JsonObject:
        encoded = arguments if self.arguments == "object" else json.dumps(arguments, ensure_ascii=False)
        return {
            "id": self.build_call_id(name, number),
            "type": "function",
            "function": {"name": name, "arguments": encoded},
        }

    def build_result_message(self, call: str, number: int = 0, text: str = RESULT) -> JsonObject:
        return {"role": "tool", "tool_call_id": self.build_call_id(call, number), "name": call, "content": text}


QUESTION_MESSAGE: JsonObject = {"role": "user", "content": QUESTION}


class RenderedConversations:
    """Renders conversations that begin with a fixed question. ``conventions`` comes from `detect_conventions`."""

    def __init__(self, render: PromptRenderer, conventions: TemplateConventions) -> None:
        self._render, self.conventions = render, conventions

    def render(self, *messages: JsonObject, add_generation_prompt: bool = False) -> str | None:
        """Render the question and ``messages``, and return the text after the question.

        Returns None if the template rejects or drops the messages, or if the text is too long.
        """
        tools = TOOLS if self.conventions.with_tools else []
        prompt = self._render([QUESTION_MESSAGE, *messages], tools, add_generation_prompt)
        if prompt is None or QUESTION not in prompt:
            return None
        text = prompt.rpartition(QUESTION)[2]
        return text if len(text) <= MAX_RENDERED else None

    def render_calls(
        self, calls: Sequence[Call], content: str | None = None, reasoning: str | None = None
    ) -> str | None:
        """Render an answer with calls, and return the text after the question.

        If the template requires results, the text ends before the first result. Returns None if the template rejects
        the messages.
        """
        messages = [self.conventions.build_answer_message(calls, content, reasoning)]
        if self.conventions.with_results:
            messages += [self.conventions.build_result_message(name, number) for number, (name, _) in enumerate(calls)]
        text = self.render(*messages)
        return text.partition(RESULT)[0] if text is not None and self.conventions.with_results else text


def detect_conventions(render: PromptRenderer) -> TemplateConventions | None:
    """Return the first conventions that make the template render a whole call (its tool's name, key and value).

    Returns None if there are none.
    """
    for conventions in _list_conventions():
        text = RenderedConversations(render, conventions).render_calls(ONE_CALL)
        if text is None or any(word not in text for word in (KEY, VALUE)) or writes_python_dict(text):
            continue
        if NAME in text and not (conventions.named_ids and f"functions.{NAME}" not in text):
            return conventions
    return None


def _list_conventions() -> Iterator[TemplateConventions]:
    for tools, named, results, empty, arguments in product(
        (True, False), (False, True), (False, True), (None, ""), ("object", "text")
    ):
        yield TemplateConventions(arguments, empty, named, results, tools)  # type: ignore[arg-type]


def writes_python_dict(text: str) -> bool:
    """Return whether the template wrote an argument as a Python dictionary instead of JSON."""
    return f"'{KEY}'" in text or f"{{'{KEY}" in text


_TOKEN = re.compile(r"<[^<>\s]{1,80}>|</?[\w｜|:▁-]+|\[/?[A-Z][A-Z_]*\]|\s|\w+|.", re.DOTALL)


def split_tokens(text: str) -> list[str]:
    """Split ``text`` into markers, words and single characters."""
    return _TOKEN.findall(text)


def find_shared_start(one: str, other: str) -> str:
    """Return the longest common prefix of two strings that ends between tokens (see `split_tokens`)."""
    return "".join(_find_common_prefix(split_tokens(one), split_tokens(other)))


def find_shared_end(one: str, other: str) -> str:
    """Return the longest common suffix of two strings that begins between tokens (see `split_tokens`)."""
    return "".join(_find_common_prefix(split_tokens(one)[::-1], split_tokens(other)[::-1])[::-1])


def _find_common_prefix(one: Sequence[str], other: Sequence[str]) -> list[str]:
    pairs = zip(one, other, strict=False)
    return [token for token, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]


def is_control_token(token: str) -> bool:
    """Return whether ``token`` is a control token for certain, rather than an XML tag in an answer."""
    return token in CHAT_TOKENS or bool(re.fullmatch(r"<[|｜].*|.*[|｜]>", token))


def looks_like_marker(token: str) -> bool:
    """Return whether ``token`` looks like a marker: ``<name>``, ``<|name|>`` or ``[/CAPITALS]``."""
    return bool(re.fullmatch(r"<[^<>\s]+>|\[/?[A-Z_]+\]|<[|｜][^<>]*[|｜]>", token)) and MARK not in token
