"""Maki's document, statement by statement: names, arguments, defaults, units, results and limits."""

from __future__ import annotations

import json
import os
import threading

import pytest

from adapter.agent.subagents import SubagentRunner
from adapter.core.events import JsonObject
from adapter.dialects.maki import DIALECT
from adapter.prompting.system_prompt import system_prompt
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from adapter.workspace.capabilities.http_search_and_docs import HttpSearch
from tests.approvals import record_requests
from tests.dialects.files import make_files
from tests.model_text import Script
from tests.model_text import call as written_call
from tests.waiting import retry_longer
from tests.workspace.capabilities.test_capabilities import Scripted
from tests.workspace.capabilities.test_web_fetch import LOCAL, PAGE, Server, html

TOOLS = DIALECT.tools


@pytest.fixture
def call(directory, tmp_path):
    """Run a tool of a session with this host."""
    opened: list[Workspace] = []

    def call(name, /, host=None, **arguments):
        chosen = host or Host(state=str(tmp_path / "state"))
        if not opened or opened[-1].host is not host:
            opened.append(Workspace(directory, "maki", "yolo", host=chosen))
        return opened[-1].run(name, arguments)

    yield call
    for workspace in opened:
        workspace.close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


# --------------------------------------------------------------------- definitions


@pytest.mark.parametrize(
    ("name", "argument", "fields", "required"),
    [
        ("multiedit", "edits", {"old_string", "new_string", "replace_all"}, {"old_string", "new_string"}),
        ("batch", "tool_calls", {"tool", "parameters"}, {"tool", "parameters"}),
        ("question", "questions", {"question", "options", "multiple"}, {"question"}),
        ("todowrite", "todos", {"content", "status", "priority"}, {"content", "status", "priority"}),
    ],
)
def test_items_have_the_documented_fields(name, argument, fields, required):
    """C171, C187, C196, C213: the fields of objects in lists."""
    items = TOOLS[name].properties[argument]["items"]
    assert items["type"] == "object"
    assert set(items["properties"]) == fields
    assert set(items["required"]) == required


@pytest.mark.parametrize(
    ("name", "argument", "values"),
    [
        ("webfetch", "format", ["markdown", "text", "html"]),
        ("memory", "command", ["view", "write", "delete"]),
        ("task", "model_tier", ["current", "strong", "medium", "weak"]),
    ],
)
def test_choices_are_the_documented_ones(name, argument, values, refusal, tmp_path):
    """C200, C211, C215"""
    assert TOOLS[name].properties[argument]["enum"] == values
    host = Host(agents=SubagentRunner(Script()), web=LOCAL, state=str(tmp_path / "state"))
    others = {"webfetch": {"url": "x"}, "memory": {}, "task": {"description": "d", "prompt": "p"}}[name]
    error = refusal(name, host=host, **others, **{argument: "other"})
    assert f"expected one of {', '.join(json.dumps(value) for value in values)}" in error


@pytest.mark.parametrize("style", ["compact", "full"])
def test_prompt_reserves_bash_for_commands(style):
    """C150: in the styles that have room for it."""
    assert "not to read or write files" in system_prompt("maki", style=style, tools=TOOLS)


def test_times_are_seconds(call, tmp_path):
    """C149, X6: in all three tools with a timeout."""
    calls = {"bash": {"command": "x"}, "code_execution": {"code": "x"}, "webfetch": {"url": "x"}}
    for name, arguments in calls.items():
        validate = TOOLS[name].validate
        assert validate is not None
        assert validate({**arguments, "timeout": 7}).to_operation().timeout_s == 7.0  # type: ignore[union-attr]
        assert "-1 is negative" in call(name, **arguments, timeout=-1).content


def test_tools_that_need_a_host_are_offered_only_with_it(directory):
    """C195, C198, C204, C207, C219: without a user, a model or skills, the tool is neither offered nor mentioned."""
    with Workspace(directory, "maki", host=Host(search=None, web=None, memory=False)) as workspace:
        absent = {"question", "webfetch", "websearch", "task", "memory", "skill"}
        assert set(TOOLS) - set(workspace.tools) == absent
        result = workspace.run("question", {"questions": ["Why?"]})
        assert "the user cannot be asked in this session. Decide yourself" in result.content


