"""Sub-agents on real files, with their own conversation, tools and transcript."""

from __future__ import annotations

import asyncio
import threading

import pytest

from adapter import dialects
from adapter.agent.agent import Agent
from adapter.agent.subagents import AgentKind, SubagentRunner
from adapter.backends.chat_client import ChatClient, Chunk
from adapter.backends.endpoint_discovery import Endpoint
from adapter.conversation.session_steps import SessionLimits
from adapter.core.errors import TransportError
from adapter.recording.replay import replay
from adapter.recording.session_recorder import SessionRecorder
from adapter.recording.transcript import Transcript, TranscriptWriter
from adapter.tools.function_tools import tool
from adapter.tools.operations.permissions import PermissionRule
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from tests import hosted_dialect
from tests.hosted_dialect import HOSTED
from tests.model_text import Script, call


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "ws"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    (root / "sub" / "b.txt").write_text("two\n")
    return root


@pytest.fixture
def task(root):
    """Run the task tool over a model's script."""

    def task(script, approve="yolo", settings=None, **arguments):
        host = Host(agents=SubagentRunner(script, **(settings or {})))
        with Workspace(root, HOSTED, approve, host=host) as workspace:
            return workspace.run("task", {"prompt": "Look", **arguments})

    return task


def test_subagent_has_its_own_conversation_and_returns_its_last_message(task):
    """Its conversation has only the task; time and tokens are reported."""
    script = Script(call("read_file", path="a.txt"), "It says one.", tokens=70)
    data = task(script).data
    assert data["output"] == "It says one."
    assert (data["kind"], data["description"], data["prompt"]) == ("research", "a task", "Look")
    assert data["tokens"] == 140
    assert data["seconds"] > 0
    assert [message["role"] for message in script.seen[0]] == ["system", "user"]
    assert script.seen[0][1]["content"] == "Look"
    assert "<tool_response>\none\n" in script.seen[1][-1]["content"]


def test_research_agent_is_read_only(task, root):
    """It has only read-only tools, and other calls are refused."""
    script = Script(
        call("write_file", path="a.txt", content="x"),
        call("run_command", command="touch c", cwd="."),
        call("batch", tool_calls=[{"tool": "delete_file", "parameters": {"path": "a.txt"}}]),
        call("code_execution", code="await write_file(path='c', content='')"),
        "Nothing.",
    )
    task(script)
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "sub"]
    assert (root / "a.txt").read_text() == "one\n"
    system = script.seen[0][0]["content"]
    assert "read_file(" in system
    assert "report" in system
    assert not any(f"{name}(" in system for name in ("write_file", "run_command", "delete_file", "task", "ask"))
    for seen in script.seen[1:3]:
        assert "is not available to a read-only sub-agent" in seen[-1]["content"]


def test_general_agent_needs_the_same_approvals(task, root):
    """With the same approver."""
    write = call("write_file", path="new.txt", content="x")
    task(Script(write, "Refused."), approve="ask", kind="general")
    assert not (root / "new.txt").exists()
    assert task(Script(write, "Written."), kind="general-purpose").data["kind"] == "general"
    assert (root / "new.txt").read_text() == "x"


def test_subagent_folder_is_confined_to_the_workspace(task, root):
    """Folders outside or missing are refused."""
    script = Script(call("read_file", path="b.txt"), call("read_file", path="../a.txt"), "Done.")
    task(script, cwd="sub")
    assert "two\n" in script.seen[1][-1]["content"]
    assert "outside" in script.seen[2][-1]["content"]
    for cwd in ("..", "none", "a.txt", str(root.parent)):
        assert not task(Script(), cwd=cwd).ok


def test_session_rules_apply_in_a_subagents_folder(root):
    """Patterns are relative to the session's root."""
    script = Script(call("read_file", path="b.txt"), "Done.")
    rules = [PermissionRule.from_text("deny read_file(sub/b.txt)")]
    with Workspace(root, HOSTED, "yolo", rules=rules, host=Host(agents=SubagentRunner(script))) as workspace:
        workspace.run("task", {"prompt": "Look", "cwd": "sub"})
    assert "forbids it" in script.seen[1][-1]["content"]


def test_custom_kinds_are_accepted(task):
    """With instructions; unknown kinds suggest the nearest."""
    critic = AgentKind("critic", "finds faults", "Be strict.", read_only=True)
    script = Script("Bad.")
    assert task(script, settings={"kinds": [critic]}, kind="Critic").data["output"] == "Bad."
    assert script.seen[0][0]["content"].endswith("Be strict.")
    error = task(Script(), settings={"kinds": [critic]}, kind="crtic").error
    assert "the kinds are: research, general, critic (did you mean 'critic'?). No sub-agent was started" in error


def test_tool_description_lists_the_kinds(root):
    """For the model."""
    with Workspace(root, HOSTED, host=Host(agents=SubagentRunner(Script()))) as workspace:
        assert workspace.tools["task"].description.startswith("Start a sub-agent (research | general). It works alone.")


def test_model_is_selected_by_name(task):
    """An unknown name uses the current model, with a note."""
    other = Script("From the other.")
    assert task(Script(), settings={"models": {"weak": other}}, model="weak").data["output"] == "From the other."
    result = task(Script("Mine."), model="strong")
    assert result.data["output"] == "Mine."
    assert result.notes == ("unknown model 'strong': the session's model was used",)


def test_subagent_depth_is_limited(task):
    """By default a sub-agent cannot start others; with a depth of two, the second cannot."""
    nested = call("task", prompt="Deeper")
    script = Script(nested, "Alone.")
    task(script, kind="general")
    assert "cannot start sub-agents" in script.seen[1][-1]["content"]
    script = Script(nested, nested, "Second.", "First.")
    assert task(script, settings={"max_depth": 2}).data["output"] == "First."
    assert "cannot start sub-agents" in script.seen[2][-1]["content"]


