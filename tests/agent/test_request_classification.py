"""The classification of a request that begins with no known verb, by a very small model."""

from __future__ import annotations

import asyncio
import json

import pytest

from adapter.agent.agent import Agent
from adapter.agent.async_agent import AsyncAgent
from adapter.agent.request_classification import MAX_REQUEST, needs_classification, read_classification
from adapter.cli.call_tally import CallTally
from adapter.cli.run_outcome import describe_run_outcome
from adapter.conversation.session_steps import AskModel
from adapter.recording.replay import replay
from adapter.recording.session_recorder import SessionRecorder
from adapter.recording.transcript import Transcript, TranscriptWriter
from tests.template_server import CHATML, TemplateServer

REQUEST = "Oma is missing in a.txt"
READ = '<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}}</tool_call>'
WORDS = "You can add Oma to the list with an editor."
CHANGED = "```\n- Opa\n- Oma\n```"
SMALL = 500_000_000


@pytest.mark.parametrize(
    ("request_", "is_needed"),
    [
        (REQUEST, True),
        ("Add Oma to a.txt", False),
        ("Change the variable foo to bar in a.txt", True),
        ("Is Oma in a.txt?", False),
        ("Oma is missing", False),
        (f"{REQUEST} {'x' * MAX_REQUEST}", False),
    ],
    ids=["unclear", "known verb", "edit or renaming", "question", "no file", "long"],
)
def test_only_unclear_requests_for_files_are_classified(request_, is_needed):
    assert needs_classification(request_) == is_needed


@pytest.mark.parametrize(
    ("answer", "file_exists", "action"),
    [
        ("edit", True, "edit"),
        ("edit", False, ""),
        ("create", False, "create"),
        ("create", True, ""),
        ("rename", False, ""),
        ("delete", True, "delete"),
        ("answer", True, "answer"),
        ("answer", False, ""),
        ("maybe", True, ""),
        ("", True, ""),
    ],
)
def test_classification_must_fit_the_file(answer, file_exists, action):
    """A missing file can only be created."""
    assert read_classification(REQUEST, answer, file_exists=file_exists) == action


@pytest.mark.parametrize(("answer", "kind"), [("rename", "rename"), ("answer", ""), ("delete", ""), ("edit", "")])
def test_classification_does_not_overrule_a_known_verb(answer, kind):
    assert read_classification("Change foo to bar in a.txt", answer, file_exists=True) == kind


@pytest.mark.parametrize(("kind", "text"), [("edit", "- Opa\n- Oma\n"), ("answer", "- Opa\n"), ("delete", "- Opa\n")])
def test_very_small_model_makes_the_change_it_classified(tmp_path, kind, text):
    """Its answer in words does not end the run."""
    (tmp_path / "a.txt").write_text("- Opa\n")
    answers = (WORDS, READ, CHANGED, "Done.")
    with (
        TemplateServer("llama.cpp", CHATML, *answers, parameters=SMALL, classifies=kind) as server,
        Agent(tmp_path, base_url=server.url, approve="yolo") as agent,
    ):
        agent.run(REQUEST)
    assert len(server.classifications) == 1
    assert (tmp_path / "a.txt").read_text() == text


def test_async_agent_classifies(tmp_path):
    (tmp_path / "a.txt").write_text("- Opa\n")

    async def run(url):
        async with AsyncAgent(tmp_path, base_url=url, approve="yolo") as agent:
            await agent.run(REQUEST)

    with TemplateServer(
        "llama.cpp", CHATML, WORDS, READ, CHANGED, "Done.", parameters=SMALL, classifies="edit"
    ) as server:
        asyncio.run(run(server.url))
    assert (tmp_path / "a.txt").read_text() == "- Opa\n- Oma\n"


@pytest.mark.parametrize(("server_kind", "parameters"), [("llama.cpp", 7_000_000_000), ("vllm", SMALL)])
def test_other_models_and_servers_are_not_asked(tmp_path, server_kind, parameters):
    (tmp_path / "a.txt").write_text("- Opa\n")
    with TemplateServer(server_kind, CHATML, "Oma is missing.", parameters=parameters) as server:
        with Agent(tmp_path, base_url=server.url, approve="yolo") as agent:
            agent.run(REQUEST)
        assert not server.classifications


