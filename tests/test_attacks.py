"""The attack suite: none succeeds, no ordinary work is refused, and the checks can fail. See benchmarks/attacks.py."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

from benchmarks import naive
from benchmarks.attacks import FOLDER, TABLE, cases, run_all

TAKES_AWAY = ("delete", "move")


def test_nothing_of_it_runs_outside_the_sandbox(tmp_path):
    """The naive tools do whatever an attack requests. Outside a sandbox, they and the suite refuse to start."""
    assert not naive.is_confined()
    victim = tmp_path / "file"
    victim.write_text("kept")
    calls = [
        lambda: naive.read(str(victim)),
        lambda: naive.write(str(victim), "x"),
        lambda: naive.delete(str(victim)),
        lambda: naive.move(str(victim), str(tmp_path / "moved")),
        lambda: naive.copy(str(victim), str(tmp_path / "copied")),
        lambda: naive.mkdir(str(tmp_path / "made")),
        lambda: naive.memory("delete", str(victim)),
        lambda: naive.run(f"rm {victim}"),
        lambda: naive.code("open('made', 'w')"),
        lambda: naive.agent(["x"], "task"),
        lambda: naive.chat("http://127.0.0.1:9/v1", "task", str(victim)),
        lambda: naive.mcp("http://127.0.0.1:9/mcp", []),
        lambda: naive.native("http://127.0.0.1:9/v1"),
        lambda: naive.undo(tmp_path),
        lambda: run_all(["links"]),
    ]
    for call in calls:
        with pytest.raises(SystemExit, match="sandbox"):
            call()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert victim.read_text() == "kept"


def test_attacks_delete_only_their_own_files():
    """Paths to delete or move are relative, or in the places made for the case."""
    for case in cases():
        for verb, *paths in case.data.get("do", ()):
            for path in paths if verb in TAKES_AWAY else ():
                assert not str(path).startswith(("/", "~")), case.id
                assert str(path).count("..") <= 1, case.id


def test_the_table_is_about_these_cases():
    """benchmarks/attacks.md has the cases of the files, and the naive tools lose some in every group."""
    rows = re.findall(r"^\| (\w+) \| (\d+) \| 0 \| (\d+) \| (\d+) \| 0 \|$", TABLE.read_text("utf-8"), re.M)
    counted: dict[str, tuple[int, int]] = {}
    for case in cases():
        attacks, controls = counted.get(case.group, (0, 0))
        counted[case.group] = (attacks + (not case.is_control), controls + case.is_control)
    assert {group: (int(attacks), int(controls)) for group, attacks, _, controls in rows} == counted
    assert all(int(lost) > 0 for _, _, lost, _ in rows)


@pytest.mark.timeout(400)
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="the attacks run in a bubblewrap sandbox alone")
def test_no_attack_succeeds_and_no_work_is_refused():
    """One of sixty cases, with one dialect that has the tools. The naive tools lose more attacks than they resist."""
    command = [sys.executable, "-m", "benchmarks.attacks", "--quick", "--every", "60", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False, cwd=FOLDER.parents[1])
    if "bwrap:" in done.stderr:
        pytest.skip(f"bubblewrap does not work here: {done.stderr.strip()}")
    sides = json.loads(done.stdout)
    for group, tally in sides["own"].items():
        assert tally["succeeded"] == tally["refused"] == [], group
    naively = sides["naive"].values()
    assert sum(len(tally["succeeded"]) for tally in naively) > sum(tally["attacks"] for tally in naively) / 2


OF_CLAIMS = {
    "outside": {
        "links": "read-link read-through read-link-to-parent read-link-out-and-back list-in-link find-in-link"
        " grep-linked-file write-through edit-through delete-through move-into-link copy-folder-with-link run-in-link",
        "path_escape": "dotdot absolute prefix edit-prefix delete-folder move-in copy-out mkdir-absolute",
    },
    "git": {
        "git_data": "config yolo an-allow-rule made-whole-by-a-move moved-above hooks-path modules-yolo through-a-link",
        "path_escape": "git-hook git-case git-move git-copy-into git-stream",
    },
    "programs": {"shell_path": "dot empty relative absolute by-a-link by-a-link-above nothing-else in-a-folder"},
    "replay": {
        "replay": "command command-with-a-rule command-granted command-in-a-batch command-from-code"
        " page-without-a-result file-outside setuid-file",
    },
}
"""Attacks by the claim of SECURITY.md; a part of the suite may have none for a claim."""


@pytest.mark.timeout(400)
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="the attacks run in a bubblewrap sandbox alone")
@pytest.mark.parametrize("claim", OF_CLAIMS)
def test_no_attack_on_a_claim_succeeds(claim):
    only = [f"{group}/{name}" for group, names in OF_CLAIMS[claim].items() for name in names.split()]
    command = [sys.executable, "-m", "benchmarks.attacks", "--own", "--quick", "--json", "--only", *only]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False, cwd=FOLDER.parents[1])
    if "bwrap:" in done.stderr:
        pytest.skip(f"bubblewrap does not work here: {done.stderr.strip()}")
    tallies = json.loads(done.stdout)["own"].values()
    assert sum(tally["attacks"] for tally in tallies) == len(only)
    assert [reason for tally in tallies for reason in tally["succeeded"]] == []
