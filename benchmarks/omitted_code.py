"""Whole files in which ``... existing code ...`` replaces unchanged lines, made from the commits of git repositories.

    python -m benchmarks.omitted_code [--seed N] [--count N] [--show N] GIT_DIRECTORY ...

The new version of a file is written as models write it: each change with one to four unchanged lines around it,
sometimes the header of the class or function around it or the start of the file, and a comment in place of all else.
Counts files that are restored exactly, edits that are refused, and wrong results, which are worse than refusals.
``--show``: print this many wrong results.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from adapter.core.errors import ToolError
from adapter.core.text.diffs import changes, unified_diff
from adapter.editing.apply import patch_text
from adapter.tools.operations import WholeFileRewrite
from benchmarks.commits import Revision, lines_of, revisions

COMMENTS = {
    "#": (".py", ".rb", ".toml", ".yaml", ".yml", ".sh"),
    "//": (".go", ".ts", ".tsx", ".js", ".mjs", ".rs", ".java", ".c", ".h", ".cs", ".kt"),
}
PHRASES = ("... existing code ...", "... rest of the code ...", "... (unchanged)", "...", "rest of the file unchanged")
MIN_OMITTED = 3
"""Minimum number of lines that a comment replaces."""
MAX_CHANGES = 8


def cases(random: Random, repositories: Sequence[Path]) -> Iterator[tuple[str, str, str, str]]:
    """Yield names, old texts, new texts, and new texts with omissions."""
    all_revisions: list[Revision] = []
    for repository in repositories:
        all_revisions += revisions(repository, [suffix for suffixes in COMMENTS.values() for suffix in suffixes])
    random.shuffle(all_revisions)
    for revision in all_revisions:
        before, after = (lines_of(revision.repository, blob) for blob in (revision.before, revision.after))
        if before is None or after is None or not 1 <= len(changes(before, after)) <= MAX_CHANGES:
            continue
        written = write_with_omissions(random, before, after, Path(revision.path).suffix)
        if written is not None:
            yield revision.path, "\n".join(before), "\n".join(after), "\n".join(written)


def write_with_omissions(random: Random, before: Sequence[str], after: Sequence[str], suffix: str) -> list[str] | None:
    """Return the lines of ``after`` with comments in place of unchanged lines; None if no lines can be omitted."""
    shown: set[int] = set()
    if random.random() < 0.3:
        shown.update(range(random.randint(2, 6)))
    for hunk in changes(before, after):
        first, last = hunk.new_start - random.randint(1, 4), hunk.new_end + random.randint(1, 4)
        while first > 0 and not after[first].strip():
            first -= 1
        while last < len(after) and not after[last - 1].strip():
            last += 1
        shown.update(range(max(0, first), min(len(after), last)))
        header = _header_above(after, max(0, first))
        if header is not None and random.random() < 0.5:
            shown.add(header)
    mark = next(mark for mark, suffixes in COMMENTS.items() if suffix in suffixes)
    phrase = random.choice(PHRASES)
    written: list[str] = []
    position = 0
    for at in [*sorted(shown), len(after)]:
        omitted = after[position:at]
        if len(omitted) < MIN_OMITTED:
            written += omitted
        else:
            next_line = next(
                line for line in (*after[at : at + 1], *reversed(omitted)) if line.strip() or line is omitted[0]
            )
            indent = next_line[: len(next_line) - len(next_line.lstrip())]
            written += [""] * (not omitted[0].strip()) + [f"{indent}{mark} {phrase}"] + [""] * (not omitted[-1].strip())
        written += after[at : at + 1]
        position = at + 1
    return written if any(line.strip() == f"{mark} {phrase}" for line in written) else None


def _header_above(lines: Sequence[str], index: int) -> int | None:
    """Return the nearest line above that is indented less than the line at ``index`` and is no bracket."""
    depth = len(lines[index]) - len(lines[index].lstrip())
    for at in range(index - 1, -1, -1):
        line = lines[at]
        if line.strip() and len(line) - len(line.lstrip()) < depth:
            return at if any(character.isalnum() for character in line) else None
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=240, help="number of files")
    parser.add_argument("--show", type=int, default=0, help="number of wrong results to print")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    for path, before, after, written in cases(Random(arguments.seed), arguments.repositories):
        try:
            result = patch_text(before, [WholeFileRewrite("", written)], path=path).text
        except ToolError:
            counts["refused"] += 1
        else:
            kind = "right" if result == after else "wrong"
            counts[kind] += 1
            if kind == "wrong" and counts[kind] <= arguments.show:
                print(f"--- {path}, written\n{written}\n--- got instead of expected\n{unified_diff(after, result)}")
        if counts.total() == arguments.count:
            break
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("right", "refused", "wrong")), f"of {counts.total()}")


if __name__ == "__main__":
    main()
