"""Questions, todo lists, memory, skills and Exit; a tool is offered only if the host has its capability."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest

from adapter.core.errors import ToolError, UsageError
from adapter.prompting.system_prompt import system_prompt
from adapter.tools.operations import (
    EFFECTS,
    AskUser,
    CallFunction,
    EditorOperation,
    FetchPage,
    HostOperation,
    LoadSkill,
    Operation,
    RunBatch,
    parse_todo_status,
)
from adapter.tools.operations.capabilities import list_default_capabilities
from adapter.workspace import Workspace, operation_planner
from adapter.workspace.capabilities import capability_planner
from adapter.workspace.capabilities.host_capabilities import Host
from adapter.workspace.capabilities.memory_notes import NoteStore, find_project_directory
from adapter.workspace.capabilities.skills import parse_skill
from adapter.workspace.changes.journal import find_state_home
from tests.approvals import record_requests
from tests.hosted_dialect import HOSTED, OWN


class Scripted:
    """Answer questions from a list, and keep them."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def ask(self, questions):
        self.asked += questions
        return [self.answers.pop(0) for _ in questions]


@pytest.fixture
def host(tmp_path):
    return Host(state=str(tmp_path / "state"))


@pytest.fixture
def session(directory, host):
    """Create a session with this host, which is closed at the end."""
    opened = []

    def session(changed=host, **settings):
        opened.append(Workspace(directory, HOSTED, settings.pop("approve", "yolo"), host=changed, **settings))
        return opened[-1]

    yield session
    for workspace in opened:
        workspace.close()


# -------------------------------------------------------------------- capabilities


def test_every_operation_has_an_effect():
    """Approval depends on it."""
    assert set(Operation.__args__) - {CallFunction} == set(EFFECTS)
    assert set(HostOperation.__args__) <= set(Operation.__args__)


def test_every_operation_has_a_planner():
    """A call of a tool could otherwise end with a KeyError."""
    planned = {*operation_planner._PLANNERS, *operation_planner._WITHOUT_PLAN}
    assert planned == set(Operation.__args__) - set(HostOperation.__args__)
    matched = {AskUser, LoadSkill, FetchPage, RunBatch, CallFunction, *EditorOperation.__args__}
    assert set(HostOperation.__args__) - matched == set(capability_planner._WITHOUT_PLAN)


def test_absent_capability_is_not_offered(session):
    """By default there is no user, no model for sub-agents, no skills and no web search."""
    workspace = session()
    own = {tool.naming.name for tool in OWN}
    assert own - set(workspace.tools) == {"ask", "task", "skill", "search"}
    prompt = system_prompt(tools=workspace.tools)
    assert "task(" not in prompt
    assert "- search(" not in prompt
    assert "docs(" in prompt


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("ask", {"questions": []}, "the user cannot be asked in this session. Decide yourself"),
        ("task", {"prompt": "x"}, "cannot start sub-agents. Do the task yourself"),
        ("skill", {"name": "x"}, "this session has no skills. Continue without"),
        ("search", {"query": "x"}, "no web search is configured in this session. Search the workspace"),
        ("docs", {"id": "/x"}, "no library documentation is configured. Read the library's source"),
        ("fetch", {"url": "x"}, "no access to the web. Work with the workspace"),
        ("memory", {"command": "view"}, "has no memory. Write lasting notes to a file"),
        ("open_file", {"path": "x"}, "no editor is attached to this session. Use the file tools"),
    ],
)
def test_call_of_absent_tool_is_explained(session, host, name, arguments, said):
    """A model may know the tool from elsewhere."""
    workspace = session(replace(host, editor=None, search=None, docs=None, web=None, memory=False))
    assert name not in workspace.tools
    result = workspace.run(name, arguments)
    assert not result.ok
    assert said in result.content


def test_default_host_has_documented_capabilities():
    """A prompt created without a session describes the same tools as a session has."""
    assert Host().capabilities() == list_default_capabilities()


@pytest.mark.parametrize(("package", "tool"), [("pydantic_monty", "code_execution"), ("markdownify", "fetch")])
def test_missing_extra_makes_capability_absent(session, monkeypatch, package, tool):
    assert tool in session().tools
    monkeypatch.setattr(
        "adapter.tools.operations.capabilities.find_spec", lambda name: None if name == package else object()
    )
    assert tool not in session().tools


# ----------------------------------------------------------------------- questions


def questions(*texts, **more):
    return {"questions": [{"question": text, **more} for text in texts]}


