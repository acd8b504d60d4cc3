"""Properties of every edit for any text: the right bytes or no change."""

import re
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adapter.core.errors import EditError
from adapter.core.text.diffs import render_unified_diff
from adapter.core.text.lines import split_lines
from adapter.editing import patch_text
from adapter.tools.operations import Patch, PatchText
from adapter.workspace.changes.text_codec import decode
from adapter.workspace.files.file_changes import plan_patch
from adapter.workspace.workspace_context import open_context
from tests.effort import examples

END = st.sampled_from(["\n", "\r\n", "\r"])
MARK = st.sampled_from(["", "\ufeff"])
WORD = st.sampled_from(["alpha", "beta", "gamma", "if x:", "}", "", "    y = 1", "\tz", "“q” – r", "return 'a'  "])
LINES = st.lists(st.tuples(WORD, st.integers(0, 9)).map(lambda pair: pair[0] and f"{pair[0]} {pair[1]}"), min_size=1)


@st.composite
def true_edits(draw):
    """Draw distinct lines, and disjoint ranges of them with their replacements."""
    lines = [f"{draw(WORD)} #{number:02}" for number in range(draw(st.integers(4, 20)))]
    cuts = sorted(draw(st.sets(st.integers(0, len(lines)), min_size=2, max_size=6)))
    stretches = [(start, stop) for start, stop in zip(cuts[::2], cuts[1::2], strict=False) if start < stop]
    assume(stretches)
    new = [
        [f"{line} new {index}" for line in draw(st.lists(WORD, min_size=1, max_size=3))]
        for index, _ in enumerate(stretches)
    ]
    return lines, list(zip(stretches, new, strict=True))


@given(true_edits(), END, MARK, st.booleans(), st.randoms(use_true_random=False))
def test_disjoint_edits_give_the_expected_text(edits, end, mark, is_closed, random):
    """With any line end, byte order mark and final newline, in any order of the patches."""
    lines, changes = edits
    result = list(lines)
    for (start, stop), new in reversed(changes):
        result[start:stop] = new
    closing = end if is_closed else ""
    patches = [Patch("\n".join(lines[start:stop]), "\n".join(new)) for (start, stop), new in changes]
    random.shuffle(patches)
    patched = patch_text(mark + end.join(lines) + closing, patches)
    assert patched.text == mark + end.join(result) + closing
    assert all(match.strictness == "exact" for match in patched.matches)


ENCODINGS = {"utf-8": b"", "utf-8-sig": b"", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
ACCENTED = ["déjà vu, café", "naïve façade über", "élève à l'école", "señor año"]


@given(true_edits(), st.lists(END, min_size=20, max_size=20), st.booleans(), st.sampled_from(sorted(ENCODINGS)))
def test_bytes_of_every_encoding_and_line_end_are_as_expected(edits, ends, is_closed, encoding):
    """Through a file, like ``adapter edit``: each line keeps its own end, even if they are mixed."""
    lines, changes = edits
    before, after = _bytes_of_truth(lines, changes, ends, is_closed, encoding)
    assert _edited_file(before, lines, changes) == after


@examples(40)
@given(true_edits(), st.lists(END, min_size=20, max_size=20), st.sampled_from(["latin-1", "cp1252"]))
def test_bytes_of_a_guessed_encoding_are_as_expected_or_unchanged(edits, ends, encoding):
    """Even if the guess is a different code page, the bytes are the same."""
    lines, changes = edits
    lines = [f"{ACCENTED[number % 4]} {number:02}" for number, _ in enumerate(lines)]
    changes = [(stretch, [f"{ACCENTED[len(line) % 4]} for {line!a}" for line in new]) for stretch, new in changes]
    before, after = _bytes_of_truth(lines, changes, ends, True, encoding)
    decoded = decode(before, "x")
    shown = split_lines(decoded.text)
    seen = dict(zip((line.encode(encoding) for line in lines), (line.rstrip("\r\n") for line in shown), strict=True))
    as_seen = [seen[line.encode(encoding)] for line in lines]
    words = [line.encode(encoding).decode(decoded.encoding) for _, new in changes for line in new]
    rest = iter(words)
    told = [(stretch, [next(rest) for _ in new]) for stretch, new in changes]
    assert _edited_file(before, as_seen, told) == after


def _bytes_of_truth(lines, changes, ends, is_closed, encoding):
    """Return the file before and after: a new line ends like the line that it replaces, the last one like the last."""
    ends = [*ends[: len(lines) - 1], ends[len(lines) - 1] if is_closed else ""]

    def end_at(number):
        return ends[number] or (ends[number - 1] if number else "") or "\n"

    after, position = "", 0
    for (start, stop), new in changes:
        after += "".join(map("".join, zip(lines[position:start], ends[position:start], strict=True)))
        inner = [end_at(min(start + index, stop - 1)) for index in range(len(new) - 1)]
        after += "".join(map("".join, zip(new, [*inner, ends[stop - 1]], strict=True)))
        position = stop
    after += "".join(map("".join, zip(lines[position:], ends[position:], strict=True)))
    before = "".join(map("".join, zip(lines, ends, strict=True)))
    mark = ENCODINGS.get(encoding, b"")
    return mark + before.encode(encoding), mark + after.encode(encoding)


def _edited_file(before, lines, changes):
    patches = tuple(Patch("\n".join(lines[start:stop]), "\n".join(new)) for (start, stop), new in changes)
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as state,
        open_context(folder, state) as desk,
    ):
        file = Path(folder, "x.txt")
        file.write_bytes(before)
        plan_patch(desk, PatchText("x.txt", patches)).commit(desk)
        return file.read_bytes()