@pytest.mark.parametrize(
    ("name", "arguments", "asks"),
    [
        ("read", {"path": "f"}, False),
        ("grep", {"pattern": "x"}, False),
        ("write", {"path": "g", "content": "x"}, True),
        ("edit", {"path": "f", "old_string": "a", "new_string": "b"}, True),
        ("bash", {"command": "true"}, True),
        ("webfetch", {"url": "PAGE"}, False),
        ("skill", {"name": "review"}, False),
        ("todowrite", {"todos": []}, False),
    ],
)
def test_pages_and_skills_are_not_asked_for(directory, server, name, arguments, asks):
    """X25: only changes to files and commands need approval, as in the original program."""
    make_files(directory, "f", text="a\n")
    make_files(directory, ".maki/skills/review/SKILL.md", text="---\nname: review\n---\nLook twice.\n")
    server.pages["/"] = html(PAGE)
    asked, ask = record_requests("tool")
    given = {key: server.url if value == "PAGE" else value for key, value in arguments.items()}
    with Workspace(directory, "maki", "ask", ask, host=Host(web=LOCAL)) as workspace:
        assert workspace.run(name, given).ok
    assert asked == ([name] if asks else [])


# ----------------------------------------------------------------------------- bash


def test_bash_runs_the_command(run, directory):
    """C150, C151, X9: by bash itself, with its output or its error."""
    assert run("bash", command="a=(1 2 3); [[ ${#a[@]} == 3 ]] && echo three") == "three"
    assert run("bash", command="echo x; echo y >&2; exit 3") == "Command failed with exit code 3:\nx\ny"
    assert run("bash", command="true", description="Do nothing at all") == "(no output)"


def test_bash_falls_back_to_sh_with_a_note(run, monkeypatch):
    """C150: a small system may not have bash."""
    monkeypatch.setattr("adapter.workspace.sandbox.shell.BASH", "/nowhere/bash")
    assert run("bash", command="echo $0") == "/bin/sh\n(note: /nowhere/bash is not installed: /bin/sh ran it)"


def test_a_description_is_a_label(call):
    """C152, X15: it is optional and changes nothing."""
    for more in ({}, {"description": "Say one"}, {"description": None}):
        result = call("bash", command="echo 1", **more)
        assert (result.content, result.data) == ("1", {"exit_code": 0, "timed_out": False})


def test_bash_stops_after_its_timeout(call):
    """C149, C153, D17: after so many seconds of wall time, with the output so far. The timeout has a maximum."""
    result = retry_longer(
        lambda limit: call("bash", command="echo before; sleep 600", timeout=limit),
        lambda it: "before" in it.content,
        1,
    )
    assert result.content.startswith("Command timed out and was stopped. Its output so far:\nbefore")
    assert result.data == {"exit_code": None, "timed_out": True}
    assert "the timeout was reduced to 600 s" in call("bash", command="true", timeout=10_000).content


def test_bash_runs_in_its_directory(run, refusal, directory, tmp_path):
    """C148, C154, X7: by default the workspace; relative or absolute, but inside it."""
    (directory / "d").mkdir()
    assert run("bash", command="pwd -P") == str(directory.resolve())
    for workdir in ("d", str(directory / "d")):
        assert run("bash", command="basename $PWD", workdir=workdir) == "d"
    assert run("bash", command="basename $PWD", cwd="d") == "d"
    assert "outside" in refusal("bash", command="true", workdir=str(tmp_path))


# ----------------------------------------------------------------------------- read


def test_lines_are_numbered_from_one(run, directory):
    """C155, C157, C158, C159, X3, X5: `N: text`, with an offset, a limit and a hint at the next page."""
    make_files(directory, "f", text="a\n  b\r\nc\nd")
    make_files(directory, "empty")
    assert run("read", path="f") == "1: a\n2:   b\n3: c\n4: d"
    assert run("read", path="f", offset=3) == "3: c\n4: d"
    assert run("read", path="f", offset=2, limit=2) == "2:   b\n3: c\n(lines 2-3 of 4; continue with offset=4)"
    assert run("read", path="f", offset=0, limit=1).startswith("1: a\n")
    assert run("read", path="empty") == "(empty is empty)"


