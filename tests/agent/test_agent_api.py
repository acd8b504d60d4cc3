"""Programs around the agent: construction, continued conversations, asyncio. Real HTTP on loopback."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from adapter import Agent, ApprovalRequest, AsyncAgent, Workspace, tool
from adapter.backends.chat_client import ChatClient, Chunk
from adapter.backends.endpoint_discovery import Endpoint
from adapter.conversation.session_steps import Finished, SessionLimits
from adapter.core.errors import TransportError, UsageError
from tests.agent.conftest import text_of
from tests.agent.test_agent import EDIT, in_pieces
from tests.approvals import record_requests
from tests.model_text import call
from tests.scripted_server import CHAT, MODELS, as_error, as_json

BACK = EDIT.replace("one", "1").replace("two", "one").replace("1", "two")


def roles(body) -> list[str]:
    return [message["role"] for message in body["messages"]]


def test_agent_is_built_from_folder_and_url(server, root):
    """With a folder and a URL."""
    server.on(CHAT, in_pieces(EDIT), in_pieces("Done."))
    with Agent(str(root), base_url=server.url, model="m", approve="auto-edit") as agent:
        assert agent.send("Change one to two in a.txt") == Finished("answered", "Done.")
    assert text_of(root) == "two\n"
    assert server.bodies()[0]["model"] == "m"


def test_model_and_format_are_discovered(root, scripted):
    """By querying the server, like `adapter run`."""
    scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "Qwen3-Coder-30B", "object": "model"}]}))
    with Agent(root, base_url=scripted.url) as agent:
        assert agent.format.name == "qwen3_coder"


def test_send_continues_the_conversation(server, root):
    """`run` starts a new conversation."""
    server.on(CHAT, in_pieces(EDIT), in_pieces("Done."), in_pieces(BACK), in_pieces("Undone."), in_pieces("Hello."))
    with Agent(root, base_url=server.url, approve="auto-edit") as agent:
        agent.send("Change one to two in a.txt")
        assert agent.send("And back").content == "Undone."
        assert text_of(root) == "one\n"
        assert [message["role"] for message in agent.messages] == ["system", *["user", "assistant"] * 4]
        agent.run("Hello")
    bodies = server.bodies()
    assert roles(bodies[2]) == ["system", "user", "assistant", "user", "assistant", "user"]
    assert bodies[2]["messages"][:4] == bodies[1]["messages"]
    assert bodies[2]["messages"][-1]["content"] == "And back"
    assert roles(bodies[4]) == ["system", "user"]


def test_send_continues_after_a_server_failure(server, root):
    """The failed message is sent again, with the new one."""
    server.on(CHAT, as_error(400, "too hot"), in_pieces("Hello."))
    with Agent(root, base_url=server.url) as agent:
        with pytest.raises(TransportError, match="too hot"):
            agent.send("Hello?")
        assert agent.send("Still there?").content == "Hello."
    assert server.bodies()[1]["messages"][-1]["content"] == "Hello?\n\nStill there?"


def test_program_functions_become_tools(server, root):
    """The approver is called for them."""
    asked, ask = record_requests("tool")

    @tool
    def shout(text: str) -> str:
        return text.upper()

    call = '<tool_call>\n{"name": "shout", "arguments": {"text": "hi"}}\n</tool_call>'
    server.on(CHAT, in_pieces(call), in_pieces("Done."))
    with Agent(root, base_url=server.url, tools=[shout], approve=ask) as agent:
        agent.send("Shout")
    assert asked == ["shout"]
    assert "HI" in server.bodies()[1]["messages"][-1]["content"]


@pytest.mark.parametrize("kind", [Agent, AsyncAgent])
def test_conflicting_settings_raise(kind, root):
    chat: Any = SimpleNamespace(stream=None)
    with Workspace(root) as workspace:
        for settings in ({"dialect": "maki"}, {"approve": "yolo"}, {"tools": [len]}):
            with pytest.raises(UsageError, match="are arguments of Workspace"):
                kind(workspace, chat, **settings)
    with pytest.raises(UsageError, match="cannot be combined with chat"):
        kind(root, chat, model="m")
    with pytest.raises(UsageError, match="hermes"):
        kind(root, chat, format="hermess")


def test_unreachable_server_raises_on_connect(root):
    """In the constructor; with asyncio on entering the block, or with the first message."""
    with pytest.raises(TransportError, match=r"nothing answers at http://127\.0\.0\.1:9/v1"):
        Agent(root, base_url="http://127.0.0.1:9")

    async def main():
        with pytest.raises(TransportError, match="nothing answers"):
            await AsyncAgent(root, base_url="http://127.0.0.1:9").send("Hello")
        with pytest.raises(TransportError, match="nothing answers"):
            async with AsyncAgent(root, base_url="http://127.0.0.1:9"):
                pass

    asyncio.run(main())


# ------------------------------------------------------------------------ asyncio


def test_async_agent_behaves_like_agent(server, root, monkeypatch):
    """With the same requests, events and results, without blocking the event loop."""
    monkeypatch.setattr("adapter.agent.base_agent.create_prompt_session", lambda: "same")
    answers = [in_pieces(EDIT), in_pieces("Done."), in_pieces(BACK), in_pieces("Undone.")]
    seen: dict[str, list[object]] = {"sync": [], "async": []}
    server.on(CHAT, *answers, *answers)
    with Agent(root, base_url=server.url, approve="auto-edit", observe=seen["sync"].append) as agent:
        agent.send("Change one to two in a.txt")
        agent.send("And back")

    async def main():
        async with AsyncAgent(root, base_url=server.url, approve="auto-edit", observe=seen["async"].append) as agent:
            assert await agent.send("Change one to two in a.txt") == Finished("answered", "Done.")
            assert text_of(root) == "two\n"
            assert await agent.send("And back") == Finished("answered", "Undone.")

    asyncio.run(main())
    bodies = server.bodies()
    assert bodies[:4] == bodies[4:]
    assert seen["sync"] == seen["async"]
    assert text_of(root) == "one\n"


class Broken(BaseException):
    """Some test runners raise exceptions that are no Exception."""


def script(*answers, is_async=False):
    """Return a model that writes these answers in turn, and then "End.". Exceptions in an answer are raised."""

    class Script:
        def __init__(self) -> None:
            self.answers = [*answers]

        def pieces(self):
            for piece in self.answers.pop(0) if self.answers else ["End."]:
                if isinstance(piece, BaseException):
                    raise piece
                yield Chunk(piece)

        def stream(self, messages, *, stop=()):
            return self.stream_async() if is_async else self.pieces()

        async def stream_async(self):
            await asyncio.sleep(0)
            for chunk in self.pieces():
                yield chunk

    return Script()


def send_twice(root, answers, *, is_async, error=None, fails_at=""):
    """Send two messages, and return both outcomes, the reported events and the conversation. ``error`` is raised by the
    tool ``fail``, or by the observer at the first event of the type ``fails_at``."""
    events: list[str] = []
    outcomes: list[object] = []
    failures = [error] if fails_at else []

    @tool
    def fail() -> str:
        """Fail."""
        raise error

    def observe(event) -> None:
        events.append(type(event).__name__)
        if failures and events[-1] == fails_at:
            raise failures.pop()

    settings: dict[str, Any] = {"tools": [fail], "approve": "yolo", "observe": observe, "system": "Work."}
    model = script(*answers, is_async=is_async)

    async def main():
        async with AsyncAgent(root, model, **settings) as agent:
            for message in ("Work", "Go on"):
                try:
                    outcomes.append(await agent.send(message))
                except (Broken, Exception) as raised:  # noqa: BLE001 - each is compared
                    outcomes.append(repr(raised))
            return agent.messages

    if is_async:
        return outcomes, events, asyncio.run(main())
    with Agent(root, model, **settings) as agent:
        for message in ("Work", "Go on"):
            try:
                outcomes.append(agent.send(message))
            except (Broken, Exception) as raised:  # noqa: BLE001 - each is compared
                outcomes.append(repr(raised))
        return outcomes, events, agent.messages


FAIL, READ = call("fail"), call("read_file", path="a.txt")


@pytest.mark.parametrize(
    ("answers", "error", "fails_at", "outcome"),
    [
        (["Hello."], None, "", Finished("answered", "Hello.")),
        ([READ], None, "", Finished("answered", "End.")),
        ([FAIL], ValueError("bad"), "", Finished("answered", "End.")),
        ([FAIL], SystemExit(3), "", Finished("answered", "End.")),
        ([FAIL], MemoryError(), "", Finished("answered", "End.")),
        ([FAIL], TransportError("down"), "", Finished("answered", "End.")),
        ([FAIL], KeyboardInterrupt(), "", Finished("interrupted", "")),
        ([READ + FAIL], KeyboardInterrupt(), "", Finished("interrupted", "")),
        ([FAIL], Broken(), "", "Broken()"),
        ([["Hel", TransportError("gone")]], None, "", "TransportError('gone')"),
        ([["Hel", ValueError("bad")]], None, "", "ValueError('bad')"),
        ([["Hel", KeyboardInterrupt()]], None, "", Finished("interrupted", "Hel")),
        ([READ[:40]], None, "", Finished("answered", "End.")),
        (["Hello."], RuntimeError(), "Chunk", "RuntimeError()"),
        ([READ], RuntimeError(), "ToolResult", "RuntimeError()"),
        ([READ + READ], KeyboardInterrupt(), "ToolResult", Finished("interrupted", "")),
        (["Hello."], RuntimeError(), "Finished", "RuntimeError()"),
    ],
)
def test_both_agents_handle_exceptions_alike(root, answers, error, fails_at, outcome):
    """With the same events and conversation, which continues."""
    answers = [[answer] if isinstance(answer, str) else answer for answer in answers]
    both = [send_twice(root, answers, is_async=is_async, error=error, fails_at=fails_at) for is_async in (False, True)]
    assert both[0] == both[1]
    assert both[0][0] == [outcome, Finished("answered", "End.")]


def test_cancelling_keeps_the_beginning_of_the_answer(root):
    """As Ctrl-C does in `Agent`."""

    class Slow:
        async def stream(self, messages, *, stop=()):
            yield Chunk("Hello wor")
            await asyncio.sleep(60)

    async def main():
        async with AsyncAgent(root, Slow()) as agent:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await agent.send("Work")
            return agent.messages[-1]

    assert asyncio.run(main()) == {"role": "assistant", "content": "Hello wor"}


def test_agent_works_on_one_message_at_a_time(root):
    """A second one would mix two answers in the conversation. A tool may not send one either."""

    @tool
    def nest() -> str:
        """Send a message to the agent that runs the tool."""
        return agent.send("Inner").content

    async def main():
        async with AsyncAgent(root, script(["One."], is_async=True)) as agent:
            return await asyncio.gather(agent.send("One"), agent.send("Two"), return_exceptions=True)

    first, second = asyncio.run(main())
    assert (first, type(second)) == (Finished("answered", "One."), UsageError)
    with Agent(root, script([call("nest")]), tools=[nest], approve="yolo") as agent:
        assert agent.send("Outer").content == "End."
        assert "still working on a message" in str(agent.messages)


@pytest.mark.parametrize("stream", [list, iter])
def test_chat_may_stream_any_iterable(root, stream):
    """Only generators can be closed."""
    chat = SimpleNamespace(stream=lambda messages, stop: stream([Chunk("Hello.")]))
    assert Agent(root, chat).send("Hello?").content == "Hello."


def test_agent_works_in_several_event_loops(server, root):
    """Each answer has its own connection."""
    server.on(CHAT, in_pieces("One."), in_pieces("Two."))
    agent = AsyncAgent(root, base_url=server.url)
    assert asyncio.run(agent.send("Count")).content == "One."
    assert asyncio.run(agent.send("Go on")).content == "Two."
    asyncio.run(agent.close())


def test_async_client_has_constraints_and_retries(server, root):
    """A busy server is retried, and constraints are sent."""
    server.on("/version", as_json(200, {"version": "0.9"}))
    server.on(CHAT, as_error(503, "busy"), in_pieces(EDIT), in_pieces(EDIT))

    async def main():
        async with AsyncAgent(
            root,
            base_url=server.url,
            approve="yolo",
            constraint="required",
            prompt="words",
            limits=SessionLimits(turns=1),
        ) as agent:
            return await agent.send("Change one to two in a.txt")

    assert asyncio.run(main()).reason == "turns"
    first, second = server.bodies()
    assert first == second
    assert "response_format" in first


def test_server_failure_is_explained(server, root):
    """The conversation can continue."""
    server.on(CHAT, as_error(400, "too hot"), in_pieces("Hello."))

    async def main():
        async with AsyncAgent(root, base_url=server.url) as agent:
            with pytest.raises(TransportError, match="too hot"):
                await agent.send("Hello?")
            return await agent.send("Still there?")

    assert asyncio.run(main()).content == "Hello."


def test_cancelling_stops_the_model(root):
    """The connection is closed while the server processes the prompt, and the conversation can continue."""
    seen: list[object] = []

    async def main():
        asked, left = asyncio.Event(), asyncio.Event()

        async def silent(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            asked.set()
            while await reader.read(1_000):
                pass
            left.set()
            writer.close()

        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            chat = ChatClient(Endpoint(f"http://127.0.0.1:{port}/v1"), "m")
            async with AsyncAgent(root, chat, observe=seen.append) as agent:
                task = asyncio.create_task(agent.send("Hello?"))
                await asked.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await left.wait()
                return agent.messages

    messages = asyncio.run(main())
    assert seen[-1] == Finished("interrupted", "")
    assert messages[-1] == {"role": "user", "content": "Hello?"}


def test_cancelling_waits_for_a_running_tool(server, root):
    """No call is left half done, and the model gets the result."""
    begun, go = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        begun.set()
        go.wait(30)
        (root / "a.txt").write_text("slowly\n", encoding="utf-8")
        return "was slow"

    server.on(CHAT, in_pieces(f"{call('slow')}\n{EDIT}"), in_pieces("Hello."))

    async def main():
        async with AsyncAgent(root, base_url=server.url, approve="yolo", tools=[slow]) as agent:
            task = asyncio.create_task(agent.send("Work"))
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            task.cancel()
            await asyncio.sleep(0.05)
            assert not task.done()
            go.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert text_of(root) == "slowly\n"
            await agent.send("Go on")

    asyncio.run(main())
    told = server.bodies()[1]["messages"][-1]["content"]
    assert "was slow" in told
    assert told.count("the user stopped the run") == 1
    assert text_of(root) == "slowly\n"


def test_cancelling_cancels_an_async_tool(server, root):
    """The tool can clean up, and the model is informed."""
    begun, cleaned = threading.Event(), threading.Event()

    @tool
    async def slow() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.set()

    server.on(CHAT, in_pieces(call("slow")), in_pieces("Hello."))

    async def main():
        async with AsyncAgent(root, base_url=server.url, approve="yolo", tools=[slow]) as agent:
            task = asyncio.create_task(agent.send("Work"))
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await agent.send("Go on")

    asyncio.run(main())
    assert cleaned.wait(30)
    assert "slow was cancelled" in server.bodies()[1]["messages"][-1]["content"]


def test_agent_accepts_a_custom_chat(root):
    """Anything with an async ``stream``."""

    class Script:
        async def stream(self, messages, *, stop=()):
            await asyncio.sleep(0)
            yield Chunk("Hel")
            yield Chunk("lo.", finish_reason="stop")

    assert asyncio.run(AsyncAgent(root, Script()).send("Hello?")).content == "Hello."


@pytest.mark.parametrize(
    ("finish_reason", "reason"), [("incomplete", "broken_off"), ("length", "cut_off"), (None, "answered")]
)
def test_custom_chat_may_omit_the_finish_reason(root, finish_reason, reason):
    """A custom chat without a finish reason is complete, unlike a dropped stream."""

    class Script:
        async def stream(self, messages, *, stop=()):
            yield Chunk("I looked, and", finish_reason=finish_reason)

    done = asyncio.run(AsyncAgent(root, Script()).send("Look"))
    assert (done.reason, done.content) == (reason, "I looked, and")


OWN_CALL = '<tool_call>\n{"name": "add", "arguments": {"a": "2", "b": 3}}\n</tool_call>'


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_agent_needs_only_tools(server, tmp_path, monkeypatch):
    """Without a folder, the model sees only the given tools, approvals are requested, and no files are left behind."""
    for name in ("TMPDIR", "XDG_STATE_HOME"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr("tempfile.tempdir", None)
    server.on(CHAT, in_pieces(OWN_CALL), in_pieces("5"))
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    with Agent(tools=[add], base_url=server.url, approve=approve) as agent:
        assert agent.send("What is 2 + 3?") == Finished("answered", "5")
        assert list(agent.workspace.tools) == ["add"]
    assert [request.tool for request in asked] == ["add"]
    prompt, answer = (body["messages"] for body in server.bodies())
    assert "write_file" not in prompt[0]["content"]
    assert "5" in answer[-1]["content"]
    assert [list((tmp_path / name).iterdir()) for name in ("TMPDIR", "XDG_STATE_HOME")] == [[], []]


def test_async_agent_needs_only_tools(server):
    server.on(CHAT, in_pieces(OWN_CALL), in_pieces("5"))

    async def answer() -> Finished:
        async with AsyncAgent(tools=[add], base_url=server.url, approve="yolo") as agent:
            return await agent.send("What is 2 + 3?")

    assert asyncio.run(answer()) == Finished("answered", "5")


def test_dialect_none_offers_only_own_tools(server, root):
    server.on(CHAT, in_pieces(OWN_CALL), in_pieces("5"))
    with Agent(root, dialect="none", tools=[add], base_url=server.url, approve="yolo") as agent:
        assert list(agent.workspace.tools) == ["add"]
        assert agent.send("What is 2 + 3?").content == "5"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "pass a folder, a Workspace, or tools"),
        ({"dialect": "none"}, "pass a folder, a Workspace, or tools"),
        ({"tools": [add], "dialect": "blade"}, "the tools of the dialect 'blade' work in a folder"),
    ],
)
def test_agent_without_folder_needs_own_tools(server, settings, message):
    with pytest.raises(UsageError, match=message):
        Agent(base_url=server.url, **settings)
