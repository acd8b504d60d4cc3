"""Programs of user-defined tools: no shell, resolved paths, and the approved program is the one that runs."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from adapter.core.errors import ToolError
from adapter.tools.operations import PathValue, ProgramOutput, RunProgram
from adapter.workspace import Workspace
from adapter.workspace.operation_planner import plan_operation
from adapter.workspace.sandbox.sandbox import ActiveSandbox, SandboxSettings
from adapter.workspace.sandbox.user_tool_runner import build_program_argv, run_program
from tests.waiting import retry_longer


def words(*arguments):
    return tuple((argument,) if isinstance(argument, str | PathValue) else argument for argument in arguments)


@pytest.fixture
def run(root):
    """Run a program, and return its outcome."""

    def run(program, *arguments, **options):
        operation = RunProgram(program, words(*arguments), **options)
        return run_program(root, operation, build_program_argv(root, operation), options.get("show"))

    return run


NASTY = ["a b", "$(touch pwned)", "`touch pwned`", "; touch pwned", "a\nb", "*", "'\"\\", "€😀", "", "%s", "--x=$HOME"]


def test_arguments_are_passed_unchanged(run, directory):
    """No shell expands, splits or runs a value."""
    outcome = run(sys.executable, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *NASTY)
    assert json.loads(outcome.output) == NASTY
    assert sorted(directory.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        ("sub", "sub"),
        ("./sub/", "./sub/"),
        ("sub/new file.txt", "sub/new file.txt"),
        (".hidden", ".hidden"),
        ("größe/ü.c", "größe/ü.c"),
        ("link", "./sub"),
        ("link/a", "./sub/a"),
        ("sub/../sub", "./sub"),
        ("-rf", "./-rf"),
        ("host:file", "./host:file"),
        ("key=value", "./key=value"),
        ("@file", "./@file"),
        ("+cmd", "./+cmd"),
        ("a\nb", "./a\nb"),
    ],
)
def test_plain_path_is_passed_as_written(root, directory, given, becomes):
    """C137: a value that could be taken for an option or a host gets the prefix `./`."""
    (directory / "sub").mkdir()
    (directory / "link").symlink_to("sub")
    assert build_program_argv(root, RunProgram("ls", words(PathValue(given))))[1:] == [becomes]


def test_path_is_passed_relative_and_resolved(root, directory):
    """Absolute paths, detours and links become one relative path, which does not begin with '-'."""
    (directory / "sub").mkdir()
    (directory / "-rf").write_text("x")
    (directory / "link").symlink_to("sub")
    operation = RunProgram(
        "ls",
        words(
            *(PathValue(path) for path in (".", "sub", f"{directory}/sub", "sub/../link/new/file", "-rf")),
            ("--in=", PathValue("sub")),
        ),
    )
    assert build_program_argv(root, operation)[1:] == [".", "sub", "./sub", "./sub/new/file", "./-rf", "--in=sub"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret/key", "out/key", "~/x", "", "a\0b", "sub/../../secret"])
def test_path_outside_workspace_is_refused(root, directory, path):
    """D10: also through a link, and into a folder whose name begins with the workspace's."""
    (directory / "sub").mkdir()
    (directory / "out").symlink_to("../secret")
    for given in (path, f"{directory}-evil/file"):
        with pytest.raises(ToolError):
            build_program_argv(root, RunProgram("cat", words(PathValue(given))))


def test_path_of_special_file_is_refused(root, directory):
    """Opening a pipe without a writer blocks. Also through a link."""
    os.mkfifo(directory / "pipe")
    (directory / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(directory / "socket"))
    for path in ("pipe", "link", "socket"):
        with pytest.raises(ToolError, match=r"neither a regular file nor a directory.*nothing was run"):
            build_program_argv(root, RunProgram("cat", words(PathValue(path))))


def test_path_swapped_after_approval_is_not_run(desk, directory):
    """The link was changed while the user decided."""
    for name in ("one", "two"):
        (directory / name).write_text(name)
    (directory / "link").symlink_to("one")
    planned = plan_of(desk, RunProgram("cat", words(PathValue("link"))))
    assert planned.summary.endswith("cat ./one")
    (directory / "link").unlink()
    (directory / "link").symlink_to("two")
    with pytest.raises(ToolError, match="a path changed"):
        planned.commit()


def plan_of(desk, operation):
    return plan_operation(desk, operation)


