"""ProxyAI's document, tool by tool: names, parameters, defaults, results, errors and approvals."""

import json
import time
from typing import Any

import pytest

from adapter.cli.agent_console import Console
from adapter.conversation.session import Session
from adapter.conversation.session_steps import AskModel, Finished, RunTools
from adapter.core.events import ToolResult
from adapter.dialects.proxyai import DIALECT
from adapter.parsing.formats import get_format
from adapter.parsing.parser import parse
from adapter.prompting.system_prompt import system_prompt
from adapter.tools.operations import AgentReport, Library, RunSubagent, SearchHit
from adapter.tools.operations.permissions import PermissionRule
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from tests.approvals import record_requests

TOOLS = DIALECT.tools
SKILL = "---\nname: release\ndescription: How to release.\n---\n# Release Notes\n\nWrite them.\n"


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "a.py").write_text("one\ntwo\nthree\nfour\n")
    return tmp_path


class Questions:
    def __init__(self, *answers):
        self.answers, self.asked = answers, []

    def ask(self, questions):
        self.asked += questions
        return self.answers


class Provider:
    """A search, documentation and sub-agents that report their requests."""

    def __init__(self):
        self.kinds = {"research": "looks", "general": "does"}

    def search(self, wanted):
        self.wanted = wanted
        return [SearchHit("Home", "https://a.example/x", "text"), SearchHit("Other", "https://b.example/", "more")]

    def find(self, name):
        self.name = name
        return [Library("/org/lib", "Lib", "A library.", "1.2")]

    def read(self, library_id, mode, topic, page):
        self.read_with = (library_id, mode, topic, page)
        return "d" * 20_000

    def run(self, task: RunSubagent, workspace):
        self.task = task
        return AgentReport(task.kind, task.description, task.prompt, "report", 1.5, 77)


@pytest.fixture
def provider():
    return Provider()


@pytest.fixture
def workspace(directory, provider):
    host = Host(search=provider, docs=provider, agents=provider, questions=Questions(["red"], ["a", "b"]))
    with Workspace(directory, "proxyai", approve="yolo", host=host) as workspace:
        yield workspace


@pytest.fixture
def run(workspace):
    """Run a call that succeeds, and return its fields and its text."""

    def run(name, **arguments):
        result = workspace.run(name, arguments)
        assert result.ok, result.content
        return result

    return run


@pytest.fixture
def error_of(workspace):
    def error_of(name, **arguments):
        result = workspace.run(name, arguments)
        assert not result.ok
        return result.data

    return error_of


def until(look, wanted):
    """Call ``look`` until it returns ``wanted``."""
    for _ in range(5_000):
        found = look()
        if wanted(found):
            return found
        time.sleep(0.01)
    raise AssertionError(found)


# ---------------------------------------------------------------------- definitions


@pytest.mark.parametrize("style", ["compact", "full", "trained"])
def test_the_prompt_routes_and_lists_skills(directory, provider, style):
    """C003, C007, C070: tools by purpose, libraries separate from the web, skills by title, without absent tools."""
    (directory / ".proxyai/skills/deep/release").mkdir(parents=True)
    (directory / ".proxyai/skills/deep/release/SKILL.md").write_text(SKILL)
    with Workspace(directory, "proxyai", host=Host(agents=provider, search=provider)) as workspace:
        prompt = system_prompt("proxyai", "hermes", style, tools=workspace.tools)
    for job, tool in [
        ("Inspect a file", "Read"),
        ("by its name", "IntelliJSearch"),
        ("Change a part of a file", "Edit"),
        ("replace all of it", "Write"),
        ("Run a command", "Bash"),
        ("in the background", "BashOutput"),
        ("Delegate", "Task"),
        ("work that comes again", "LoadSkill"),
        ("not for libraries", "WebSearch"),
        ("Read about a library", "ResolveLibraryId, then GetLibraryDocs"),
    ]:
        assert any(job in line and tool in line for line in prompt.splitlines()), job
    assert "Release Notes" in prompt
    assert "Task" not in system_prompt("proxyai", "hermes", style)
    assert "WebSearch" not in system_prompt("proxyai", "hermes", style)
    assert "For libraries use ResolveLibraryId and GetLibraryDocs" in TOOLS["WebSearch"].description


