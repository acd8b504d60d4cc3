"""Plan an operation before it runs: a summary, a diff, and the function that performs it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from typing import assert_never

from adapter.core.errors import ToolError
from adapter.core.text.diffs import render_unified_diff
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools import operations as ops
from adapter.tools.operations import FileWritten
from adapter.tools.operations.permissions import FileDraft
from adapter.tools.operations.shell_words import list_programs
from adapter.workspace.capabilities.host_planner import SessionCapabilities, plan_host_operation
from adapter.workspace.changes.operation_plan import Plan
from adapter.workspace.changes.text_codec import decode, encode
from adapter.workspace.files import edit_files, listing, move_copy_delete, read_file
from adapter.workspace.files.edit_files import FileChange
from adapter.workspace.operation_context import WorkspaceContext
from adapter.workspace.pausable_deadline import Deadline
from adapter.workspace.sandbox import shell, user_tool_runner
from adapter.workspace.sandbox.invoked_programs import identify_files, identify_programs
from adapter.workspace.sandbox.platform_processes import SHELL

_SHELL = f"with {SHELL} " if sys.platform == "win32" else ""


def plan_operation(
    context: WorkspaceContext,
    operation: ops.Operation,
    capabilities: SessionCapabilities | None = None,
    clock: Deadline | None = None,
) -> Plan:
    """Plan an operation. Raises ToolError if the operation cannot succeed.

    ``capabilities``: the session's capabilities beyond files and processes; None outside a session. ``clock``: deadline
    of the code that makes the call, paused while the user answers.
    """
    if isinstance(operation, ops.HostOperation):
        if capabilities is None:
            raise ToolError("this operation needs a session; none is open")
        return plan_host_operation(context, capabilities, operation, clock)
    if isinstance(operation, ops.ReadOperation):
        return _plan_reading(context, operation)
    if isinstance(operation, ops.ChangeOperation):
        return _plan_change(context, operation)
    return _plan_program(context, operation)


def _plan_reading(context: WorkspaceContext, operation: ops.ReadOperation) -> Plan:
    root = context.root
    match operation:
        case ops.ReadText():
            return Plan(f"read {escape_for_display(operation.path)}", lambda: read_file.read_text(context, operation))
        case ops.Stat():
            return Plan(
                f"get information about {escape_for_display(operation.path)}",
                lambda: edit_files.get_info(root, operation),
            )
        case ops.Tree():
            return Plan(f"list {escape_for_display(operation.path)}", lambda: listing.list_tree(root, operation))
        case ops.FindByName():
            return Plan(f"find {escape_for_display(operation.text)}", lambda: listing.find_by_name(root, operation))
        case ops.Glob():
            return Plan(f"find {escape_for_display(operation.pattern)}", lambda: listing.find_by_glob(root, operation))
        case ops.Grep():
            from adapter.workspace.files import grep

            return Plan(f"search {escape_for_display(operation.pattern)}", lambda: grep.grep(root, operation))
        case ops.Outline():
            from adapter.workspace.files import symbol_search

            return Plan(
                f"outline {escape_for_display(operation.path)}", lambda: symbol_search.read_outline(root, operation)
            )
        case ops.FindSymbols():
            from adapter.workspace.files import symbol_search

            return Plan(
                f"find {escape_for_display(operation.pattern)}", lambda: symbol_search.find_symbols(root, operation)
            )
        case _:
            assert_never(operation)


def _plan_change(context: WorkspaceContext, operation: ops.ChangeOperation) -> Plan:
    match operation:
        case ops.WriteText():
            return _build_file_plan(context, edit_files.plan_write(context, operation))
        case ops.PatchText():
            return _build_file_plan(context, edit_files.plan_patch(context, operation))
        case ops.PatchFiles():
            return _build_file_plan(context, edit_files.plan_files(context, operation))
        case ops.MakeDirectory():
            return Plan(
                f"make the directory {escape_for_display(operation.path)}",
                lambda: edit_files.make_directory(context, operation),
            )
        case ops.Delete():
            return move_copy_delete.plan_delete(context, operation)
        case ops.Move():
            return move_copy_delete.plan_move(context, operation)
        case ops.Copy():
            return move_copy_delete.plan_copy(context, operation)
        case _:
            assert_never(operation)


def _plan_program(context: WorkspaceContext, operation: ops.ProgramOperation) -> Plan:
    root = context.root
    match operation:
        case ops.RunCommand():
            command = escape_for_display(operation.command, keep="\n")
            summary = f"run {_SHELL}in {escape_for_display(operation.cwd)}: {command}"
            state = identify_programs(root, operation.cwd, operation.command, context.confinement.search_path)
            return Plan(summary, lambda: shell.run_command(root, operation, context.confinement), state=state)
        case ops.StartCommand():
            command = escape_for_display(operation.command, keep="\n")
            summary = f"run {_SHELL}in the background in {escape_for_display(operation.cwd)}: {command}"
            state = identify_programs(root, operation.cwd, operation.command, context.confinement.search_path)
            return Plan(summary, lambda: context.commands.start(root, operation, context.confinement), state=state)
        case ops.ReadCommandOutput():
            return Plan(
                f"read the output of {escape_for_display(operation.id)}", lambda: context.commands.read(operation)
            )
        case ops.KillCommand():
            return Plan(f"end {escape_for_display(operation.id)}", lambda: context.commands.kill(operation))
        case ops.RunProgram():
            argv = user_tool_runner.build_program_argv(root, operation, context.confinement)
            join = subprocess.list2cmdline if sys.platform == "win32" else shlex.join
            summary = f"run {escape_for_display(join(argv))}"
            return Plan(
                summary,
                lambda: user_tool_runner.run_program(root, operation, argv, context.echo, context.confinement),
                state=identify_files(root, ".", list_programs(tuple(argv)), context.confinement.search_path),
            )
        case _:
            assert_never(operation)


def _build_file_plan(context: WorkspaceContext, change: edit_files.FileChange) -> Plan:
    draft = build_editable_draft(change)
    return Plan(
        change.summary,
        lambda: change.commit(context),
        change.diff,
        diffs=change.diffs,
        draft=draft,
        edited=None if draft is None else lambda text: _build_file_plan(context, replace_draft_text(change, text)),
    )


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
    shown = file.display_path
    data = encode(text, decode(after or b"", shown).encoding, shown)
    before = decode(file.data or b"", shown).text
    diff = render_unified_diff(before, text, shown)
    outcome = replace(change.outcome, diff=diff)
    if isinstance(outcome, FileWritten):
        outcome = replace(outcome, size=len(data))
    diffs = (diff,) if change.diffs else ()
    return replace(change, files=((file, data),), diff=diff, outcome=outcome, diffs=diffs)
