"""Commands leave no processes behind, whatever they do: real daemons, found in /proc."""

import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from adapter.core.errors import ToolError
from adapter.tools.operations import RunCommand
from adapter.workspace.sandbox import supervisor
from adapter.workspace.sandbox.child_process import ChildProcess, ProcessSpec
from adapter.workspace.sandbox.shell import run_command
from tests.waiting import retry_longer
from tests.workspace.sandbox.running import living, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only on Linux are orphans given to the supervisor")


def python(code):
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(textwrap.dedent(code))}"


DOUBLE_FORK = """
    import os, sys
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            for descriptor in range(3):
                os.close(descriptor)
            os.execvp("sleep", ["sleep", sys.argv[1]])
        os._exit(0)
"""
DEAF = """
    import os, signal, sys
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    os.execvp("sleep", ["sleep", sys.argv[1]])
"""
WAYS = {
    "background": "{nap} &",
    "nohup": "nohup {nap} >/dev/null 2>&1 &",
    "a session of its own": "setsid {nap} &",
    "a session, output closed": "setsid {nap} <&- >&- 2>&- &",
    "sessions in sessions": "setsid sh -c 'setsid sh -c \"{nap} & {nap}\" & {nap}' &",
    "a daemon": python(DOUBLE_FORK) + " {seconds}",
    "deaf to signals": "setsid " + python(DEAF) + " {seconds} &",
    "stopped": "{nap} & kill -STOP $!",
    "stopped in a session": "setsid sh -c 'kill -STOP $$; {nap}' & sleep 0.2",
    "an emptied environment": "env -i setsid {nap} &",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("then", ["sleep 0.2; echo done", "exec sleep 60"], ids=["it ends", "time is up"])
def test_command_leaves_no_processes(root, monkeypatch, nap, way, then):
    """Neither if the command ends nor if it is stopped."""
    monkeypatch.setattr("adapter.workspace.sandbox.shell.GRACE_S", 0.2)
    command = WAYS[way].replace("{nap}", nap).replace("{seconds}", nap.split()[1])
    run = run_command(root, RunCommand(f"{command}\n{then}", timeout_s=0.4 if "exec" in then else 30))
    assert living(nap) == []
    assert run.timed_out == ("exec" in then)
    assert run.timed_out or run.exit_code == 0
    assert run.timed_out or "left in the background" in run.notes[0]


@pytest.mark.parametrize("harm", ["kill -9 $PPID", "kill -STOP $PPID"])
def test_command_that_attacks_its_supervisor_is_ended(root, monkeypatch, nap, harm):
    """Children of a stopped supervisor are found below it, a dead one's by a token in their environment."""
    monkeypatch.setattr("adapter.workspace.sandbox.supervisor.GIVE_UP_S", 0.5)
    monkeypatch.setattr("adapter.workspace.sandbox.shell.GRACE_S", 0.2)
    run = run_command(root, RunCommand(f"setsid {nap} & {nap} & {harm}; {nap}", timeout_s=1))
    assert living(nap) == []
    assert run.exit_code is None
    assert "its supervisor" in run.notes[0]


def test_fork_bomb_is_ended(root, monkeypatch, nap):
    """Long before the timeout. This one would stop at 256 processes."""
    monkeypatch.setattr("adapter.workspace.sandbox.child_process.MAX_PROCESSES", 40)
    bomb = """
        import os, sys
        for generation in range(8):
            if os.fork() == 0 and generation % 2:
                os.setsid()
        os.execvp("sleep", ["sleep", sys.argv[1]])
    """
    run = run_command(root, RunCommand(f"{python(bomb)} {nap.split()[1]}", timeout_s=60))
    assert living(nap) == []
    assert not run.timed_out
    assert run.exit_code is None
    assert "processes at a time" in run.notes[0]


def test_fork_bomb_is_detected_early(root, monkeypatch, nap):
    """Processes that are being started are not counted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        pytest.skip("the supervisor may not go before others here")
    monkeypatch.setattr("adapter.workspace.sandbox.child_process.MAX_PROCESSES", 250)
    bomb = """
        import os, sys
        for generation in range(10):
            if os.fork() == 0 and generation % 2:
                os.setsid()
        os.execvp("sleep", ["sleep", sys.argv[1]])
    """
    job = ProcessSpec(["/bin/sh", "-c", f"{python(bomb)} {nap.split()[1]}"])
    with root.open_directory(".") as (directory, _), ChildProcess(job, directory, len) as command:
        assert command.wait(time.monotonic() + 60)
    assert command.ending is not None
    assert command.ending.reason == "multiplied"
    assert command.ending.left < 900  # of 1,024
    assert living(nap) == []


HOST = """
    import sys
    from adapter.tools.operations import RunCommand
    from adapter.workspace.paths.resolver import WorkspaceRoot
    from adapter.workspace.sandbox.shell import run_command
    with WorkspaceRoot(sys.argv[1]) as root:
        run_command(root, RunCommand(sys.argv[2]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_host(directory, nap, number):
    """After Ctrl-C, SIGTERM and SIGKILL."""
    words = [sys.executable, "-c", textwrap.dedent(HOST), directory, f"setsid {nap} & {nap}"]
    host = subprocess.Popen(words, stderr=subprocess.PIPE)
    assert wait_for(lambda: len(living(nap)) >= 2)
    host.send_signal(number)
    _, errors = host.communicate(timeout=100)
    assert host.returncode
    assert (b"KeyboardInterrupt" in errors) == (number == signal.SIGINT)
    assert wait_for(lambda: not living(nap))


def test_interrupt_leaves_no_processes(directory, nap):
    """Also while the command is being started."""
    code = """
        import signal, sys, time
        from adapter.tools.operations import RunCommand
        from adapter.workspace.paths.resolver import WorkspaceRoot
        from adapter.workspace.sandbox.shell import run_command
        with WorkspaceRoot(sys.argv[1]) as root:
            for moment in range(1, 40):
                signal.signal(signal.SIGALRM, signal.default_int_handler)
                try:
                    signal.setitimer(signal.ITIMER_REAL, moment / 500)
                    run_command(root, RunCommand(sys.argv[2]))
                except KeyboardInterrupt:
                    continue
                print("not interrupted")
    """
    words = [sys.executable, "-c", textwrap.dedent(code), directory, f"setsid {nap} & {nap}"]
    done = subprocess.run(words, capture_output=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert wait_for(lambda: not living(nap))


def test_supervisor_environment_has_no_secrets(root, monkeypatch):
    """A program may read its parent's environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    run = run_command(root, RunCommand("tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/$PPID/cmdline"))
    assert "PATH=" in run.output
    assert "sk-secret" not in run.output


def test_only_allowed_variables_are_passed(root, monkeypatch):
    """A secret may be in a variable of any name."""
    for name in ("DATABASE_URL", "GIT_ASKPASS", "LD_PRELOAD", "PYTHONSTARTUP", "BASH_ENV", "AWS_PROFILE", "lc_all"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("LC_TIME", "C")
    run = run_command(root, RunCommand("env; tr '\\0' '\\n' < /proc/$PPID/environ"))
    assert "LC_TIME=C" in run.output
    assert "canary" not in run.output


def test_command_has_neither_terminal_nor_core_file(root):
    """The command has its own session, without a controlling terminal."""
    run = run_command(root, RunCommand("(exec 3</dev/tty) 2>/dev/null && echo tty; ulimit -c; ps -o sid= -p $$"))
    lines = run.output.split()
    assert lines[0] == "0"
    assert int(run_command(root, RunCommand("cut -d' ' -f6 /proc/$$/stat")).output) != os.getsid(0)


def test_programs_get_default_signal_handlers(root):
    """`yes | head` ends with SIGPIPE."""
    run = run_command(root, RunCommand("yes | head -n 1"))
    assert (run.output, run.exit_code) == ("y\n", 0)


def test_failed_program_start_is_reported(root):
    """The model gets the supervisor's error."""
    with (
        root.open_directory(".") as (directory, _),
        ChildProcess(ProcessSpec(["./missing"]), directory, print) as command,
        pytest.raises(ToolError, match="It no longer exists: the program was not started"),
    ):
        command.wait(time.monotonic() + 60)


def test_idle_timeout_stops_only_idle_commands(root):
    """Every output restarts the idle time."""

    def run(command, limit):
        return run_command(root, RunCommand(command, idle_timeout_s=limit))

    counting = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done"
    busy = retry_longer(lambda limit: run(counting, limit), lambda it: not it.timed_out, 1)
    assert (busy.exit_code, busy.output) == (0, "1\n2\n3\n4\n5\n6\n")
    idle = retry_longer(lambda limit: run("echo one; sleep 600; echo two", limit), lambda it: it.output, 0.5)
    assert (idle.timed_out, idle.exit_code, idle.output) == (True, None, "one\n")


@pytest.mark.parametrize("order", ["ascending", "started again"])
def test_descendants_excludes_unrelated_processes(monkeypatch, order):
    """Also after ids wrapped around, so that a child has a lower id than its parent."""
    if order == "started again":
        ascending = supervisor._iter_processes
        monkeypatch.setattr(supervisor, "_iter_processes", lambda: reversed(list(ascending())))
    child = subprocess.Popen(["sh", "-c", "sleep 30 & echo; wait"], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        found = [pid for pid, _ in supervisor.iter_descendants(os.getpid())]
        assert child.pid in found
        (below,) = [pid for pid, _ in supervisor.iter_descendants(child.pid)]
        assert below in found
        assert os.getpid() not in found
        assert os.getppid() not in found
    finally:
        for pid, _ in supervisor.iter_descendants(child.pid):
            supervisor.kill(pid)
        child.kill()
        child.communicate()