def test_missing_file_is_created(tmp_path):
    answers = ("Write it with an editor.", "```\nprint('hi')\n```", "Done.")
    with (
        TemplateServer("llama.cpp", CHATML, *answers, parameters=SMALL, classifies="create") as server,
        Agent(tmp_path, base_url=server.url, approve="yolo") as agent,
    ):
        agent.run("hello.py that prints hi, please")
    assert (tmp_path / "hello.py").read_text() == "print('hi')\n"


@pytest.mark.parametrize("content", [b"x\n" * 2_000, b"\0\xff" * 9], ids=["long", "binary"])
def test_existing_file_is_not_created_again(tmp_path, content):
    (tmp_path / "hello.py").write_bytes(content)
    with (
        TemplateServer("llama.cpp", CHATML, "No.", parameters=SMALL, classifies="create") as server,
        Agent(tmp_path, base_url=server.url, approve="yolo") as agent,
    ):
        agent.run("hello.py that prints hi, please")
        assert len(server.classifications) == 1
    assert (tmp_path / "hello.py").read_bytes() == content
    assert not any(body.get("grammar") for _, body in server.bodies)


def test_question_without_a_question_mark_is_answered_from_the_file(tmp_path):
    """Qwen2.5-Coder-0.5B explained what read_file does."""
    (tmp_path / "party.txt").write_text("salad: Viktor\n")
    answers = ("The function `read_file`.", READ.replace("a.txt", "party.txt"), "Viktor.")
    with (
        TemplateServer("llama.cpp", CHATML, *answers, parameters=SMALL, classifies="answer") as server,
        Agent(tmp_path, base_url=server.url, approve="yolo") as agent,
    ):
        assert agent.run("I'd like to know who brings the salad, it's in party.txt").content == "Viktor."


def test_renaming_is_limited_to_names_of_the_request(tmp_path):
    (tmp_path / "a.py").write_text("foo = 1\nprint(foo)\n")
    answers = (READ.replace("a.txt", "a.py"), "```\nbar = 1\nprint(bar)\n```", "Done.")
    with TemplateServer("llama.cpp", CHATML, *answers, parameters=SMALL, classifies="rename") as server:
        with Agent(tmp_path, base_url=server.url, approve="yolo") as agent:
            agent.run("foo in a.py is a bad name, bar says more")
        grammars = [body["grammar"] for _, body in server.bodies if "```" in body.get("grammar", "")]
    assert len(grammars) == 1
    assert "print(bar)" in grammars[0]
    assert (tmp_path / "a.py").read_text() == "bar = 1\nprint(bar)\n"


def test_replay_uses_the_recorded_classification(tmp_path):
    """A replay has no server to classify the request."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_text("- Opa\n")
    written: list[str] = []
    recorder = SessionRecorder(TranscriptWriter(written.append), folder)
    with (
        TemplateServer(
            "llama.cpp", CHATML, WORDS, READ, CHANGED, "Done.", parameters=SMALL, classifies="edit"
        ) as server,
        Agent(folder, base_url=server.url, approve="yolo", observe=recorder) as agent,
    ):
        recorder.begin(agent, REQUEST, approve="yolo")
        agent.run(REQUEST)
    requests = [line for line in map(json.loads, "".join(written).splitlines()) if line["kind"] == "request"]
    assert [line["classified"] for line in requests] == ["edit"] * len(requests)
    result = replay(Transcript.from_text("".join(written)))
    assert not result.difference, result.difference


def test_run_without_the_classified_change_fails():
    """Qwen2.5-Coder-0.5B explained how to rename a class, and the exit code was 0."""
    from adapter.conversation.session_steps import Finished
    from adapter.dialects import get_dialect

    codes = []
    for classified in ("edit", ""):
        tally = CallTally(get_dialect("blade").tools, calls=1, results=["a.txt"])
        tally(AskModel((), 1, classified=classified))
        codes.append(describe_run_outcome(Finished("answered", WORDS), tally, REQUEST)[0])
    assert codes == [1, 0]
