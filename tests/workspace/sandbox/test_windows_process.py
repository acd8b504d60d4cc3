"""Commands on Windows: in a job object, without a window, and bounded. `.ci/conditions wine` runs it under Wine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time

import pytest

from adapter.core.errors import ToolError
from adapter.core.program_lookup import find_program
from adapter.tools.operations import KillCommand, ReadCommandOutput, RunCommand, RunProgram, StartCommand
from adapter.workspace import Workspace
from adapter.workspace.sandbox.background_commands import BackgroundCommands
from adapter.workspace.sandbox.child_process import ProcessSpec
from adapter.workspace.sandbox.invoked_programs import identify_programs
from adapter.workspace.sandbox.shell import run_command
from adapter.workspace.sandbox.user_tool_runner import build_program_argv, run_program
from adapter.workspace.sandbox.windows_process import CMD, WindowsProcess, build_cmd_argv, build_command_line
from tests.approvals import record_requests
from tests.workspace.conditions import IS_WINE

on_windows = pytest.mark.skipif(sys.platform != "win32", reason="needs Windows")
BEAT = "import sys,time\nwhile True: open(sys.argv[1], 'a').write('x'); time.sleep(0.05)"
"""Writes to a file as long as it runs."""


@pytest.fixture
def beat(directory):
    """Return a command that writes to `beat.txt` as long as it runs."""
    (directory / "beat.py").write_text(BEAT)
    return f'"{sys.executable}" -I beat.py beat.txt'


def has_stopped(file):
    """Return whether the file has content but does not grow."""
    before = file.stat().st_size
    time.sleep(1)
    return 0 < before == file.stat().st_size


def wait_for_file(file, seconds=60):
    until = time.monotonic() + seconds
    while not (file.exists() and file.stat().st_size) and time.monotonic() < until:
        time.sleep(0.02)


@on_windows
def test_command_returns_output_and_exit_code(root):
    """stdout and stderr are in the order in which they were written."""
    run = run_command(root, RunCommand("echo one& echo two>&2& echo three& exit 7"))
    assert run.output == "one\ntwo\nthree\n"
    assert run.exit_code == 7
    assert any("cmd.exe ran it" in note for note in run.notes)


@on_windows
def test_command_runs_in_its_folder_with_empty_input(root, directory):
    """`set /p` asks, and gets the end of the input."""
    (directory / "sub dir").mkdir()
    assert run_command(root, RunCommand("cd", "sub dir")).output.strip() == str(directory / "sub dir")
    assert run_command(root, RunCommand("set /p x=? & echo done", timeout_s=60)).output == "? done\n"


@on_windows
@pytest.mark.parametrize("text", ["ü→ß", "日本 €😀", '"a & b"', "a ^& b", "100% sure", "a!b!c"])
def test_text_reaches_the_command_and_comes_back(root, text):
    """The text may be in any script and contain quotes. The code page of the console has no effect."""
    assert run_command(root, RunCommand(f"echo {text}")).output.strip() == text.replace("^", "")


@on_windows
def test_output_that_is_not_utf8_is_read_by_the_code_page(root, directory):
    """Some programs know no other encoding."""
    (directory / "old.py").write_text(
        "import sys\nfor code in 'oem', 'utf-8': sys.stdout.buffer.write('Gr\\xfc\\xdfe\\n'.encode(code))"
    )
    assert run_command(root, RunCommand(f'"{sys.executable}" -I old.py')).output == "Grüße\nGrüße\n"


@on_windows
@pytest.mark.parametrize("line", ["echo a\necho b", "echo " + "x" * 8_000])
def test_line_that_cmd_would_cut_is_refused(root, line):
    """It would run only the first part."""
    with pytest.raises(ToolError, match="runs one line"):
        run_command(root, RunCommand(line))


@on_windows
def test_secrets_and_other_variables_are_not_passed_on(root, monkeypatch):
    """Variables are passed on by name, as on other systems."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("MY_SETTING", "sk-secret")
    output = run_command(root, RunCommand("set")).output
    assert "sk-secret" not in output
    assert "SYSTEMROOT=" in output.upper()


