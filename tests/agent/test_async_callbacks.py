"""Async functions of the program around an `AsyncAgent`: approvers, questions, observers, tools. A scripted model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapter import ApprovalDecision, AsyncAgent, Host, UsageError, Workspace, tool
from adapter.agent.async_callbacks import AsyncCallbacks
from adapter.backends.chat_client import Chunk
from adapter.conversation.session_steps import Finished
from adapter.core.events import ToolResult
from adapter.tools.operations.permissions import ApprovalRequest
from tests.agent.conftest import text_of
from tests.model_text import call

EVENTUALLY_S = 60.0


WRITE = call("write_file", path="a.txt", content="changed\n")


class Script:
    """A model that gives these answers in turn; the last one again and again."""

    def __init__(self, *answers: str) -> None:
        self.answers = [*answers, "Hello."]
        self.seen: list[Any] = []

    async def stream(self, messages: Any, *, stop: Any = ()) -> Any:
        self.seen.append(list(messages))
        yield Chunk(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0], finish_reason="stop")


def work(root: Path, *answers: str, **settings: Any) -> tuple[Finished, Script]:
    async def main() -> tuple[Finished, Script]:
        model = Script(*answers)
        async with AsyncAgent(root, model, **settings) as agent:
            return await agent.run("Work"), model

    return asyncio.run(main())


class Approver:
    """Approves in the agent's loop, after a delay."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.loops: list[object] = []

    async def __call__(self, approval: ApprovalRequest) -> Any:
        self.loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0.02)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_async_approver_can_deny(root):
    """The model is informed, and nothing is written or run."""
    done, model = work(root, WRITE, call("run_command", command="echo x > a.txt"), approve=Approver(False))
    assert done.reason == "answered"
    assert all("did not approve" in messages[-1]["content"] for messages in model.seen[1:3])
    assert text_of(root) == "one\n"


def test_async_approver_can_allow_after_a_delay(root):
    work(root, WRITE, approve=Approver(True))
    assert text_of(root) == "changed\n"


def test_async_approver_can_replace_the_text(root):
    _, model = work(root, WRITE, approve=Approver(ApprovalDecision(True, content="edited\n")))
    assert text_of(root) == "edited\n"
    assert "edited" in model.seen[1][-1]["content"]


@pytest.mark.parametrize("answer", [None, "yes", 1, ApprovalDecision("no")])  # type: ignore[arg-type]
def test_async_approver_without_a_decision_raises(root, answer):
    with pytest.raises(UsageError, match=r"the approver .*test_async_callbacks\.Approver returned .*; expected True"):
        work(root, WRITE, approve=Approver(answer))
    assert text_of(root) == "one\n"


def test_async_approver_error_is_raised_with_its_cause(root):
    """The conversation can continue."""

    async def main() -> str:
        async with AsyncAgent(root, Script(WRITE), approve=Approver(RuntimeError("broken"))) as agent:
            with pytest.raises(UsageError, match=r"Approver raised RuntimeError: broken") as raised:
                await agent.send("Work")
            assert isinstance(raised.value.__cause__, RuntimeError)
            return (await agent.send("Go on")).content

    assert asyncio.run(main()) == "Hello."
    assert text_of(root) == "one\n"


@pytest.mark.parametrize("is_shielded", [False, True])
def test_cancelling_cancels_an_open_async_approval(root, is_shielded):
    """The approval is cancelled, and a later answer is ignored."""
    cancelled: list[bool] = []

    async def main() -> list[Any]:
        asked = asyncio.Event()

        async def approve(approval: ApprovalRequest) -> bool:
            asked.set()
            try:
                await asyncio.sleep(EVENTUALLY_S)
            except asyncio.CancelledError:
                cancelled.append(True)
                if not is_shielded:
                    raise
            return True

        seen: list[Any] = []
        async with AsyncAgent(root, Script(WRITE), approve=approve, observe=seen.append) as agent:
            running = asyncio.create_task(agent.send("Work"))
            await asked.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert text_of(root) == "one\n"
            assert (await agent.send("Go on")).content == "Hello."
        return seen

    seen = asyncio.run(main())
    assert Finished("interrupted", "") in seen
    assert cancelled == [True]
    assert text_of(root) == "one\n"


IN_CODE = call("code_execution", code="await write(path='a.txt', content='changed')")
IN_BATCH = call("batch", tool_calls=[{"tool": "write", "parameters": {"path": "a.txt", "content": "changed\n"}}])


@pytest.mark.parametrize(
    ("dialect", "model_text"), [("blade", WRITE), ("maki", IN_CODE), ("maki", IN_BATCH)], ids=["call", "code", "batch"]
)
def test_late_approval_of_the_workspaces_own_approver_is_ignored(root, dialect, model_text):
    """The workspace has a plain approver that the agent never sees. Its yes after the run has ended does nothing."""
    if model_text is IN_CODE:
        pytest.importorskip("pydantic_monty")
    asked, go = threading.Event(), threading.Event()

    def approve(approval: ApprovalRequest) -> bool:
        asked.set()
        go.wait(EVENTUALLY_S)
        return True

    async def main() -> None:
        with Workspace(root, dialect, approve=approve) as workspace:
            agent = AsyncAgent(workspace, Script(model_text))
            running = asyncio.create_task(agent.send("Work"))
            assert await asyncio.to_thread(asked.wait, EVENTUALLY_S)
            running.cancel()
            await asyncio.sleep(0)  # the cancellation arrives
            go.set()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert text_of(root) == "one\n"
            tool_name = "write_file" if dialect == "blade" else "write"
            assert workspace.run(tool_name, {"path": "a.txt", "content": "changed\n"}).ok  # asked as before
            await agent.close()

    asyncio.run(main())
    assert text_of(root) == "changed\n"