def test_two_thousand_lines_are_the_default(run, directory):
    """C158, X4, X27: with a hint at the next page. A limit can exceed the default."""
    (directory / "f").write_text("".join(f"{number}\n" for number in range(1, 2_501)))
    lines = run("read", path="f").split("\n")
    assert lines[:-1] == [f"{number}: {number}" for number in range(1, 2_001)]
    assert lines[-1] == "(lines 1-2000 of 2500; continue with offset=2001)"
    assert run("read", path="f", offset=2001).split("\n")[-1] == "2500: 2500"
    assert run("read", path="f", limit=2_500).split("\n")[-1] == "2500: 2500"


def test_a_page_is_cut_between_lines(run, directory):
    """C158, D7: at most 50 KB. All pages together are the file."""
    lines = [f"{number} " + "é" * (number % 90) for number in range(1, 1_500)]
    (directory / "f").write_text("\n".join(lines) + "\n")
    got: list[str] = []
    while len(got) < len(lines):
        text = run("read", path="f", offset=len(got) + 1)
        assert len(text.encode()) <= 51_200
        page = [line for line in text.split("\n") if not line.startswith("(")]
        assert page[0].startswith(f"{len(got) + 1}: ")
        got += [line.partition(": ")[2] for line in page]
    assert got == lines
    (directory / "f").write_text("x" * 1_000_000)
    text = run("read", path="f")
    assert len(text) < 2_100
    assert text.endswith("(note: line 1 was cut to 2000 characters)")


def test_a_directory_is_listed(run, directory):
    """C155, C156, C160, X19: directories first. Offset and limit count entries."""
    make_files(directory, "d/b", "d/a", "d/sub/x")
    assert run("read", path="d") == "d/\nsub/\na\nb"
    assert run("read", path="d", limit=2) == "d/\nsub/\na\n(entries 1-2 of 3; continue with offset=3)"
    assert run("read", path="d", offset=3) == "d/\nb\n(entries 3-3 of 3)"
    assert run("read", path=str(directory / "d" / "sub")) == "d/sub/\nx"


def test_paths_are_absolute_or_relative_and_inside(run, refusal, directory, tmp_path):
    """C148, C156, C162, C165, C170, C176, C179, C183, X1, X2, D10: in every tool with a path."""
    make_files(directory, "d/f.py", text="def a(): pass\n")
    make_files(tmp_path, "ws-evil/f.py", text="def a(): pass\n")
    edit = {"old_string": "a", "new_string": "b"}
    calls: list[tuple[str, str, JsonObject]] = [
        ("read", "d/f.py", {}),
        ("write", "d/g", {"content": "a"}),
        ("edit", "d/g", edit),
        ("multiedit", "d/g", {"edits": [{"old_string": "b", "new_string": "a"}]}),
        ("glob", "d", {"pattern": "*"}),
        ("grep", "d", {"pattern": "a"}),
        ("index", "d/f.py", {}),
    ]
    for name, path, arguments in calls:
        by_absolute = run(name, path=str(directory / path), **arguments)
        assert str(directory) not in by_absolute
        for other in (path, f"./{path}"):
            run("write", path="d/g", content="b" if name == "multiedit" else "a")
            run(name, path=other, **arguments)
        for outside in ("../ws-evil/f.py", str(tmp_path / "ws-evil" / "f.py")):
            assert "outside" in refusal(name, path=outside, **arguments)
    assert (tmp_path / "ws-evil" / "f.py").read_text() == "def a(): pass\n"
    for alias in ("file_path", "filepath", "filename", "filePath", "target_file"):
        assert run("read", **{alias: "d/f.py"}) == "1: def a(): pass"


# -------------------------------------------------------------------- write and edit


