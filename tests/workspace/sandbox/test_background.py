"""Background commands: each byte is read once, and none of them outlives the workspace."""

import subprocess
import sys
import textwrap
import time

import pytest

from adapter.core.errors import ToolError
from adapter.tools.operations import KillCommand, ReadCommandOutput, StartCommand
from adapter.workspace import Workspace
from adapter.workspace.sandbox import background
from adapter.workspace.sandbox.background import BackgroundCommands
from adapter.workspace.sandbox.output import UnreadOutput
from tests.workspace.sandbox.running import living, wait_for


@pytest.fixture
def commands():
    commands = BackgroundCommands()
    yield commands
    commands.close()


def read_until(commands, id, wanted, **filter):
    """What was read in all looks until ``wanted`` had come, and the last look."""
    text = ""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        look = commands.read(ReadCommandOutput(id, **filter))
        text += look.stdout
        if wanted in text or wanted == look.status:
            return text, look
        time.sleep(0.02)
    raise AssertionError(f"{wanted!r} did not come, only {text!r}")


def test_only_what_is_new_is_given(root, commands):
    """D13: what was read once does not come again; the end and its exit code are told again."""
    assert commands.start(root, StartCommand("echo one; echo two; exit 3")).id == "shell_1"
    text, look = read_until(commands, "shell_1", "completed")
    assert (text, look.exit_code) == ("one\ntwo\n", 3)
    again = commands.read(ReadCommandOutput("shell_1"))
    assert (again.stdout, again.stderr, again.status, again.exit_code) == ("", "", "completed", 3)


def test_output_comes_while_the_command_runs(root, directory, commands):
    """The first line is there before the second is printed; a look between gives nothing."""
    commands.start(root, StartCommand("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two"))
    text, look = read_until(commands, "shell_1", "one\n")
    assert (text, look.status, look.exit_code) == ("one\n", "running", None)
    assert commands.read(ReadCommandOutput("shell_1")).stdout == ""
    (directory / "go").touch()
    text, look = read_until(commands, "shell_1", "completed")
    assert (text, look.exit_code) == ("two\n", 0)


def test_stdout_and_stderr_are_apart(root, commands):
    """Each in its own field."""
    commands.start(root, StartCommand("echo out; echo err >&2"))
    assert wait_for(lambda: commands._commands["shell_1"].status == "completed")
    look = commands.read(ReadCommandOutput("shell_1"))
    assert (look.stdout, look.stderr) == ("out\n", "err\n")


def test_the_filter_chooses_lines_and_the_others_count_as_read(root, commands):
    """A regular expression that matches anywhere in a line (D13), in both streams."""
    commands.start(root, StartCommand("echo an error here; echo fine; echo ERROR; echo 'no error' >&2"))
    assert wait_for(lambda: commands._commands["shell_1"].status == "completed")
    look = commands.read(ReadCommandOutput("shell_1", filter="err.r"))
    assert (look.stdout, look.stderr) == ("an error here\n", "no error\n")
    assert commands.read(ReadCommandOutput("shell_1")).stdout == ""


def test_a_filter_waits_for_the_end_of_a_line(root, directory, commands):
    """Half a line is not judged; without a filter it is given at once."""
    commands.start(root, StartCommand("printf 'err'; while [ ! -e go ]; do sleep 0.02; done; printf 'or\\n'"))
    time.sleep(0.5)
    assert commands.read(ReadCommandOutput("shell_1", filter="error")).stdout == ""
    (directory / "go").touch()
    text, _ = read_until(commands, "shell_1", "error", filter="error")
    assert text == "error\n"


def test_a_wrong_filter_is_explained_and_nothing_is_lost(root, commands):
    """The output is there for the next look."""
    commands.start(root, StartCommand("echo one"))
    with pytest.raises(ToolError, match="is not a regular expression"):
        commands.read(ReadCommandOutput("shell_1", filter="("))
    assert read_until(commands, "shell_1", "one")[0] == "one\n"


