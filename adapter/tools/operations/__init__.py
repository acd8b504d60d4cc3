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

FileOperation: TypeAlias = ReadText | WriteText | PatchText | PatchFiles | Delete | Move | Copy | MakeDirectory | Stat
SearchOperation: TypeAlias = Tree | FindByName | Glob | Grep | Outline | FindSymbols
ProcessOperation: TypeAlias = RunCommand | RunProgram | StartCommand | ReadCommandOutput | KillCommand
UserOperation: TypeAlias = AskUser | Finish | GetEditorState | GetSelection | OpenInEditor | GoToLine
SelectionOperation: TypeAlias = ReplaceSelection | InsertAtCursor
SessionOperation: TypeAlias = SetTodos | ViewMemory | WriteMemory | DeleteMemory | LoadSkill
NestedOperation: TypeAlias = RunBatch | RunCode | RunSubagent | CallFunction
WebOperation: TypeAlias = FetchPage | SearchWeb | FindLibrary | ReadLibraryDocs

HostOperation: TypeAlias = UserOperation | SelectionOperation | SessionOperation | NestedOperation | WebOperation
"""Operations that need a user, an editor, a model, a network or the session, rather than only files and processes."""

Operation: TypeAlias = FileOperation | SearchOperation | ProcessOperation | HostOperation

FileOutcome: TypeAlias = FileText | Media | FileWritten | FilePatched | FilesPatched | OperationDone | FileInfo
SearchOutcome: TypeAlias = Listing | PathList | GrepResult | FileOutline | SymbolMatches
ProcessOutcome: TypeAlias = CommandOutput | ProgramOutput | CommandStarted | CommandOutputDelta | CommandKilled
UserOutcome: TypeAlias = UserAnswers | TaskFinished | EditorState | SelectedText
SessionOutcome: TypeAlias = TodoList | MemoryNote | MemoryList | MemoryChanged | SkillLoaded
NestedOutcome: TypeAlias = BatchResults | CodeOutput | AgentReport | FunctionResult
WebOutcome: TypeAlias = Page | SearchHits | Libraries | LibraryDocs

Outcome: TypeAlias = (
    FileOutcome | SearchOutcome | ProcessOutcome | UserOutcome | SessionOutcome | NestedOutcome | WebOutcome
)


def find_effect(operation: Operation) -> Effect:
    """Return the effect of an operation. For several edits it is the most severe one; a custom tool declares its
    effect."""
    if isinstance(operation, CallFunction):
        return operation.effect
    if isinstance(operation, PatchFiles) and any(edit.action == "delete" for edit in operation.files):
        return "delete"
    return EFFECTS[type(operation)]
