"""Replay: the same text gives the same calls, results and files as when it was recorded."""

import json
import os
import shlex
import threading
import time
from pathlib import Path

import pytest

from adapter.agent.agent import Agent
from adapter.agent.subagents import SubagentRunner
from adapter.core import package_data
from adapter.core.errors import ToolError, UsageError
from adapter.dialects.promptly import load_default_entries, make_dialect
from adapter.dialects.promptly.tools_file_entries import parse_entry
from adapter.recording.file_replay import find_transcripts, replay_file
from adapter.recording.replay import replay, rerun_session, update_file
from adapter.recording.replay_workspace import CommandReplayPolicy, ReplayWorkspace
from adapter.recording.session_recorder import SessionRecorder, hash_workspace, restore_snapshot, take_snapshot
from adapter.recording.transcript import Transcript, TranscriptWriter
from adapter.recording.transcript_lines import EndLine, Header, NestedCallLine, RequestLine, ResultLine, StoredFile
from adapter.tools.function_tools import tool
from adapter.tools.operations import Library, RunSubagent, SearchHit
from adapter.tools.operations.permissions import ApprovalDecision, PermissionRule
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host, HostEvent
from adapter.workspace.sandbox import sandbox
from adapter.workspace.sandbox.sandbox import UnavailableReason, find_unavailable_reason
from tests.model_text import Script, call
from tests.template_server import CHATML, TemplateServer

SHIPPED = sorted((package_data.find_data_directory("fixtures") / "transcripts").glob("*.jsonl"))


def test_there_are_shipped_transcripts():
    """The test below must not pass without files."""
    assert len(SHIPPED) >= 10


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_transcripts_replay_equal(path):
    """They are of real models, except for one whose answers were written by hand."""
    assert replay_file(path).difference == ""


def test_replay_rejects_values_other_than_transcripts():
    """A path, mostly."""
    with pytest.raises(UsageError, match=r"got 'talk.jsonl'; use Transcript\.from_text"):
        replay("talk.jsonl")  # type: ignore[arg-type]


def test_conversations_of_several_turns_are_among_them():
    """One has every kind of turn (several calls, a failed and corrected one, an answer), and one is from a real
    model.
    """
    by_hand, by_model = (
        Transcript.from_text(path.read_text(encoding="utf-8"))
        for path in SHIPPED
        if path.stem in ("by-hand-six-turns", "smollm2-four-turns")
    )
    for transcript, turns in ((by_hand, 6), (by_model, 4)):
        requests = [line for line in transcript.lines if isinstance(line, RequestLine)]
        assert [request.number for request in requests] == list(range(1, turns + 1))
        results = [line for line in transcript.lines if isinstance(line, ResultLine)]
        assert {result.ok for result in results} == {True, False}
    assert isinstance(end := by_hand.lines[-1], EndLine)
    assert end.reason == "answered"
    assert by_model.header.model.startswith("SmolLM2")


def changed(path: Path, folder: Path, **fields: object) -> Path:
    """Return a copy of a transcript; its first line with these fields gets other values."""
    copy = folder / path.name
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    line = next(line for line in lines if fields.keys() <= line.keys())
    line.update(fields)
    copy.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return copy


@pytest.mark.parametrize(
    ("fields", "difference"),
    [
        ({"call_id": "call_x"}, "call_id: recorded"),
        ({"fixes": ["trailing-comma"]}, "fixes: recorded"),
        ({"reason": "answered", "workspace": "sha256:0"}, "reason: recorded"),
        ({"ok": False}, "ok: recorded false, now true"),
    ],
)
def test_the_first_difference_is_shown(tmp_path, fields, difference):
    """Each recorded value is compared."""
    path = next(path for path in SHIPPED if path.stem == "smollm2-edit-port")
    replay = replay_file(changed(path, tmp_path, **fields))
    assert not replay.is_equal
    assert difference in replay.difference


def test_another_start_is_a_difference(tmp_path):
    path = next(path for path in SHIPPED if path.stem == "smollm2-edit-port")
    replay = replay_file(changed(path, tmp_path, files={"settings.ini": {"text": "port = 8000\n"}}))
    assert "could not be restored" in replay.difference


def test_the_record_of_an_empty_folder_is_run_again(tmp_path):
    """Unlike a chat, which also has no files. Older transcripts have no hash of them."""
    (path, *_) = SHIPPED
    replayed = replay_file(changed(path, tmp_path, files={}, workspace=""))
    assert "holds no files" not in replayed.difference


