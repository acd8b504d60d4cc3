"""Plan an operation before it runs: a summary, a diff, and the function that performs it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from adapter.core.errors import ToolError
from adapter.core.text.diffs import render_unified_diff
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools import operations as ops
from adapter.tools.operations.permissions import FileDraft
from adapter.tools.operations.shell_analysis import iter_programs
from adapter.workspace.capabilities.capability_planner import SessionCapabilities, plan_host_operation
from adapter.workspace.changes.operation_plan import Plan, summarize
from adapter.workspace.changes.text_codec import decode, encode
from adapter.workspace.files import file_changes, file_info, listing, move_copy_delete, read_file
from adapter.workspace.files.file_changes import FileChange
from adapter.workspace.pausable_deadline import Deadline
from adapter.workspace.sandbox import shell, user_tool_runner
from adapter.workspace.sandbox.invoked_programs import identify_files, identify_programs
from adapter.workspace.sandbox.platform_processes import SHELL
from adapter.workspace.workspace_context import WorkspaceContext

_SHELL = f"with {SHELL} " if sys.platform == "win32" else ""


def plan_operation(
    context: WorkspaceContext,
    operation: ops.Operation,
    capabilities: SessionCapabilities | None = None,
    deadline: Deadline | None = None,
) -> Plan:
    """Plan an operation. Raises ToolError if the operation cannot succeed.

    Args:
        capabilities: The session's capabilities beyond files and processes; None outside a session.
        deadline: The deadline of the code that makes the call, which is paused while the user is asked.
    """
    if isinstance(operation, ops.HostOperation):
        if capabilities is None:
            raise ToolError(f"{type(operation).__name__} needs a session's capabilities; call Workspace.perform")
        return plan_host_operation(context, capabilities, operation, deadline)
    if type(operation) in _PLANNERS:
        return _PLANNERS[type(operation)](context, operation)
    template, perform = _WITHOUT_PLAN[type(operation)]
    return Plan(summarize(template, operation), lambda: perform(context, operation))


def _plan_command(context: WorkspaceContext, operation: ops.RunCommand | ops.StartCommand) -> Plan:
    command = escape_for_display(operation.command, keep="\n")
    mode = "in the background " if isinstance(operation, ops.StartCommand) else ""
    summary = f"run {_SHELL}{mode}in {escape_for_display(operation.cwd)}: {command}"
    state = identify_programs(context.root, operation.cwd, operation.command, context.sandbox.search_path)

    def commit() -> ops.Outcome:
        if isinstance(operation, ops.StartCommand):
            return context.commands.start(context.root, operation, context.sandbox)
        return shell.run_command(context.root, operation, context.sandbox)

    return Plan(summary, commit, state=state)


def _plan_user_tool(context: WorkspaceContext, operation: ops.RunProgram) -> Plan:
    argv = user_tool_runner.build_program_argv(context.root, operation, context.sandbox)
    summary = f"run {escape_for_display((subprocess.list2cmdline if sys.platform == 'win32' else shlex.join)(argv))}"
    state = identify_files(context.root, ".", iter_programs(tuple(argv)), context.sandbox.search_path)
    run = partial(user_tool_runner.run_program, context.root, operation, argv, context.echo, context.sandbox)
    return Plan(summary, run, state=state)


def _plan_change(context: WorkspaceContext, operation: ops.WriteText | ops.PatchText | ops.PatchFiles) -> Plan:
    match operation:
        case ops.WriteText():
            change = file_changes.plan_write(context, operation)
        case ops.PatchText():
            change = file_changes.plan_patch(context, operation)
        case ops.PatchFiles():
            change = file_changes.plan_files(context, operation)
    return _build_file_plan(context, change)


def _build_file_plan(context: WorkspaceContext, change: file_changes.FileChange) -> Plan:
    plan = Plan(change.summary, lambda: change.commit(context), change.diff, diffs=change.diffs)
    if (draft := build_editable_draft(change)) is None:
        return plan
    return replace(plan, draft=draft, edited=lambda text: _build_file_plan(context, replace_draft_text(change, text)))


def build_editable_draft(change: FileChange) -> FileDraft | None:
    """Return the old and the new text of a changed file, so that the user can edit the new text.

    Return None if the change deletes a file or concerns several files, or if the file is binary or its encoding is a
    guess.
    """
    if len(change.files) != 1:
        return None
    ((file, after),) = change.files
    if after is None:
        return None
    try:
        before, text = decode(file.data or b"", file.display_path), decode(after, file.display_path)
    except ToolError:
        return None
    return None if before.guessed or text.guessed else FileDraft(file.display_path, before.text, text.text)


def replace_draft_text(change: FileChange, text: str) -> FileChange:
    """Return the change of one file with ``text`` as the new content.

    Raises ToolError if the encoding of the file lacks a character of ``text``.
    """
    ((file, after),) = change.files
    display_path = file.display_path
    data = encode(text, decode(after or b"", display_path).encoding, display_path)
    before = decode(file.data or b"", display_path).text
    diff = render_unified_diff(before, text, display_path)
    outcome = replace(change.outcome, diff=diff)
    if isinstance(outcome, ops.FileWritten):
        outcome = replace(outcome, size=len(data))
    diffs = (diff,) if change.diffs else ()
    return replace(change, files=((file, data),), diff=diff, outcome=outcome, diffs=diffs)


def _grep(context: WorkspaceContext, operation: ops.Grep) -> ops.Outcome:
    from adapter.workspace.files.grep import grep  # imports regex, which few sessions need

    return grep(context.root, operation)


def _search_symbols(context: WorkspaceContext, operation: ops.Outline | ops.FindSymbols) -> ops.Outcome:
    from adapter.workspace.files import symbol_search  # imports tree-sitter

    if isinstance(operation, ops.Outline):
        return symbol_search.read_outline(context.root, operation)
    return symbol_search.find_symbols(context.root, operation)


_PLANNERS: dict[type, Callable[[WorkspaceContext, Any], Plan]] = {
    **dict.fromkeys((ops.WriteText, ops.PatchText, ops.PatchFiles), _plan_change),
    ops.Delete: move_copy_delete.plan_delete,
    **dict.fromkeys((ops.Move, ops.Copy), move_copy_delete.plan_move_or_copy),
    **dict.fromkeys((ops.RunCommand, ops.StartCommand), _plan_command),
    ops.RunProgram: _plan_user_tool,
}
_WITHOUT_PLAN: dict[type, tuple[str, Callable[[WorkspaceContext, Any], ops.Outcome]]] = {
    ops.ReadText: ("read {path}", read_file.read_text),
    ops.Stat: ("get information about {path}", lambda context, each: file_info.get_info(context.root, each)),
    ops.Tree: ("list {path}", lambda context, each: listing.list_tree(context.root, each)),
    ops.FindByName: ("find {text}", lambda context, each: listing.find_by_name(context.root, each)),
    ops.Glob: ("find {pattern}", lambda context, each: listing.find_by_glob(context.root, each)),
    ops.Grep: ("search {pattern}", _grep),
    ops.Outline: ("outline {path}", _search_symbols),
    ops.FindSymbols: ("find {pattern}", _search_symbols),
    ops.MakeDirectory: ("make the directory {path}", file_changes.make_directory),
    ops.ReadCommandOutput: ("read the output of {id}", lambda context, each: context.commands.read(each)),
    ops.KillCommand: ("end {id}", lambda context, each: context.commands.kill(each)),
}
"""For each operation that needs no planning, because it only reads or cannot fail halfway: the template of its summary,
and the function that performs it."""
