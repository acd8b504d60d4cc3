"""Measure how well the last line of `adapter run` tells right changes from wrong ones, without a model.

    python -m benchmarks.run_outcomes [--missed KIND]

The right changes are the results of the everyday tasks (benchmarks/everyday_tasks.toml), and the changes in
benchmarks/right_changes.jsonl, which are written as capable models make them. Each is damaged in the ways of small
models: a part is missing, a line is lost, a number is wrong. benchmarks/wrong_changes.jsonl has other wrong changes,
written by hand. A right change with the exit code 1 is a false alarm; a wrong one with the exit code 0 is missed.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from adapter.cli.call_tally import CallTally
from adapter.cli.folder_changes import FolderChanges
from adapter.cli.run_outcome import describe_run_outcome
from adapter.conversation.session_steps import Finished, Reason
from adapter.core.events import JsonObject, ToolCall, ToolResult
from adapter.core.text.diffs import render_unified_diff
from adapter.dialects import get_dialect
from adapter.editing.syntax_check import NO_LONGER_PARSES, UncheckableError, find_syntax_error
from benchmarks.everyday_tasks import SETS, load_tasks

TOOLS = get_dialect("blade").tools

Files: TypeAlias = Mapping[str, str]
"""The text of each file by its path."""
Change: TypeAlias = tuple[str, Files, Files]
"""A task, and the files before and after it."""


def judge(
    task: str, before: Files, after: Files, reason: Reason = "answered", answer: str = "Done."
) -> tuple[int, str]:
    """Return the exit code and the last line of a run that read the files and changed them by edits."""
    tally = CallTally(TOOLS)

    def call(name: str, arguments: JsonObject, content: str = "ok") -> None:
        tally(ToolCall(str(tally.calls), name, arguments, ""))
        tally(ToolResult(name, content=content, ok=True, call_id=str(tally.calls)))

    call("list_directory", {"path": "."}, "\n".join(before))
    diffs = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old is not None and (path in task or old != new):
            call("read_file", {"path": path}, old)
        if old == new:
            continue
        diffs.append(render_unified_diff(old or "", new or "", path))
        if new is None:
            call("delete_file", {"path": path})
        elif old is None:
            call("write_file", {"path": path, "content": new})
        else:
            note = NO_LONGER_PARSES if _is_broken(path, new) and not _is_broken(path, old) else ""
            lines = old.splitlines(True), new.splitlines(True)
            for kind, start, end, new_start, new_end in _compare(*lines):
                if kind != "equal":
                    texts = "".join(lines[0][start:end]), "".join(lines[1][new_start:new_end])
                    call("edit_file", {"path": path, "old_content": texts[0], "new_content": texts[1]}, note)
    return describe_run_outcome(
        Finished(reason, answer),
        tally,
        task,
        lambda path: after.get(path, ""),
        FolderChanges("".join(diffs) if diffs else None),
    )


def _is_broken(path: str, text: str) -> bool:
    try:
        return bool(text) and find_syntax_error(text, path) is not None
    except UncheckableError:
        return False


def _compare(old: list[str], new: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    return difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def list_written_changes(name: str = "right_changes.jsonl") -> list[Change]:
    """Return the changes in a file of this folder."""
    changes = []
    for line in Path(__file__).with_name(name).read_text("utf-8").splitlines():
        change = json.loads(line)
        changes.append((change["task"], change["before"], _apply(change["before"], change["after"])))
    return changes


def list_everyday_changes() -> list[Change]:
    """Return the tasks that change files and have one right result."""
    tasks = [task for name in SETS for task in load_tasks(name).values()]
    return [
        (task.request, task.before, _apply(task.before, {path: text and f"{text}\n" for path, text in after.items()}))
        for task in tasks
        if (after := task.after) and not task.check
    ]


def _apply(before: Files, after: Mapping[str, str | bool]) -> Files:
    return {path: text for path, text in {**before, **after}.items() if isinstance(text, str)}


def damage(task: str, before: Files, after: Files) -> Iterator[tuple[str, Files]]:
    """Yield the kind of each damage to a right change, and the files after it."""
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    for path in changed:
        if len(changed) > 1:
            reverted = {path: before[path]} if path in before else {}
            yield "file missing", {**{each: after[each] for each in after if each != path}, **reverted}
        old, new = before.get(path), after.get(path)
        if old is None:
            yield "text invented", {**after, path: "This is a test file.\n"}
            yield "file empty", {**after, path: ""}
        if old is None or new is None:
            continue
        old_lines, new_lines = old.splitlines(True), new.splitlines(True)
        steps = _compare(old_lines, new_lines)
        edits = [step for step in steps if step[0] != "equal"]
        for edit in edits if len(edits) > 1 else ():
            parts = (old_lines[step[1] : step[2]] if step == edit else new_lines[step[3] : step[4]] for step in steps)
            yield "part missing", {**after, path: "".join(line for part in parts for line in part)}
        added = [line for edit in edits for line in new_lines[edit[3] : edit[4]]]
        kept = [index for index, line in enumerate(new_lines) if line in old_lines and re.search(r"\w", line)]
        for index in dict.fromkeys([*kept[:1], *kept[-1:]]):
            yield "line lost", {**after, path: "".join(new_lines[:index] + new_lines[index + 1 :])}
        if kept and added:
            yield "rest lost", {**after, path: "".join(added)}
        numbers = {*re.findall(r"\d+", task)} & {*re.findall(r"\d+", "".join(added))} - {*re.findall(r"\d+", old)}
        for number in sorted(numbers):
            wrong = re.sub(rf"(?<!\d){number}(?!\d)", str(int(number[::-1]) + 11), new)
            yield "number wrong", {**after, path: wrong}
        if kept:
            line = new_lines[kept[-1]]
            other = re.sub(r"\w+(?=\W*\Z)", "changed", line)
            yield "other place", {**after, path: old.replace(line, other, 1)}
        for kind, start, _, new_start, new_end in edits:
            if kind == "insert" and start > 0:
                lines = old_lines[: start - 1] + new_lines[new_start:new_end] + old_lines[start:]
                yield "line replaced", {**after, path: "".join(lines)}
        yield "file deleted", {each: after[each] for each in after if each != path}
    yield "nothing changed", before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--missed", metavar="KIND", help="print the missed changes of this kind, or of all")
    options = parser.parse_args()
    for name, changes in (("everyday tasks", list_everyday_changes()), ("other tasks", list_written_changes())):
        alarms = [
            (task, line) for task, before, after in changes for code, line in [judge(task, before, after)] if code
        ]
        for task, line in alarms:
            print(f"false alarm: {task!r}: {line}")
        found, count = Counter[str](), Counter[str]()
        for task, before, after in changes:
            for kind, wrong in damage(task, before, after):
                is_found = judge(task, before, wrong)[0] != 0
                count[kind] += 1
                found[kind] += is_found
                if not is_found and options.missed in (kind, "all"):
                    print(f"missed, {kind}: {task!r}: {dict(wrong)}")
        kinds = ", ".join(f"{kind} {found[kind]}/{count[kind]}" for kind in sorted(count))
        print(
            f"{name}: {len(alarms)} false alarms in {len(changes)}; found {found.total()} of {count.total()}: {kinds}"
        )
    written = list_written_changes("wrong_changes.jsonl")
    missed = [change for change in written if not judge(*change)[0]]
    for task, _, result in missed if options.missed == "all" else ():
        print(f"missed: {task!r}: {dict(result)}")
    print(f"wrong changes: found {len(written) - len(missed)} of {len(written)}")


if __name__ == "__main__":
    main()