def test_cancelling_ignores_an_open_plain_approval(root):
    """Its thread is awaited without blocking the loop, and its answer is ignored."""
    asked, go = threading.Event(), threading.Event()

    def approve(approval: ApprovalRequest) -> bool:
        asked.set()
        go.wait(EVENTUALLY_S)
        return True

    async def main() -> None:
        async with AsyncAgent(root, Script(WRITE), approve=approve) as agent:
            running = asyncio.create_task(agent.send("Work"))
            await asyncio.to_thread(asked.wait, EVENTUALLY_S)
            running.cancel()
            await asyncio.sleep(0.02)
            assert not running.done()
            go.set()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert text_of(root) == "one\n"
            assert agent.workspace.run("write_file", {"path": "a.txt", "content": "changed\n"}).ok  # asked as before

    asyncio.run(main())
    assert text_of(root) == "changed\n"


def test_plain_approver_runs_in_a_thread(root):
    """It does not block the loop."""
    threads: list[threading.Thread] = []

    def approve(approval: ApprovalRequest) -> bool:
        threads.append(threading.current_thread())
        return True

    work(root, WRITE, approve=approve)
    assert threads
    assert threading.main_thread() not in threads
    assert text_of(root) == "changed\n"


def test_async_approver_runs_in_the_agents_loop(root):
    """Also for batched calls in threads; one approval at a time."""
    asking: list[int] = []

    async def approve(approval: ApprovalRequest) -> bool:
        asking.append(1)
        assert len(asking) == 1
        await asyncio.sleep(0.01)
        asking.pop()
        return True

    calls = [{"tool": "bash", "parameters": {"command": f"touch {name}"}} for name in "xyz"]
    work(root, call("batch", tool_calls=calls), approve=approve, dialect="maki")
    assert all((root / name).exists() for name in "xyz")


ASK = call("question", questions=[{"question": "Go?", "options": ["yes", "no"]}])


class Person:
    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    async def ask(self, questions: Any) -> Any:
        await asyncio.sleep(0.01)
        return self.answer()


def test_async_questions_are_awaited(root):
    _, model = work(root, ASK, host=Host(questions=Person(lambda: [["yes"]])), dialect="maki")
    assert "yes" in model.seen[1][-1]["content"]


def test_async_question_with_a_wrong_answer_raises(root):
    """A string is not a list of letters."""
    with pytest.raises(UsageError, match=r"Host\.questions .*Person\.ask returned 'yes'; expected a list of texts"):
        work(root, ASK, host=Host(questions=Person(lambda: ["yes"])), dialect="maki")


def test_async_observers_are_awaited_in_order(root):
    """Each before the next step, including host events."""
    seen: list[Any] = []
    inner: list[Any] = []

    async def observe(happening: Any) -> None:
        await asyncio.sleep(0)
        seen.append(happening)

    async def events(event: Any) -> None:
        await asyncio.sleep(0)
        inner.append(event)

    plain: list[Any] = []
    todo = call("todowrite", todos=[{"content": "x", "status": "pending"}])
    work(root, todo, observe=observe, host=Host(events=events), dialect="maki")
    work(root, todo, observe=plain.append, dialect="maki")
    assert [type(each) for each in seen] == [type(each) for each in plain]
    assert isinstance(seen[-1], Finished)
    assert len(inner) == 1


def test_async_observer_error_ends_the_run(root):
    async def observe(happening: Any) -> None:
        if isinstance(happening, ToolResult):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        work(root, call("read_file", path="a.txt"), observe=observe)


def test_async_tools_are_awaited(root):
    @tool(effect="read")
    async def look() -> str:
        await asyncio.sleep(0)
        return "seen"

    _, model = work(root, call("look"), tools=[look])
    assert "seen" in model.seen[1][-1]["content"]


def test_async_approver_outside_a_run_raises(root):
    """It would deadlock."""

    async def main() -> None:
        async with AsyncAgent(root, Script(), approve=Approver(True)) as agent:
            await agent.run("Hello")
            with pytest.raises(UsageError, match="can be called only while the AsyncAgent runs"):
                agent.workspace.run("write_file", {"path": "a.txt", "content": "changed\n"})

    asyncio.run(main())
    assert text_of(root) == "one\n"


def test_invalid_approver_raises_at_construction(root):
    with pytest.raises(UsageError, match="approve must be a string or a function or None, got 5"):
        AsyncAgent(root, Script(), approve=5)  # type: ignore[arg-type]


def test_workspace_rejects_async_functions(root):
    """The error states the remedy."""
    with pytest.raises(UsageError, match=r"Approver is async.*use AsyncAgent"):
        Workspace(root, approve=Approver(True))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"Host\.questions\.ask .*Person\.ask is async"):
        Workspace(root, host=Host(questions=Person(list)))


def test_plain_capability_is_not_wrapped():
    """Only async methods are replaced."""
    host = Host(search="embedded")
    assert AsyncCallbacks().wrap_host(host) is host
