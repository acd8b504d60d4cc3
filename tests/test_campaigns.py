"""A slice of each campaign: enough to show that it runs and that what it claims holds; the full runs are modules."""

from __future__ import annotations

import pytest

from benchmarks import floods, swap_race

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """A workspace in which a second process swaps directories and files for links to what is outside."""
    if not swap_race.CAN_EXCHANGE:
        pytest.skip("this system has no renameat2")
    ground = swap_race.Ground(tmp_path_factory.mktemp("race"))
    with swap_race.swapping(ground.folders):
        yield ground


@pytest.mark.parametrize("name", [*swap_race.READS, *swap_race.CHANGES])
def test_no_operation_can_be_swapped_out_of_the_workspace(name, ground):
    """Nothing of the outside is seen, and nothing there is changed, while directories become links and back."""
    row = swap_race.race(ground, name, (swap_race.READS | swap_race.CHANGES)[name], seconds=0.1)
    assert row.calls > 0
    assert not row.escaped, row.first


def test_the_race_can_be_lost(ground):
    """An implementation that checks by realpath and opens by name is caught in the same race."""
    for _ in range(60):
        row = swap_race.race(ground, "naive read", swap_race.NAIVE_READS["naive read"], seconds=0.5)
        if row.leaks:
            break
    assert row.leaks
    assert swap_race.CANARY in row.first


FLOODS = [
    *("sparse: copy_file", "text: read_file_range", "one line: read"),
    *("entries: glob", "stream: gzip, one member", "server: 200 MB in chunks"),
]


def test_floods_stay_within_their_bounds(tmp_path):
    """Each in a process of its own: memory, time, and a sentence that says what became of it."""
    for name, cost in floods.sweep(FLOODS, tmp_path, scale=0.02):
        assert cost.megabytes < floods.MEMORY_BAR_MB, name
        assert cost.text.strip(), name
