"""The tools of Zaguan Blade, from its "Tool Calls Reference".

Names, arguments, defaults and result formats follow the document. Aliases are those in the document and other common
names.
The six editor tools are offered only if the host has an editor.
"""

from __future__ import annotations

from adapter.dialects.blade.edit_tools import (
    ApplyEdit,
    BladeWriteFile,
    CopyFile,
    CreateDirectory,
    DeleteFile,
    EditFile,
    MoveFile,
)
from adapter.dialects.blade.read_tools import BladeReadFile, GetFileInfo, ReadFileRange
from adapter.dialects.blade.search_tools import (
    BladeFindFiles,
    BladeGrepSearch,
    BladeListDirectory,
    CodebaseSearch,
    FindFilesGlob,
    GetWorkspaceStructure,
)
from adapter.dialects.blade.shell_tools import RunCommandLine
from adapter.dialects.blade.user_editor_tools import (
    EditorStateTool,
    GetSelectionTool,
    GoToLineTool,
    InsertAtCursorTool,
    OpenFile,
    ReplaceSelectionTool,
)
from adapter.dialects.toolset import Dialect

__all__ = ["DIALECT"]

DIALECT = Dialect(
    name="blade",
    title="Zaguan Blade",
    classes=(
        BladeReadFile,
        ReadFileRange,
        BladeWriteFile,
        EditFile,
        ApplyEdit,
        DeleteFile,
        MoveFile,
        CopyFile,
        GetFileInfo,
        CreateDirectory,
        BladeListDirectory,
        GetWorkspaceStructure,
        BladeFindFiles,
        FindFilesGlob,
        BladeGrepSearch,
        CodebaseSearch,
        EditorStateTool,
        OpenFile,
        GoToLineTool,
        GetSelectionTool,
        ReplaceSelectionTool,
        InsertAtCursorTool,
        RunCommandLine,
    ),
)