# ------------------------------------------------------------------------ approvals


def test_edits_commands_and_skills_are_asked_for_and_nothing_else(directory, provider):
    """C004, X25: only Edit, Write, Bash and LoadSkill."""
    (directory / ".proxyai/skills/r").mkdir(parents=True)
    (directory / ".proxyai/skills/r/SKILL.md").write_text(SKILL)
    host = Host(search=provider, docs=provider, agents=provider, questions=Questions(["x"]))
    asked, refuse = record_requests("tool", answer=False)
    with Workspace(directory, "proxyai", ask=refuse, host=host) as workspace:
        for name, tool in TOOLS.items():
            arguments = dict(tool.example or {})
            if "file_path" in arguments:
                arguments["file_path"] = "a.py"
            if name == "Edit":
                arguments["old_string"] = "one"
            workspace.run(name, {"skill_name": "release"} if name == "LoadSkill" else arguments)
    assert asked == ["Edit", "Write", "Bash", "LoadSkill"]


def test_paths_may_be_ignored_and_tools_allowed_by_rule(directory):
    """C005: ignore rules apply to reading, searching and changing; allow rules to Bash and Read."""
    (directory / "secrets").mkdir()
    (directory / "secrets" / "key.py").write_text("def key_of_all(): ...\n")
    (directory / "b.py").write_text("def key_of_b(): ...\n")
    rules = [PermissionRule.parse("deny", "*(secrets/)"), PermissionRule.parse("allow", "Bash(echo *)")]
    with Workspace(directory, "proxyai", rules=rules) as workspace:
        for name in ("Read", "Write", "Edit"):
            result = workspace.run(name, {**(TOOLS[name].example or {}), "file_path": "secrets/key.py"})
            assert "forbids it" in str(result.error)
        for mode in ("content", "files_with_matches", "count"):
            found = workspace.run("IntelliJSearch", {"pattern": "key_of", "outputMode": mode})
            assert "secrets" not in json.dumps(found.data)
            assert found.data["totalMatches"] == 1
        assert workspace.run("Bash", {"command": "echo hi"}).ok
        assert not workspace.run("Bash", {"command": "ls"}).ok
    with Workspace(directory, "proxyai", rules=[PermissionRule.parse("allow", "Read(a.py)")]) as workspace:
        assert workspace.run("Read", {"file_path": "a.py"}).ok
        assert not workspace.run("Read", {"file_path": "b.py"}).ok


def test_labels_are_shown_to_the_approver(directory, capsys):
    """C031, C042, X15: short_description and description, which are both optional."""
    seen, look = record_requests()
    edit = {"file_path": "a.py", "old_string": "one", "new_string": "1"}
    with Workspace(directory, "proxyai", ask=look) as workspace:
        assert workspace.run("Edit", edit | {"short_description": "Use a digit"}).ok
        assert workspace.run("Bash", {"command": "true", "description": "Do\nnothing"}).ok
        assert workspace.run("Edit", edit | {"old_string": "two", "new_string": "2"}).ok
    assert [approval.label for approval in seen] == ["Use a digit", "Do\nnothing", ""]
    Console().ask(seen[1])
    assert "the model's reason: Do nothing" in capsys.readouterr().err


# ---------------------------------------------------------------------------- files


def test_read_gives_numbered_lines_and_the_documented_fields(run, directory):
    """C008, C009, C012, X5: as by cat -n, with seven fields. The path is returned as given, absolute or not (X2)."""
    path = str(directory / "a.py")
    assert run("Read", file_path=path).data == {
        "filePath": path,
        "content": "1\tone\n2\ttwo\n3\tthree\n4\tfour",
        "lineCount": 4,
        "truncated": False,
        "fileType": "Python",
        "startLine": None,
        "endLine": None,
    }
    assert run("Read", file_path="a.py").content == "1\tone\n2\ttwo\n3\tthree\n4\tfour"
    (directory / "x.unheard").write_text("")
    assert run("Read", path="x.unheard").data["fileType"] is None


