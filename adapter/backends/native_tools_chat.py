"""Use a server's native tool calling through the interface of a text-only chat.

The request contains the tools. Calls that the server parsed are converted back to text in the model's format, so that
our parser finds them together with any calls that the server missed. The history contains only text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from adapter.backends.chat_client import ChatClient, Chunk
from adapter.conversation.message_rendering import Message
from adapter.core.events import JsonObject
from adapter.parsing.formats import get_format
from adapter.tools.tool import ToolSet


class NativeToolsChat:
    """A chat with native tool calling. ``format``: format in which calls are converted back to text. Streaming raises
    TransportError if the server refuses tools."""

    def __init__(self, chat: ChatClient, tools: ToolSet, format: str) -> None:
        self._chat, self._format = chat, get_format(format)
        self._tools = [tool.to_openai() for tool in tools.values()]

    def control_tokens(self) -> tuple[str, ...]:
        return self._chat.control_tokens()

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:
        names: dict[int, str] = {}
        arguments: dict[int, str] = {}
        for chunk in self._chat.stream(messages, stop=stop, extra={"tools": self._tools}):
            for index, function in _list_functions(chunk.raw or {}):
                names.setdefault(index, str(function.get("name") or ""))
                piece = function.get("arguments") or ""
                text = piece if isinstance(piece, str) else json.dumps(piece)
                arguments[index] = arguments.get(index, "") + text
            if chunk.finish_reason and names:
                calls = [(name, arguments[index]) for index, name in names.items()]
                yield Chunk("\n" + "\n".join(self._encode_call(name, text) for name, text in calls))
                yield replace(chunk, finish_reason=_REASONS.get(chunk.finish_reason, chunk.finish_reason))
                names.clear()
            else:
                yield chunk

    def _encode_call(self, name: str, arguments: str) -> str:
        """Write a call as text. Truncated or malformed arguments are copied unchanged, so that the parser reports
        them."""
        try:
            value = json.loads(arguments or "{}")
        except ValueError:
            value = None
        if isinstance(value, dict):
            return self._format.encode_calls([(name, value)])
        return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {arguments}'


_REASONS = {"tool_calls": "stop", "function_call": "stop"}


def _list_functions(raw: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    """Yield the index and function of each partial call in a server's event."""
    for choice in raw.get("choices") or ():
        delta = choice.get("delta") if isinstance(choice, dict) else None
        for position, call in enumerate((delta.get("tool_calls") if isinstance(delta, dict) else None) or ()):
            if isinstance(call, dict) and isinstance(function := call.get("function"), dict):
                index = call.get("index")
                yield index if isinstance(index, int) else position, function
