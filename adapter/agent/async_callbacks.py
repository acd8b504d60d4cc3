"""Let tool calls in a thread use the program's async functions, which run in its event loop.

The thread waits for each function's result. Cancelling the agent cancels async tools and a pending approval. Later
results of async and plain functions are ignored.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from adapter.core.callback_checks import build_result_error, is_async, require_sync, set_wrapped
from adapter.core.errors import DeniedError, UsageError
from adapter.tools.operations.permissions import Approver, AsyncApprover
from adapter.workspace.capabilities.host_capabilities import METHODS, Host

T = TypeVar("T")


class AsyncCallbacks:
    """Wraps the async functions of an agent as plain functions for its workspace."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._open: set[Future[Any]] = set()
        self._is_cancelled = False

    def begin(self) -> None:
        """Await functions in the current event loop, until `end` is called."""
        self._loop, self._is_cancelled = asyncio.get_running_loop(), False

    def end(self) -> None:
        """Stop awaiting async functions. Plain approvers still work."""
        self._loop, self._is_cancelled = None, False

    def cancel(self) -> None:
        """Cancel pending calls, and ignore all results until `end` is called."""
        with self._lock:
            self._is_cancelled = True
            for future in self._open:
                future.cancel()

    def is_cancelled(self) -> bool:
        """Return whether `cancel` has been called since `begin`."""
        return self._is_cancelled

    def wrap_approver(self, approve: Approver | AsyncApprover) -> Approver:
        """Return an approver that can be called in a thread."""
        if not is_async(approve):
            require_sync(approve, "the approver")
        return self._wrap_callback(approve, "the approver")

    def wrap_host(self, host: Host) -> Host:
        """Return ``host`` with its async functions replaced by plain ones."""
        changes: dict[str, Any] = {
            name: _PlainMethods(self._wrap_callback, getattr(host, name), f"Host.{name}")
            for name, methods in METHODS.items()
            if any(is_async(getattr(getattr(host, name), method, None)) for method in methods)
        }
        if host.events is not None:
            changes["events"] = self._wrap_callback(host.events, "Host.events", is_cancellable=False)
        return replace(host, **changes) if changes else host

    def _wrap_callback(
        self, callback: Callable[..., Any], role: str, *, is_cancellable: bool = True
    ) -> Callable[..., Any]:
        """Return a plain function that calls ``callback``. If ``is_cancellable`` is true, cancelling the agent also
        cancels the call. It is false only for observers."""
        if not is_async(callback):
            return callback

        def call(*args: object, **kwargs: object) -> object:
            return self._await_result(partial(callback, *args, **kwargs), role, is_cancellable)

        return set_wrapped(callback, call)

    def _await_result(self, call: Callable[[], Awaitable[T]], role: str, is_cancellable: bool) -> T:
        if self._loop is None or not self._loop.is_running():
            raise UsageError(f"{role} is async and can be called only while the AsyncAgent runs")
        if _find_running_loop() is self._loop:
            raise UsageError(f"{role} is async and was called from the AsyncAgent's event loop; call it from a thread")
        with self._lock:
            if self._is_cancelled and is_cancellable:
                raise DeniedError("the run was cancelled before the approval; nothing was done")
            future = asyncio.run_coroutine_threadsafe(call_and_await(call, role), self._loop)
        with self.track(future) if is_cancellable else nullcontext():
            return future.result()

    @contextmanager
    def track(self, future: Future[Any]) -> Iterator[None]:
        """Within the ``with`` body, cancel ``future`` if the agent is cancelled."""
        with self._lock:
            self._open.add(future)
            if self._is_cancelled:
                future.cancel()
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(future)


class _PlainMethods:
    """A capability of the host whose async methods can be called like synchronous ones."""

    def __init__(self, plain: Callable[[Any, str], Any], capability: object, role: str) -> None:
        self._plain, self._capability, self._role = plain, capability, role

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._capability, name)
        return self._plain(value, self._role) if is_async(value) else value


async def call_and_await(call: Callable[[], Awaitable[T] | None], role: str) -> T:
    """Call and await ``call``, and return its result. Raises UsageError for an async generator."""
    answer = call()
    if not isinstance(answer, Awaitable):
        raise build_result_error(call, role, answer, "a coroutine")
    return await answer


def _find_running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