def test_read_takes_a_window(run, error_of):
    """C010, C011, C012, X3: offset counts from 1, limit is a number of lines, and omitted lines are reported."""
    window = run("Read", file_path="a.py", offset=2, limit=2)
    assert window.content == "2\ttwo\n3\tthree\n(there are more lines; continue with offset 4)"
    fields = {key: window.data[key] for key in ("lineCount", "truncated", "startLine", "endLine")}
    assert fields == {"lineCount": 2, "truncated": True, "startLine": 2, "endLine": 3}
    rest = run("Read", file_path="a.py", offset=3)
    assert (rest.data["content"], rest.data["truncated"], rest.data["endLine"]) == ("3\tthree\n4\tfour", False, None)
    assert "0 is out of range; expected 1 or more" in error_of("Read", file_path="a.py", offset=0)["error"]
    assert "4 lines" in error_of("Read", file_path="a.py", offset=9)["error"]


def test_read_has_limits_of_its_own(run, directory):
    """C013, C014, X4: 2,000 characters per line, and 2,000 lines unless a limit is given."""
    (directory / "wide").write_text("x" * 2_001 + "\n" + "y" * 2_000 + "\n")
    wide = run("Read", file_path="wide")
    assert wide.data["content"] == "1\t" + "x" * 2_000 + "\n2\t" + "y" * 2_000
    assert wide.notes == ("line 1 was cut to 2000 characters",)
    assert wide.content == wide.data["content"] + "\n(note: line 1 was cut to 2000 characters)"
    (directory / "long").write_text("z\n" * 2_500)
    page = run("Read", file_path="long")
    assert page.content.endswith("\n2000\tz\n(there are more lines; continue with offset 2001)")
    long = page.data
    assert (long["lineCount"], long["truncated"], long["endLine"]) == (2_000, True, 2_000)
    assert run("Read", file_path="long", limit=2_400).data["lineCount"] == 2_400


def test_edit_gives_the_documented_fields(run, directory):
    """C027, C028, C029, C030, C033: one place, with previews, its new position and its context."""
    path = str(directory / "a.py")
    edited = run("Edit", file_path=path, old_string="two", new_string="2", short_description="d")
    assert edited.data == {
        "filePath": path,
        "replacementsMade": 1,
        "message": "Replaced 1 occurrence in a.py.",
        "oldStringPreview": "two",
        "newStringPreview": "2",
        "editLocations": [{"line": 2, "column": 1, "context": "one\n2\nthree\n"}],
    }
    assert (directory / "a.py").read_text() == "one\n2\nthree\nfour\n"
    emptied = run("Edit", file_path=path, old_string="one\n", new_string="", short_description="d").data
    assert (directory / "a.py").read_text() == "2\nthree\nfour\n"
    assert emptied["newStringPreview"] == ""
    long = run("Edit", file_path=path, old_string="four", new_string="4" * 300, short_description="d").data
    assert len(long["newStringPreview"]) == 200


def test_edit_replaces_all_on_request(run, error_of, directory):
    """C032, X10, X12: otherwise a text that occurs more than once is refused, with its lines."""
    (directory / "t").write_bytes(b"\xef\xbb\xbfx = 1\r\ny = x + x\r\n")
    assert "line" in error_of("Edit", file_path="t", old_string="x", new_string="zz", short_description="")["error"]
    edited = run("Edit", file_path="t", old_string="x", new_string="zz", short_description="", replace_all=True)
    assert (directory / "t").read_bytes() == b"\xef\xbb\xbfzz = 1\r\ny = zz + zz\r\n"
    assert edited.data["replacementsMade"] == 3
    places = [(place["line"], place["column"]) for place in edited.data["editLocations"]]
    assert places == [(1, 1), (2, 5), (2, 10)]