def test_questions_are_asked_and_answered_by_header(session, host):
    """With one answer, several answers or free text. Prefilled questions are not asked."""
    user = Scripted(["red"], ["a", "b"], ["neither"])
    workspace = session(replace(host, questions=user))
    asked = [
        {"question": "Which colour is it?", "options": ["red", "blue"]},
        {"question": "Which ones?", "header": "ones", "options": ["a", "b"], "multiple": True},
        {"question": "Other?", "options": ["x"], "other": True},
        {"question": "Known?", "header": "known"},
    ]
    data = workspace.run("ask", {"questions": asked, "answers": {"known": "yes"}}).data
    assert data["chosen"] == (("red",), ("a", "b"), ("neither",), ("yes",))
    assert [question.key for question in user.asked] == ["Which colour", "ones", "Other?"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (questions(), "got 0 questions; ask 1 to 4"),
        (questions("a", "b", "c", "d", "e"), "got 5 questions; ask 1 to 4"),
        (questions(" "), "question 1 has no text"),
        (questions("a", "a"), "questions 1 and 2 have the same header, 'a'"),
        (questions("a", options=["x", "x"]), "two options with the label 'x'"),
        (questions("a", options=[""]), "without a label"),
    ],
)
def test_invalid_questions_are_not_asked(session, host, arguments, said):
    user = Scripted()
    result = session(replace(host, questions=user)).run("ask", arguments)
    assert said in result.content
    assert "The user was not asked" in result.content
    assert user.asked == []


@pytest.mark.parametrize(
    ("answers", "options"),
    [([], {}), ([["a", "b"]], {"options": ["a", "b"]}), ([["c"]], {"options": ["a"], "other": False})],
)
def test_invalid_host_answer_raises_usage_error(session, host, answers, options):
    """It is not an error of the model."""

    class Wrong(Scripted):
        def ask(self, questions):
            return answers

    with pytest.raises(UsageError):
        session(replace(host, questions=Wrong())).run("ask", questions("q", **options))


def test_unanswered_question_is_an_error_result(session, host):
    """The host raises a ToolError."""

    class Away:
        def ask(self, questions):
            raise ToolError("the user is away")

    assert session(replace(host, questions=Away())).run("ask", questions("q")).error == "the user is away"


# ---------------------------------------------------------------------- todo lists


def test_todo_list_is_replaced_and_emitted(session, host):
    seen: list[object] = []
    workspace = session(replace(host, events=seen.append))
    workspace.run(
        "todos", {"todos": [{"content": "a", "status": "In-Progress"}, {"content": "b", "status": "PENDING"}]}
    )
    result = workspace.run("todos", {"todos": [{"content": "b", "status": "in_progress"}] * 2})
    assert [todo.content for todo in seen[0].todos] == ["a", "b"]  # type: ignore[attr-defined]
    assert result.notes == ("2 items are in progress; work on one at a time",)
    assert [todo["status"] for todo in result.data["todos"]] == ["in_progress", "in_progress"]
    assert "the maximum is 100" in workspace.run("todos", {"todos": [{"content": "b", "status": "done"}] * 101}).content


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("PENDING", "pending"),
        ("in-progress", "in_progress"),
        ("In Progress", "in_progress"),
        ("inProgress", "in_progress"),
        ("done", "completed"),
        ("canceled", "cancelled"),
    ],
)
def test_todo_status_spellings_are_normalized(written, status):
    """X20: any case, with hyphens or spaces."""
    assert parse_todo_status(written) == status
    with pytest.raises(ValueError, match="expected one of pending, in_progress, completed, cancelled"):
        parse_todo_status("started")


# -------------------------------------------------------------------------- memory


def test_memory_is_in_the_state_folder_and_not_in_the_workspace(session, directory, tmp_path):
    """One folder per project, readable only by the user."""
    session().run("memory", {"command": "write", "path": "a.md", "content": "x"})
    (note,) = (tmp_path / "state").rglob("a.md")
    assert note.parent == find_project_directory(str(directory), tmp_path / "state") / "memory"
    assert note.parent.stat().st_mode & 0o077 == 0
    assert list(directory.iterdir()) == []


def test_memory_belongs_to_the_repository(tmp_path):
    """A session in a folder of a repository has the memory of the repository."""
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "sub").mkdir()
    (tmp_path / "other" / "repo").mkdir(parents=True)
    folders = [find_project_directory(str(tmp_path / name), tmp_path) for name in ("repo", "repo/sub", "other/repo")]
    assert folders[0] == folders[1]
    assert folders[0] != folders[2]
    assert folders[0].name.startswith("repo-")


