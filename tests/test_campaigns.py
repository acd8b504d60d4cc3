"""A part of each campaign, which shows that it runs and that its claims hold; the full campaigns are modules."""

from __future__ import annotations

import ast
import asyncio
import errno
import gc
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest

from adapter.tools.operations import Copy, Delete, ReadText, Tree, WriteText
from adapter.workspace import Workspace
from benchmarks import edit_integrity, fault_sweep, floods, fuzz_targets, soak, swap_race, valid_calls
from tests.command_line import FORKED
from tests.live_upstream import LiveUpstream
from tests.serving import serving_here
from tests.workspace.sandbox.running import bearing, wait_for

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """A workspace whose directories and files can be swapped for links to the outside."""
    if not swap_race.CAN_EXCHANGE:
        pytest.skip("this system has no renameat2")
    return swap_race.Ground(tmp_path_factory.mktemp("race"))


@pytest.mark.parametrize("name", [*swap_race.READS, *swap_race.CHANGES])
def test_no_operation_can_be_swapped_out_of_the_workspace(name, ground):
    """Nothing outside is read or changed while directories become links and back."""
    with swap_race.swapping(ground.folders):  # by a second process, as fast as it can
        row = swap_race.race(ground, name, (swap_race.READS | swap_race.CHANGES)[name], seconds=0.05)
    assert row.calls > 0
    assert not row.escaped, row.first


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="what loses the race runs in a bubblewrap sandbox alone")
def test_the_race_can_be_lost():
    """An implementation that checks with realpath and opens by name is caught in the same race."""
    command = [sys.executable, "-m", "benchmarks.swap_race", "--only", "naive read", "--seconds", "1"]
    root = Path(__file__).parent.parent
    for _ in range(20):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=root)
        if "bwrap:" in done.stderr:
            pytest.skip(f"bubblewrap does not work here: {done.stderr.strip()}")
        leaks = int(done.stdout.splitlines()[-1].split("|")[5].replace(",", ""))
        if leaks:
            break
    assert leaks


def test_race_campaign_requires_a_sandbox(tmp_path):
    """Neither the whole campaign nor one of its rows."""
    victim = tmp_path / "file"
    victim.write_text("kept")
    for operation in (ReadText("file"), Tree("."), WriteText("file", "x"), Copy("file", "b"), Delete("file")):
        with pytest.raises(SystemExit, match="sandbox"):
            swap_race.naive(str(tmp_path), operation)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert victim.read_text() == "kept"


def test_every_peer_that_does_harm_is_confined():
    """Benchmarks that compare with a careless program start it in a sandbox or not at all."""
    found = set()
    for file in sorted(Path(swap_race.__file__).parent.glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {getattr(node, "id", getattr(node, "attr", getattr(node, "name", ""))) for node in ast.walk(tree)}
        texts = {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        is_careless = any("naive" in str(name) for name in names) or any(text.startswith("naive") for text in texts)
        if is_careless and file.stem not in ("naive", "attack_surfaces"):
            found.add(file.stem)
            assert "confine" in names, f"{file.name} has a naive peer and does not call naive.confine"
    assert found == {"attacks", "swap_race", "kill_writes"}


FLOODS = ["one line: read", "server: 200 MB in chunks"]


def test_floods_stay_within_their_bounds(tmp_path):
    """Each in its own process: memory, time and the message."""
    for name, cost in floods.sweep(FLOODS, tmp_path, scale=0.01):
        assert not floods.misses(floods.CASES[name], cost), (name, cost)


def test_a_flood_that_gives_nothing_of_use_is_missed():
    """A sandbox that cannot be created does not count, however little it uses."""
    case = floods.CASES["output: yes"]
    assert floods.misses(case, floods.Cost(0.1, 1.0, True, "Command failed with exit code 1:\nbwrap: Can't mkdir"))
    assert not floods.misses(case, floods.Cost(5.1, 1.0, True, "Command failed with exit code 124:\ny\ny\ny"))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *(("read", errno.EIO), ("grep", errno.EIO), ("info", errno.EIO), ("symbols", errno.EACCES)),
        *(("overwrite", errno.EIO), ("memory, write", errno.EIO)),
    ],
)
def test_failing_system_call_is_reported_and_harmless(name, code, tmp_path):
    """Every system call of the operation fails once: old or new content, no open descriptor, and a message."""
    calls = ("open", "stat", "lstat", "dup", "close")
    row = fault_sweep.sweep(name, tmp_path / "sweep", [code], calls)
    assert row.faults > 2
    assert row.bad == []


def test_no_byte_outside_of_a_patch_changes():
    """A few hundred random files, compared by independent code."""
    tally = edit_integrity.run(seed=1, start=0, count=300)
    assert tally.verified > 200
    assert tally.wrong == []


