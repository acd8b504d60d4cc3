"""Run Python in the sandbox of pydantic-monty, with the session's tools as async functions.

The sandbox is a separate process without files, network or environment variables. It can affect the machine only by
tool calls, which are validated, approved and confined as usual. The time limit of the sandbox does not include tool
calls, so the whole run has a deadline, which pauses while the user is asked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING

from adapter.core.errors import ToolError
from adapter.core.events import Json, JsonObject, ToolResult
from adapter.core.text.truncate import truncate
from adapter.tools.operations import CodeOutput, RunCode
from adapter.workspace.pausable_deadline import Deadline, limit_timeout

if TYPE_CHECKING:
    from pydantic_monty import ResourceLimits

MAX_TIMEOUT_S = 300.0
"""Maximum duration of code, in seconds."""
MAX_MEMORY_BYTES = 50_000_000
"""Maximum memory of code, in bytes, as in Maki."""
MAX_RECURSION = 100
"""Maximum depth of function calls in code, as in Maki."""
MAX_OUTPUT = 1_000_000
"""Maximum number of characters that code may print."""
MAX_CALLS = 500
"""Maximum number of tool calls that code may make."""
_THREADS = 8
_CHECK_INTERVAL_S = 0.2
"""Interval between checks of the output's length, in seconds."""

Call = Callable[[str, JsonObject, Deadline], ToolResult]


def run_code(operation: RunCode, tools: Mapping[str, tuple[str, ...]], call: Call) -> CodeOutput:
    """Run the code. It can call each tool as a function.

    ``tools`` maps the name of each tool to its parameter names, in the order of positional arguments. Raises ToolError
    with the traceback and the output so far if the code fails or exceeds its time or memory.
    """
    seconds, notes = limit_timeout(operation.timeout_s, MAX_TIMEOUT_S)
    run = _Run(operation.code, tools, call, Deadline(seconds))
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="code") as thread:  # a thread without an event loop
        value = thread.submit(lambda: asyncio.run(run.run_main())).result()
    return CodeOutput(run.output, value, notes=notes)


class _Run:
    def __init__(self, code: str, tools: Mapping[str, tuple[str, ...]], call: Call, deadline: Deadline) -> None:
        self._code, self._tools, self._call, self._deadline = code, tools, call, deadline
        self._context = copy_context()
        self._printed: list[str] = []
        self._size = 0
        self._host_error: Exception | None = None
        """Exception from the host program during a call, for instance in an approver. The code must not catch it."""

    @property
    def output(self) -> str:
        return "".join(self._printed)

    def _print(self, _stream: str, text: str) -> None:
        self._size += len(text)
        if self._size <= MAX_OUTPUT:
            self._printed.append(text)

    async def run_main(self) -> str:
        from pydantic_monty import AsyncMonty, MontyError

        limits: ResourceLimits = {
            "max_feed_duration_secs": self._deadline.seconds,
            "max_memory": MAX_MEMORY_BYTES,
            "max_recursion_depth": MAX_RECURSION,
            "max_suspensions": MAX_CALLS,
        }
        with ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="tool") as threads:
            functions = {name: self._build_function(name, threads) for name in self._tools}
            async with AsyncMonty(max_processes=1) as pool, pool.checkout(limits=limits) as session:
                try:
                    running = session.feed_run(self._code, external_lookup=functions, print_callback=self._print)
                    feed = asyncio.ensure_future(running)
                    await self._wait_for(feed)
                    value = feed.result()
                except MontyError as error:
                    raise ToolError(self._describe_failure(error)) from None
                return self._encode_value(value)

    async def _wait_for(self, feed: asyncio.Future[object]) -> None:
        """Wait until the code ends. Raises ToolError if the code was stopped, or any exception of the host program."""
        reason = ""
        while not (feed.done() or reason or self._host_error):
            if self._size > MAX_OUTPUT:
                reason = f"the code printed more than {MAX_OUTPUT:,} characters and was stopped. Print less"
            elif self._deadline.remaining <= 0:
                reason = f"the code was stopped after {self._deadline.seconds:g} s. Do less at once"
            else:
                await asyncio.wait([feed], timeout=min(max(self._deadline.remaining, 0.01), _CHECK_INTERVAL_S))
        if reason or self._host_error:
            feed.cancel()
            await asyncio.gather(feed, return_exceptions=True)
            raise self._host_error or ToolError(self._with_output(reason))

    def _build_function(self, name: str, threads: ThreadPoolExecutor) -> Callable[..., Awaitable[str]]:
        async def call_tool(*args: Json, **kwargs: Json) -> str:
            arguments = json.loads(json.dumps(self._bind_arguments(name, args, kwargs)))  # raises in the code
            loop = asyncio.get_running_loop()
            try:
                result = await loop.run_in_executor(
                    threads, self._context.copy().run, self._call, name, arguments, self._deadline
                )
            except Exception as error:
                self._host_error = self._host_error or error
                raise
            if not result.ok:
                raise RuntimeError(result.error)
            return result.content

        return call_tool

    def _bind_arguments(self, name: str, args: tuple[Json, ...], kwargs: JsonObject) -> JsonObject:
        """Build the tool's arguments from positional and keyword arguments, or from a single dict."""
        if len(args) == 1 and isinstance(args[0], dict) and not kwargs:
            return args[0]
        names = self._tools[name]
        if len(args) > len(names):
            raise TypeError(f"{name} takes {len(names)} arguments ({', '.join(names)}), got {len(args)}")
        return dict(zip(names, args, strict=False)) | kwargs

    def _describe_failure(self, error: Exception) -> str:
        display = getattr(error, "display", None)
        return self._with_output(f"the code failed:\n{display() if callable(display) else error}")

    def _with_output(self, message: str) -> str:
        output = self.output
        return f"{message}\nIts output until then:\n{truncate(output)}" if output else message

    def _encode_value(self, value: object) -> str:
        try:
            return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError) as error:  # a tuple as a key, a number of more than 4,300 digits
            reason = f"the code ran, but its value cannot be written as JSON ({error}). Print what you need of it"
            raise ToolError(self._with_output(reason)) from None
