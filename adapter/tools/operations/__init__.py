"""What tools can do, as values: the canonical operations and their results.

A dialect turns a validated call into one of these; the workspace performs it
and gives the matching result; the dialect words that result for its model.
Paths are strings as the model wrote them: only the workspace's path gate
decides what they mean. Lines are 1-based, times are seconds. ``notes`` of an
outcome say what was tolerated, guessed or left out, one sentence each.
"""

from __future__ import annotations

from typing import TypeAlias

from adapter.tools.operations.agent_state import (
    DeleteMemory,
    LoadSkill,
    MemoryChanged,
    MemoryList,
    MemoryNote,
    SetTodos,
    Skill,
    SkillLoaded,
    Todo,
    TodoList,
    ViewMemory,
    WriteMemory,
)
from adapter.tools.operations.editor import (
    EditorState,
    GetEditorState,
    GetSelection,
    GoToLine,
    InsertAtCursor,
    OpenInEditor,
    ReplaceSelection,
    SelectedText,
)
from adapter.tools.operations.files import (
    Changed,
    Copy,
    Delete,
    Done,
    Edits,
    EmptyOldText,
    FileAction,
    FileEdit,
    FileInfo,
    FilesPatched,
    FileText,
    Hunk,
    MakeDirectory,
    Media,
    MediaKind,
    Move,
    Patch,
    PatchBasis,
    Patched,
    PatchFiles,
    PatchNames,
    PatchText,
    ReadText,
    Rewrite,
    Stat,
    WriteText,
    Written,
)
from adapter.tools.operations.nested_calls import (
    AgentReport,
    BatchCall,
    BatchResults,
    CallFunction,
    CodeOutput,
    Effect,
    Returned,
    RunAgent,
    RunBatch,
    RunCode,
)
from adapter.tools.operations.outline import (
    FileOutline,
    FindSymbols,
    Item,
    Name,
    Outline,
    Section,
    SymbolContext,
    SymbolMatch,
    SymbolMatches,
    SymbolScope,
)
from adapter.tools.operations.processes import (
    CommandKilled,
    CommandOutput,
    CommandStarted,
    CommandStatus,
    KillCommand,
    NewOutput,
    PathValue,
    ProgramOutput,
    ReadCommandOutput,
    RunCommand,
    RunProgram,
    StartCommand,
    Word,
)
from adapter.tools.operations.search import Entry, FindByName, Glob, Grep, GrepHit, GrepHits, Listing, Paths, Tree
from adapter.tools.operations.user_interaction import Answers, AskUser, Finish, Finished, Option, Question
from adapter.tools.operations.web import (
    DocsMode,
    FetchPage,
    FindLibrary,
    Libraries,
    Library,
    LibraryDocs,
    Page,
    PageFormat,
    ReadLibraryDocs,
    SearchHit,
    SearchHits,
    SearchWeb,
)

