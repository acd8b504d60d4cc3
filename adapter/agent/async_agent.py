"""`adapter.agent.agent` for asyncio: the same session, the same settings, and a loop that waits for others."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import cached_property, partial
from typing import Protocol, Self, TypeAlias

from adapter.agent.agent import BaseAgent
from adapter.agent.async_callbacks import AsyncCallbacks, awaited
from adapter.agent.response_reader import AgentEvent, ResponseReader, chunks_of
from adapter.backends.async_chat_client import AsyncChatClient
from adapter.backends.chat_client import ChatClient, Chunk
from adapter.conversation.message_rendering import Message
from adapter.conversation.session import AskModel, Finished, RunTools
from adapter.core.callbacks import is_async
from adapter.core.errors import TransportError
from adapter.core.events import ToolCall, ToolResult
from adapter.tools.operations.permissions import Approver, AsyncApprover
from adapter.workspace.capabilities.host import Host


class AsyncChatModel(Protocol):
    """A model that answers in pieces, for which others need not wait."""

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> AsyncIterator[Chunk]: ...


AsyncObserver: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]
"""An observer of an `AsyncAgent`, which may be async."""


class AsyncAgent(BaseAgent[ChatClient | AsyncChatModel, Approver | AsyncApprover, AsyncObserver]):
    """The asyncio version of `adapter.Agent`, with the same settings::

        async with AsyncAgent("my-project", base_url="http://127.0.0.1:8080", approve="auto-edit") as agent:
            done = await agent.send("Rename greeting() to hello()")

    ``chat`` is a `ChatClient` or an `AsyncChatModel`. The server is looked for, and asked for the model's own prompt, when
    the ``async with`` block is entered, or with the first message. ``approve``, ``observe``, and the methods and
    ``events`` of ``host`` may be async: they are awaited in the agent's event loop. Tools, plain approvers and hosts
    run in a thread, one call after the other, and async tools in a loop that the workspace has for them; an observer is
    called in the agent's loop. Cancelling stops the model and the question that is open, which counts as refused; a
    tool that has begun is waited for, so that nothing changes files behind your back, and `send` can go on from there.
    One message at a time.
    """

    _connects_at_once = False

    _async_observer: AsyncObserver | None = None

    @cached_property
    def _untold(self) -> deque[AgentEvent]:
        """What an async observer has not been told yet."""
        return deque()

    @cached_property
    def _callbacks(self) -> AsyncCallbacks:
        return AsyncCallbacks()

    def observe(self, observer: AsyncObserver) -> None:
        """Tell ``observer``, which may be async, what happens, in place of the one before."""
        self._untold.clear()
        self._async_observer = observer if is_async(observer) else None
        if self._async_observer is None:
            super().set_observer(observer)
        else:
            self._observe = self._untold.append

    def _approver(self, approve: Approver | AsyncApprover) -> Approver:
        return self._callbacks.approver(approve)

    def _host(self, host: Host) -> Host:
        return self._callbacks.host(host)

    async def run(self, task: str) -> Finished:
        """Work on ``task``, as a new conversation; see `Agent.run`. Raises TransportError, and CancelledError."""
        await self._connected()
        return await self._work(self._begin(task))

    async def send(self, message: str) -> Finished:
        """`run`, in the conversation that there is, whatever ended it; the first message begins one."""
        await self._connected()
        return await self._work(self._go_on(message))

    async def close(self) -> None:
        """Close what the agent made itself: a folder's workspace, the connection to a server."""
        await asyncio.to_thread(self._made.close)

    async def __aenter__(self) -> Self:
        try:
            await self._connected()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _connected(self) -> None:
        if not self._is_settled:
            await asyncio.to_thread(self._connect)

    async def _work(self, step: AskModel | RunTools | Finished) -> Finished:
        assert self._session is not None
        results: list[ToolResult] = []
        self._callbacks.begin()
        try:
            while not isinstance(step, Finished):
                await self._tell(step)
                if isinstance(step, AskModel):
                    step = self._answered(await self._ask(step))
                    await self._tell()
                else:
                    results = []
                    for call in step.calls:
                        await self._to_the_end(partial(self._run_into, results, call))
                        await self._tell(results[-1])
                    step = self._session.on_tool_results(results)
        except asyncio.CancelledError:
            await self._tell(self._session.on_interrupt(results))
            raise
        except TransportError as error:
            await self._tell(Finished("failed", str(error)))
            raise
        except Exception:  # of a function of the program's: `send` can go on from here
            self._session.on_interrupt(results)
            self._untold.clear()
            raise
        finally:
            self._callbacks.end()
        await self._tell(step)
        return step

    async def _tell(self, *happening: AgentEvent) -> None:
        """Tell the observer, also what an async one has not been told yet."""
        for each in happening:
            self._observe(each)
        while self._untold and self._async_observer is not None:
            await awaited(partial(self._async_observer, self._untold.popleft()), "the observer")

    def _run_into(self, results: list[ToolResult], call: ToolCall) -> None:
        results.append(self._run_call(call))

    async def _ask(self, query: AskModel) -> ResponseReader:
        """The model's answer to one query."""
        answer = self._new_answer(query)
        async with aclosing(self._stream(query)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                answer.feed(chunk)
                await self._tell()
        return answer

    def _stream(self, query: AskModel) -> AsyncIterator[Chunk]:
        messages, fields = self.request(query)
        if isinstance(self._chat, ChatClient):
            return AsyncChatClient(self._chat).stream(messages, stop=self.format.stop_sequences, extra=fields)
        chunks: AsyncIterator[Chunk] = chunks_of(self._chat.stream, messages, self.format.stop_sequences, "__aiter__")
        return chunks

    async def _to_the_end(self, work: Callable[[], object]) -> None:
        """Do ``work`` in a thread. Cancelling ends an open question; its thread cannot be stopped, only awaited."""
        running = asyncio.ensure_future(asyncio.to_thread(work))
        cancelled: asyncio.CancelledError | None = None
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError as error:
                cancelled = error
                self._callbacks.cancel()
        if cancelled is not None:
            running.exception()  # seen; the cancellation counts
            raise cancelled
        running.result()
