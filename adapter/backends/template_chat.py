"""Conversations for a server that gets the prompt of the model's own template, whoever talks to it.

Their messages hold calls and results as such (`SessionWorkspace` with ``shows_calls``); what comes back is text, as from any
chat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapter.conversation.message_rendering import Message
from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.parsing.formats import get_format
from adapter.protocols.template_messages import template_messages, template_tool_definitions
from adapter.protocols.template_prompt import TemplatePrompt, with_template_marks
from adapter.tools.tool import ToolSet


class TemplateChat:
    """``own``: how the model gets its prompt; ``format``: how it writes calls."""

    def __init__(self, tools: ToolSet, format: str | Format, own: TemplatePrompt) -> None:
        self.own = own
        self._format, self._tools = get_format(format), tools
        self._definitions = template_tool_definitions([], tools, self._format)

    def request(
        self, messages: Sequence[Message], fields: Mapping[str, Json] | None = None
    ) -> tuple[Sequence[Message], JsonObject]:
        """What a `ChatClient`, or one for asyncio, streams: the messages, and its ``extra`` with ``fields`` in it."""
        written = {index: str(message["written"]) for index, message in enumerate(messages) if message.get("written")}
        plain = [{key: value for key, value in message.items() if key != "written"} for message in messages]
        told = template_messages(plain, self.own.traits, self._format, self._tools, written=written, is_escaped=True)
        given = {"tools": self._definitions, "preserved_tokens": list(self._format.special_tokens)}
        return told.messages, with_template_marks({**given, **(fields or {})}, self.own, told.written)
