"""Apply commits of several files, written in six edit formats, to a folder at once, and compare every byte.

    python -m benchmarks.commit_notations [--seed N] [--count N] [--show NOTATION] [--codex PROGRAM] [--aider PYTHON]
        GIT_DIRECTORY ...

A commit changes 2 to 8 files, and may add and delete others. It is written as a diff with and without line numbers, as
a ``*** Begin Patch`` envelope, as SEARCH/REPLACE blocks, as JSON, and as whole files in which comments stand for
unchanged lines. The last three cannot delete a file, so they are not used for commits that do. ``--codex`` and
``--aider`` are the programs of `other_appliers`, which then apply the same commits.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias

from adapter.core.errors import ToolError
from adapter.core.text.diffs import LineChange, find_changes
from adapter.editing.notations.parse_edits import parse_file_edits
from adapter.tools.operations import PatchFiles
from adapter.workspace.files.file_changes import plan_files
from adapter.workspace.workspace_context import open_context
from benchmarks.commits import MAX_COMMITS, SUFFIXES, git_output, read_blob
from benchmarks.other_appliers import Aider, Applier, find_appliers

CONTEXT = 3
MAX_BYTES = 60_000
MARK = "\ufeff"
COMMENTS = {
    "#": (".py", ".rb", ".toml", ".yaml", ".yml", ".sh"),
    "//": (".go", ".ts", ".tsx", ".js", ".mjs", ".rs", ".java", ".c", ".h", ".cs", ".kt"),
}
PHRASES = ("... existing code ...", "... rest of the code ...", "... (unchanged)", "...", "rest of the file unchanged")
MIN_OMITTED = 3
"""Minimum number of lines that a comment replaces."""
Files: TypeAlias = dict[str, str]


class Commit(NamedTuple):
    """``before`` and ``after``: the texts of the files that the commit touches, by path."""

    name: str
    before: Files
    after: Files


def commits(random: Random, repositories: Sequence[Path]) -> Iterator[Commit]:
    """Yield commits in random order, equally many from each repository."""
    found = [_listed(repository) for repository in repositories]
    for commits_of in found:
        random.shuffle(commits_of)
    for round_ in zip(*found, strict=False):
        for repository, name, rows in round_:
            commit = _read(repository, name, rows)
            if commit is not None:
                yield commit


def _listed(repository: Path) -> list[tuple[Path, str, list[list[str]]]]:
    shown = git_output(
        repository,
        "log",
        "--no-merges",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        f"-n{MAX_COMMITS}",
        "--format=commit %H",
    )
    found: list[tuple[Path, str, list[list[str]]]] = []
    for line in filter(None, shown.splitlines()):
        if line.startswith("commit "):
            found.append((repository, line.split()[1], []))
        else:
            fields, _, path = line.partition("\t")
            found[-1][2].append([*fields.split()[2:], path])
    return [commit for commit in found if 2 <= len(commit[2]) <= 8]


def _read(repository: Path, name: str, rows: Sequence[Sequence[str]]) -> Commit | None:
    before, after = Files(), Files()
    for old, new, status, path in rows:
        if status not in "MAD" or not path.endswith(SUFFIXES):
            return None
        for blob, is_there, files in ((old, status != "A", before), (new, status != "D", after)):
            data = read_blob(repository, blob) if is_there else b"-\n"
            try:
                text = data.decode()
            except UnicodeDecodeError:
                return None
            if not text.endswith("\n") or len(data) > MAX_BYTES or "\r" in text:
                return None
            if is_there and files is after and text.startswith(MARK) != before.get(path, text).startswith(MARK):
                return None
            files |= {path: text} if is_there else {}
    is_varied = sum(path in after and before[path] != after[path] for path in before) >= 2
    return Commit(f"{repository.parent.name} {name[:9]}", before, after) if is_varied else None


# ------------------------------------------------------------------------- notations


def _hunks(before: Sequence[str], after: Sequence[str], context: int) -> Iterator[LineChange]:
    """Yield the changes with ``context`` lines around them. Changes whose context lines touch are joined."""
    joined: list[LineChange] = []
    for change in find_changes(before, after):
        head = min(context, change.start)
        tail = min(context, len(before) - change.end)
        wide = LineChange(change.start - head, change.end + tail, change.new_start - head, change.new_end + tail)
        if joined and wide.start <= joined[-1].end:
            joined[-1] = joined[-1]._replace(end=wide.end, new_end=wide.new_end)
        else:
            joined.append(wide)
    return iter(joined)


def _marked(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    position = 0
    for change in find_changes(before, after):
        yield from (" " + line for line in before[position : change.start])
        yield from ("-" + line for line in before[change.start : change.end])
        yield from ("+" + line for line in after[change.new_start : change.new_end])
        position = change.end
    yield from (" " + line for line in before[position:])


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _diff(commit: Commit, has_numbers: bool) -> str:
    lines: list[str] = []
    for path in sorted({*commit.before, *commit.after}):
        before, after = _split(commit.before.get(path, "")), _split(commit.after.get(path, ""))
        lines.append(f"--- a/{path}" if path in commit.before else "--- /dev/null")
        lines.append(f"+++ b/{path}" if path in commit.after else "+++ /dev/null")
        for hunk in _hunks(before, after, CONTEXT):
            size, new_size = hunk.end - hunk.start, hunk.new_end - hunk.new_start
            numbers = f" -{hunk.start + bool(size)},{size} +{hunk.new_start + bool(new_size)},{new_size} @@"
            lines.append("@@" + numbers if has_numbers else "@@ @@")
            lines += _marked(before[hunk.start : hunk.end], after[hunk.new_start : hunk.new_end])
    return "\n".join(lines) + "\n"


def numbered_diff(commit: Commit, _: Random) -> str | None:
    return _diff(commit, has_numbers=True)


def bare_diff(commit: Commit, _: Random) -> str | None:
    return _diff(commit, has_numbers=False)


def envelope(commit: Commit, _: Random) -> str | None:
    lines = ["*** Begin Patch"]
    for path in sorted({*commit.before, *commit.after}):
        before, after = _split(commit.before.get(path, "")), _split(commit.after.get(path, ""))
        if path not in commit.after:
            lines.append(f"*** Delete File: {path}")
        elif path not in commit.before:
            lines += [f"*** Add File: {path}", *("+" + line for line in after)]
        else:
            lines.append(f"*** Update File: {path}")
            for hunk in _hunks(before, after, CONTEXT):
                lines += ["@@", *_marked(before[hunk.start : hunk.end], after[hunk.new_start : hunk.new_end])]
    return "\n".join([*lines, "*** End Patch"])


def _replacements(commit: Commit) -> Iterator[tuple[str, str, str]]:
    """Yield the path, old text and new text of each change, with as many context lines as make the old text unique."""
    for path, text in commit.after.items():
        before, after = _split(commit.before.get(path, "")), _split(text)
        if not before:
            yield path, "", text.removesuffix("\n")
            continue
        context = CONTEXT
        while context < 40:
            hunks = list(_hunks(before, after, context))
            olds = ["\n".join(before[hunk.start : hunk.end]) for hunk in hunks]
            if all(f"\n{commit.before[path]}".count(f"\n{old}\n") == 1 for old in olds):
                break
            context += 2
        for old, hunk in zip(olds, hunks, strict=True):
            yield path, old, "\n".join(after[hunk.new_start : hunk.new_end])


def blocks(commit: Commit, _: Random) -> str | None:
    if set(commit.before) - set(commit.after):
        return None
    return "\n".join(
        f"{path}\n```\n<<<<<<< SEARCH\n{old + bool(old) * chr(10)}=======\n{new + bool(new) * chr(10)}"
        ">>>>>>> REPLACE\n```\n"
        for path, old, new in _replacements(commit)
    )


def json_edits(commit: Commit, _: Random) -> str | None:
    if set(commit.before) - set(commit.after):
        return None
    rows = [
        {"path": path, "old_text": old, "new_text": new if old else f"{new}\n"}
        for path, old, new in _replacements(commit)
    ]
    return json.dumps({"edits": rows})


def _write_with_omissions(random: Random, before: Sequence[str], after: Sequence[str], suffix: str) -> list[str] | None:
    """Return the lines of ``after`` with comments in place of unchanged lines; None if no lines can be omitted.

    Each change is shown with one to four unchanged lines around it, sometimes with the header of the class or function
    around it or the start of the file, as models write it.
    """
    mark = next((mark for mark, suffixes in COMMENTS.items() if suffix in suffixes), None)
    if mark is None or before == after:
        return None
    shown: set[int] = set()
    if random.random() < 0.3:
        shown.update(range(random.randint(2, 6)))
    for hunk in find_changes(before, after):
        first, last = hunk.new_start - random.randint(1, 4), hunk.new_end + random.randint(1, 4)
        while first > 0 and not after[first].strip():
            first -= 1
        while last < len(after) and not after[last - 1].strip():
            last += 1
        shown.update(range(max(0, first), min(len(after), last)))
        header = _header_above(after, max(0, first))
        if header is not None and random.random() < 0.5:
            shown.add(header)
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
    depth = len(lines[index]) - len(lines[index].lstrip())
    for at in range(index - 1, -1, -1):
        line = lines[at]
        if line.strip() and len(line) - len(line.lstrip()) < depth:
            return at if any(character.isalnum() for character in line) else None
    return None


def whole_files(commit: Commit, random: Random) -> str | None:
    if set(commit.before) - set(commit.after):
        return None
    parts: list[str] = []
    is_shortened = False
    for path, text in commit.after.items():
        written = None
        if path in commit.before:
            written = _write_with_omissions(random, _split(commit.before[path]), _split(text), Path(path).suffix)
        is_shortened |= written is not None
        parts.append(
            f"{path}\n````\n{text.removesuffix(chr(10)) if written is None else chr(10).join(written)}\n````\n"
        )
    return "\n".join(parts) if is_shortened else None


NOTATIONS: Mapping[str, Callable[[Commit, Random], str | None]] = {
    "numbered diff": numbered_diff,
    "bare diff": bare_diff,
    "envelope": envelope,
    "blocks": blocks,
    "json": json_edits,
    "whole files": whole_files,
}


# -------------------------------------------------------------------------- applying


def apply(folder: Path, text: str) -> str:
    """Apply ``text`` to the files of ``folder``. Returns the reason why nothing was applied, or an empty string."""
    with open_context(folder) as context:
        try:
            plan_files(context, PatchFiles(parse_file_edits(text), "original", "insert")).commit(context)
        except ToolError as error:
            return str(error)
    return ""


def verdict(commit: Commit, text: str, applier: Applier) -> tuple[str, str]:
    """Return whether the folder is ``right``, ``refused``, ``partial`` (some files changed in spite of an error) or
    ``wrong`` afterwards, and why."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, before in commit.before.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(before.encode())
        reason = applier(folder, text)
        found = {
            str(file.relative_to(folder)): file.read_bytes().decode() for file in folder.rglob("*") if file.is_file()
        }
    if found == commit.after:
        return "right", ""
    if found == commit.before:
        return "refused", reason
    differing = sorted(path for path in {*found, *commit.after} if found.get(path) != commit.after.get(path))
    return "partial" if reason else "wrong", f"{', '.join(differing)} {reason}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="number of commits in each notation")
    parser.add_argument("--show", help="print what is not right in this notation")
    parser.add_argument("--codex", help="program that applies envelopes")
    parser.add_argument("--aider", help="interpreter with the package aider-chat")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folders:
        tempfile.tempdir = folders
        aider = Aider(arguments.aider, Path(folders)) if arguments.aider else None
        for notation in NOTATIONS:
            compare(notation, {"ours": apply, **dict(find_appliers(notation, arguments.codex, aider))}, arguments)
        tempfile.tempdir = None


def compare(notation: str, appliers: Mapping[str, Applier], arguments: argparse.Namespace) -> None:
    """Print how many of the same commits each program applies."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in appliers}
    random = Random(arguments.seed)
    texts = ((commit, NOTATIONS[notation](commit, random)) for commit in commits(random, arguments.repositories))
    written = ((commit, text) for commit, text in texts if text is not None)
    for commit, text in islice(written, arguments.count):
        for name, applier in appliers.items():
            kind, reason = verdict(commit, text, applier)
            counts[name][kind] += 1
            if kind != "right" and arguments.show == notation:
                print(f"--- {name}, {commit.name}: {kind}: {reason}")
    for name, kinds in counts.items():
        shown = (f"{kinds[kind]} {kind}" for kind in ("right", "refused", "partial", "wrong"))
        print(f"{notation:14} {name:6}", ", ".join(shown), flush=True)


if __name__ == "__main__":
    main()
