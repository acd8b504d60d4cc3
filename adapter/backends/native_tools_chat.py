"""Use a server's native tool calling through the interface of a text-only chat.

The request contains the tools. Calls that the server parsed are converted back to text in the model's format, so that
this library's parser finds them together with calls that the server missed. The history contains only text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapter.backends.chat_client import ChatClient, Chunk
from adapter.backends.stream_chunks import NativeCallWriter
from adapter.conversation.message_rendering import Message
from adapter.parsing.formats import get_format
from adapter.tools.tool_set import ToolSet


class NativeToolsChat:
    """A chat with native tool calling. Calls become text in ``format``."""

    def __init__(self, chat: ChatClient, tools: ToolSet, format: str) -> None:
        self._chat, self._format = chat, get_format(format)
        self._tools = [tool.to_openai() for tool in tools.values()]

    def control_tokens(self) -> tuple[str, ...]:
        return self._chat.control_tokens()

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:
        writer = NativeCallWriter(self._format)
        for chunk in self._chat.stream(messages, stop=stop, extra={"tools": self._tools}):
            yield from writer.convert(chunk)