def test_state_folder_follows_xdg(monkeypatch, tmp_path):
    """XDG_STATE_HOME if it is absolute; otherwise a folder in the home directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert find_state_home() == str(tmp_path / "toolcall-adapter")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert find_state_home() == str(tmp_path / "home" / ".local" / "state" / "toolcall-adapter")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "~/x", "", "a\0b", "link/x"])
@pytest.mark.parametrize("command", ["view", "write", "delete"])
def test_notes_are_confined_to_memory(session, tmp_path, directory, path, command):
    """Traversal, absolute paths and links are refused in every command."""
    session().run("memory", {"command": "write", "path": "a.md", "content": "x"})
    folder = next((tmp_path / "state").rglob("a.md")).parent
    (folder / "link").symlink_to(tmp_path / "secret")
    result = session().run("memory", {"command": command, "path": path, "content": "evil"})
    assert not result.ok
    assert sorted(path.name for path in (tmp_path / "secret").iterdir()) == ["key"]
    assert (folder / "a.md").read_text() == "x"


@pytest.mark.parametrize(
    ("command", "path", "said"),
    [
        ("view", "nope.md", "memory has no note 'nope.md'; it has: a.md, sub/b.md"),
        ("view", "sub", "memory has no note 'sub'"),
        ("delete", "gone/b.md", "memory has no note 'gone/b.md'"),
        ("delete", ".", "invalid note name '.'"),
        ("write", "../a.md", "invalid note name '../a.md'"),
        ("write", "/etc/a.md", "invalid note name '/etc/a.md'"),
        ("write", "a.md/b.md", "a.md is a note, not a directory of notes"),
        ("write", "sub", "sub is a directory of notes"),
    ],
)
def test_memory_errors_mention_memory(session, command, path, said):
    """Errors that mention the workspace would lead a model to look for its notes there."""
    for name in ("a.md", "sub/b.md"):
        assert session().run("memory", {"command": "write", "path": name, "content": "x"}).ok
    result = session().run("memory", {"command": command, "path": path, "content": "new"})
    assert not result.ok
    assert said in result.content
    assert "workspace" not in result.content


def test_memory_has_limits(tmp_path):
    """200 lines per note, and 50,000 bytes in total. A rejected note leaves the old one unchanged."""
    memory = NoteStore(tmp_path / "memory")
    memory.write("a.md", "x\n" * 200)
    with pytest.raises(ToolError, match="the note has 201 lines; the maximum is 200"):
        memory.write("a.md", "x\n" * 201)
    memory.write("b.md", "y" * 49_600)
    with pytest.raises(ToolError, match="would have 50001 bytes; the maximum is 50000"):
        memory.write("c.md", "z")
    memory.write("b.md", "y" * 49_500)  # what it replaces does not count
    assert memory.view("a.md").text == "x\n" * 200


def test_concurrent_notes_are_all_written(session):
    """From several threads of one session, within the limit."""
    workspace = session()
    threads = [
        threading.Thread(target=workspace.run, args=("memory", {"command": "write", "path": f"{n}.md", "content": "x"}))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(workspace.run("memory", {"command": "view"}).data["entries"]) == 20


# -------------------------------------------------------------------------- skills

SKILL = "---\nname: release\ndescription: How we release\n---\n# Release it\n\nRun `make release`.\n"


@pytest.fixture
def skills(directory):
    folder = directory / ".proxyai" / "skills" / "team" / "release"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    other = directory / ".maki" / "skills" / "review"
    other.mkdir(parents=True)
    (other / "SKILL.md").write_text("---\nname: review\ntitle: Review code\n---\nLook twice.\n")
    (directory / ".maki" / "skills" / "SKILL.md").write_text("no front matter")


@pytest.mark.usefixtures("skills")
def test_skills_are_found_and_named_in_the_prompt(session):
    """At any depth. The short prompt has the titles, the full one the descriptions."""
    workspace = session()
    assert workspace.tools["skill"].description == (
        "Load a skill (Release it | Review code). It has instructions.\n- Release it: How we release"
    )
    assert "Load a skill (Release it | Review code)" in system_prompt(tools=workspace.tools)


@pytest.mark.usefixtures("skills")
def test_skill_is_delivered_as_result_or_user_message(session):
    """X22: as the dialect specifies."""
    text = (
        "# Release it\n\n# Release it\n\nRun `make release`.\n\n(the skill's files are in .proxyai/skills/team/release)"
    )
    result = session().run("skill", {"name": "Release it"})
    assert (result.content, result.user_message) == (text, "")
    result = session().run("skill", {"name": "release", "delivery": "message"})
    assert (result.content, result.user_message) == ("queued Release it", text)


@pytest.mark.usefixtures("skills")
def test_unknown_skill_error_names_nearest(session):
    """And lists all."""
    error = session().run("skill", {"name": "Relase"}).error
    assert "available: Release it, Review code (did you mean 'Release it'" in error


@pytest.mark.usefixtures("skills")
def test_loading_a_skill_needs_approval(session):
    """C004: with the generic flow, unless the document requires no approval."""
    asked, approve = record_requests()
    workspace = session(approve=approve)
    workspace.run("skill", {"name": "release"})
    assert [(approval.effect, approval.subject) for approval in asked] == [("skill", "Release it")]
    with Workspace(workspace.root, replace(HOSTED, preapproved=frozenset({"skill"}))) as free:
        assert free.run("skill", {"name": "release"}).ok


def test_skills_in_user_folders_are_found(session, host, tmp_path):
    """Folders outside the workspace are named by the user; the workspace's skills take precedence."""
    (tmp_path / "mine" / "x").mkdir(parents=True)
    (tmp_path / "mine" / "x" / "SKILL.md").write_text("---\nname: x\n---\nDo x.\n")
    workspace = session(replace(host, skill_folders=(str(tmp_path / "mine"), str(tmp_path / "none"))))
    assert "Do x." in workspace.run("skill", {"name": "x"}).content


