"""How a conversation is shown to its model: its own answers as it wrote them, what others say made harmless."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import TypeAlias

from adapter.conversation.context_window import HistoryEntry
from adapter.conversation.message_content import concat_content, image_part
from adapter.conversation.verbatim_history import verbatim_text
from adapter.core.events import InvalidToolCall, Json, JsonObject, ToolCall, ToolResult
from adapter.core.text.display_escaping import replace_lone_surrogates
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.prompting.escaping import escape_control_tokens, map_strings, unescape_control_tokens
from adapter.tools.tool import ToolSet

Message: TypeAlias = Mapping[str, Json]
"""``{"role": "system" | "user" | "assistant", "content": text}``: all that a plain-text server must understand.
With images the content is a list of parts, as OpenAI's interface has them."""

STOPPED = "tool_error: the user stopped the run before there was a result; look whether it took effect"
"""What a model is told of a call that has no result."""


@dataclass(frozen=True, slots=True)
class MessageRenderer:
    """For a model that writes in ``format`` and has ``tools``; ``shows_calls``: see `SessionWorkspace`."""

    format: Format
    tools: ToolSet
    shows_calls: bool = False

    def escape(self, text: str) -> str:
        return escape_control_tokens(replace_lone_surrogates(text), self.format, self.tools)

    def answer(self, turn: Turn, *, anew: bool = False) -> HistoryEntry:
        """``anew``: not as the model wrote it, which another model may have done in another format."""
        return HistoryEntry(
            "assistant", replace_lone_surrogates(self._as_history(turn, anew=anew)), parts=self._parts(turn)
        )

    def results(
        self, calls: Sequence[ToolCall], complaints: Sequence[InvalidToolCall], contents: Mapping[str, str]
    ) -> HistoryEntry:
        """What became of ``calls``: ``contents`` by id; those that have none there were stopped."""
        given = [(call.name, self.escape(contents.get(call.id, STOPPED)), call.id) for call in calls]
        given += [("", f"tool_error: {wrong.error}", "") for wrong in complaints]
        content = "\n".join(self.format.encode_result(*each) for each in given)
        about = (*(self.escape(_in_short(call)) for call in calls), *("" for _ in complaints))
        return HistoryEntry("user", content, tuple(given), about)

    def after(self, results: Sequence[ToolResult]) -> Iterator[HistoryEntry]:
        """What the user says after the results, for some of them."""
        for result in results:
            if result.user_message:
                yield HistoryEntry("user", self.escape(result.user_message))
            if result.images:
                yield HistoryEntry("user", [image_part(url) for url in result.images])

    def messages(self, entries: Sequence[HistoryEntry]) -> tuple[Message, ...]:
        if self.shows_calls:
            return tuple(message for entry in entries for message in self._of_template(entry))
        return tuple({"role": entry.role, "content": entry.content} for entry in entries)

    def _as_history(self, turn: Turn, *, anew: bool) -> str:
        """The turn as the model wrote it; where it holds what could act on a server, in its format and marked."""
        content, arguments = (
            self._again(turn.content),
            [map_strings(self._again, call.arguments) for call in turn.calls],
        )
        if not anew and content == turn.content and arguments == [call.arguments for call in turn.calls]:
            return verbatim_text(turn.events)
        calls = self.format.encode_calls([(call.name, each) for call, each in zip(turn.calls, arguments, strict=True)])
        wrong = "\n".join(wrong.raw.strip() for wrong in turn.invalid)
        return "\n".join(part for part in (content.strip(), calls, wrong) if part)

    def _parts(self, turn: Turn) -> JsonObject | None:
        """Of a turn with calls, what OpenAI's message has of it; ``written`` is all of it as the model wrote it."""
        if not self.shows_calls or not (turn.calls or turn.reasoning):
            return None
        parts: JsonObject = {"content": replace_lone_surrogates(self._again(turn.content).strip())}
        if turn.reasoning:
            parts["reasoning_content"] = replace_lone_surrogates(self._again(turn.reasoning))
        if turn.calls:
            parts["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": map_strings(self._again, call.arguments)},
                }
                for call in turn.calls
            ]
        return parts

    def _of_template(self, entry: HistoryEntry) -> Iterator[Message]:
        """An entry as a template takes it."""
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

    def _again(self, text: str) -> str:
        """The model's own text, with the marks it has in results however the model wrote it."""
        return self.escape(unescape_control_tokens(text))


def merge_consecutive_roles(messages: Sequence[Message]) -> Iterator[Message]:
    """Messages of the user that follow one another as one: the templates of Gemma and Mistral refuse two."""
    for role, group in groupby(messages, key=lambda message: message["role"]):
        same = list(group)
        content = reduce(lambda first, second: concat_content(first, second, "\n\n"), (one["content"] for one in same))
        yield same[0] if len(same) == 1 else {"role": role, "content": content}


def _in_short(call: ToolCall) -> str:
    """A call in one line: ``read_file(path="a.py", line=3)``."""
    pairs = ((name, json.dumps(value, ensure_ascii=False)) for name, value in call.arguments.items())
    return f"{call.name}({', '.join(f'{name}={text[:60]}' for name, text in pairs)})"