def test_number_of_subagents_is_limited(root):
    """Across all levels."""
    runner = SubagentRunner(Script("1", "2"), max_total=2)
    with Workspace(root, HOSTED, host=Host(agents=runner)) as workspace:
        results = [workspace.run("task", {"prompt": "x"}) for _ in range(3)]
    assert [result.ok for result in results] == [True, True, False]
    assert "has reached its limit of 2 sub-agents" in results[2].content


def test_concurrent_subagents_are_limited(root):
    """A batch runs as many as there are slots."""
    running, most, lock, two = [0], [0], threading.Lock(), threading.Event()

    class Slow(Script):
        def stream(self, messages, *, stop=()):
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
                if running[0] == 2:
                    two.set()
            two.wait(20)
            with lock:
                running[0] -= 1
            yield Chunk("Done.", finish_reason="stop")

    with Workspace(root, HOSTED, host=Host(agents=SubagentRunner(Slow(), max_at_once=2))) as workspace:
        calls = [{"tool": "task", "parameters": {"prompt": str(n)}} for n in range(4)]
        assert workspace.run("batch", {"tool_calls": calls}).data == [True] * 4
    assert most == [2]


def test_subagent_failures_are_tool_results(task):
    """Server failures, empty answers and turn limits are reported to the parent."""
    assert "model failed: no server. Do the task" in task(Script(TransportError("no server."))).content
    down = {"models": {"strong": ChatClient(Endpoint("http://127.0.0.1:9/v1"), "m")}, "prompt": "own"}
    assert "model failed: the model's own chat template" in task(Script(), settings=down, model="strong").content
    assert "(no response)" in task(Script("", "", "", "")).data["output"]
    look = call("read_file", path="a.txt")
    output = task(Script(look, look), settings={"limits": SessionLimits(turns=2)}).data["output"]
    assert "the limit of turns was reached" in output


def test_ctrl_c_also_stops_the_parent(task):
    """The interrupt is for the whole run."""

    class Interrupted(Script):
        def stream(self, messages, *, stop=()):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        task(Interrupted())


def test_subagent_transcript_replays(task):
    """With its workspace; the same text gives the same conversation."""
    written: dict[int, list[str]] = {}

    def record(number, folder):
        return SessionRecorder(TranscriptWriter(written.setdefault(number, []).append), folder)

    script = Script(call("read_file", path="a.txt"), "It says one.")
    task(script, settings={"record": record})
    transcript = Transcript.from_text("".join(written[1]))
    assert transcript.header.task == "Look"
    assert "a.txt" in transcript.header.files


def test_subagent_events_are_observed(task):
    """Each with its task."""
    seen = []
    task(
        Script("It says one."),
        settings={"observe": lambda task, happening: seen.append((task.prompt, type(happening).__name__))},
    )
    assert ("Look", "Finished") in seen


def test_parent_delegates_to_a_subagent(root):
    """The parent delegates, reads the report and ends; the file is changed once."""
    parent = Script(call("task", prompt="Change a.txt", kind="general"), "All done.")
    child = Script(call("edit_file", path="a.txt", old_content="one", new_content="two"), "Changed a.txt.")
    with Workspace(root, HOSTED, "yolo", host=Host(agents=SubagentRunner(child))) as workspace:
        assert Agent(workspace, parent).run("Do it").content == "All done."
    assert (root / "a.txt").read_text() == "two\n"
    assert "Changed a.txt." in parent.seen[1][-1]["content"]


def test_conversation_with_a_subagent_replays(root, monkeypatch):
    """The report comes from the recording, without queries; answers stay with their approvals."""
    monkeypatch.setitem(dialects._MODULES, "hosted", "tests.hosted_dialect")
    monkeypatch.setattr(hosted_dialect, "DIALECT", HOSTED, raising=False)
    lines: list[str] = []
    child = Script(call("run_command", command="true", cwd="."), "It says one.")
    parent = Script(call("task", prompt="Look", kind="general"), call("write_file", path="b", content="x"), "Done.")
    recording = SessionRecorder(TranscriptWriter(lines.append), root)
    ask = recording.wrap_approver(lambda approval: approval.command is None)
    with Workspace(root, HOSTED, "ask", ask, host=Host(agents=SubagentRunner(child))) as workspace:
        agent = Agent(workspace, parent, observe=recording)
        recording.begin(agent, "Look", approve="ask")
        agent.run("Look")
    assert (root / "b").exists()
    transcript = Transcript.from_text("".join(lines))
    assert "It says one." in str(transcript.lines)
    again = replay(transcript)
    assert again.is_equal, again.difference


def test_subagent_shares_memory_and_loop(root, tmp_path):
    """Also in another folder: notes persist, and async tools share their resources."""
    loops = []

    @tool(effect="read")
    async def where() -> str:
        loops.append(asyncio.get_running_loop())
        return "here"

    note = call("memory", command="write", path="a.md", content="x")
    script = Script(note, call("where"), "Done.")
    host = Host(agents=SubagentRunner(script), state=str(tmp_path / "state"))
    with Workspace(root, HOSTED, "yolo", tools=[where], host=host) as workspace:
        workspace.run("where", {})
        workspace.run("task", {"prompt": "x", "kind": "general", "cwd": "sub"})
        workspace.run("where", {})
        assert workspace.run("memory", {"command": "view"}).data["entries"] == (("a.md", 1),)
    assert len(loops) == 3
    assert len(set(map(id, loops))) == 1