__all__ = [
    "EFFECTS",
    "AgentReport",
    "Answers",
    "AskUser",
    "BatchCall",
    "BatchResults",
    "CallFunction",
    "Changed",
    "CodeOutput",
    "CommandKilled",
    "CommandOutput",
    "CommandStarted",
    "CommandStatus",
    "Copy",
    "Delete",
    "DeleteMemory",
    "DocsMode",
    "Done",
    "EditorState",
    "Edits",
    "Effect",
    "EmptyOldText",
    "Entry",
    "FetchPage",
    "FileAction",
    "FileEdit",
    "FileInfo",
    "FileOutline",
    "FileText",
    "FilesPatched",
    "FindByName",
    "FindLibrary",
    "FindSymbols",
    "Finish",
    "Finished",
    "GetEditorState",
    "GetSelection",
    "Glob",
    "GoToLine",
    "Grep",
    "GrepHit",
    "GrepHits",
    "HostOperation",
    "HostOutcome",
    "Hunk",
    "InsertAtCursor",
    "Item",
    "KillCommand",
    "Libraries",
    "Library",
    "LibraryDocs",
    "Listing",
    "LoadSkill",
    "MakeDirectory",
    "Media",
    "MediaKind",
    "MemoryChanged",
    "MemoryList",
    "MemoryNote",
    "Move",
    "Name",
    "NewOutput",
    "OpenInEditor",
    "Operation",
    "Option",
    "Outcome",
    "Outline",
    "Page",
    "PageFormat",
    "Patch",
    "PatchBasis",
    "PatchFiles",
    "PatchNames",
    "PatchText",
    "Patched",
    "PathValue",
    "Paths",
    "ProgramOutput",
    "Question",
    "ReadCommandOutput",
    "ReadLibraryDocs",
    "ReadText",
    "ReplaceSelection",
    "Returned",
    "Rewrite",
    "RunAgent",
    "RunBatch",
    "RunCode",
    "RunCommand",
    "RunProgram",
    "SearchHit",
    "SearchHits",
    "SearchWeb",
    "Section",
    "SelectedText",
    "SetTodos",
    "Skill",
    "SkillLoaded",
    "StartCommand",
    "Stat",
    "SymbolContext",
    "SymbolMatch",
    "SymbolMatches",
    "SymbolScope",
    "Todo",
    "TodoList",
    "Tree",
    "ViewMemory",
    "Word",
    "WriteMemory",
    "WriteText",
    "Written",
    "agent_state",
    "capabilities",
    "effect_of",
    "files",
    "nested_calls",
    "permissions",
]

EFFECTS: dict[type, Effect] = {
    ReadText: "read",
    Stat: "read",
    Tree: "read",
    FindByName: "read",
    Glob: "read",
    Grep: "read",
    Outline: "read",
    FindSymbols: "read",
    WriteText: "write",
    PatchText: "write",
    PatchFiles: "write",
    Move: "write",
    Copy: "write",
    MakeDirectory: "write",
    Delete: "delete",
    RunCommand: "execute",
    RunProgram: "execute",
    StartCommand: "execute",
    ReadCommandOutput: "read",
    KillCommand: "read",  # ends only what the session itself was allowed to start
    AskUser: "state",
    Finish: "state",
    GetEditorState: "read",
    GetSelection: "read",
    OpenInEditor: "state",
    GoToLine: "state",
    ReplaceSelection: "write",
    InsertAtCursor: "write",
    SetTodos: "state",
    ViewMemory: "read",
    WriteMemory: "state",
    DeleteMemory: "state",
    LoadSkill: "skill",
    RunBatch: "state",  # its calls are asked for themselves, as those of code and of a sub-agent
    RunCode: "state",
    RunAgent: "state",
    FetchPage: "network",
    SearchWeb: "read",  # by a provider that the user chose
    FindLibrary: "read",
    ReadLibraryDocs: "read",
}

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
    | RunAgent
    | CallFunction
    | FetchPage
    | SearchWeb
    | FindLibrary
    | ReadLibraryDocs
)
"""What needs more than files and processes: a person, an editor, a model, a network, or the session itself."""

HostOutcome: TypeAlias = (
    Answers
    | Finished
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
    | Returned
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
    | Written
    | Patched
    | FilesPatched
    | Done
    | FileInfo
    | Listing
    | Paths
    | GrepHits
    | FileOutline
    | SymbolMatches
    | CommandOutput
    | ProgramOutput
    | CommandStarted
    | NewOutput
    | CommandKilled
    | HostOutcome
)


def effect_of(operation: Operation) -> Effect:
    """What it does to the world: several edits the gravest of theirs, a user's function what its tool declares."""
    if isinstance(operation, CallFunction):
        return operation.effect
    if isinstance(operation, PatchFiles) and any(edit.action == "delete" for edit in operation.files):
        return "delete"
    return EFFECTS[type(operation)]
