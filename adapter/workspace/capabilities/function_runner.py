"""Calls of the user's own functions, and what they give as a result for a model."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import AsyncIterable, Awaitable
from typing import TYPE_CHECKING

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from adapter.core.errors import AdapterError, ToolError
from adapter.core.events import ToolResult
from adapter.tools.operations import CallFunction, FunctionResult

if TYPE_CHECKING:
    import asyncio


class EventLoopThread:
    """An event loop in a thread of its own, started when the first async function is called.

    All async functions of a session run in it, so that what one of them opens (a
    connection to an MCP server), the next can use.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, awaitable: Awaitable[object]) -> object:
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._run_forever, args=[self._loop], name="async tools", daemon=True).start()
            loop = self._loop

        async def wait() -> object:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wait(), loop).result()

    def close(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    @staticmethod
    def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()


def call_function(operation: CallFunction, loop: EventLoopThread) -> FunctionResult:
    """Call the function. Raises ToolError for whatever it raises."""
    name = operation.name
    try:
        value = operation.function(**operation.arguments)
        if inspect.isasyncgen(value):
            value = loop.run(_listed(value))
        elif inspect.isawaitable(value):
            value = loop.run(value)
        elif inspect.isgenerator(value):
            value = list(value)
    except AdapterError as error:
        raise ToolError(str(error)) from error
    except (Exception, SystemExit) as error:  # a command's function may end the program where it is given nonsense
        raise ToolError(f"{name} failed: {type(error).__name__}: {error}".removesuffix(": ")) from error
    try:
        returned = to_function_result(value)
    except ValueError as error:
        said = f"{name} ran, but what it returned ({type(value).__name__}) is neither text nor JSON: {error}"
        raise ToolError(said) from error
    if returned.is_error:
        raise ToolError(returned.text)
    return returned


async def _listed(items: AsyncIterable[object]) -> list[object]:
    return [item async for item in items]


def to_function_result(value: object) -> FunctionResult:
    """``value`` as a model can read it: text as it is, JSON as JSON, an MCP result as its texts."""
    if isinstance(value, ToolResult):
        return FunctionResult(value.content if value.ok else value.error or value.content, value.data, not value.ok)
    if value is None:
        return FunctionResult("(no result)")
    if isinstance(value, str):
        return FunctionResult(value)
    blocks = getattr(value, "content", value)
    if blocks == [] and hasattr(value, "structured_content"):
        data, is_error = value.structured_content, bool(getattr(value, "is_error", False))
        return FunctionResult("(no result)" if data is None else json.dumps(data, ensure_ascii=False), data, is_error)
    if isinstance(blocks, list | tuple) and blocks and all(_is_block(block) for block in blocks):
        texts = [_text_of(block) for block in blocks]
        data = getattr(value, "structuredContent", None) or getattr(value, "structured_content", None)
        is_error = bool(getattr(value, "isError", False) or getattr(value, "is_error", False))
        return FunctionResult("\n".join(texts), data, is_error)
    data = to_jsonable_python(value, fallback=str)
    return FunctionResult(json.dumps(data, ensure_ascii=False), data)


def _text_of(block: object) -> str:
    """A content block of MCP for a model that reads text: of what is none, what and how large it is."""
    if isinstance(text := getattr(block, "text", None), str):
        return text
    inside = getattr(block, "resource", block)
    kind = getattr(inside, "mime_type", None) or getattr(inside, "mimeType", None) or getattr(block, "type", "")
    uri = getattr(inside, "uri", None)
    if isinstance(text := getattr(inside, "text", None), str):
        return f"{uri}:\n{text}"
    encoded = getattr(inside, "data", None) or getattr(inside, "blob", None)
    if isinstance(encoded, str):
        place = f" {uri}" if uri else ""
        return f"({kind}{place}, {len(encoded) * 3 // 4} bytes, which are not shown to you)"
    described = " ".join(
        str(each) for each in (getattr(inside, "name", None), getattr(inside, "description", None)) if each
    )
    return f"{uri}: {described}" if uri else f"({kind} content)"


def _is_block(value: object) -> bool:
    """Whether this is a content block of MCP."""
    return isinstance(value, BaseModel) and isinstance(getattr(value, "type", None), str)