def test_a_missing_answer_is_a_difference(tmp_path):
    """The conversation makes more requests than were recorded."""
    path = next(path for path in SHIPPED if path.stem == "smollm2-edit-port")
    replay = replay_file(changed(path, tmp_path, call_turns=None))
    assert not replay.is_equal


def test_a_broken_file_is_reported_and_not_raised(tmp_path):
    """The other transcripts are still replayed."""
    (tmp_path / "broken.jsonl").write_text("{", encoding="utf-8")
    assert "cannot be replayed" in replay_file(tmp_path / "broken.jsonl").difference


def test_update_makes_a_transcript_equal_again(tmp_path):
    """`--update` writes the current results, and keeps the header and the chunks."""
    path = next(path for path in SHIPPED if path.stem == "smollm2-edit-port")
    copy = changed(path, tmp_path, ok=False)
    before = Transcript.from_text(copy.read_text(encoding="utf-8"))
    update_file(copy)
    assert replay_file(copy).is_equal
    after = Transcript.from_text(copy.read_text(encoding="utf-8"))
    assert after.header == before.header
    assert after.answers == before.answers


def test_replay_works_in_a_folder_of_its_own(tmp_path, monkeypatch):
    """A recorded write changes neither the current folder nor the transcript, and the temporary folder is removed."""
    path = next(path for path in SHIPPED if path.stem == "smollm2-write-notes")
    before = path.read_bytes()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert any(line.kind == "result" for line in rerun_session(Transcript.from_text(before.decode())).lines)
    assert list(tmp_path.iterdir()) == []
    assert path.read_bytes() == before


