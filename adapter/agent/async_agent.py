"""The asyncio version of `adapter.agent.agent`, with the same session and settings."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, nullcontext
from contextvars import copy_context
from functools import cached_property, partial
from typing import Protocol, Self, TypeAlias

from adapter.agent.answer_reader import AgentEvent, AnswerReader, iter_chunks
from adapter.agent.async_callbacks import AsyncCallbacks, call_and_await
from adapter.agent.base_agent import BaseAgent
from adapter.backends.async_chat_client import AsyncChatClient
from adapter.backends.chat_client import ChatClient, Chunk
from adapter.conversation.message_rendering import Message
from adapter.conversation.session_steps import AskModel, Finished, RunTools
from adapter.core.callback_checks import is_async
from adapter.core.events import ToolCall, ToolResult
from adapter.tools.operations.permissions import Approver, AsyncApprover
from adapter.workspace.approval_flow import allow_cancelling_approvals
from adapter.workspace.capabilities.function_runner import track_async_functions
from adapter.workspace.capabilities.host_capabilities import Host


class AsyncChatModel(Protocol):
    """A model that streams its answers asynchronously."""

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> AsyncIterator[Chunk]: ...


AsyncObserver: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]
"""An observer of an `AsyncAgent`, which may be async."""


class AsyncAgent(BaseAgent[ChatClient | AsyncChatModel, Approver | AsyncApprover, AsyncObserver]):
    """The asyncio version of `adapter.Agent`, with the same settings::

        async with AsyncAgent("my-project", base_url="http://127.0.0.1:8080", approve="auto-edit") as agent:
            done = await agent.send("Rename greeting() to hello()")

    ``chat`` is a `ChatClient` or an `AsyncChatModel`. The agent connects to the server when the ``async with`` block is
    entered, or with the first message. ``approve``, ``observe``, and the methods and ``events`` of ``host`` may be
    async: they are awaited in the agent's event loop. Tools, plain approvers and hosts run in a thread, one call at a
    time. Async tools run in the workspace's own event loop, and observers in the agent's event loop. Cancelling stops
    the model, refuses a pending approval, and waits for a running tool, which could otherwise change files afterwards.
    `send` can then continue the conversation. A second message at the same time raises UsageError.
    """

    _connects_at_once = False
    _interrupts = (KeyboardInterrupt, asyncio.CancelledError)

    _async_observer: AsyncObserver | None = None

    @cached_property
    def _unreported(self) -> deque[AgentEvent]:
        """Events that the async observer has yet to receive."""
        return deque()

    @cached_property
    def _callbacks(self) -> AsyncCallbacks:
        return AsyncCallbacks()

    def set_observer(self, observer: AsyncObserver) -> None:
        """Replace the observer, which is called with every event and may be async."""
        self._unreported.clear()
        self._async_observer = observer if is_async(observer) else None
        if self._async_observer is None:
            super().set_observer(observer)
        else:
            self._observe = self._unreported.append

    def _wrap_approver(self, approve: Approver | AsyncApprover) -> Approver:
        return self._callbacks.wrap_approver(approve)

    def _wrap_host(self, host: Host) -> Host:
        return self._callbacks.wrap_host(host)

    async def run(self, task: str) -> Finished:
        """Work on ``task`` in a new conversation; see `Agent.run`. Raises TransportError and CancelledError."""
        with self._work_alone():
            await self._ensure_connected()
            return await self._work(self._start(task))

    async def send(self, message: str) -> Finished:
        """Send ``message`` in the current conversation and work on it as `run` does, even if the previous turn failed.
        The first message starts a conversation."""
        with self._work_alone():
            await self._ensure_connected()
            return await self._work(self._continue(message))

    async def close(self) -> None:
        """Close the workspace and the connection to the server, if the agent opened them itself."""
        await asyncio.to_thread(self._resources.close)

    async def __aenter__(self) -> Self:
        try:
            await self._ensure_connected()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ensure_connected(self) -> None:
        if not self._is_connected:
            await asyncio.to_thread(self._connect)

    async def _work(self, query: AskModel) -> Finished:
        assert self._session is not None
        results: list[ToolResult] = []
        self._callbacks.begin()
        try:
            step: AskModel | RunTools | Finished = await self._classify(query)
            while not isinstance(step, Finished):
                await self._report(step)
                if isinstance(step, AskModel):
                    step = self._take_next_step(await self._ask(step))
                    await self._report()
                    continue
                results = []
                for call in step.calls:
                    await self._run_to_completion(partial(self._run_into, results, call))
                    await self._report(results[-1])
                step = self._session.on_tool_results(results)
        except BaseException as error:
            if stopped := self._end_turn(error, results):
                await self._report(stopped)
            self._unreported.clear()
            if stopped is None or not isinstance(error, KeyboardInterrupt):
                raise
            return stopped
        finally:
            self._callbacks.end()
        await self._report(step)
        return step

    async def _report(self, *events: AgentEvent) -> None:
        """Report ``events`` to the observer. An async observer receives earlier unreported events first."""
        for event in events:
            self._observe(event)
        while self._unreported and self._async_observer is not None:
            await call_and_await(partial(self._async_observer, self._unreported.popleft()), "the observer")

    def _run_into(self, results: list[ToolResult], call: ToolCall) -> None:
        results.append(self._run_call(call))

    async def _classify(self, query: AskModel) -> AskModel:
        """Let a very small model classify the user's request if its wording is unclear. Called before the first
        ``query``."""
        question = self._build_classification()
        if question is None or self._client is None:
            return query
        messages, fields = question
        chunks = AsyncChatClient(self._client).stream(messages, extra=fields)
        return self._apply_classification(query, "".join([chunk.text async for chunk in chunks]))

    async def _ask(self, query: AskModel) -> AnswerReader:
        """Query the model once, and return its parsed answer."""
        answer, chunks = self._create_answer_reader(query), self._stream(query)
        async with aclosing(chunks) if hasattr(chunks, "aclose") else nullcontext():  # type: ignore[type-var]
            async for chunk in chunks:
                answer.feed(chunk)
                await self._report()
                if answer.stop_flood():
                    break
        return answer

    def _stream(self, query: AskModel) -> AsyncIterator[Chunk]:
        messages, fields = self.build_request(query)
        if isinstance(self._chat, ChatClient):
            return AsyncChatClient(self._chat).stream(messages, stop=self.format.stop_sequences, extra=fields)
        chunks: AsyncIterator[Chunk] = iter_chunks(self._chat.stream, messages, self.format.stop_sequences, "__aiter__")
        return chunks

    async def _run_to_completion(self, work: Callable[[], object]) -> None:
        """Run ``work`` in a thread. Cancelling refuses a pending approval, even if the workspace has its own approver,
        and cancels an async tool. This method then waits for the thread, which cannot be stopped."""
        callbacks = self._callbacks
        with allow_cancelling_approvals(callbacks.is_cancelled), track_async_functions(callbacks.track):
            # Not `asyncio.to_thread`: a KeyboardInterrupt in a task would stop the event loop.
            running = asyncio.get_running_loop().run_in_executor(None, copy_context().run, work)
        cancelled: asyncio.CancelledError | None = None
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError as error:
                cancelled = error
                self._callbacks.cancel()
        if cancelled is not None:
            running.exception()  # retrieved, so that asyncio does not log it; CancelledError is raised instead
            raise cancelled
        running.result()
