"""Call the user's own functions, and convert their return values to results for a model."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from adapter.core.errors import AdapterError, ToolError
from adapter.core.events import ToolResult
from adapter.tools.operations import CallFunction, FunctionResult

if TYPE_CHECKING:
    import asyncio


Tracker: TypeAlias = Callable[[Future[Any]], AbstractContextManager[object]]
_TRACKER: ContextVar[Tracker] = ContextVar("tracker", default=nullcontext)


@contextmanager
def track_async_functions(tracker: Tracker) -> Iterator[None]:
    """Within the ``with`` body, and in threads that run in a copy of its context, call ``tracker`` with the future of
    each async function. Cancelling the future cancels the function."""
    token = _TRACKER.set(tracker)
    try:
        yield
    finally:
        _TRACKER.reset(token)


class EventLoopThread:
    """An event loop in a separate thread, which starts with the first async function.

    All async functions of a session run in this loop, so that they can share resources such as a connection to an MCP
    server.
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

        future = asyncio.run_coroutine_threadsafe(wait(), loop)
        with _TRACKER.get()(future):
            try:
                return future.result()
            except KeyboardInterrupt:
                future.cancel()
                raise

    def close(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    @staticmethod
    def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        try:
            loop.run_forever()
            if tasks := asyncio.all_tasks(loop):
                for task in tasks:
                    if not task.cancelling():  # otherwise, it is cleaning up
                        task.cancel()
                loop.run_until_complete(asyncio.wait(tasks))
        finally:
            loop.close()


def call_function(operation: CallFunction, loop: EventLoopThread) -> FunctionResult:
    """Call the function. Raises ToolError if the function raises an exception or is cancelled."""
    name = operation.name
    try:
        value = operation.function(**operation.arguments)
        if inspect.isasyncgen(value):
            value = loop.run(_collect(value))
        elif inspect.isawaitable(value):
            value = loop.run(value)
        elif inspect.isgenerator(value):
            value = list(value)
    except AdapterError as error:
        raise ToolError(str(error)) from error
    except CancelledError as error:
        raise ToolError(f"{name} was cancelled") from error
    except BaseException as error:
        import asyncio

        # A function that parses a command line may exit on invalid arguments.
        if not isinstance(error, Exception | SystemExit | asyncio.CancelledError):
            raise
        raise ToolError(f"{name} failed: {type(error).__name__}: {_format_error(error)}".removesuffix(": ")) from error
    try:
        returned = to_function_result(value)
    except ValueError as error:
        message = f"{name} ran, but its return value ({type(value).__name__}) is neither text nor JSON: {error}"
        raise ToolError(message) from error
    if returned.is_error:
        raise ToolError(returned.text)
    return returned


def _format_error(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001  # the user's `__str__`
        return f"its text cannot be formatted ({type(failure).__name__})"


async def _collect(items: AsyncIterable[object]) -> list[object]:
    return [item async for item in items]


def to_function_result(value: object) -> FunctionResult:
    """Convert a return value. A string is unchanged, an MCP result becomes its text, other values become JSON."""
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
        texts = [_get_text(block) for block in blocks]
        data = getattr(value, "structuredContent", None) or getattr(value, "structured_content", None)
        is_error = bool(getattr(value, "isError", False) or getattr(value, "is_error", False))
        return FunctionResult("\n".join(texts), data, is_error)
    data = to_jsonable_python(value, fallback=str)
    return FunctionResult(json.dumps(data, ensure_ascii=False), data)


def _get_text(block: object) -> str:
    """Return the text of an MCP content block. If it has no text, return its type and size."""
    if isinstance(text := getattr(block, "text", None), str):
        return text
    inside = getattr(block, "resource", block)
    kind = getattr(inside, "mime_type", None) or getattr(inside, "mimeType", None) or getattr(block, "type", "")
    uri = getattr(inside, "uri", None)
    if isinstance(text := getattr(inside, "text", None), str):
        return f"{uri}:\n{text}"
    encoded = getattr(inside, "data", None) or getattr(inside, "blob", None)
    if isinstance(encoded, str):
        location = f" {uri}" if uri else ""
        return f"({kind}{location}, {len(encoded) * 3 // 4} bytes, not shown to you)"
    details = (getattr(inside, "name", None), getattr(inside, "description", None))
    description = " ".join(str(detail) for detail in details if detail)
    return f"{uri}: {description}" if uri else f"({kind} content)"


def _is_block(value: object) -> bool:
    """Return whether ``value`` is an MCP content block."""
    return isinstance(value, BaseModel) and isinstance(getattr(value, "type", None), str)
