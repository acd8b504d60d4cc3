"""The tools of Zaguan Blade, from its "Tool Calls Reference".

Names, arguments, defaults and result formats follow the document. Aliases are those in the document and other common
names. The six editor tools are offered only if the host has an editor.
"""

from __future__ import annotations

from adapter.dialects.blade.editor_tools import (
    EditorStateTool,
    GetSelectionTool,
    GoToLineTool,
    InsertAtCursorTool,
    OpenFile,
    ReplaceSelectionTool,
)
from adapter.dialects.blade.read_tools import (
    BladeFindFiles,
    BladeGrepSearch,
    BladeListDirectory,
    BladeReadFile,
    CodebaseSearch,
    FindFilesGlob,
    GetFileInfo,
    GetWorkspaceStructure,
    ReadFileRange,
)
from adapter.dialects.blade.write_tools import (
    ApplyEdit,
    BladeWriteFile,
    CopyFile,
    CreateDirectory,
    DeleteFile,
    EditFile,
    MoveFile,
    RunCommandLine,
)
from adapter.dialects.dialect import Dialect

__all__ = ["DIALECT"]
DIALECT = Dialect(
    name="blade",
    title="Zaguan Blade",
    classes=(
        *(BladeReadFile, ReadFileRange, BladeWriteFile, EditFile, ApplyEdit, DeleteFile, MoveFile, CopyFile),
        *(GetFileInfo, CreateDirectory, BladeListDirectory, GetWorkspaceStructure, BladeFindFiles, FindFilesGlob),
        *(BladeGrepSearch, CodebaseSearch),
        *(EditorStateTool, OpenFile, GoToLineTool, GetSelectionTool, ReplaceSelectionTool, InsertAtCursorTool),
        RunCommandLine,
    ),
)
