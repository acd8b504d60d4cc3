"""`adapter.agent.agent` for asyncio: the same session, the same settings, and a loop that waits for others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Protocol, Self

from adapter.agent.agent import Settled
from adapter.agent.answer import Answer
from adapter.conversation.session import Done, Query, Run
from adapter.conversation.shown import Message
from adapter.upstream.async_transport import AsyncChatClient
from adapter.upstream.transport import ChatClient, Chunk
from adapter.values.errors import TransportError
from adapter.values.events import ToolCall, ToolResult


class AsyncChat(Protocol):
    """A model that answers in pieces, for which others need not wait."""

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> AsyncIterator[Chunk]: ...


class AsyncAgent(Settled[ChatClient | AsyncChat]):
    """The asyncio version of `adapter.Agent`, with the same settings::

        async with AsyncAgent("my-project", base_url="http://127.0.0.1:8080", approve="auto-edit") as agent:
            done = await agent.send("Rename greeting() to hello()")

    ``chat`` is a `ChatClient` or an `AsyncChat`. The server is looked for, and asked for the model's own prompt, when
    the ``async with`` block is entered, or with the first message. Tools, and who is asked for approval, run in a
    thread, one call after the other; an observer is called in the event loop. Cancelling stops the model; a tool that
    has begun is waited for, so that nothing changes files behind your back, and `send` can go on from there. One
    message at a time.
    """

    _connects_at_once = False

    async def run(self, task: str) -> Done:
        """Work on ``task``, as a new conversation; see `Agent.run`. Raises TransportError, and CancelledError."""
        await self._connected()
        return await self._work(self._begin(task))

    async def send(self, message: str) -> Done:
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

    async def _work(self, step: Query | Run | Done) -> Done:
        assert self._session is not None
        results: list[ToolResult] = []
        try:
            while not isinstance(step, Done):
                self._observe(step)
                if isinstance(step, Query):
                    step = self._answered(await self._ask(step))
                else:
                    results = []
                    for call in step.calls:
                        await _to_the_end(partial(self._run_into, results, call))
                        self._observe(results[-1])
                    step = self._session.ran(results)
        except asyncio.CancelledError:
            self._observe(self._session.stopped(results))
            raise
        except TransportError as error:
            self._observe(Done("failed", str(error)))
            raise
        self._observe(step)
        return step

    def _run_into(self, results: list[ToolResult], call: ToolCall) -> None:
        results.append(self._run_call(call))

    async def _ask(self, query: Query) -> Answer:
        """The model's answer to one query."""
        answer = self._new_answer(query)
        async with aclosing(self._stream(query)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                answer.take(chunk)
        return answer

    def _stream(self, query: Query) -> AsyncIterator[Chunk]:
        messages, fields = self.request(query)
        if isinstance(self._chat, ChatClient):
            return AsyncChatClient(self._chat).stream(messages, stop=self.format.stops, extra=fields)
        return self._chat.stream(messages, stop=self.format.stops)


async def _to_the_end(work: Callable[[], object]) -> None:
    """``work`` in a thread. Who cancels this waits for it, too: a thread cannot be stopped."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # seen; the cancellation counts
        raise cancelled
    running.result()