def test_a_snapshot_restores_bytes_and_modes(tmp_path):
    """Binary files, unusual line ends and the executable bit."""
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "sub").mkdir(parents=True)
    target.mkdir()
    (source / "a.bin").write_bytes(b"\xff\x00\r\n")
    (source / "sub" / "run.sh").write_bytes(b"#!/bin/sh\n")
    (source / "sub" / "run.sh").chmod(0o755)
    odd = source / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / os.fsdecode(b"a\xff.txt")).write_bytes(b"bytes")
    header = Header(task="", system="", dialect="blade", format="hermes", tools=(), files=take_snapshot(source))
    restore_snapshot(Transcript.from_text(Transcript(header, ()).to_text()).header.files, target)
    assert (target / "a.bin").read_bytes() == b"\xff\x00\r\n"
    assert (target / "sub" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert hash_workspace(source) == hash_workspace(target)


def test_a_transcript_cannot_write_outside_its_workspace(tmp_path):
    """A hostile recording names `../evil`."""
    (tmp_path / "root").mkdir()
    for files in ({"../evil": StoredFile(text="x")}, {"a": StoredFile(text="x", raw_name="Li4vZXZpbA==")}):
        with pytest.raises(UsageError, match="outside"):
            restore_snapshot(files, tmp_path / "root")
    with pytest.raises(UsageError, match="not valid text"):
        restore_snapshot({"\ud800": StoredFile(text="x")}, tmp_path / "root")
    assert not (tmp_path / "evil").exists()


def test_folders_are_searched_and_nothing_found_is_an_error(tmp_path):
    """A folder means all transcripts below it; a wrong path must not pass as an empty one."""
    with pytest.raises(UsageError, match=r"transcript .* not found"):
        find_transcripts([tmp_path / "nope"])
    with pytest.raises(UsageError, match=r"no \*\.jsonl"):
        find_transcripts([tmp_path])


# ------------------------------------------------- what cannot be made again


class Once:
    """An external service that answers only while it is recorded."""

    def __init__(self):
        self.is_open, self.asked = True, 0

    def _count(self):
        assert self.is_open, "the outside world was asked in a replay"
        self.asked += 1
        return self.asked

    def search(self, wanted):
        number = self._count()
        time.sleep(0.05 if number == 1 else 0)  # so that an equal search of a batch would end first
        return [SearchHit("Hit", f"http://{wanted.query}", f"answer {number}")]

    def find(self, name):
        return [Library(f"/{name}/{self._count()}", name, "", "")]

    def read(self, library_id, mode, topic, page):
        return f"page {self._count()}"

    def ask(self, questions):
        self._count()
        return [("yes",) for _ in questions]


def recorded(root: Path, dialect, *answers: str, ask=lambda approval: True, inner=True, tools=(), **host) -> Transcript:
    """Record a conversation in which the model gives these answers."""
    lines: list[str] = []
    recording = SessionRecorder(TranscriptWriter(lines.append), root)
    world = Once()
    given = Host(
        search=world, docs=world, questions=world, events=recording.record_host_event if inner else None, **host
    )
    with Workspace(root, dialect, "ask", recording.wrap_approver(ask), tools=tools, host=given) as workspace:
        agent = Agent(workspace, Script(*answers, "Done."), observe=recording)
        recording.begin(agent, "Do it", approve="ask")
        agent.run("Do it")
    world.is_open = False
    return Transcript.from_text("".join(lines))


def check(transcript: Transcript) -> Transcript:
    """Check that a replay is equal, and that its own recording replays equally."""
    outcome = replay(transcript)
    assert outcome.difference == ""
    return rerun_session(transcript)


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


def in_batch(*calls):
    return call("batch", tool_calls=[{"tool": name, "parameters": arguments} for name, arguments in calls])


def test_calls_inside_a_batch_come_from_the_record(root):
    """Searches, questions and pages, in any order. Other calls run again."""
    batch = in_batch(
        ("websearch", {"query": "a"}),
        ("websearch", {"query": "b"}),
        ("question", {"questions": [{"question": "Sure?"}]}),
        ("bash", {"command": "echo refused"}),
        ("write", {"path": "b.txt", "content": "x"}),
        ("websearch", {"query": "a"}),
    )
    transcript = recorded(root, "maki", batch, ask=lambda approval: approval.command is None)
    assert [line.arguments.get("query") for line in transcript.lines if isinstance(line, NestedCallLine)].count(
        "a"
    ) == 2
    check(transcript)


def test_calls_from_code_come_from_the_record(root):
    """Each in its place, with its recorded result or failure."""
    pytest.importorskip("pydantic_monty")
    code = (
        "first = await websearch(query='a')\nsecond = await websearch(query='a')\nprint(first == second)\n"
        "print(await read(path='a.txt'))\n"
        "try:\n    await webfetch(url='http://127.0.0.1/')\nexcept Exception as error:\n    print(error)"
    )
    transcript = recorded(root, "maki", call("code_execution", code=code))
    result = next(line for line in transcript.lines if isinstance(line, ResultLine))
    assert "False" in result.content
    assert "one" in result.content
    check(transcript)


def test_functions_of_the_users_come_from_the_record(root):
    """Their results and changed files are recorded, also inside a batch, because the functions are not available."""

    @tool(effect="write")
    def deploy(target: str) -> str:
        """Deploy it."""
        (root / f"{target}.log").write_text(target)
        (root / "a.txt").unlink(missing_ok=True)
        return f"deployed to {target}"

    @tool(effect="read")
    def fail() -> str:
        """Fail."""
        raise ToolError("no luck")

    transcript = recorded(
        root,
        "maki",
        call("deploy", target="east"),
        in_batch(("deploy", {"target": "west"}), ("fail", {})),
        call("read", path="east.log"),
        call("read", path="a.txt"),
        tools=[deploy, fail],
    )
    assert [each.name for each in transcript.header.own_tools] == ["deploy", "fail"]
    again = check(transcript)
    results = [line.content for line in again.lines if isinstance(line, ResultLine)]
    assert "deployed to east" in results[0]
    assert "deployed to west" in results[1]
    assert "no luck" in results[1]
    assert "east" in results[2]
    assert "a.txt does not exist" in results[3]


def test_a_file_that_a_batch_saw_half_written_comes_out_whole(root, monkeypatch):
    """The calls of a batch end in any order, so one may see the change of another."""
    half, looked = threading.Event(), threading.Event()

    @tool(effect="write")
    def deploy() -> str:
        """Deploy it."""
        (root / "west.log").write_text("we")
        half.set()
        looked.wait(60)
        (root / "west.log").write_text("west")
        return "deployed"

    @tool(effect="read")
    def look() -> str:
        """Look."""
        half.wait(60)
        return "seen"

    inner = SessionRecorder.record_host_event

    def recording_inner(recording: SessionRecorder, event: HostEvent) -> None:
        inner(recording, event)
        looked.set()

    monkeypatch.setattr(SessionRecorder, "record_host_event", recording_inner)
    transcript = recorded(root, "maki", in_batch(("deploy", {}), ("look", {})), tools=[deploy, look])
    first, second = (line for line in transcript.lines if isinstance(line, NestedCallLine))
    assert [first.changed["west.log"], second.changed["west.log"]] == [StoredFile(text="we"), StoredFile(text="west")]
    for _ in range(5):
        check(transcript)


def test_programs_of_the_users_come_from_the_record(root):
    """A tool file is not part of a transcript, but the results and changes of its programs are."""
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    template = [["{(path)}"]]
    entry = {"name": "Touch", "executable": "touch", "argumentTemplate": template, "parameters": parameters}
    dialect = make_dialect([parse_entry(entry, "tools.json"), *load_default_entries()])
    write = call("WriteToFile", file="b", content="x")
    transcript = recorded(root, dialect, call("Touch", file="new"), write)
    assert [each.name for each in transcript.header.own_tools] == ["Touch"]
    results = [line for line in transcript.lines if isinstance(line, ResultLine)]
    assert [list(line.changed) for line in results] == [["new"], []]
    check(transcript)


def test_files_of_a_sub_agent_come_from_the_record(root):
    child = Script(call("edit", path="a.txt", old_string="one", new_string="two"), "Changed.")
    task = call("task", description="Change", prompt="Change it", subagent_type="general")
    transcript = recorded(root, "maki", task, call("read", path="a.txt"), agents=SubagentRunner(child))
    again = check(transcript)
    assert "two" in [line.content for line in again.lines if isinstance(line, ResultLine)][1]


@pytest.mark.parametrize("kind", ["research", "general"])
def test_the_transcript_of_a_sub_agent_replays(root, kind):
    """With its own tools, folder, permissions and answers."""
    (root / "sub").mkdir()
    (root / "sub" / "b.txt").write_text("b\n")
    child = Script(
        call("edit", path="b.txt", old_string="b", new_string="c"),
        call("bash", command="true"),
        call("bash", command="false"),
        call("question", questions=[{"question": "Sure?"}]),
        "Done.",
    )
    written: dict[int, list[str]] = {}

    def record(number: int, folder: Path) -> SessionRecorder:
        return SessionRecorder(TranscriptWriter(written.setdefault(number, []).append), folder)

    agents = SubagentRunner(child, record=record)

    def ask(approval):
        return ApprovalDecision(approval.command != "false", remember=True)

    with Workspace(root, "maki", "ask", ask, host=Host(agents=agents)) as session:
        session.run("bash", {"command": "true", "workdir": "sub"})  # granted from here on
        agents.run(RunSubagent("Work", kind, "x", cwd="sub"), session)
    transcript = Transcript.from_text("".join(written[1]))
    contents = [line.content for line in transcript.lines if isinstance(line, ResultLine)]
    assert ("read-only" in contents[0]) == (kind == "research")
    assert "the user cannot be asked" in contents[3]
    check(transcript)


def test_skills_of_the_users_come_from_the_record(root, tmp_path):
    """Also one that is sent as a message."""
    folder = tmp_path / "skills" / "release"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: release\ndescription: Release it\n---\nTag it.\n")
    for dialect, load in (
        ("maki", call("skill", skill_name="release")),
        ("proxyai", call("LoadSkill", skill_name="release")),
    ):
        transcript = recorded(root, dialect, load, skill_folders=(str(tmp_path / "skills"),))
        assert "Tag it." in str(transcript.lines)
        check(transcript)


def test_replay_reports_unrecorded_results(root):
    """Without the session's events, nested results are missing; the message has the solution."""
    transcript = recorded(root, "maki", in_batch(("websearch", {"query": "a"})), inner=False)
    assert not replay(transcript).is_equal
    result = next(line for line in rerun_session(transcript).lines if isinstance(line, ResultLine))
    assert "record with Host(events=recording.record_host_event)" in result.content


def test_too_many_changes_to_record_are_reported(root, monkeypatch):
    """The recording continues, and the difference names the reason."""
    monkeypatch.setattr("adapter.recording.session_recorder.MAX_BYTES", 1_000)

    @tool(effect="read")
    def grow() -> str:
        """Grow."""
        (root / "big").write_text("x" * 2_000)
        return "grown"

    transcript = recorded(root, "maki", call("grow"), tools=[grow])
    assert "too large to record" in replay(transcript).difference


# ------------------------------------------------- commands


def run_command(line: str) -> str:
    return str(call("run_command", command=line, cwd="."))


def of_today(transcript: Transcript) -> list[ResultLine]:
    return [line for line in rerun_session(transcript).lines if isinstance(line, ResultLine)]


def test_commands_come_from_the_record(root, tmp_path):
    """Their output and changed files. Nothing runs, even if the transcript allows everything."""
    outside = tmp_path / "ran"
    line = f"echo two > a.txt; rm -f b.txt; touch {shlex.quote(str(outside))}; echo out-$((6*7))"
    (root / "b.txt").write_text("b\n")
    transcript = recorded(root, "blade", run_command(line), call("read_file", path="a.txt"))
    assert "out-42" in next(one.content for one in transcript.lines if isinstance(one, ResultLine))
    outside.unlink(missing_ok=True)
    check(transcript)
    assert not outside.exists()


def test_a_command_without_a_recorded_result_is_not_run(root):
    """The result names the option that would run it."""
    transcript = recorded(root, "blade", run_command("echo out-$((6*7))"))
    bare = Transcript(transcript.header, tuple(one for one in transcript.lines if not isinstance(one, ResultLine)))
    (result,) = of_today(bare)
    assert not result.ok
    assert "has no result" in result.content
    assert "out-42" not in result.content


def test_a_command_that_no_record_answers_is_not_run(root):
    """Also if it gets past the check of which results are recorded: the plan of a command is refused."""
    with ReplayWorkspace(root, "blade", "yolo", sandbox="none") as workspace:
        result = Workspace.run_within(workspace, "run_command", {"command": "touch ran", "cwd": "."}, None)
    assert "has no result" in result.content
    assert not (root / "ran").exists()


needs_a_sandbox = pytest.mark.skipif(
    find_unavailable_reason("bwrap") is not None and find_unavailable_reason("landlock") is not None,
    reason="commands run again in a sandbox alone",
)


@needs_a_sandbox
@pytest.mark.parametrize(
    ("commands", "runs"),
    [
        (CommandReplayPolicy(), False),
        (CommandReplayPolicy("yolo"), True),
        (CommandReplayPolicy("plan"), False),
        (CommandReplayPolicy(rules=(PermissionRule.parse("allow", "run_command(cat)"),)), True),
        (CommandReplayPolicy(rules=(PermissionRule.parse("allow", "run_command(ls)"),)), False),
        (CommandReplayPolicy("yolo", (PermissionRule.parse("deny", "run_command(cat)"),)), False),
        (CommandReplayPolicy(ask=lambda approval: approval.command == "cat a.txt"), True),
        (CommandReplayPolicy(ask=lambda approval: False), False),
    ],
)
def test_commands_run_again_by_the_rules_of_the_replay(root, commands, runs):
    """Not by the transcript's rules. Each question is asked again."""
    transcript = recorded(root, "blade", run_command("cat a.txt"))
    outcome = replay(transcript, commands=commands)
    assert outcome.is_equal is runs


def test_commands_run_again_in_a_sandbox_or_not_at_all(root, monkeypatch):
    """Without a sandbox, the replay does not begin."""
    transcript = recorded(root, "blade", run_command("cat a.txt"))
    monkeypatch.setattr(
        sandbox,
        "find_unavailable_reason",
        lambda level, writable=(): None if level == "none" else UnavailableReason("not here", "none"),
    )
    with pytest.raises(UsageError, match="required but not available"):
        replay(transcript, commands=CommandReplayPolicy("yolo"))
    assert replay(transcript).is_equal


@pytest.mark.parametrize(
    ("name", "stored", "message"),
    [
        ("a\0b", {"text": "x"}, "NUL"),
        ("a", {"base64": "x"}, "not valid base64"),
        ("", {"text": "x"}, "empty"),
        ("../a", {"text": "x"}, "outside"),
    ],
)
def test_impossible_recorded_file_is_an_error(tmp_path, name, stored, message):
    """Names with NUL and invalid contents are reported for that transcript, and the others are replayed."""
    header = {"kind": "header", "task": "t", "system": "", "dialect": "blade", "format": "hermes", "tools": []}
    file = tmp_path / "talk.jsonl"
    file.write_text(json.dumps({**header, "files": {name: stored}}))
    difference = replay_file(file).difference
    assert difference.startswith("cannot be replayed")
    assert message in difference


ANSWERS = ('<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}}</tool_call>', "It says hi.")


@pytest.mark.parametrize(
    ("parameters", "settings"),
    [(0, {}), (500_000_000, {}), (0, {"prompt": "words"}), (0, {"max_tools": 3})],
    ids=["own prompt", "very small model", "text prompt", "shortlist"],
)
def test_recording_of_each_prompt_can_be_replayed(tmp_path, parameters, settings):
    """With the model's own chat template, the messages contain structured calls. A very small model has fewer tools."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_text("hi\n")
    written: list[str] = []
    recorder = SessionRecorder(TranscriptWriter(written.append), folder)
    with (
        TemplateServer("llama.cpp", CHATML, *ANSWERS, parameters=parameters) as server,
        Agent(folder, base_url=server.url, approve="yolo", observe=recorder, **settings) as agent,
    ):
        recorder.begin(agent, "What does a.txt say?", approve="yolo")
        agent.run("What does a.txt say?")
    result = replay(Transcript.from_text("".join(written)))
    assert not result.difference, result.difference
    assert result.calls == 1
