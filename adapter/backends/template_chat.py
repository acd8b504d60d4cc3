"""Prepare requests whose prompt is rendered by the model's own chat template.

The messages in such a request contain structured calls and results (`Session` with ``shows_calls``). The model still
answers in plain text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapter.conversation.message_rendering import Message
from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.parsing.formats import get_format
from adapter.protocols.conversation_cache import Conversation
from adapter.protocols.template_messages import prepare_template_messages, prepare_tool_definitions
from adapter.protocols.template_prompt import TemplatePrompt, with_template_settings
from adapter.tools.tool_set import ToolSet


class TemplateChat:
    """A chat whose prompts are rendered by the model's chat ``template``. Calls are in ``format``."""

    def __init__(self, tools: ToolSet, format: str | Format, template: TemplatePrompt) -> None:
        self.template_prompt = template
        self._format, self._tools = get_format(format), tools
        self._definitions = prepare_tool_definitions([], tools, self._format)

    def build_request(
        self, messages: Sequence[Message], fields: Mapping[str, Json] | None = None
    ) -> tuple[Sequence[Message], JsonObject]:
        """Return the messages and the argument ``extra`` for `ChatClient.stream`, which includes ``fields``."""
        written = {index: str(message["written"]) for index, message in enumerate(messages) if message.get("written")}
        plain = [{key: value for key, value in message.items() if key != "written"} for message in messages]
        conversation, traits = Conversation(plain), self.template_prompt.traits
        prompt = prepare_template_messages(
            conversation, traits, self._format, self._tools, written=written, is_escaped=True
        )
        extra = {"tools": self._definitions, "preserved_tokens": list(self._format.special_tokens), **(fields or {})}
        return prompt.messages, with_template_settings(extra, self.template_prompt, prompt.written)
