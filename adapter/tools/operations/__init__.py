"""Operations that tools perform, and their results, as values.

A dialect turns a validated call into an operation. The workspace performs it and returns an outcome, which the dialect
formats for its model. Paths are strings as the model wrote them; only the workspace's path resolver interprets them.
Lines are 1-based, times are in seconds.
"""

from __future__ import annotations

from typing import TypeAlias

from adapter.tools.operations.commands import *
from adapter.tools.operations.delegation import *
from adapter.tools.operations.editor import *
from adapter.tools.operations.edits import *
from adapter.tools.operations.files import *
from adapter.tools.operations.outcome import *
from adapter.tools.operations.searches import *
from adapter.tools.operations.session import *
from adapter.tools.operations.symbols import *
from adapter.tools.operations.web import *

__all__ = ["autorun_files", "capabilities", "permissions", "shell_analysis"]

_OPERATIONS: dict[Effect, tuple[type, ...]] = {
    "read": (
        *(ReadText, Stat, Tree, FindByName, Glob, Grep, Outline, FindSymbols),
        *(ReadCommandOutput, KillCommand),  # can end only commands that the session was allowed to start
        *(GetEditorState, GetSelection, ViewMemory),
        *(SearchWeb, FindLibrary, ReadLibraryDocs),  # contact only a provider that the user chose
    ),
    "write": (WriteText, PatchText, PatchFiles, Move, Copy, MakeDirectory, ReplaceSelection, InsertAtCursor),
    "delete": (Delete,),
    "execute": (RunCommand, RunProgram, StartCommand),
    "state": (
        *(AskUser, Finish, OpenInEditor, GoToLine, SetTodos, WriteMemory, DeleteMemory),
        *(RunBatch, RunCode, RunSubagent),  # each inner call needs its own approval
    ),
    "skill": (LoadSkill,),
    "network": (FetchPage,),
}
EFFECTS: dict[type, Effect] = {kind: effect for effect, kinds in _OPERATIONS.items() for kind in kinds}

ReadOperation: TypeAlias = ReadText | Stat | Tree | FindByName | Glob | Grep | Outline | FindSymbols
ChangeOperation: TypeAlias = WriteText | PatchText | PatchFiles | MakeDirectory | Delete | Move | Copy
ProgramOperation: TypeAlias = RunCommand | RunProgram | StartCommand | ReadCommandOutput | KillCommand
EditorOperation: TypeAlias = GetEditorState | GetSelection | OpenInEditor | GoToLine | ReplaceSelection | InsertAtCursor
SessionOperation: TypeAlias = AskUser | Finish | SetTodos | ViewMemory | WriteMemory | DeleteMemory | LoadSkill
CallOperation: TypeAlias = RunBatch | RunCode | RunSubagent | CallFunction
"""Operations that run other code or make other calls."""
WebOperation: TypeAlias = FetchPage | SearchWeb | FindLibrary | ReadLibraryDocs
"""Operations on pages, search services and library documentation."""

HostOperation: TypeAlias = EditorOperation | SessionOperation | CallOperation | WebOperation
"""Operations that need a user, an editor, a model, a network or the session, rather than only files and processes."""

Operation: TypeAlias = ReadOperation | ChangeOperation | ProgramOperation | HostOperation


def find_effect(operation: Operation) -> Effect:
    """Return an operation's effect. Edits to several files have the most severe effect among them; custom tools declare
    theirs."""
    if isinstance(operation, CallFunction):
        return operation.effect
    if isinstance(operation, PatchFiles) and any(edit.action == "delete" for edit in operation.files):
        return "delete"
    return EFFECTS[type(operation)]