@on_windows
def test_timeout_ends_the_whole_tree(root, directory, beat):
    """Processes that were started in the background also end."""
    line = f'cmd /c "start /b cmd /c {beat}" & ping -n 100 127.0.0.1 >nul'
    run = run_command(root, RunCommand(line, timeout_s=5))
    assert (run.timed_out, run.exit_code) == (True, None)
    assert has_stopped(directory / "beat.txt")


@on_windows
def test_background_processes_end_with_the_command(root, directory, beat):
    """A note reports their number."""
    run = run_command(root, RunCommand(f'start "" /b {beat} & ping -n 4 127.0.0.1 >nul & echo gone'))
    assert (run.output, run.exit_code) == ("gone\n", 0)
    assert any("in the background ended with the command" in note for note in run.notes)
    assert has_stopped(directory / "beat.txt")


DETACHED = """
import subprocess, sys
for flags in (0x8, 0x200, 0x1000000):  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP, CREATE_BREAKAWAY_FROM_JOB
    try:
        subprocess.Popen([sys.executable, "-I", "beat.py", "beat.txt"], creationflags=flags)
    except OSError as error:
        print(flags, error.winerror)
"""


@on_windows
def test_no_process_leaves_the_job(root, directory, beat):
    """A process may have no console, start a group, or ask to leave the job."""
    (directory / "start.py").write_text(DETACHED)
    run_command(root, RunCommand(f'"{sys.executable}" -I start.py & ping -n 4 127.0.0.1 >nul'))
    assert has_stopped(directory / "beat.txt")


@on_windows
def test_silence_ends_a_command(root):
    """The limit counts from the last output."""
    line = "ping -n 3 127.0.0.1 >nul & echo a& ping -n 100 127.0.0.1 >nul"
    run = run_command(root, RunCommand(line, timeout_s=60, idle_timeout_s=6))
    assert (run.output, run.timed_out) == ("a\n", True)


@on_windows
def test_endless_output_is_bounded(root):
    """The head and the tail are kept, and the program waits until its output is read."""
    run = run_command(root, RunCommand("for /l %i in (1,0,2) do @echo 0123456789", timeout_s=5))
    assert run.timed_out
    assert len(run.output) < 600_000


@on_windows
def test_fork_bomb_is_ended(root, directory, monkeypatch):
    """The number of processes is limited."""
    monkeypatch.setattr("adapter.workspace.sandbox.windows_process.MAX_PROCESSES", 6)
    (directory / "bomb.bat").write_text("start /b ping -n 60 127.0.0.1 >nul\n" * 12 + "ping -n 60 127.0.0.1 >nul\n")
    run = run_command(root, RunCommand(".\\bomb.bat", timeout_s=60))
    assert (run.exit_code, run.timed_out) == (None, False)
    assert any("processes at a time" in note for note in run.notes)


HOST = """
import sys, time
from adapter.tools.operations import RunCommand
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox.shell import run_command
with WorkspaceRoot(sys.argv[1]) as root:
    run_command(root, RunCommand(sys.argv[2]))
"""


@on_windows
def test_commands_end_with_a_host_that_is_killed(directory, beat):
    """The kernel closes the job."""
    host = subprocess.Popen([sys.executable, "-c", HOST, str(directory), f"cmd /c {beat}"])
    wait_for_file(directory / "beat.txt")
    host.kill()
    host.wait()
    assert has_stopped(directory / "beat.txt")


@on_windows
def test_interrupt_ends_the_command(root, directory, beat):
    """Ctrl-C reaches only the waiting program."""

    outputs = []

    def interrupt(output):
        outputs.append(output)
        if len(outputs) == 1:
            raise KeyboardInterrupt

    with (
        root.open_directory(".") as (folder, _),
        pytest.raises(KeyboardInterrupt),
        WindowsProcess(
            ProcessSpec(build_cmd_argv(f'start "" /b {beat} & echo now & {beat}')), folder, interrupt
        ) as command,
    ):
        command.wait()
    wait_for_file(directory / "beat.txt", 3)
    assert not (directory / "beat.txt").exists() or has_stopped(directory / "beat.txt")