def test_write_gives_the_documented_fields(run, directory):
    """C035, C036, C037, C038, X29: UTF-8 bytes and isNewFile. Parents are created, and the content may be empty."""
    path = str(directory / "d" / "n.txt")
    assert run("Write", file_path=path, content="é\n").data == {
        "filePath": path,
        "bytesWritten": 3,
        "isNewFile": True,
        "message": "Created d/n.txt (3 bytes).",
    }
    assert run("Write", file_path=path, content="").data["isNewFile"] is False
    assert (directory / "d" / "n.txt").read_bytes() == b""


@pytest.mark.parametrize("name", ["Read", "Edit", "Write"])
def test_file_errors_have_path_and_message(error_of, name):
    """C006, C033, C038, X28: also for a path outside the workspace."""
    path = "/etc/passwd"
    error = error_of(name, path=path, old_string="a", new_string="b", content="c")
    assert set(error) == {"filePath", "error"}
    assert error["filePath"] == path
    assert "outside" in error["error"]


# --------------------------------------------------------------------------- search


@pytest.fixture
def project(directory):
    (directory / "pkg").mkdir()
    (directory / "pkg" / "user_service.py").write_text(
        "class UserService:\n    def get_user(self): ...\n\n\ndef USER(): ...\n"
    )
    (directory / "pkg" / "user.ts").write_text("export class UserView {}\n")
    return directory


@pytest.fixture
def names(run):
    def names(**arguments):
        return sorted(match["text"] for match in run("IntelliJSearch", **arguments).data["matches"])

    return names


def test_search_gives_the_documented_fields(project, run):
    """C015, C016, C026: echo, scope, count, structured matches and a summary as text."""
    found = run("IntelliJSearch", pattern="UserService", scope="directory", path="pkg")
    assert {key: found.data[key] for key in ("pattern", "scope", "totalMatches")} == {
        "pattern": "UserService",
        "scope": "directory",
        "totalMatches": len(found.data["matches"]),
    }
    first = found.data["matches"][0]
    assert set(first) == {"file", "line", "column", "text", "context"}
    place = {key: first[key] for key in ("file", "line", "column")}
    assert place == {"file": "pkg/user_service.py", "line": 1, "column": 7}
    assert run("IntelliJSearch", pattern="user", limit=2).data["totalMatches"] == 2  # as many as are given
    assert found.content == found.data["output"]
    assert "pkg/user_service.py:1:7" in found.content
    assert run("IntelliJSearch", pattern="nowhere").content == "No names match 'nowhere'."


def test_search_honors_every_argument(project, names):
    """C017, C018, C019, C020, C021, C022, C023, C025, D12: each changes the result."""
    everything = names(pattern="user", limit=50)
    assert len(everything) > 3
    assert len(names(pattern="user", limit=2)) == 2
    assert names(pattern="user", scope="file", path="pkg/user.ts", limit=50) != everything
    assert names(pattern="user", scope="directory", path="pkg", limit=50) == everything
    assert names(pattern="one", scope="custom", path="*.ts") == []
    assert names(pattern="user", fileType="typescript") == ["export class UserView {}", "pkg/user.ts"]
    for classes in ("classes", "class", "Types"):
        assert names(pattern="user", context=classes) == ["class UserService:", "export class UserView {}"]
    assert names(pattern="user", context="functions", limit=50) == ["def USER(): ...", "def get_user(self): ..."]
    assert names(pattern="user", context="files") == ["pkg/user.ts", "pkg/user_service.py"]
    assert names(pattern="USER", caseSensitive=True) == ["def USER(): ..."]
    assert names(pattern="^get_.ser$", regex=True) == ["def get_user(self): ..."]
    assert names(pattern="^get_.ser$") == []
    assert "class UserService:" not in names(pattern="User", wholeWords=True, limit=50)


def test_search_has_three_outputs(project, run, error_of):
    """C024: matches, files or their number."""
    files = run("IntelliJSearch", pattern="user", outputMode="files_with_matches")
    assert sorted(files.content.split("\n")) == ["pkg/user.ts", "pkg/user_service.py"]
    assert files.data["matches"] == []
    count = run("IntelliJSearch", pattern="user", outputMode="count", limit=1)
    assert count.data["totalMatches"] == files.data["totalMatches"] > 3
    assert count.content.startswith(f"{count.data['totalMatches']} in all\n")
    assert error_of("IntelliJSearch", pattern="user", outputMode="all") is None


