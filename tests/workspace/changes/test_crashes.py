"""After a failure or kill during a change, everything is old or new, the user is informed, and nothing is left
behind.
"""

import os
import random
import shutil
import signal
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from adapter.tools.operations import WriteText
from adapter.workspace.operation_planner import plan_operation
from adapter.workspace.paths.os_errors import FULL
from adapter.workspace.workspace_context import open_context
from tests.apart import apart
from tests.effort import EFFORT
from tests.workspace.changes.crashing import (
    CALLS,
    ERRORS,
    SCENARIOS,
    SINGLE,
    Failing,
    Killing,
    content_of,
    intercepted,
    kill_one_file,
    killed,
    lay_out,
    perform,
    write_forever,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def quick(monkeypatch):
    """A folder in memory, because there are thousands of runs, and a kill does not depend on the disk."""
    folder = Path(tempfile.mkdtemp(dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    yield folder
    shutil.rmtree(folder)


def fresh(folder, name):
    directory = folder / str(name)
    directory.mkdir()
    lay_out(directory)
    return directory


def outcomes(folder, scenario):
    """Return the tree before and after the scenario."""
    directory = fresh(folder, "whole")
    old = content_of(directory)
    assert perform(directory, scenario, lambda _: None) is None
    return old, content_of(directory)


def count_calls(folder, scenario):
    """Return the number of system calls that the scenario makes."""
    directory, counting = fresh(folder, "counted"), Failing(set(), 5)
    assert perform(directory, scenario, counting) is None
    shutil.rmtree(directory)
    return counting.count


def reopened(directory):
    """Return the tree after the next start, the number of recorded changes, and the messages."""
    with open_context(directory) as desk:
        return content_of(directory), len(desk.history.list_undoable_changes()), desk.history.recovered


def descriptors():
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


# -------------------------------------------------------------------------- faults


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_failing_call_leaves_old_or_new_content(quick, scenario):
    """The n-th call of each kind fails, for n = 1.. until none does. No change is partial, no descriptor stays open,
    and a message is shown.
    """
    old, new = outcomes(quick, scenario)
    injected = 0
    for call in CALLS:
        number = 0
        while True:
            number += 1
            directory = fresh(quick, f"{call}{number}")
            code = ERRORS[(number + len(call)) % len(ERRORS)]
            failing = Failing({number}, code, call)
            before = descriptors()
            error = perform(directory, scenario, failing)
            assert descriptors() == before, (call, number)
            left, changes, _ = reopened(directory)
            assert left == (new if error is None else old), (call, number, error)
            is_for_good = scenario.startswith("delete") and code in FULL  # nothing is kept when the disk is full
            assert changes == (error is None) or (is_for_good and error is None), (call, number)
            shutil.rmtree(directory)
            if failing.count < number:
                assert error is None
                break
            injected += 1
    assert injected > 20


@pytest.mark.parametrize("scenario", ["files", "delete", "copy"])
def test_second_failure_is_repaired(quick, scenario):
    """The rollback also fails. A message is shown, and the workspace is repaired when it is opened again."""
    old, new = outcomes(quick, scenario)
    choice = random.Random(4)
    for number in range(40 * EFFORT):
        directory = fresh(quick, number)
        failing = {choice.randrange(1, 160), choice.randrange(1, 160), choice.randrange(1, 160)}
        error = perform(directory, scenario, Failing(failing, 5))
        assert reopened(directory)[0] == (new if error is None else old), (failing, error)


# --------------------------------------------------------------------------- kills


def kill_before_calls(folder, scenario, step=1):
    """Kill before every ``step``-th system call, and return the number of kills and the versions found afterwards.

    `benchmarks/kill_writes.py` runs this for all calls.
    """
    old, new = outcomes(folder, scenario)
    number, versions = 1, {"old": 0, "new": 0}
    while True:
        directory = fresh(folder, number)
        was_killed = killed(partial(perform, directory, scenario, Killing({number}, 5)))
        left, changes, said = reopened(directory)
        assert left in (old, new), (number, said)
        assert changes == (left == new), (number, said)
        shutil.rmtree(directory)
        if not was_killed:
            shutil.rmtree(folder / "whole")
            return versions
        versions["new" if left == new else "old"] += 1
        number += step


@pytest.mark.parametrize("scenario", SCENARIOS)
@apart
def test_kill_before_system_call_is_repaired(quick, scenario):
    """At the next start: one version, and no other files."""
    versions = kill_before_calls(quick, scenario, step=7)
    assert versions["old"] > 0
    assert versions["new"] > 0


@pytest.mark.parametrize("scenario", ["write", "patch"])
@apart
def test_file_is_whole_before_any_repair(quick, scenario):
    """After a kill before any system call, the file is the old or the new one, for readers that repair nothing."""
    whole = {content["a.txt"] for content in outcomes(quick, scenario)}
    number, was_killed = 0, True
    while was_killed:
        number += 1
        directory = fresh(quick, number)
        was_killed = killed(partial(perform, directory, scenario, Killing({number}, 5)))
        assert content_of(directory).get("a.txt") in whole, number
        shutil.rmtree(directory)
    assert number > 20


@apart
def test_journal_on_another_file_system_works(quick, tmp_path):
    """Renames cannot cross file systems, so old content is copied."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path)
    for scenario in ("files", "delete"):
        kill_before_calls(quick, scenario, step=31)
        directory = fresh(quick, scenario)
        old = content_of(directory)
        perform(directory, scenario, lambda _: None)
        with open_context(directory) as desk:
            desk.history.undo()
        assert content_of(directory) == old


@apart
def test_kill_during_repair_is_repaired(quick):
    """Recovery can be killed at any call."""
    old, new = outcomes(quick, "files")

    def repair(directory, number):
        with intercepted(Killing({number}, 5)), open_context(directory):
            pass

    cut_off, calls = 0, count_calls(quick, "files")
    for first in range(60, calls, max(calls // 6, 1)):
        for second in range(3, calls // 3, max(calls // 12, 1)):
            directory = fresh(quick, f"{first}-{second}")
            killed(partial(perform, directory, "files", Killing({first}, 5)))
            cut_off += killed(partial(repair, directory, second))
            assert reopened(directory)[0] in (old, new), (first, second)
    assert cut_off > 5


@apart
def test_concurrent_starts_repair_once(quick):
    """Under a lock. Each finds one version and then changes it."""
    versions = outcomes(quick, "files")

    def start(directory, name):
        with open_context(directory) as desk:
            assert (directory / "a.txt").read_text() in ("a1\na2\na3\n", "a1\nA2\na3\n")
            plan_operation(desk, WriteText(name, "here\n")).commit()

    calls = count_calls(quick, "files")
    for number in (calls // 3, calls // 2, calls * 2 // 3):
        directory = fresh(quick, number)
        assert killed(partial(perform, directory, "files", Killing({number}, 5)))
        children = []
        for name in "uvwxyz":
            child = os.fork()
            if child == 0:
                try:
                    start(directory, name)
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6
        now = content_of(directory)
        assert [now.pop(name) for name in "uvwxyz"] == ["100644 b'here\\n'"] * 6
        assert now in versions


@apart
def test_random_kills_with_wide_rename_window_are_repaired(quick):
    """A real process and a real SIGKILL: five files always have the same version, and nothing is left behind."""
    results = kill_at_random_moments(quick, kills=15, seed=1)
    assert results["torn"] == results["left behind"] == 0
    assert results["repaired"] > 0


def kill_at_random_moments(folder, kills, seed):
    """`benchmarks/kill_writes.py` also runs this."""
    choice = random.Random(seed)
    directory = folder / "killed"
    for name in ("only/0", "only/1"):
        (directory / name).mkdir(parents=True)
    for name in ("f0", "f1", "f2", "f3", "only/0/f4"):
        (directory / name).write_text(f"0 {name[-2:]}\n", encoding="utf-8")
    results = {"kills": kills, "repaired": 0, "torn": 0, "left behind": 0, "versions": 0}
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            try:
                write_forever(directory, pause_s=0.002)
            finally:
                os._exit(1)
        time.sleep(choice.uniform(0.0, 0.2))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        with open_context(directory) as desk:
            results["repaired"] += bool(desk.history.recovered)
        files = [path for path in directory.rglob("*") if path.is_file()]
        versions = {path.read_text(encoding="utf-8").split()[0] for path in files}
        results["torn"] += len(versions) != 1
        results["left behind"] += sorted(path.name for path in files) != ["f0", "f1", "f2", "f3", "f4"]
        results["versions"] = int(versions.pop())
    return results


@pytest.mark.parametrize("change", SINGLE)
@apart
def test_kill_leaves_single_file_intact(quick, change):
    """At any moment the file is the old or the new one. Temporary files are removed by the next change."""
    results = kill_one_file(quick / "one", change, kills=6)
    assert results.changes > 0
    assert (results.torn, results.stay) == (0, 0)
    assert results.strays <= 2


@apart
def test_in_place_write_can_be_torn(quick):
    """The same kills leave a file that is written in place half written."""
    assert any(kill_one_file(quick / f"{number}", "naive", kills=10).torn for number in range(20))