@on_windows
def test_background_command_is_read_and_killed(root, directory, beat):
    """Its stdout and stderr are separate."""
    commands = BackgroundCommands()
    id = commands.start(root, StartCommand(f"echo out& echo err>&2& {beat}")).id
    wait_for_file(directory / "beat.txt")
    delta = commands.read(ReadCommandOutput(id))
    assert (delta.stdout, delta.stderr, delta.status) == ("out\n", "err\n", "running")
    assert commands.kill(KillCommand(id)).success
    assert has_stopped(directory / "beat.txt")
    assert commands.read(ReadCommandOutput(id)).status == "terminated"


@on_windows
def test_commands_run_beside_each_other(root):
    """Each command has its own job."""
    outputs = []
    threads = [
        threading.Thread(target=lambda n=n: outputs.append(run_command(root, RunCommand(f"echo {n}")).output))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outputs) == ["0\n", "1\n", "2\n", "3\n"]


@on_windows
def test_arguments_of_a_program_are_passed_unchanged(root):
    """No shell parses them."""
    nasty = ["a b", "%PATH%", "^&|<>", 'say "hi"', "back\\", 'back\\"', "a\nb", "€😀", "", "/s"]
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    operation = RunProgram(sys.executable, tuple((word,) for word in ("-c", code, *nasty)))
    outcome = run_program(root, operation, build_program_argv(root, operation), None)
    assert json.loads(outcome.output) == nasty


@on_windows
def test_program_of_the_workspace_is_not_taken_for_an_installed_one(root, directory, monkeypatch):
    """cmd.exe and `shutil.which` search the current folder first."""
    (directory / "find.bat").write_text("@echo planted\n")
    (directory / "mine.bat").write_text("@echo planted\n")
    (directory / "findstr.exe").write_text("planted")
    if not IS_WINE:  # whose cmd.exe does not know NoDefaultCurrentDirectoryInExePath
        assert "planted" not in run_command(root, RunCommand("mine")).output
    assert run_command(root, RunCommand(".\\mine")).output == "planted\n"
    monkeypatch.chdir(directory)
    assert find_program("mine") is None
    assert (find_program("cmd") or "").lower() == CMD.lower()


@on_windows
def test_files_that_a_line_runs_are_identified(root, directory):
    """A line may use backslashes, and omit the extension of a program."""
    (directory / "sub").mkdir()
    (directory / "sub" / "tool.bat").write_text("x")
    for line in ("sub\\tool a", ".\\sub\\TOOL.bat", "call sub\\tool.bat", f"{directory}\\sub\\tool"):
        found = identify_programs(root, ".", line, "")
        assert any(path.lower() == "sub/tool.bat" for path in found), line


@on_windows
def test_approval_names_the_shell(directory):
    """It also states that there is no sandbox."""
    asked, deny = record_requests(answer=False)
    with Workspace(directory, approve=deny) as workspace:
        workspace.run("run_command", {"command": "echo hi", "cwd": "."})
    assert asked[0].summary == "run with cmd.exe in .: echo hi"
    assert "NONE" in asked[0].sandbox


@on_windows
def test_missing_program_says_so(root):
    """It is an error of the call."""
    with root.open_directory(".") as (folder, _), pytest.raises(FileNotFoundError):
        WindowsProcess(ProcessSpec(["C:\\missing.exe"]), folder, print)


def test_line_for_cmd_is_passed_as_it_is():
    """cmd.exe removes only the outer quotes."""
    line = build_command_line(build_cmd_argv('echo "a" & b'), "C:\\ws")
    assert " /d /v:off /s /c " in line
    assert line.endswith(' & echo "a" & b"')


def test_other_arguments_are_quoted():
    """This includes arguments of a tool of the user that runs cmd.exe."""
    assert build_command_line([CMD, "/c", "a b"], "/").endswith('/c "a b"')


@pytest.mark.parametrize("program", ["x.bat", "C:\\x\\NPM.CMD", "x.cmd. "])
@pytest.mark.parametrize("argument", ['"&calc', "a|b", "%PATH%", "a\nb", "^", "a'b", "!x!", "a,b", "a=b"])
def test_batch_file_gets_no_argument_that_cmd_would_read(program, argument):
    """No quoting works for both cmd.exe and the program."""
    with pytest.raises(ToolError, match="batch file"):
        build_command_line([program, argument], "/")
    assert build_command_line([program, "install", "--save-dev", "@types/x"], "/").endswith(
        "install --save-dev @types/x"
    )