def test_an_unknown_search_context_names_the_known(workspace):
    """C020: it is not ignored."""
    error = str(workspace.run("IntelliJSearch", {"pattern": "x", "context": "moon"}).error)
    assert "expected any, files, classes, functions or variables" in error


# ------------------------------------------------------------------------- commands


def test_bash_gives_the_documented_fields(run):
    """C039, C040, C044, X9: echo, exit code, both streams, and no id."""
    ran = run("Bash", command="echo out; echo err >&2; exit 3")
    assert ran.data["command"] == "echo out; echo err >&2; exit 3"
    assert ran.data["exitCode"] == 3
    assert "out\nerr" in ran.data["output"]
    assert ran.data["bash_id"] is None
    assert ran.data["output"] == ran.content


def test_bash_accepts_undocumented_arguments_of_the_program(run, directory):
    """X7: a working directory, and a command as a list of words."""
    (directory / "sub").mkdir()
    assert run("Bash", command=["basename", "$PWD"], workingDirectory="sub").content == "sub"


def test_bash_counts_in_milliseconds(run, workspace):
    """C041, X6, D17: a timeout stops the command and gives exitCode null. The default is a minute, the maximum ten."""
    stopped = run("Bash", command="sleep 30", timeout=300)
    assert stopped.data["exitCode"] is None
    assert "timed out" in stopped.content
    assert workspace.find_operation("Bash", {"command": "x", "timeout": 300}).timeout_s == 0.3
    assert workspace.find_operation("Bash", {"command": "x"}).timeout_s == 60
    assert workspace.find_operation("Bash", {"command": "x", "timeout": 1500}).timeout_s == 1.5
    assert workspace.find_operation("Bash", {"command": "x", "timeout": 10**9}).timeout_s == 600
    assert run("Bash", command="true", timeout=10**9).notes == ("the timeout was reduced to 600000 ms, the maximum",)
    assert "must be positive" in str(workspace.run("Bash", {"command": "true", "timeout": 0}).error)


def test_a_command_in_the_background_is_watched_and_ended(run, directory):
    """C043, C044, C045, C046, C047, C048, C049, C050, C051, X8, D13: its id, new output, matching lines and its end."""
    command = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; echo three >&2"
    started = run("Bash", command=command, run_in_background=True)
    assert started.data["exitCode"] is None
    bash_id = started.data["bash_id"]
    assert bash_id in started.content
    first = until(lambda: run("BashOutput", bash_id=bash_id).data, lambda data: data["stdout"])
    assert first == {"bash_id": bash_id, "stdout": "one\n", "stderr": "", "status": "running", "exit_code": None}
    assert run("BashOutput", bash_id=bash_id).content == f"{bash_id}: running\n(nothing new)"
    (directory / "go").touch()
    rest = until(lambda: run("BashOutput", bash_id=bash_id, filter="t.r").data, lambda data: data["exit_code"] == 0)
    assert rest["status"] == "completed"
    assert rest["stdout"] == ""

    other = run("Bash", command="echo apple; echo pear; sleep 60", run_in_background=True).data["bash_id"]
    seen = until(lambda: run("BashOutput", bash_id=other, filter="pe").data, lambda data: data["stdout"])
    assert seen["stdout"] == "pear\n"
    killed = run("KillShell", bash_id=other)
    assert killed.data == {"bash_id": other, "success": True, "message": killed.content}
    assert run("BashOutput", bash_id=other).data["status"] == "terminated"
    again = run("KillShell", bash_id=other).data
    assert again["success"] is False
    assert "already ended" in again["message"]
    assert run("BashOutput", bash_id="shell_9").data["status"] == "not_found"


