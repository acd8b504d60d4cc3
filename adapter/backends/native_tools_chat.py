"""Use a server's native tool calling through the interface of a text-only chat.

The request contains the tools. Calls that the server parsed are converted back to text in the model's format, so that
this library's parser finds them together with calls that the server missed. The history contains only text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from adapter.backends.chat_client import ChatClient, Chunk
from adapter.backends.stream_chunks import list_native_calls
from adapter.conversation.message_rendering import Message
from adapter.parsing.formats import get_format
from adapter.prompting.escaping import escape_control_tokens
from adapter.protocols.tool_call_deltas import NativeCalls
from adapter.tools.tool_set import ToolSet

MAX_MALFORMED = 20_000
"""Maximum length, in characters, of malformed arguments in the text. They are only shown, not used."""


class NativeToolsChat:
    """A chat with native tool calling. Calls become text in ``format``. `stream` raises TransportError if refused."""

    def __init__(self, chat: ChatClient, tools: ToolSet, format: str) -> None:
        self._chat, self._format = chat, get_format(format)
        self._tools = [tool.to_openai() for tool in tools.values()]

    def control_tokens(self) -> tuple[str, ...]:
        return self._chat.control_tokens()

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:
        native = NativeCalls()
        for chunk in self._chat.stream(messages, stop=stop, extra={"tools": self._tools}):
            native.add(list_native_calls(chunk.raw or {}))
            if chunk.finish_reason and native.calls:
                yield Chunk(
                    "\n" + "\n".join(self._encode_call(call.name, str(call.arguments)) for call in native.calls)
                )
                yield replace(chunk, finish_reason=_REASONS.get(chunk.finish_reason, chunk.finish_reason))
                native = NativeCalls()
            else:
                yield chunk

    def _encode_call(self, name: str, arguments: str) -> str:
        """Write a call as text. Truncated or malformed arguments are copied, so that the parser reports them. Their
        markers are escaped, because arguments that quote a call must not become a call."""
        try:
            value = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return self._format.encode_calls([(name, value)])
        shown = escape_control_tokens(arguments[:MAX_MALFORMED], self._format)
        return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {shown}'


_REASONS = {"tool_calls": "stop", "function_call": "stop"}