def test_kill_ends_the_command_and_what_it_started(root, commands, nap):
    """Also a session of its own; the status says so and a second kill is told."""
    commands.start(root, StartCommand(f"echo begun; setsid {nap} & {nap}"))
    read_until(commands, "shell_1", "begun")
    killed = commands.kill(KillCommand("shell_1"))
    assert killed.success
    assert living(nap) == []
    look = commands.read(ReadCommandOutput("shell_1"))
    assert (look.status, look.exit_code) == ("terminated", None)
    again = commands.kill(KillCommand("shell_1"))
    assert not again.success
    assert "had ended already" in again.message


def test_killing_what_completed_tells_its_exit_code(root, commands):
    """No success, and why."""
    commands.start(root, StartCommand("exit 7"))
    read_until(commands, "shell_1", "completed")
    killed = commands.kill(KillCommand("shell_1"))
    assert (killed.success, "with exit code 7" in killed.message) == (False, True)


def test_an_unknown_id_is_not_found(root, commands):
    """With the ids that there are."""
    assert commands.read(ReadCommandOutput("shell_9")).status == "not_found"
    assert "None was started" in commands.kill(KillCommand("shell_9")).message
    commands.start(root, StartCommand("true"))
    assert commands.read(ReadCommandOutput("bash_1")).notes == ("There are: shell_1",)


def test_the_working_directory_is_gated(root, directory, commands):
    """As for every other path."""
    (directory / "sub").mkdir()
    commands.start(root, StartCommand("pwd -P", "sub"))
    assert read_until(commands, "shell_1", "sub")[0] == f"{directory / 'sub'}\n"
    with pytest.raises(ToolError, match="outside the workspace"):
        commands.start(root, StartCommand("pwd", "../secret"))


def test_what_nobody_reads_is_bounded(root, commands):
    """50 MB of output keep their head and tail; the command is not held up."""
    commands.start(root, StartCommand("echo first; head -c 50000000 /dev/zero | tr '\\0' 'x'; echo; echo last"))
    assert wait_for(lambda: commands._commands["shell_1"].status == "completed")
    look = commands.read(ReadCommandOutput("shell_1"))
    assert look.stdout.startswith("first\n")
    assert look.stdout.endswith("last\n")
    assert "bytes left out" in look.stdout
    assert len(look.stdout) < 600_000


def test_the_number_is_limited(root, commands, monkeypatch):
    """Ended ones do not count, and the oldest of them are forgotten."""
    monkeypatch.setattr(background, "MAX_RUNNING", 2)
    monkeypatch.setattr(background, "MAX_REMEMBERED", 1)
    for _ in range(2):
        commands.start(root, StartCommand("sleep 60"))
    with pytest.raises(ToolError, match=r"2 background commands are running.*shell_1, shell_2"):
        commands.start(root, StartCommand("true"))
    for id in ("shell_1", "shell_2"):
        commands.kill(KillCommand(id))
    commands.start(root, StartCommand("true"))
    assert list(commands._commands) == ["shell_2", "shell_3"]


def test_nothing_outlives_the_workspace(directory, nap):
    """Closing it ends all commands, at once and completely."""
    with Workspace(directory, approve="yolo") as workspace:
        commands = workspace._desk.commands
        for _ in range(3):
            commands.start(workspace._desk.root, StartCommand(f"setsid {nap} & {nap}"))
        assert wait_for(lambda: len(living(nap)) == 6)
    assert living(nap) == []


def test_nothing_outlives_a_host_that_closes_nothing(directory, nap):
    """The interpreter ends although a thread attends to the command, and with it the command."""
    code = """
        import sys
        from adapter.operations import StartCommand
        from adapter.workspace.processes.background import BackgroundCommands
        from adapter.workspace.paths.gate import Root
        BackgroundCommands().start(Root(sys.argv[1]), StartCommand(sys.argv[2]))
    """
    words = [sys.executable, "-c", textwrap.dedent(code), directory, f"setsid {nap} & {nap}"]
    assert subprocess.run(words, timeout=60, check=False).returncode == 0
    assert wait_for(lambda: not living(nap))


def test_a_character_is_not_split_between_looks():
    """UTF-8 that arrives in pieces comes whole; what is no UTF-8 is not waited for."""
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