def test_a_written_file_appears_at_once(directory):
    """D19, C161: readers see the old or the new content, never a part."""
    path = directory / "f"
    path.write_text("a" * 400_000)
    seen, done = set(), threading.Event()

    def watch():
        while not done.is_set():
            seen.add(hash(path.read_bytes()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    with Workspace(directory, "maki", "yolo") as workspace:
        for letter in "bcdb":
            assert workspace.run("write", {"path": "f", "content": letter * 400_000}).ok
    done.set()
    watcher.join()
    assert seen <= {hash(letter.encode() * 400_000) for letter in "abcd"}


def test_an_empty_old_string_is_an_error(refusal, directory):
    """X11: write creates new files."""
    (directory / "empty").write_text("")
    assert "old_string is empty" in refusal("edit", path="empty", old_string="", new_string="x")
    assert "does not exist" in refusal("edit", path="none", old_string="", new_string="x")
    assert (directory / "empty").read_text() == ""


def test_edits_go_in_sequence(run, directory):
    """C169, C171, C172, D4, X12, X13: each edit sees the result of the previous one. The file changes once and keeps
    its line ends.
    """
    (directory / "f").write_bytes(b"one\r\n")
    edits = [
        {"old_string": "one", "new_string": "two"},
        {"old_string": "two", "new_string": "three\nthree"},
        {"old_string": "three", "new_string": "four", "replace_all": True},
    ]
    assert run("multiedit", path="f", edits=edits).startswith("Applied 3 patches to f.")
    assert (directory / "f").read_bytes() == b"four\r\nfour\r\n"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([{"old_string": "a", "new_string": "x"}, {"old_string": "nope", "new_string": "y"}], "edit 2 of 2"),
        ([{"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "c"}], "edit 2 of 2"),
        ([{"old_string": "a", "new_string": "x"}, {"old_string": "a", "new_string": "y"}], "edit 2 of 2"),
        ([{"old_string": "a"}], "new_string"),
        ([], "at least one"),
    ],
)
def test_when_one_edit_fails_nothing_is_written(refusal, directory, edits, said):
    """C169, C173: the error names the edit, also one that an earlier edit made ambiguous."""
    (directory / "f").write_text("a\nb\n")
    before = (directory / "f").stat().st_mtime_ns
    error = refusal("multiedit", path="f", edits=edits)
    assert said in error.replace("patch 2 of 2", "edit 2 of 2")
    assert (directory / "f").read_text() == "a\nb\n"
    assert (directory / "f").stat().st_mtime_ns == before


def test_edits_are_understood_under_other_names(run, directory):
    """X14: in the call and inside the list, in any spelling of the keys. A list may be JSON text."""
    (directory / "f").write_text("a\n")
    run("str_replace", file_path="f", old_str="a", new_str="b")
    run("multi_edit", path="f", edits=[{"oldString": "b", "newString": "c"}, {"old_text": "c", "new_text": "d"}])
    run("multiedit", path="f", edits=json.dumps([{"old_string": "d", "new_string": "e"}]))
    assert (directory / "f").read_text() == "e\n"


# --------------------------------------------------------------- glob, grep, index


def test_glob_minds_the_case(run, directory):
    """X16: `*.RS` does not find `c.rs`."""
    make_files(directory, "c.rs", "d.RS")
    assert run("glob", pattern="*.RS") == "d.RS"


def test_grep_is_grouped_by_file_newest_first(run, directory):
    """C177, C178, C181, X17, X26: a path, then its numbered lines, without ignored files."""
    make_files(directory, "b.rs", "a.rs", "c.rs", "skipped.rs", text="fn one\nlet x\n  fn two\n")
    (directory / ".gitignore").write_text("skipped.rs\n")
    group = "\n  1: fn one\n  3:   fn two"
    assert run("grep", pattern=r"fn \w+") == f"c.rs:{group}\na.rs:{group}\nb.rs:{group}"
    os.utime(directory / "b.rs")
    assert run("grep", pattern=r"^let\s").startswith("b.rs:\n  2: let x\nc.rs:\n")
    assert run("grep", pattern="FN") == "No matches for 'FN'."


def test_grep_honors_path_and_include(run, directory):
    """C179, C180, D12: a directory or a file, filtered by name."""
    make_files(directory, "a.rs", "d/b.rs", "d/c.md", text="x\n")
    assert run("grep", pattern="x", path="d") == "d/c.md:\n  1: x\nd/b.rs:\n  1: x"
    assert run("grep", pattern="x", path="d/b.rs") == "d/b.rs:\n  1: x"
    assert run("grep", pattern="x", include="*.md") == "d/c.md:\n  1: x"
    assert run("grep", pattern="x", include="*.{rs,py}") == "d/b.rs:\n  1: x\na.rs:\n  1: x"


def test_grep_reports_the_number_of_omitted_matches(run, directory):
    """C181, X27: only a hundred matches are shown, from the newest files."""
    make_files(directory, "old", "new", text="x\n" * 80)
    text = run("grep", pattern="x")
    assert text.startswith("new:\n  1: x\n")
    assert text.count(": x") == 100
    assert text.endswith("(160 matches in 2 files, the first 100 are shown; be more specific to see others)")


PYTHON = '"""A module."""\n\nimport os\nfrom collections.abc import Iterator\n\nLIMIT = 10\n\n\n' + "".join(
    f'class Part{n}:\n    """Part {n}."""\n\n    size: int = {n}\n\n    def work(self, text: str) -> int:\n'
    + "".join(f"        total_{line} = len(text) * {line} + self.size  # line {line}\n" for line in range(12))
    + "        return total_0\n\n\n"
    for n in range(6)
)


def test_index_gives_the_skeleton(run, directory):
    """C182, C184: imports, types and signatures with their lines, in 10 to 33 percent of the characters."""
    (directory / "parts.py").write_text(PYTHON)
    text = run("index", path="parts.py")
    assert "imports: [3-4]" in text
    assert "class Part0 [9-" in text
    assert "def work(self, text: str) -> int [14-27]" in text
    assert "total_3" not in text
    assert len(text) <= len(PYTHON) * 0.3
    lines = run("read", path="parts.py", offset=14, limit=1)
    assert lines.startswith("14:     def work(self, text: str) -> int:")


def test_index_of_other_files_suggests_the_next_step(refusal, directory):
    """C182, C183: for a directory, and for a missing file."""
    (directory / "f.xyz").write_text("x")
    assert "read" in refusal("index", path="f.xyz")
    assert refusal("index", path=".")
    assert "does not exist" in refusal("index", path="none.py")


# ------------------------------------------------------ batch, code_execution, question


def test_a_failure_does_not_stop_the_others(call, directory):
    """C186, C187, C190: each call has its own result under its tool's name. The last line is a summary."""
    make_files(directory, "f", text="a\n")
    calls = [
        {"tool": "read", "parameters": {"path": "none"}},
        {"tool": "nope", "parameters": {}},
        {"tool": "read", "parameters": {"path": "f"}},
    ]
    result = call("batch", tool_calls=calls)
    assert result.ok
    assert "## read\ntool_error: " in result.content
    assert "## nope\ntool_error: unknown tool 'nope'" in result.content
    assert result.content.endswith("## read\n1: a\n\n1 of 3 calls succeeded, 2 failed.")
    assert [each["ok"] for each in result.data] == [False, False, True]
    assert result.data[2] == {"tool": "read", "ok": True, "output": "1: a"}


@pytest.mark.parametrize(
    "written",
    [
        {"tool": "read", "parameters": {"path": "f"}},
        {"name": "read", "arguments": {"path": "f"}},
        {"tool_name": "read", "args": {"path": "f"}},
        {"tool": "read", "input": '{"path": "f"}'},
        {"tool": "read", "path": "f"},
        {"function": {"name": "read", "arguments": '{"path": "f"}'}},
    ],
)
def test_calls_in_a_batch_are_understood(run, directory, written):
    """C187, X31: under common keys, with parameters as text, or next to the name."""
    make_files(directory, "f", text="a\n")
    assert run("batch", tool_calls=[written]) == "## read\n1: a\n\nAll 1 call succeeded."
    assert run("batch", tool_calls=json.dumps([written])) == "## read\n1: a\n\nAll 1 call succeeded."


def test_code_awaits_tools(run, directory):
    """C191, C192, C194: every tool of the session is an async function. The result is the output, then the last
    value.
    """
    pytest.importorskip("pydantic_monty", reason="needs pip install 'toolcall-adapter[code]'")
    make_files(directory, "a.txt", "b.txt", text="one\n")
    code = (
        "import asyncio\n"
        "names = (await glob(pattern='*.txt')).split()\n"
        "texts = await asyncio.gather(*[read(path=name) for name in names])\n"
        "await write(path='c.txt', content=str(len(texts)))\n"
        "print(await bash(command='cat c.txt'))\n"
        "texts"
    )
    assert run("code_execution", code=code) == '2\nreturn: ["1: one", "1: one"]'
    assert run("code_execution", code="x = 1") == "(no output)"
    host = Host(questions=Scripted(), agents=SubagentRunner(Script()), search="embedded")
    make_files(directory, ".maki/skills/s/SKILL.md", text="---\nname: s\n---\nx\n")
    for name in set(TOOLS) - {"code_execution", "batch"}:
        text = run(
            "code_execution", host=host, code=f"try:\n    await {name}()\nexcept RuntimeError as e:\n    print(e)"
        )
        assert f"{name}: " in text, name


def test_questions_are_asked(call):
    """C195, C196, C197, X21: with one answer, several answers, or free text, each next to its question."""
    user = Scripted(["8000"], ["a", "b"], ["my own"])
    asked = [
        {"question": "Which port?", "options": ["8000", "9000"]},
        {"question": "Which parts?", "options": [{"label": "a", "description": "first"}, "b"], "multiple": True},
        "What else?",
    ]
    result = call("question", host=Host(questions=user), questions=asked)
    assert result.content == "Which port?\n> 8000\nWhich parts?\n> a, b\nWhat else?\n> my own"
    assert result.data[1] == {"question": "Which parts?", "answers": ["a", "b"]}
    assert [question.multiple for question in user.asked] == [False, True, False]
    assert [option.description for option in user.asked[1].options] == ["first", ""]


def test_questions_with_equal_beginnings_are_distinguished(run):
    """C196, X21: the document has no headers, but a header that the model gives is kept."""
    user = Scripted(["1"], ["2"], ["3"])
    asked = ["Which version of a?", "Which version of b?", {"question": "Which version of c?", "header": "c"}]
    text = run("question", host=Host(questions=user), questions=asked)
    assert text == "Which version of a?\n> 1\nWhich version of b?\n> 2\nWhich version of c?\n> 3"
    assert user.asked[2].key == "c"


# ------------------------------------------------------------------ webfetch, websearch


def test_a_page_is_fetched_in_its_format(run, server):
    """C198, C199, C200: as markdown by default, as text or as html."""
    server.pages["/"] = html(PAGE)
    host = Host(web=LOCAL)
    assert run("webfetch", host=host, url=server.url).startswith("T\n\n# Title\n\nOne **two** [three](/x)")
    text = run("webfetch", host=host, url=server.url, format="TEXT")
    assert "One" in text
    assert "**" not in text
    assert "<" not in text
    assert run("webfetch", host=host, url=f"{server.url}/", format="html") == PAGE


def test_pages_larger_than_five_megabytes_are_not_read(refusal, run, server):
    """C203: by the exact number of bytes received. The text is then truncated like every result."""
    server.pages["/over"] = (200, {"Content-Type": "text/plain"}, b"x" * 5_000_001)
    server.pages["/just"] = (200, {"Content-Type": "text/plain"}, b"x" * 5_000_000)
    host = Host(web=LOCAL)
    assert "5" in refusal("webfetch", host=host, url=f"{server.url}/over")
    assert len(run("webfetch", host=host, url=f"{server.url}/just")) <= 51_200


def test_the_web_is_searched(call, server):
    """C204, C205, C206, X24: by the host's provider, with eight results by default."""
    hits = [{"title": f"T{n}", "url": f"https://e.example/{n}", "content": f"C{n}"} for n in range(12)]
    server.pages["/s"] = (200, {"Content-Type": "application/json"}, json.dumps({"results": hits}).encode())
    host = Host(search=HttpSearch(server.url + "/s?q={query}&n={limit}"))
    result = call("websearch", host=host, query="a b")
    assert result.content.startswith("1. T0\nhttps://e.example/0\nC0\n\n2. T1\n")
    assert len(result.data) == 8
    assert len(call("websearch", host=host, query="c", num_results=3).data) == 3
    assert [path for path, _ in server.requests] == ["/s?q=a%20b&n=8", "/s?q=c&n=3"]


def test_without_a_service_no_web_search_is_offered(call, directory):
    """C204: the prompt does not mention it. A call gets the reason, and nothing else is searched instead."""
    (directory / "README.md").write_text("# Ports\n\nThe server listens on 8000.\n")
    assert "websearch" not in system_prompt("maki")
    result = call("websearch", query="server ports")
    assert not result.ok
    assert "no web search is configured in this session. Search the workspace" in result.content


def test_workspace_search_is_not_called_web_search(call, run, directory):
    """C204: a host can offer this instead, under its real description."""
    (directory / "README.md").write_text("# Ports\n\nThe server listens on 8000.\n")
    host = Host(search="embedded")
    note = "(note: these are documents of the workspace, not of the web)"
    text = run("websearch", host=host, query="server ports")
    assert "listens on 8000" in text
    assert text.endswith(note)
    assert run("websearch", host=host, query="zebra") == f"No results for 'zebra'.\n{note}"
    with Workspace(directory, "maki", host=host) as workspace:
        prompt = system_prompt("maki", tools=workspace.tools)
    assert "websearch(query, num_results = 8) - Search the documents in the workspace" in prompt


# ----------------------------------------------------------------- task, todo, memory, skill


@pytest.fixture
def task(directory):
    """Run the task tool over a model's script; ``strong`` and the others are separate models."""

    def task(script, approve="yolo", models=None, **arguments):
        host = Host(agents=SubagentRunner(script, models=models or {}))
        with Workspace(directory, "maki", approve, host=host) as workspace:
            return workspace.run("task", arguments)

    return task


def test_a_sub_agent_works_on_the_prompt(task):
    """C207, C208, C209, X23: its last message is the result."""
    script = Script("There are three.")
    result = task(script, description="Do it", prompt="Do all of it")
    assert result.content == "There are three."
    assert result.data["output"] == "There are three."
    assert script.seen[0][1]["content"] == "Do all of it"


def test_a_task_without_a_description_gets_one(directory, task):
    """C208, X15: the label is required, but a call without one does not fail."""
    assert TOOLS["task"].required == ("description", "prompt")
    assert task(Script("x"), prompt="Find the parser of the settings file").ok
    validate = TOOLS["task"].validate
    assert validate is not None
    for given, label in [({}, "Find the parser of the"), ({"description": "Parser"}, "Parser")]:
        operation = validate({"prompt": "Find the parser of the settings file", **given}).to_operation()
        assert operation.description == label  # type: ignore[union-attr]


def test_research_reads_and_general_may_change(task, directory):
    """C207, C210: research is the default. The error for an unknown kind names both."""
    write = written_call("write", path="f", content="x")
    script = Script(write, "No.")
    task(script, description="d", prompt="p")
    assert "read-only sub-agent" in script.seen[1][-1]["content"]
    assert not (directory / "f").exists()
    task(Script(write, "Yes."), description="d", prompt="p", subagent_type="general")
    assert (directory / "f").read_text() == "x"
    error = task(Script(), description="d", prompt="p", subagent_type="wizard").error
    assert "research, general" in error


@pytest.mark.parametrize("tier", ["strong", "medium", "weak"])
def test_a_tier_chooses_the_model(task, tier):
    """C211: the current model is the default."""
    models = {name: Script(f"by {name}") for name in ("strong", "medium", "weak")}
    current = Script("by current", "by current")
    assert task(current, models=models, description="d", prompt="p", model_tier=tier).content == f"by {tier}"
    assert task(current, models=models, description="d", prompt="p").content == "by current"
    assert task(current, models=models, description="d", prompt="p", model_tier="current").content == "by current"


def test_the_todo_list_is_replaced(call):
    """C212, C213, X20: content, status and priority, in any spelling; each call replaces the whole list."""
    todos = [
        {"content": "a", "status": "completed", "priority": "high"},
        {"content": "b", "status": "In-Progress", "priority": "LOW"},
        {"task": "c"},
        {"content": "d", "status": "cancelled", "priority": "medium"},
    ]
    result = call("todowrite", todos=todos)
    assert result.content == "1 of 4 completed.\n[x] a (high)\n[>] b (low)\n[ ] c (medium)\n[-] d (medium)"
    assert result.data[1] == {"content": "b", "status": "in_progress", "priority": "low"}
    assert call("todowrite", todos=[]).content == "The todo list is empty."
    assert "is not a status" in call("todowrite", todos=[{"content": "a", "status": "maybe"}]).content
    assert not call("todowrite", todos=[{"content": "a", "priority": "urgent"}]).ok


def test_memory_survives_the_session(directory, tmp_path):
    """C214, C215, C216, C217, C218: written in one session, then listed, viewed and deleted in the next. Each project
    has its own.
    """
    other = tmp_path / "other"
    other.mkdir()

    def memory(where=directory, **arguments):
        with Workspace(where, "maki", host=Host(state=str(tmp_path / "state"))) as workspace:
            return workspace.run("memory", arguments).content

    assert memory(command="view") == "Memory is empty."
    assert memory(command="write", path="build/how.md", content="make\n") == "Saved build/how.md to memory (5 bytes)."
    assert memory(command="view") == "build/how.md (5 bytes)"
    assert memory(command="view", path="build/how.md") == "make\n"
    assert memory(where=other, command="view") == "Memory is empty."
    assert memory(command="delete", path="build/how.md") == "Deleted build/how.md from memory."
    assert memory(command="view") == "Memory is empty."
    assert "memory is empty" in memory(command="delete", path="build/how.md")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"command": "write", "content": "x"}, "'write' needs the argument 'path'"),
        ({"command": "delete"}, "'delete' needs the argument 'path'"),
        ({"command": "write", "path": "a"}, "'write' needs the argument 'content'"),
        ({"command": "write", "path": "../a", "content": "x"}, ""),
        ({"command": "view", "path": "/etc/passwd"}, ""),
        ({"path": "a"}, "'command' is missing"),
    ],
)
def test_memory_requires_the_arguments_of_its_command(refusal, arguments, said):
    """C215, C216, C217, D10: relative paths inside the memory, and content for write."""
    assert said in refusal("memory", **arguments)


