"""Unified diffs: applying one gives the new text, and it names the changed lines."""

import difflib
import re
import time

from hypothesis import given
from hypothesis import strategies as st

from adapter.core.text.diffs import render_unified_diff

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "d\n"]), max_size=30).map("".join)


def apply_diff(before, diff):
    """An independent, strict reader of unified diffs."""
    old = re.findall(r"[^\n]*\n|[^\n]+", before)
    result, position = [], 0
    lines = re.sub(r"\n\\ No newline at end of file\n", "\0", diff).split("\n")[2:]
    text = "\n".join(lines).replace("\0", "\1\n")
    for line in text.split("\n"):
        header = re.match(r"@@ -(\d+)(?:,(\d+))? ", line)
        if header:
            start = int(header[1]) - (header[2] != "0")
            result += old[position:start]
            position = start
            continue
        body = line[1:-1] if line.endswith("\1") else line[1:] + "\n"
        if line[:1] in (" ", "-") and line:
            assert old[position] == body
            position += 1
        if line[:1] in (" ", "+") and line:
            result.append(body)
    return "".join(result + old[position:])


@given(LINES, LINES, st.booleans(), st.booleans())
def test_diff_applied_to_the_old_text_gives_the_new_text(before, after, cut_before, cut_after):
    """A diff shown for approval is exactly the change that is made."""
    before = before.removesuffix("\n") if cut_before else before
    after = after.removesuffix("\n") if cut_after else after
    diff = render_unified_diff(before, after, "f")
    if diff:
        assert apply_diff(before, diff) == after
    else:
        assert before == after


def test_diff_reads_like_the_standard_one():
    before = "".join(f"{i}\n" for i in range(20))
    after = before.replace("5\n", "five\n", 1)
    standard = difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/f", "b/f")
    assert render_unified_diff(before, after, "f") == "".join(standard)


def test_large_files_that_share_nothing_are_diffed_quickly():
    """The worst case shows the whole middle as replaced, instead of comparing for minutes."""
    before = "".join(f"old {i}\n" for i in range(60_000))
    after = "".join(f"new {i}\n" for i in range(60_000))
    start = time.thread_time()
    assert render_unified_diff(before, after).count("\n-") == 59_999 + 1
    assert time.thread_time() - start < 5