def test_the_summary_shows_every_argument_quoted(desk):
    """Arguments are separated, and hidden characters escaped."""
    summary = plan_of(desk, RunProgram("echo", words("a b", "\x1b[8m", ""))).summary
    assert summary.endswith("echo 'a b' '\\x1b[8m' ''")


def test_program_runs_in_root_without_stdin_and_secrets(run, directory, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    outcome = run("sh", "-c", "pwd -P; cat; env; exit 5")
    assert outcome.output.startswith(f"{directory}\n")
    assert "sk-secret" not in outcome.output
    assert outcome.exit_code == 5


def test_missing_program_is_named(root):
    """With the next step. Nothing is run."""
    with pytest.raises(ToolError, match=r"'no-such-program' of this tool is not installed.*ask the user"):
        build_program_argv(root, RunProgram("no-such-program", ()))


def test_program_path_in_workspace_is_resolved(root, directory, run):
    """It is relative to the root, not searched on PATH, and cannot lead out."""
    (directory / "check.sh").write_text("#!/bin/sh\necho checked\n")
    (directory / "check.sh").chmod(0o755)
    assert run("./check.sh").output == "checked\n"
    with pytest.raises(ToolError, match="outside"):
        build_program_argv(root, RunProgram("../secret/key", ()))


@pytest.mark.parametrize("folder", [".", "", "bin", "{ws}/bin", "{ws}/../ws/bin", "{out}/link", "{out}/ws/bin"])
def test_directories_of_path_in_the_workspace_are_not_searched(root, directory, tmp_path, monkeypatch, folder):
    """A program that the model wrote must not replace an installed one."""
    for place in (directory, directory / "bin"):
        place.mkdir(exist_ok=True)
        (place / "evil").write_text("#!/bin/sh\n")
        (place / "evil").chmod(0o755)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "link").symlink_to(directory / "bin")
    (tmp_path / "out" / "ws").symlink_to(directory)
    monkeypatch.chdir(directory)
    monkeypatch.setenv("PATH", f"{folder.format(ws=directory, out=tmp_path / 'out')}:{os.environ['PATH']}")
    confinement = ActiveSandbox(SandboxSettings("none"), root.path)
    with pytest.raises(ToolError, match="not installed"):
        build_program_argv(root, RunProgram("evil", ()), confinement)


def test_echo_shows_output_as_it_arrives(directory):
    """Only if the operation requests it. The model also gets the output."""
    shown: list[str] = []
    with Workspace(directory, approve="yolo", echo=shown.append) as workspace:
        for echo in (False, True):
            operation = RunProgram("sh", words("-c", "printf 'a\\303'; sleep 0.2; printf '\\251\\n'"), echo=echo)
            outcome = plan_operation(workspace._context, operation).commit()
            assert isinstance(outcome, ProgramOutput)
            assert outcome.output == "aé\n"
            assert "".join(shown) == ("aé\n" if echo else "")
    assert len(shown) > 1


def test_long_output_is_sliced_on_request(run):
    """Otherwise it is whole, within the memory limit."""
    script = "import sys\nfor n in range(2000): print('error' if n == 1000 else n)"
    whole = run(sys.executable, "-c", script)
    assert whole.output.count("\n") == 2_000
    assert (whole.skipped_lines, whole.patterns) == (0, ())
    sliced = run(sys.executable, "-c", script, slice_output=True)
    assert sliced.output.count("\n") == 503
    assert "lines left out ...]\nerror\n[..." in sliced.output
    assert (sliced.skipped_lines, sliced.patterns) == (1_499, ("error",))


def test_timeout_and_idle_timeout_are_enforced(run):
    """The total time, and the time without output."""
    for name in ("timeout_s", "idle_timeout_s"):

        def start(limit, name=name):
            return run("sh", "-c", "echo begun; exec sleep 600", **{name: limit})

        outcome = retry_longer(start, lambda it: it.output, 0.5)
        assert (outcome.output, outcome.timed_out, outcome.exit_code) == ("begun\n", True, None)


def test_argument_list_too_long_is_explained(run):
    with pytest.raises(ToolError, match="was not started"):
        run("true", "x" * 3_000_000)


def test_non_utf8_names_are_passed(root, directory):
    """A link to a name of raw bytes leads to that file."""
    name = os.fsdecode(b"\xff")
    Path(directory / name).write_text("raw")
    (directory / "link").symlink_to(name)
    operation = RunProgram("cat", words(PathValue("link")))
    assert run_program(root, operation, build_program_argv(root, operation), None).output == "raw"
