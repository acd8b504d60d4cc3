"""Represent an answer as a list of parts (reasoning, text and calls), for APIs other than OpenAI's chat API.

Each API has one writer. It encodes the steps that `AnswerParts` yields as stream events, and the collected parts as a
buffered answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.protocols.exchange_guardrails import EXTENSION
from adapter.protocols.usage import Usage, parse_usage

Kind: TypeAlias = Literal["reasoning", "text", "call"]
Action: TypeAlias = Literal["open", "add", "close"]

_TEXT_KINDS: tuple[tuple[str, Kind], ...] = (("reasoning_content", "reasoning"), ("content", "text"))


@dataclass(slots=True)
class AnswerPart:
    """A part of an answer. ``index`` is its 0-based position. The ``text`` of a call is its arguments as JSON."""

    kind: Kind
    index: int
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


Step: TypeAlias = tuple[Action, AnswerPart, str]
"""A change to the last part: the action, the part, and the text that "add" appended to it ("" for other actions)."""


class AnswerParts:
    """Collects the parts of one answer from its OpenAI chunks. `feed` and `close` yield each change to the parts.

    ``usage`` is the token usage, or None if unknown. ``notice`` is the answer's ``adapter`` field, or {}.
    ``stop_sequence`` is the text that ended the answer, or None if not reported. A whitespace-only part is left out
    unless it is the whole answer, because Anthropic's API would reject it in a later request.
    """

    def __init__(self) -> None:
        self.parts: list[AnswerPart] = []
        self.finish_reason = "stop"
        self.stop_sequence: Json = None
        self.usage: Usage | None = None
        self.notice: JsonObject = {}
        self._is_open = False
        self._blank: tuple[Kind, list[str]] = ("text", [])  # whitespace that may begin a part

    @classmethod
    def from_completion(cls, completion: JsonObject) -> AnswerParts:
        """Return the parts of a buffered completion's first choice."""
        answer = cls()
        chunk = {**completion, "choices": [{**each, "delta": each["message"]} for each in completion["choices"][:1]]}
        for _ in (*answer.feed(chunk), *answer.close()):
            pass
        return answer

    def get_text(self, kind: Kind) -> str:
        """Return the concatenated text of all parts of one kind."""
        return "".join(part.text for part in self.parts if part.kind == kind)

    def feed(self, chunk: JsonObject) -> Iterator[Step]:
        if chunk.get("usage"):
            self.usage = parse_usage(chunk)
        if EXTENSION in chunk:
            self.notice = {EXTENSION: chunk[EXTENSION]}
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if choice["finish_reason"]:
                self.finish_reason = choice["finish_reason"]
                self.stop_sequence = choice.get("stop_reason") or choice.get("matched_stop")
            for key, kind in _TEXT_KINDS:
                if text := delta.get(key):
                    if not self._is_open or self.parts[-1].kind != kind:
                        if self._blank[0] != kind:
                            self._blank = (kind, [])
                        self._blank[1].append(text)
                        if text.isspace():
                            continue
                        text = "".join(self._blank[1])
                        yield from self._open(kind)
                    yield self._add(text)
            for call in delta.get("tool_calls") or ():
                function = call["function"]
                if "id" in call:
                    yield from self._open("call", call["id"], function["name"])
                if function["arguments"]:
                    yield self._add(function["arguments"])

    def close(self) -> Iterator[Step]:
        if self._blank[1] and not self.parts:
            kind, pieces = self._blank
            yield from self._open(kind)
            yield self._add("".join(pieces))
        if self._is_open:
            self._is_open = False
            yield "close", self.parts[-1], ""

    def _open(self, kind: Kind, call_id: str = "", name: str = "") -> Iterator[Step]:
        self._blank = ("text", [])
        yield from self.close()
        self.parts.append(AnswerPart(kind, len(self.parts), call_id, name))
        self._is_open = True
        yield "open", self.parts[-1], ""

    def _add(self, text: str) -> Step:
        self.parts[-1].pieces.append(text)
        return "add", self.parts[-1], text