def test_a_look_that_a_rule_forbids_is_denied(directory):
    """C048, C051: with its own status. A forbidden kill is not a success."""
    rules = [PermissionRule.parse("deny", "BashOutput"), PermissionRule.parse("deny", "KillShell")]
    with Workspace(directory, "proxyai", rules=rules) as workspace:
        denied = workspace.run("BashOutput", {"bash_id": "shell_1"})
        assert denied.data["status"] == "denied"
        assert workspace.run("KillShell", {"bash_id": "shell_1"}).data["success"] is False
        refused = workspace.run("Bash", {"command": "ls"})
        assert refused.data["exitCode"] is None
        assert refused.data["command"] == "ls"


def turn(name, **arguments):
    return parse(get_format("hermes").encode_calls([(name, arguments)]))


def answer(step, **fields):
    """Return the results of a step's calls."""
    assert isinstance(step, RunTools)
    return [ToolResult(call.name, ok=True, content="", call_id=call.id, **fields) for call in step.calls]


def test_polling_does_not_count_as_repetition():
    """C045: polling is limited only by the turns; any other repeated call is refused."""
    session = Session("system", get_format("hermes"), TOOLS)
    session.start("Wait")
    for _ in range(10):
        session.on_tool_results(answer(session.on_answer(turn("BashOutput", bash_id="shell_1"))))
    for _ in range(3):
        session.on_tool_results(answer(session.on_answer(turn("Read", file_path="a.py"))))
    assert isinstance(session.on_answer(turn("Read", file_path="a.py")), AskModel)


# ------------------------------------------------------------------------ knowledge


def test_web_search_gives_results_and_sources(run, provider):
    """C052, C053, C054, C055, C056, X24: domains are honored, and sources are Markdown links."""
    found = run("WebSearch", query="q")
    assert found.data == {
        "query": "q",
        "results": [
            {"title": "Home", "url": "https://a.example/x", "content": "text"},
            {"title": "Other", "url": "https://b.example/", "content": "more"},
        ],
        "sources": ["[Home](https://a.example/x)", "[Other](https://b.example/)"],
    }
    assert provider.wanted.query == "q"
    assert run("WebSearch", query="q", allowed_domains=["b.example"]).data["sources"] == ["[Other](https://b.example/)"]
    assert run("WebSearch", query="q", blocked_domains=["b.example"]).data["sources"] == ["[Home](https://a.example/x)"]


def test_libraries_are_found_and_read(run, error_of, provider):
    """C057, C058, C059, C060, C061, C062, C063, C064, C065, X27: every argument is used, and long text is truncated."""
    found = run("ResolveLibraryId", library_name="lib")
    assert found.data["libraryName"] == provider.name == "lib"
    assert found.data["libraries"][0]["id"] == "/org/lib"
    docs = run("GetLibraryDocs", context7CompatibleLibraryID="/org/lib")
    assert provider.read_with == ("/org/lib", "code", None, 1)
    assert docs.data["libraryId"] == "/org/lib"
    assert (docs.data["docMode"], docs.data["page"]) == ("code", 1)
    assert docs.data["documentation"].startswith("d" * 10_000 + "\n(truncated")
    run("GetLibraryDocs", context7CompatibleLibraryID="/org/lib", mode="info", topic="t", page=10)
    assert provider.read_with == ("/org/lib", "info", "t", 10)
    for wrong in ({"page": 11}, {"context7CompatibleLibraryID": "lib"}):
        error = error_of("GetLibraryDocs", **({"context7CompatibleLibraryID": "/org/lib"} | wrong))
        assert set(error) == {"error"}
    provider.find = lambda name: []
    assert set(error_of("ResolveLibraryId", library_name="none")) == {"error"}


def test_a_skill_follows_as_a_message_of_the_user(directory, run, error_of):
    """C066, C067, C068, C069, X22: found by its title at any depth. The error for an unknown skill lists all."""
    (directory / ".proxyai/skills/deep/r").mkdir(parents=True)
    (directory / ".proxyai/skills/deep/r/SKILL.md").write_text(SKILL)
    with Workspace(directory, "proxyai", approve="yolo") as workspace:
        loaded = workspace.run("LoadSkill", {"skill_name": "Release Notes"})
        assert loaded.data == {"title": "Release Notes", "description": "How to release.", "queued": True}
        assert "Write them." in loaded.user_message
        assert "Write them." not in loaded.content
        error = workspace.run("LoadSkill", {"skill_name": "Relase"}).data
    assert set(error) == {"message"}
    assert "Release Notes" in error["message"]


