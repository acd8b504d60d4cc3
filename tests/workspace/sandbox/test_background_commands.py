"""Background commands: each byte is read once, and no command outlives the workspace."""

import subprocess
import sys
import textwrap
import time

import pytest

from adapter.core.errors import ToolError
from adapter.tools.operations import KillCommand, ReadCommandOutput, StartCommand
from adapter.workspace import Workspace
from adapter.workspace.sandbox import background_commands
from adapter.workspace.sandbox.background_commands import BackgroundCommands
from adapter.workspace.sandbox.output_capture import UnreadOutput
from tests.workspace.sandbox.running import living, wait_for


@pytest.fixture
def commands():
    commands = BackgroundCommands()
    yield commands
    commands.close()


def read_until(commands, id, wanted, **filter):
    """Read until ``wanted`` has arrived. Return everything that was read, and the last result."""
    text = ""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        look = commands.read(ReadCommandOutput(id, **filter))
        text += look.stdout
        if wanted in text or wanted == look.status:
            return text, look
        time.sleep(0.02)
    raise AssertionError(f"{wanted!r} did not come, only {text!r}")


def test_read_returns_only_new_output(root, commands):
    """D13: no output is repeated, but the exit code is."""
    assert commands.start(root, StartCommand("echo one; echo two; exit 3")).id == "shell_1"
    text, look = read_until(commands, "shell_1", "completed")
    assert (text, look.exit_code) == ("one\ntwo\n", 3)
    again = commands.read(ReadCommandOutput("shell_1"))
    assert (again.stdout, again.stderr, again.status, again.exit_code) == ("", "", "completed", 3)


def test_output_is_available_while_command_runs(root, directory, commands):
    """The first line is there before the second is printed."""
    commands.start(root, StartCommand("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two"))
    text, look = read_until(commands, "shell_1", "one\n")
    assert (text, look.status, look.exit_code) == ("one\n", "running", None)
    assert commands.read(ReadCommandOutput("shell_1")).stdout == ""
    (directory / "go").touch()
    text, look = read_until(commands, "shell_1", "completed")
    assert (text, look.exit_code) == ("two\n", 0)


def test_stdout_and_stderr_are_separate(root, commands):
    commands.start(root, StartCommand("echo out; echo err >&2"))
    assert wait_for(lambda: commands._commands["shell_1"].status == "completed")
    look = commands.read(ReadCommandOutput("shell_1"))
    assert (look.stdout, look.stderr) == ("out\n", "err\n")


def test_filter_discards_other_lines(root, commands):
    """A regular expression that matches anywhere in a line (D13), in both streams."""
    commands.start(root, StartCommand("echo an error here; echo fine; echo ERROR; echo 'no error' >&2"))
    assert wait_for(lambda: commands._commands["shell_1"].status == "completed")
    look = commands.read(ReadCommandOutput("shell_1", filter="err.r"))
    assert (look.stdout, look.stderr) == ("an error here\n", "no error\n")
    assert commands.read(ReadCommandOutput("shell_1")).stdout == ""


def test_filter_waits_for_complete_lines(root, directory, commands):
    """Partial lines are held back only with a filter."""
    commands.start(root, StartCommand("printf 'err'; while [ ! -e go ]; do sleep 0.02; done; printf 'or\\n'"))
    time.sleep(0.5)
    assert commands.read(ReadCommandOutput("shell_1", filter="error")).stdout == ""
    (directory / "go").touch()
    text, _ = read_until(commands, "shell_1", "error", filter="error")
    assert text == "error\n"


def test_invalid_filter_loses_no_output(root, commands):
    """The next read returns it."""
    commands.start(root, StartCommand("echo one"))
    with pytest.raises(ToolError, match="is not a valid regular expression"):
        commands.read(ReadCommandOutput("shell_1", filter="("))
    assert read_until(commands, "shell_1", "one")[0] == "one\n"


def test_kill_ends_command_and_descendants(root, commands, nap):
    """Also in another session. The status reports it, and a second kill fails."""
    commands.start(root, StartCommand(f"echo begun; setsid {nap} & {nap}"))
    read_until(commands, "shell_1", "begun")
    killed = commands.kill(KillCommand("shell_1"))
    assert killed.success
    assert living(nap) == []
    look = commands.read(ReadCommandOutput("shell_1"))
    assert (look.status, look.exit_code) == ("terminated", None)
    again = commands.kill(KillCommand("shell_1"))
    assert not again.success
    assert "had already ended" in again.message


