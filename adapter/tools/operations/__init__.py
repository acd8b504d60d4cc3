"""Operations that tools perform, and their results, as values.

A dialect turns a validated call into an operation. The workspace performs the operation and returns an outcome, which
the dialect formats for its model. Paths are strings as the model wrote them, and only the workspace's path resolver
interprets them. Lines are 1-based, times are in seconds. An outcome's ``notes`` list tolerated, assumed or omitted
details, as one sentence each.
"""

from __future__ import annotations

from typing import TypeAlias

from adapter.tools.operations.agent_state import *
from adapter.tools.operations.files import *
from adapter.tools.operations.ide import *
from adapter.tools.operations.nested_calls import *
from adapter.tools.operations.outline import *
from adapter.tools.operations.processes import *
from adapter.tools.operations.search import *
from adapter.tools.operations.user_interaction import *
from adapter.tools.operations.web import *

__all__ = ["agent_state", "autorun_files", "capabilities", "files", "nested_calls", "permissions", "shell_words"]

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

HostOperation: TypeAlias = (
    AskUser
    | Finish
    | GetEditorState
    | GetSelection
    | OpenInEditor
    | GoToLine
    | ReplaceSelection
    | InsertAtCursor
    | SetTodos
    | ViewMemory
    | WriteMemory
    | DeleteMemory
    | LoadSkill
    | RunBatch
    | RunCode
    | RunSubagent
    | CallFunction
    | FetchPage
    | SearchWeb
    | FindLibrary
    | ReadLibraryDocs
)
"""Operations that need a user, an editor, a model, a network or the session, rather than only files and processes."""

HostOutcome: TypeAlias = (
    UserAnswers
    | TaskFinished
    | EditorState
    | SelectedText
    | TodoList
    | MemoryNote
    | MemoryList
    | MemoryChanged
    | SkillLoaded
    | BatchResults
    | CodeOutput
    | AgentReport
    | FunctionResult
    | Page
    | SearchHits
    | Libraries
    | LibraryDocs
)

Operation: TypeAlias = (
    ReadText
    | WriteText
    | PatchText
    | PatchFiles
    | Delete
    | Move
    | Copy
    | MakeDirectory
    | Stat
    | Tree
    | FindByName
    | Glob
    | Grep
    | Outline
    | FindSymbols
    | RunCommand
    | RunProgram
    | StartCommand
    | ReadCommandOutput
    | KillCommand
    | HostOperation
)

Outcome: TypeAlias = (
    FileText
    | Media
    | FileWritten
    | FilePatched
    | FilesPatched
    | OperationDone
    | FileInfo
    | Listing
    | PathList
    | GrepResult
    | FileOutline
    | SymbolMatches
    | CommandOutput
    | ProgramOutput
    | CommandStarted
    | CommandOutputDelta
    | CommandKilled
    | HostOutcome
)


def find_effect(operation: Operation) -> Effect:
    """Return the effect of an operation. For several edits it is the most severe one; a custom tool declares its
    effect."""
    if isinstance(operation, CallFunction):
        return operation.effect
    if isinstance(operation, PatchFiles) and any(edit.action == "delete" for edit in operation.files):
        return "delete"
    return EFFECTS[type(operation)]
