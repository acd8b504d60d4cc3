"""Draw real edits from the history of git repositories: the change that one commit made to one place of a file.

``--repositories`` names git directories with their history. Nothing is checked out; file versions are read from the
history.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from adapter.core.text.diffs import LineChange, find_changes
from benchmarks.corruptions import Edit, is_telling
from benchmarks.real_files import LANGUAGES, MAX_BYTES, MIN_BYTES

SUFFIXES = (
    *(suffix for suffixes in LANGUAGES.values() for suffix in suffixes),
    *(".js", ".mjs", ".json", ".toml", ".java", ".rb", ".cs", ".kt", ".lua", ".sql", ".tpl"),
)
MAX_COMMITS = 4_000
MAX_LINES = 1_500
MAX_REMOVED, MAX_ADDED = 10, 20
"""Maximum numbers of lines that one edit removes and adds."""
NEAR = 4
"""Maximum number of lines between two changes that a model would write as one edit."""


class Revision(NamedTuple):
    """A file before and after a commit, as blobs."""

    repository: Path
    path: str
    before: str
    after: str


def revisions(repository: Path, suffixes: Sequence[str] = SUFFIXES) -> list[Revision]:
    shown = git_output(repository, "log", "--no-merges", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=M",
                 f"-n{MAX_COMMITS}", "--format=")  # fmt: skip
    found = []
    for line in shown.splitlines():
        fields, _, path = line.partition("\t")
        if path.endswith(tuple(suffixes)):
            _, _, before, after, _ = fields.split()
            found.append(Revision(repository, path, before, after))
    return found


def lines_of(repository: Path, blob: str) -> tuple[str, ...] | None:
    data = read_blob(repository, blob)
    if not MIN_BYTES <= len(data) <= MAX_BYTES:
        return None
    try:
        lines = tuple(data.decode().replace("\r\n", "\n").split("\n"))
    except UnicodeDecodeError:
        return None
    return lines if 30 <= len(lines) <= MAX_LINES else None


@cache
def _reader(repository: Path) -> subprocess.Popen[bytes]:
    """Start a process that reads all blobs of a repository. It ends with this process."""
    command = ["git", "-C", str(repository), "cat-file", "--batch"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def read_blob(repository: Path, blob: str) -> bytes:
    reader = _reader(repository)
    assert reader.stdin is not None
    assert reader.stdout is not None
    reader.stdin.write(f"{blob}\n".encode())
    reader.stdin.flush()
    head = reader.stdout.readline().split()
    if len(head) != 3:
        return b""
    data = reader.stdout.read(int(head[2]) + 1)
    return data[:-1]


class Commits:
    """Draws random edits from repositories, equally often from each language."""

    def __init__(self, random: Random, repositories: Sequence[Path], suffixes: Sequence[str] = SUFFIXES) -> None:
        self.random = random
        self.of_suffix: dict[str, list[Revision]] = {}
        self.later: dict[tuple[Path, str], list[str]] = {}
        for repository in repositories:
            for revision in revisions(repository, suffixes):
                self.of_suffix.setdefault(Path(revision.path).suffix, []).append(revision)
                self.later.setdefault((repository, revision.path), []).append(revision.after)

    def edit(self, suffix: str | None = None) -> Edit | None:
        revision = self._revision(suffix)
        before, after = (lines_of(revision.repository, blob) for blob in (revision.before, revision.after))
        if before is None or after is None:
            return None
        hunks = [hunk for hunk in _near_joined(find_changes(before, after)) if _is_small(hunk)]
        if not hunks:
            return None
        hunk = self.random.choice(hunks)
        if hunk.start < 6 or hunk.end > len(before) - 6:
            return None
        added = after[hunk.new_start : hunk.new_end]
        source = f"{revision.repository.parent.name}/{revision.path}"
        shown = self.random.randint(1, 4), self.random.randint(1, 4)
        edit = Edit(source, before, hunk.start, hunk.end, added, *shown)
        edges = (before[hunk.start - 1], before[hunk.end], *edit.removed[:1], *edit.removed[-1:])
        if not all(line.strip() for line in edges) or "\n".join(before).count("\n".join(edit.old)) != 1:
            return None
        return edit if is_telling(edit) and edit.old[-1].strip() else None

    def versions(self) -> tuple[str, Sequence[str], Sequence[str]] | None:
        """Return an older and a newer version of a file, or None."""
        revision = self._revision(None)
        newer = self.later[revision.repository, revision.path]
        blob = self.random.choice(newer[: newer.index(revision.after) + 1][-40:])
        before, after = (lines_of(revision.repository, blob) for blob in (revision.before, blob))
        if before is None or after is None or before == after:
            return None
        return f"{revision.repository.parent.name}/{revision.path}", before, after

    def _revision(self, suffix: str | None) -> Revision:
        return self.random.choice(self.of_suffix[suffix or self.random.choice(sorted(self.of_suffix))])


def _near_joined(hunks: Sequence[LineChange]) -> Iterator[LineChange]:
    joined: list[LineChange] = []
    for hunk in hunks:
        if joined and hunk.start - joined[-1].end <= NEAR:
            joined[-1] = joined[-1]._replace(end=hunk.end, new_end=hunk.new_end)
        else:
            joined.append(hunk)
    return iter(joined)


def _is_small(hunk: LineChange) -> bool:
    return hunk.end - hunk.start <= MAX_REMOVED and hunk.new_end - hunk.new_start <= MAX_ADDED


def git_output(repository: Path, *arguments: str) -> str:
    result = subprocess.run(["git", "-C", repository, *arguments], capture_output=True, check=True)
    return result.stdout.decode("utf-8", "replace")
