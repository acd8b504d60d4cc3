"""Render a conversation for its model. The model's answers stay verbatim; control tokens in other text are escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from typing import TypeAlias

from adapter.conversation.message_content import Content, build_image_part, concat_content
from adapter.conversation.token_estimate import PER_IMAGE, PER_MESSAGE, estimate_tokens
from adapter.conversation.verbatim_history import build_verbatim_text
from adapter.core.events import ERROR_LABEL, InvalidToolCall, Json, JsonObject, ToolCall, ToolResult
from adapter.core.text.display_escaping import replace_lone_surrogates
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.prompting.escaping import escape_control_tokens, map_strings, unescape_control_tokens
from adapter.tools.tool_set import ToolSet

Message: TypeAlias = Mapping[str, Json]
"""A message ``{"role": "system" | "user" | "assistant", "content": text}``, which any text-only server accepts. If the
message has images, its content is a list of parts, as in OpenAI's API."""

STOPPED = f"{ERROR_LABEL} the user stopped the run before there was a result; check if it took effect"
"""The result of a call that the user stopped."""


Result: TypeAlias = tuple[str, str, str]
"""A tool result as (tool, content, call id)."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One message of the history, as the model sees it."""

    role: str
    content: Content
    results: tuple[Result, ...] = ()
    """The tool results encoded in ``content``, which may be shortened."""
    about: tuple[str, ...] = ()
    """A summary of the call for each result; "" for an invalid call."""
    is_protected: bool = False
    """True if the entry must not be dropped, because it is the user's last message."""
    is_temporary: bool = False
    """True if the entry is a rejected answer or a retry message. Both are dropped once an answer is accepted."""
    parts: JsonObject | None = None
    """The fields of an answer with calls, for a chat template."""
    tokens: int = field(init=False)
    """Estimated number of tokens."""

    def __post_init__(self) -> None:
        parts = [self.content] if isinstance(self.content, str) else self.content
        texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
        sizes = (estimate_tokens(text) if isinstance(text, str) else PER_IMAGE for text in texts)
        object.__setattr__(self, "tokens", sum(sizes) + PER_MESSAGE)


@dataclass(frozen=True, slots=True)
class MessageRenderer:
    """Renders messages for a model that writes ``format`` and can call ``tools``. If ``shows_calls`` is True, calls and
    results stay structured, for the model's own chat template."""

    format: Format
    tools: ToolSet
    shows_calls: bool = False

    def escape(self, text: str) -> str:
        return escape_control_tokens(replace_lone_surrogates(text), self.format, self.tools)

    def render_answer(self, turn: Turn, *, reencode: bool = False) -> HistoryEntry:
        """Render an answer. If ``reencode`` is true, encode it in ``format``, because another model may have written it
        in a different format."""
        content = replace_lone_surrogates(self._render_turn(turn, reencode=reencode))
        return HistoryEntry("assistant", content, parts=self._build_parts(turn))

    def render_results(
        self, calls: Sequence[ToolCall], invalid: Sequence[InvalidToolCall], contents: Mapping[str, str]
    ) -> HistoryEntry:
        """Render the results of ``calls`` and the errors of ``invalid`` calls. ``contents`` has the results by call id;
        a call without a result was stopped by the user."""
        results = [(call.name, self.escape(contents.get(call.id, STOPPED)), call.id) for call in calls]
        results += [("", f"{ERROR_LABEL} {each.error}", "") for each in invalid]
        content = "\n".join(self.format.encode_result(*each) for each in results)
        about = (*(self._describe_call(call) for call in calls), *("" for _ in invalid))
        return HistoryEntry("user", content, tuple(results), about)

    def render_follow_ups(self, results: Sequence[ToolResult]) -> Iterator[HistoryEntry]:
        """Yield the user messages and the images that follow the results."""
        for result in results:
            if result.user_message:
                yield HistoryEntry("user", self.escape(result.user_message))
            if result.images:
                yield HistoryEntry("user", [build_image_part(url) for url in result.images])

    def render_messages(self, entries: Sequence[HistoryEntry]) -> tuple[Message, ...]:
        if self.shows_calls:
            return tuple(message for entry in entries for message in self._render_structured(entry))
        return tuple({"role": entry.role, "content": entry.content} for entry in entries)

    def _render_turn(self, turn: Turn, *, reencode: bool) -> str:
        """Return the turn as text: verbatim, or re-encoded and escaped if ``reencode`` is set or the turn contains
        control tokens."""
        content = self._escape_own(turn.content)
        arguments = [map_strings(self._escape_own, call.arguments) for call in turn.calls]
        if not reencode and content == turn.content and arguments == [call.arguments for call in turn.calls]:
            return build_verbatim_text(turn.events)
        calls = self.format.encode_calls([(call.name, each) for call, each in zip(turn.calls, arguments, strict=True)])
        invalid = "\n".join(each.raw.strip() for each in turn.invalid)
        return "\n".join(part for part in (content.strip(), calls, invalid) if part)

    def _build_parts(self, turn: Turn) -> JsonObject | None:
        """Return the turn as fields of an OpenAI message, for a chat template. Return None if the turn has neither
        calls nor reasoning."""
        if not self.shows_calls or not (turn.calls or turn.reasoning):
            return None
        parts: JsonObject = {"content": replace_lone_surrogates(self._escape_own(turn.content).strip())}
        if turn.reasoning:
            parts["reasoning_content"] = replace_lone_surrogates(self._escape_own(turn.reasoning))
        if turn.calls:
            functions = ((call, map_strings(self._escape_own, call.arguments)) for call in turn.calls)
            parts["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
                for call, arguments in functions
            ]
        return parts

    def _render_structured(self, entry: HistoryEntry) -> Iterator[Message]:
        """Yield an entry's messages for a chat template. The ``written`` field contains the verbatim text of an answer
        with calls."""
        if entry.role == "assistant" and entry.parts is not None:
            written = {"written": entry.content} if entry.parts.get("tool_calls") else {}
            yield {"role": "assistant", **entry.parts, **written}
        elif entry.results:
            for name, content, call_id in entry.results:
                if name:
                    yield {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}
                else:
                    yield {"role": "user", "content": self.format.encode_result(name, content, call_id)}
        else:
            yield {"role": entry.role, "content": entry.content}

    def _describe_call(self, call: ToolCall) -> str:
        """Summarize the call as text that the parser does not mistake for a call in the middle of a line."""
        return self.escape(f": {_summarize(call)}").removeprefix(": ")

    def _escape_own(self, text: str) -> str:
        """Escape text that the model wrote. Parts of it may already be escaped, because the model copied them."""
        return self.escape(unescape_control_tokens(text))


def merge_consecutive_roles(messages: Sequence[Message]) -> Iterator[Message]:
    """Merge consecutive messages with the same role, which the templates of Gemma and Mistral reject."""
    for role, group in groupby(messages, key=lambda message: message["role"]):
        same = list(group)
        content = reduce(lambda first, second: concat_content(first, second, "\n\n"), (one["content"] for one in same))
        yield same[0] if len(same) == 1 else {"role": role, "content": content}


def _summarize(call: ToolCall) -> str:
    """Summarize a call in one line: ``read_file(path="a.py", line=3)``."""
    pairs = ((name, json.dumps(value, ensure_ascii=False)) for name, value in call.arguments.items())
    return f"{call.name}({', '.join(f'{name}={text[:60]}' for name, text in pairs)})"