@given(true_edits(), st.lists(st.integers(0, 60), min_size=2, max_size=8), END)
def test_the_diff_is_that_of_the_whole_texts(edits, cuts, end):
    """Only the lines around the changes are compared, wherever a change begins in a line."""
    lines, _ = edits
    text = end.join(lines)
    cuts = sorted({cut for cut in cuts if cut <= len(text)})
    stretches = [(start, stop) for start, stop in zip(cuts[::2], cuts[1::2], strict=False)]
    patches = [Patch(text[start:stop], f"<{start}>\n" * (start % 3)) for start, stop in stretches]
    with suppress(EditError):
        result = patch_text(text, patches)
        assert "".join(_applied(text, result.diff)) == result.text
        assert len(result.diff) <= len(render_unified_diff(text, result.text)) * 2


def _applied(text, diff):
    """Apply a diff by its line numbers."""
    old, position = text.split("\n"), 0
    for hunk in re.split(r"(?m)^(?=@@ )", diff)[1:]:
        head, _, body = hunk.partition("\n")
        start, count = re.findall(r"@@ -(\d+)(?:,(\d+))?", head)[0]
        first = int(start) - (count != "0")
        yield "".join(line + "\n" for line in old[position:first])
        rows = body.replace("\n\\ No newline at end of file\n", "\0").replace("\n", "\n\0").split("\0")
        rows = [row for row in rows if row]
        assert "".join(row[1:] for row in rows if row[0] in " -") in text
        yield "".join(row[1:] for row in rows if row[0] in " +")
        position = first + sum(row[0] in " -" for row in rows)
    yield "\n".join(old[position:])


@given(true_edits())
def test_one_failing_patch_prevents_all_changes(edits):
    """The error names only that patch, and reports that the others match."""
    lines, changes = edits
    patches = [Patch("\n".join(lines[start:stop]), "\n".join(new)) for (start, stop), new in changes]
    with pytest.raises(EditError, match="correct only the others") as caught:
        patch_text("\n".join(lines), [*patches, Patch("nowhere to be found 0123", "x")])
    assert len(caught.value.failures) == 1
    assert f"patch {len(patches) + 1} of" in caught.value.failures[0]


@given(true_edits())
def test_repeated_call_is_already_applied(edits):
    """Never applied twice: already applied, or there is nothing of the kind."""
    lines, changes = edits
    (start, stop), new = changes[0]
    patch = Patch("\n".join(lines[start:stop]), "\n".join(f"{line} changed for good" for line in new))
    once = patch_text("\n".join(lines), [patch]).text
    with pytest.raises(EditError, match="already applied"):
        patch_text(once, [patch])


@given(LINES, LINES, LINES, st.integers(0, 40), END)
def test_text_outside_matches_never_changes(lines, old, new, at, end):
    """Old text of any kind, mixed from existing and other lines."""
    start = at % len(lines)
    written = "\n".join([*lines[start : start + 2], *old])
    text = end.join(lines)
    try:
        result = patch_text(text, [Patch(written, "\n".join(new))])
    except EditError:
        return
    (match,) = result.matches
    before, after = end.join(lines[: match.start_line - 1]), end.join(lines[match.end_line :])
    assert result.text.startswith(before)
    assert result.text.endswith(after)


@given(LINES, st.lists(st.tuples(LINES, LINES), min_size=1, max_size=3))
def test_invalid_patches_only_raise_edit_error(lines, pairs):
    """Any texts give a result or an EditError."""
    patches = [Patch("\n".join(old), "\n".join(new)) for old, new in pairs]
    for basis in ("original", "sequence"):
        with suppress(EditError):
            patch_text("\n".join(lines), patches, basis=basis)