@pytest.mark.parametrize(("seed", "index"), [(1, 176_099), (1, 460_582), (2, 48_700)])
def test_no_patch_lands_where_only_a_guessed_encoding_has_its_text(seed, index):
    """Files guessed to be Japanese or Chinese, so that one of two places was not seen, are refused."""
    tally = edit_integrity.run(seed, index, count=1)
    assert tally.wrong == []
    assert tally.verified == 0
    assert tally.refused.total() == 1


@pytest.mark.parametrize("target", fuzz_targets.TARGETS)
def test_fuzzed_texts_break_no_target(target):
    """A part of the fuzzing: every claim of the target holds for generated inputs."""
    *crashes, (done, _) = fuzz_targets.by_chance(target, seed=1, count=60, is_over=lambda: False)
    assert done >= 50
    assert crashes == []


def replace_lines(folder, worker, patches):
    """Replace the lines of one worker. Send a patch that was refused again, as a model would."""
    with Workspace(folder / "ws", approve="yolo", state=folder / "state") as workspace:
        for number in range(patches):
            call = {"path": "f", "old_text": f"{worker}/{number} old", "new_text": f"{worker}/{number} new"}
            while not (result := workspace.run("apply_edit", call)).ok:
                assert "old_text was not found" not in result.content
                time.sleep(0.002)


def test_no_update_of_one_file_is_lost(tmp_path):
    """Processes edit the file at once, and every successful edit is in it."""
    (tmp_path / "ws").mkdir()
    lines = [f"{worker}/{number} old\n" for number in range(4) for worker in range(4)]
    (tmp_path / "ws" / "f").write_text("".join(lines), encoding="utf-8")
    workers = [FORKED.Process(target=replace_lines, args=(tmp_path, worker, 4)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert (tmp_path / "ws" / "f").read_text(encoding="utf-8") == "".join(lines).replace("old", "new")


@pytest.mark.parametrize("mode", valid_calls.MODES)
def test_a_model_without_any_sense_makes_valid_calls(mode, tmp_path):
    """With random weights behind `adapter serve`, every call fits its schema, and with "required" each answer is a
    call.
    """
    pytest.importorskip("xllamacpp", reason="needs the embedded engine: pip install 'toolcall-adapter[embedded]'")
    with valid_calls.random_model(tmp_path) as upstream:
        row = valid_calls.measure(upstream, "llama3_json", mode, seed=3, count=6)
    assert row.wrong == []
    assert row.outcomes["valid"] == 6 or mode == "prefer"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds what is left in /proc")
def test_a_soak_that_is_interrupted_shows_its_table_and_leaves_nothing():
    """Ctrl-C reaches all processes that the campaign has started, and they clean up."""
    pytest.importorskip("aiohttp", reason="needs the server: pip install 'toolcall-adapter[server]'")
    mark = f"SOAK_OF_A_TEST={secrets.token_hex(8)}"
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.soak", "--seconds", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | dict([mark.split("=")]),
    ) as process:
        assert process.stderr is not None
        said = ""
        while " calls" not in said and (character := process.stderr.read(1)):
            said += character
        os.killpg(process.pid, signal.SIGINT)
        table, rest = process.communicate()
    assert "STOPPED EARLY" in table, said + rest
    assert "| server: memory |" in table
    assert "0 errors" in table
    assert not any(word in table + rest for word in ("Traceback", "broken", "failed", "unsaid"))
    assert wait_for(lambda: not bearing(mark))


def test_a_campaign_that_is_ended_shows_its_table():
    """The results so far, in the same place."""
    words = [sys.executable, "-m", "benchmarks.edit_integrity"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.read(4) == "\n200"  # as text, the carriage return
        process.terminate()
        table, rest = process.communicate()
    assert "| files | patches verified | refused | wrong |" in table, rest
    assert process.returncode == 0


def test_the_server_keeps_no_task_of_a_chat_that_is_over(monkeypatch):
    """After a normal end, a disconnect of the client, or a crash of the model server."""
    pytest.importorskip("aiohttp", reason="needs the server: pip install 'toolcall-adapter[server]'")
    monkeypatch.setattr(soak, "HANGS_UP", 0.3)
    monkeypatch.setattr(soak, "DIES", 0.3)
    gc.freeze()  # what other tests left is not looked through each time
    with LiveUpstream(soak.answer) as upstream, serving_here(upstream.url) as url:
        netloc, chance, seen = urlsplit(url).netloc, Random(1), Counter[str]()
        assert wait_for(lambda: soak.chat(netloc, chance) == "whole")
        before = unfinished()
        for _ in range(40):
            seen[soak.chat(netloc, chance)] += 1
        assert seen.keys() == set(soak.AS_MEANT), seen
        assert wait_for(lambda: unfinished() <= before), unfinished()


def unfinished() -> int:
    """Return the unfinished tasks created since the last ``gc.freeze``."""
    return sum(isinstance(task, asyncio.Task) and not task.done() for task in gc.get_objects())