@pytest.mark.usefixtures("skills")
def test_skill_is_trusted_once_per_content(session, directory):
    """For all sessions. Changed content needs approval again, and a refusal is not remembered."""

    def load(answer: bool) -> tuple[bool, int]:
        asked, approve = record_requests("subject", answer=answer)
        workspace = session(approve=approve)
        return workspace.run("skill", {"name": "release"}).ok, len(asked)

    assert load(False) == (False, 1)
    assert load(True) == (True, 1)
    assert load(True) == (True, 0)
    (directory / ".proxyai/skills/team/release/SKILL.md").write_text(SKILL.replace("make", "rm -rf"))
    assert load(False) == (False, 1)


@pytest.mark.usefixtures("skills")
def test_skill_that_changes_while_the_user_is_asked_is_not_loaded(session, directory):
    def approve(_):
        (directory / ".proxyai/skills/team/release/SKILL.md").write_text(SKILL.replace("make", "rm -rf"))
        return True

    result = session(approve=approve).run("skill", {"name": "release"})
    assert not result.ok
    assert "rm -rf" not in result.content
    assert ".proxyai/skills/team/release was changed" in result.content


@pytest.mark.parametrize(
    "text",
    [
        f"---\nname: big\ndescription: {'x' * 5_000_000}\n---\nb\n",
        f"---\nname: big\ndescription: {'x ' * 7_000}\n---\nb\n",
        f"---\nname: big\ntitle: {'t' * 10_000}\n---\nb\n",
        f"---\nname: {'n' * 10_000}\n---\nb\n",
        f"---\nname: big\n{'a:' * 1}\n" + "a:\n" * 100_000 + "---\nb\n",
        f"---\nname: big\n---\n{'b' * 5_000_000}\n",
    ],
    ids=["description-5MB", "description", "title", "name", "fields", "body-5MB"],
)
def test_skill_files_of_any_size_add_little_to_the_prompt(session, directory, text):
    for number in range(3):
        (directory / f".adapter/skills/{number}").mkdir(parents=True)
        (directory / f".adapter/skills/{number}/SKILL.md").write_text(text.replace("big", f"big{number}"))
    workspace = session()
    assert len(system_prompt(tools=workspace.tools)) < 20_000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every folder")
def test_unreadable_skill_folder_has_no_skills(session, directory):
    """The session starts nevertheless."""
    (directory / ".maki" / "skills").mkdir(parents=True)
    (directory / ".maki").chmod(0)
    assert "skill" not in session().tools
    (directory / ".maki").chmod(0o755)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nname: a\n---\nb", ("a", "a", "")),
        ("\ufeff---\r\nname: 'a: b'\r\ndescription: \"c\"\r\n---\r\n# T #\r\n", ("a: b", "T", "c")),
        ("---\nname: a\ntitle: T\ndescription: >\n  one\n  two\nlicense: MIT\n---\n# H\n", ("a", "T", "one two")),
        ("---\nname: a\n---\n", None),
        ("---\ntitle: a\n---\nb", None),
        ("# a\n", None),
    ],
)
def test_front_matter_is_parsed(text, expected):
    """The title, else the heading, else the name. Values may be folded. A skill needs a name and a text."""
    skill = parse_skill(text, "f")
    assert (None if skill is None else (skill.name, skill.title, skill.description)) == expected


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"search": "nope"}, "invalid search 'nope'; expected \"embedded\", None, or an object that implements it"),
        ({"web": "embedded"}, "invalid web 'embedded'; expected None, or an object that implements it"),
    ],
)
def test_host_refuses_invalid_capability_names(wrong, says):
    with pytest.raises(UsageError) as told:
        Host(**wrong)
    assert str(told.value) == says
