"""Log slicing: the head, the tail and lines that indicate problems, in order, without repetition."""

import random
import re

import pytest

from adapter.core.text.truncate import MAX_BYTES
from adapter.workspace.sandbox.problem_excerpt import ENDS, MAX_MATCHES, ProblemExcerptBuilder


def sliced(lines, step=1_000, end="\n"):
    slice_ = ProblemExcerptBuilder()
    data = ("\n".join(lines) + end).encode()
    for at in range(0, len(data), step):
        slice_.add(data[at : at + step])
    return slice_.build_excerpt(), slice_


def test_short_output_is_not_sliced():
    lines = [f"line {n}" for n in range(2 * ENDS)]
    found, slice_ = sliced(lines)
    assert found is None
    assert slice_.render_text() == "\n".join(lines) + "\n"


def test_head_tail_and_matches_in_original_order():
    """C141, D14: each line once, and the size of each gap."""
    lines = [f"line {n}" for n in range(1_000)]
    lines[400] = "a WARNING: late"
    lines[300] = "fatal: early"
    lines[301] = "error next to it"
    found, _ = sliced(lines)
    shown = found.text.splitlines()
    assert shown[:ENDS] == lines[:ENDS]
    assert shown[-ENDS:] == lines[-ENDS:]
    assert shown[ENDS:-ENDS] == [
        "[... 50 lines left out ...]",
        "fatal: early",
        "error next to it",
        "[... 98 lines left out ...]",
        "a WARNING: late",
        "[... 349 lines left out ...]",
    ]
    assert found.skipped == 1_000 - 2 * ENDS - 3
    assert set(found.patterns) == {"error", "fatal", "warning"}


@pytest.mark.parametrize("seed", range(20))
def test_each_line_is_shown_once_or_counted(seed):
    """For any output in any chunks, shown lines are in order, and the gaps count the others."""
    chance = random.Random(seed)
    count = chance.choice([499, 500, 501, 700, 5_000])
    lines = [f"{n} {'error' if chance.random() < 0.03 else 'fine'}" for n in range(count)]
    found, _ = sliced(lines, chance.choice([1, 7, 100, 65_536]), chance.choice(["", "\n"]))
    if count <= 2 * ENDS:
        assert found is None
        return
    position = skipped = 0
    for line in found.text.splitlines():
        gap = re.fullmatch(r"\[\.\.\. (\d+) lines left out \.\.\.\]", line)
        if gap:
            assert int(gap[1]) > 0
            position += int(gap[1])
            skipped += int(gap[1])
        else:
            assert line == lines[position]
            position += 1
    assert position == count
    assert skipped == found.skipped


def test_log_of_only_errors_stays_small():
    """Only the first matches are kept."""
    found, _ = sliced([f"error {n}" for n in range(100_000)])
    shown = found.text.splitlines()
    assert len(shown) == 2 * ENDS + MAX_MATCHES + 1
    assert shown[ENDS + MAX_MATCHES - 1] == f"error {ENDS + MAX_MATCHES - 1}"


def test_long_lines_shorten_ends_not_matches():
    """The excerpt fits into a result, so that matches are not cut out again."""
    lines = [f"{n} " + "x" * 500 for n in range(2_000)]
    lines[1_000] = "an exception"
    found, _ = sliced(lines)
    assert len(found.text.encode()) <= MAX_BYTES
    assert "\nan exception\n" in found.text
    assert found.text.startswith("0 xx")
    assert found.text.rstrip().rpartition("\n")[2].startswith("1999 xx")


def test_endless_line_uses_bounded_memory():
    """Without line ends, memory is limited and the work linear."""
    slice_ = ProblemExcerptBuilder()
    for _ in range(2_000):
        slice_.add(b"x" * 10_000)
    assert slice_.build_excerpt() is None
    assert len(slice_.render_text()) < 600_000


def test_invalid_utf8_is_replaced():
    slice_ = ProblemExcerptBuilder()
    slice_.add(b"\xff\xfe\n" * 1_000)
    found = slice_.build_excerpt()
    assert found is not None
    assert found.text.startswith("\ufffd\ufffd\n")
