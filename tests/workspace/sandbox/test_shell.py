"""Commands: limits on time, memory and environment, and no leftovers."""

import os
import time
from pathlib import Path

import pytest

from adapter.core.errors import ToolError
from adapter.tools.operations import RunCommand
from adapter.workspace.sandbox.child_process import scrub_environment
from adapter.workspace.sandbox.output_capture import HeadAndTail, strip_terminal_codes
from adapter.workspace.sandbox.shell import run_command


def is_running(pid):
    """Return whether a process runs; zombies that a container does not reap do not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid):
    deadline = time.monotonic() + 60
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


def test_command_returns_output_and_exit_code(root):
    """stdout and stderr in the order in which they were written."""
    run = run_command(root, RunCommand("echo one; echo two >&2; echo three; exit 7"))
    assert run.output == "one\ntwo\nthree\n"
    assert run.exit_code == 7
    assert not run.timed_out


def test_command_with_nul_is_refused(root):
    """No program accepts one."""
    with pytest.raises(ToolError, match="contains a NUL character"):
        run_command(root, RunCommand("echo a\0b"))


def test_cwd_is_used_and_confined(root, directory):
    """It is entered by descriptor."""
    (directory / "sub").mkdir()
    assert run_command(root, RunCommand("pwd -P", "sub")).output.strip() == str(directory / "sub")


def test_stdin_is_empty(root):
    """A command that reads input gets end of file instead of hanging."""
    assert run_command(root, RunCommand("cat; read x; echo $?")).output == "1\n"


def test_no_secret_reaches_the_command(root, monkeypatch):
    """An allow-list, without variables that look like credentials."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("MY_SETTING", "sk-secret")
    monkeypatch.setenv("LC_TOKEN", "sk-secret")
    monkeypatch.setenv("LD_PRELOAD", "")
    output = run_command(root, RunCommand("env")).output
    assert "sk-secret" not in output
    assert "PATH=" in output
    assert "LD_PRELOAD" not in output
    assert scrub_environment({"BASH_ENV": "x", "ENV": "x", "HOME": "/h"})["HOME"] == "/h"
    assert "BASH_ENV" not in scrub_environment({"BASH_ENV": "x"})


@pytest.mark.parametrize(
    "command", ["sleep 600", "trap '' TERM; sleep 600 & sleep 600", "cat /dev/zero", "exec >&- 2>&-; sleep 600"]
)
def test_timeout_ends_whole_process_group(root, monkeypatch, command):
    """SIGTERM, then SIGKILL; also if the command ignores SIGTERM or closed its output."""
    monkeypatch.setattr("adapter.workspace.sandbox.shell.GRACE_S", 0.3)
    run = run_command(root, RunCommand(f"echo $$ > pid; {command}", timeout_s=0.3))
    assert run.timed_out
    assert run.exit_code is None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see processes")
@pytest.mark.parametrize(
    "command", ["sleep 600 & echo $! > pid", "(sleep 600; true) & echo $! > pid", "nohup sleep 600 >&- & echo $! > pid"]
)
def test_background_processes_neither_delay_nor_survive(root, directory, command):
    """The command ends with its shell, even if other processes hold the output open."""
    run = run_command(root, RunCommand(f"{command}; echo done"))
    assert run.output == "done\n"
    assert wait_until_gone(int((directory / "pid").read_text()))


def test_output_of_background_process_does_not_delay_result(root):
    """`yes &` never closes the pipe."""
    run_command(root, RunCommand("yes & sleep 0.1"))


def test_endless_output_uses_bounded_memory(root):
    """Head and tail are kept, the middle is counted."""
    run = run_command(root, RunCommand("echo first; head -c 20000000 /dev/zero | tr '\\0' 'x'; echo; echo last"))
    assert run.output.startswith("first\n")
    assert run.output.endswith("last\n")
    assert "bytes left out" in run.output
    assert len(run.output) < 600_000


def test_head_and_tail_lose_nothing_that_fits():
    """Only what exceeds both parts is left out."""
    kept = HeadAndTail(limit=10)
    for piece in (b"0123", b"456789ab", b"cdefghi", b"j"):
        kept.add(piece)
    assert kept.render_text() == "0123456789abcdefghij"
    kept.add(b"klm")
    assert kept.render_text() == "0123456789\n[... 3 bytes left out ...]\ndefghijklm"


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\x", "x"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("bell\x07 null\x00 tab\t", "bell null tab\t"),
        ("a\n\n\n\n\n\nb", "a\n\n\nb"),
        ("\x9b31mx", "x"),
        ("unfinished \x1b[", "unfinished "),
    ],
)
def test_terminal_sequences_are_stripped(raw, plain):
    """The model reads what a terminal would show."""
    assert strip_terminal_codes(raw) == plain


@pytest.mark.parametrize("piece", ["\x1b]", "\x1b[", "\x1b[0", "\r", "\x1b"])
def test_strip_terminal_codes_is_linear(piece):
    start = time.thread_time()
    strip_terminal_codes(piece * (500_000 // len(piece)))
    assert time.thread_time() - start < 5


def test_timeout_is_reduced_to_maximum(root, monkeypatch):
    """D17: with a note."""
    monkeypatch.setattr("adapter.workspace.sandbox.shell.MAX_TIMEOUT_S", 5.0)
    assert run_command(root, RunCommand("true", timeout_s=9)).notes == ("the timeout was reduced to 5 s",)


def test_command_inherits_no_descriptors(root):
    """Only the three standard descriptors."""
    if not os.path.isdir("/proc/self/fd"):  # noqa: PTH112 - shorter
        pytest.skip("needs /proc")
    assert run_command(root, RunCommand("ls /proc/$$/fd; true")).output.split() == ["0", "1", "2"]