def test_kill_of_completed_command_reports_exit_code(root, commands):
    """As a failure with the reason."""
    commands.start(root, StartCommand("exit 7"))
    read_until(commands, "shell_1", "completed")
    killed = commands.kill(KillCommand("shell_1"))
    assert (killed.success, "with exit code 7" in killed.message) == (False, True)


def test_unknown_id_is_not_found(root, commands):
    """With the existing ids."""
    assert commands.read(ReadCommandOutput("shell_9")).status == "not_found"
    assert "None was started" in commands.kill(KillCommand("shell_9")).message
    commands.start(root, StartCommand("true"))
    assert commands.read(ReadCommandOutput("bash_1")).notes == ("Known ids: shell_1",)


def test_working_directory_is_confined(root, directory, commands):
    (directory / "sub").mkdir()
    commands.start(root, StartCommand("pwd -P", "sub"))
    assert read_until(commands, "shell_1", "sub")[0] == f"{directory / 'sub'}\n"
    with pytest.raises(ToolError, match="outside the workspace"):
        commands.start(root, StartCommand("pwd", "../secret"))


def test_unread_output_is_bounded(root, commands):
    """50 MB of output keep their head and tail, and the command is not blocked."""
    commands.start(root, StartCommand("echo first; head -c 50000000 /dev/zero | tr '\\0' 'x'; echo; echo last"))
    assert wait_for(lambda: commands._commands["shell_1"].status == "completed")
    look = commands.read(ReadCommandOutput("shell_1"))
    assert look.stdout.startswith("first\n")
    assert look.stdout.endswith("last\n")
    assert "bytes left out" in look.stdout
    assert len(look.stdout) < 600_000


def test_number_of_commands_is_limited(root, commands, monkeypatch):
    """Completed commands do not count, and the oldest are forgotten."""
    monkeypatch.setattr(background_commands, "MAX_RUNNING", 2)
    monkeypatch.setattr(background_commands, "MAX_REMEMBERED", 1)
    for _ in range(2):
        commands.start(root, StartCommand("sleep 60"))
    with pytest.raises(ToolError, match=r"2 background commands are running.*shell_1, shell_2"):
        commands.start(root, StartCommand("true"))
    for id in ("shell_1", "shell_2"):
        commands.kill(KillCommand(id))
    commands.start(root, StartCommand("true"))
    assert list(commands._commands) == ["shell_2", "shell_3"]


def test_close_ends_all_commands(directory, nap):
    with Workspace(directory, approve="yolo") as workspace:
        commands = workspace._context.commands
        for _ in range(3):
            commands.start(workspace._context.root, StartCommand(f"setsid {nap} & {nap}"))
        assert wait_for(lambda: len(living(nap)) == 6)
    assert living(nap) == []


def test_commands_end_with_a_host_that_does_not_close(directory, nap):
    """The interpreter exits although a thread monitors the command."""
    code = """
        import sys
        from adapter.tools.operations import StartCommand
        from adapter.workspace.sandbox.background_commands import BackgroundCommands
        from adapter.workspace.paths.resolver import WorkspaceRoot
        BackgroundCommands().start(WorkspaceRoot(sys.argv[1]), StartCommand(sys.argv[2]))
    """
    words = [sys.executable, "-c", textwrap.dedent(code), directory, f"setsid {nap} & {nap}"]
    assert subprocess.run(words, timeout=60, check=False).returncode == 0
    assert wait_for(lambda: not living(nap))


def test_character_is_not_split_between_reads():
    """UTF-8 that arrives in pieces. Invalid bytes are not held back."""
    unread = UnreadOutput()
    text = "aé€😀".encode()
    seen = ""
    for byte in text:
        unread.add(bytes([byte]))
        seen += unread.take(is_final=False, whole_lines=False)
    assert seen == "aé€😀"
    unread.add(b"\xff")
    assert unread.take(is_final=False, whole_lines=False) == ""
    unread.add(b"\xc3")
    assert unread.take(is_final=True, whole_lines=False) == "\ufffd\ufffd"