def test_a_skill_is_the_result(call, directory):
    """C219, C220, X22: its instructions, immediately. The error for an unknown skill lists the known ones."""
    make_files(
        directory, ".maki/skills/review/SKILL.md", text="---\nname: review\ndescription: How\n---\nLook twice.\n"
    )
    result = call("skill", name="Review")
    assert "Look twice." in result.content
    assert result.user_message == ""
    assert "available: review" in call("skill", name="realese").content
    with Workspace(directory, "maki") as workspace:
        assert "review" in workspace.tools["skill"].description


# -------------------------------------------------------------------------- habits


@pytest.mark.parametrize(
    ("name", "arguments", "meant"),
    [
        ("read_file", {"path": "f"}, "read"),
        ("list_directory", {"path": "."}, "read"),
        ("run_command", {"command": "true", "cwd": "."}, "bash"),
        ("grep_search", {"query": "a"}, "grep"),
        ("functions.read", {"path": "f"}, "read"),
        ("TodoWrite", {"todos": []}, "todowrite"),
        ("web_search", {"q": "a"}, "websearch"),
    ],
)
def test_tools_of_other_dialects_are_understood(call, directory, name, arguments, meant):
    """X18: if the meaning is clear, with a note."""
    make_files(directory, "f", text="a\n")
    result = call(name, host=Host(search="embedded"), **arguments)
    assert result.ok, result.content
    assert f"read as a call to {meant}" in result.notes


def test_values_are_converted_and_not_trimmed(run, directory):
    """D9, C157, C163, C168: numbers and booleans may be text. The first line keeps its indentation."""
    run("write", path="f", content="    a\n    a\n")
    assert (directory / "f").read_text() == "    a\n    a\n"
    assert run("read", path="f", offset="2", limit="1") == "2:     a"
    run("edit", path="f", old_string="a", new_string="b", replace_all="true")
    assert (directory / "f").read_text() == "    b\n    b\n"


def test_a_read_after_an_edit_is_not_stale(run, directory):
    """D15, C155: nothing is cached."""
    make_files(directory, "f", text="a\n")
    assert run("read", path="f") == "1: a"
    run("edit", path="f", old_string="a", new_string="b")
    assert run("read", path="f") == "1: b"
    (directory / "f").write_text("c\n")
    assert run("read", path="f") == "1: c"


def test_lines_beyond_the_end_are_an_error(refusal, directory):
    """D16, C157, X28: the error has the number of lines."""
    make_files(directory, "f", text="a\n")
    assert refusal("read", path="f", offset=5) == "line 5 is beyond the end: f has 1 line"