# ------------------------------------------------------------- people, plans, agents


def test_questions_are_answered_by_header(run, workspace, error_of):
    """C071, C072, C074, X21: all four fields of a question are used. More than four questions are an error."""
    options = [{"label": "red", "description": "warm"}, {"label": "blue"}]
    several = [{"label": "a"}, {"label": "b"}]
    result = run(
        "AskUserQuestion",
        questions=[
            {"header": "Colour", "question": "Which?", "options": options, "multiSelect": False},
            {"header": "Parts", "question": "What?", "options": several, "multiSelect": True},
        ],
    )
    assert result.data == {"answers": {"Colour": "red", "Parts": ["a", "b"]}}
    first, second = workspace.host.questions.asked
    assert (first.text, first.header, first.multiple, second.multiple) == ("Which?", "Colour", False, True)
    assert [(option.label, option.description) for option in first.options] == [("red", "warm"), ("blue", "")]
    error = error_of(
        "AskUserQuestion", questions=[{"header": str(n), "question": "?", "options": []} for n in range(5)]
    )
    assert set(error) == {"message"}
    assert "1 to 4" in error["message"]


def test_answers_given_beforehand_are_not_asked_for(run, workspace):
    """C073: by header."""
    asked = [{"header": "Colour", "question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}]
    assert run("AskUserQuestion", questions=asked, answers={"Colour": "blue"}).data == {"answers": {"Colour": "blue"}}
    assert workspace.host.questions.asked == []


def test_todos_are_a_formatted_list(directory):
    """C075, C076, C077, C078, X20: the title, counts, and one line per item; the current item shows its activeForm."""
    seen: list[Any] = []
    with Workspace(directory, "proxyai", host=Host(events=seen.append)) as workspace:
        result = workspace.run(
            "TodoWrite",
            {
                "title": "Fix the parser at once",
                "todos": [
                    {"content": "Write a test", "status": "COMPLETED", "activeForm": "Writing a test"},
                    {"content": "Fix it", "status": "in-progress", "activeForm": "Fixing it"},
                    {"content": "Tidy up", "status": "pending", "activeForm": "Tidying up"},
                ],
            },
        )
    assert result.content == (
        "Fix the parser at: 1 of 3 done\n[x] Write a test\n[>] Fixing it\n[ ] Tidy up\n"
        "(note: the title was truncated to 4 words)"
    )
    assert result.notes == ("the title was truncated to 4 words",)
    assert seen[0].title == "Fix the parser at"
    assert [todo.active_form for todo in seen[0].todos][1] == "Fixing it"


def test_a_task_goes_to_a_sub_agent(run, provider, directory):
    """C079, C080, C081, C082, C083, C084, C085, X15, X23: every argument is used. Milliseconds and tokens are
    reported.
    """
    task = {
        "description": "Look",
        "prompt": "Look around",
        "subagent_type": "research",
        "model": "small",
        "project_path": str(directory),
    }
    result = run("Task", **task)
    assert provider.task == RunSubagent("Look around", "research", "Look", "small", str(directory))
    assert result.data == {
        "agentType": "research",
        "description": "Look",
        "prompt": "Look around",
        "output": "report",
        "executionTime": 1500,
        "totalTokens": 77,
    }
    assert result.content == "report"
    run("Task", prompt="Look for all the many files", subagent_type="general")
    assert provider.task.description == "Look for all the many"


def test_exit_ends_the_run_without_a_word(run):
    """C086, C087, X30: without input or output."""
    result = run("Exit")
    assert (result.content, result.data, result.ends) == ("", None, True)
    session = Session("system", get_format("hermes"), TOOLS)
    session.start("Work")
    assert isinstance(session.on_tool_results(answer(session.on_answer(turn("Exit")), ends=True)), Finished)
