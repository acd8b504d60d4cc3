"""The tools of Zaguan Blade, from its "Tool Calls Reference".

Names, arguments, defaults and result formats follow the document. Aliases are those in the document and other common
names. The six editor tools are offered only if the host has an editor.
"""

from __future__ import annotations

from adapter.dialects.blade import edit_tools, file_tools, user_tools
from adapter.dialects.dialect import Dialect

__all__ = ["DIALECT"]

DIALECT = Dialect(
    name="blade",
    title="Zaguan Blade",
    classes=(
        file_tools.BladeReadFile,
        file_tools.ReadFileRange,
        edit_tools.BladeWriteFile,
        edit_tools.EditFile,
        edit_tools.ApplyEdit,
        edit_tools.DeleteFile,
        edit_tools.MoveFile,
        edit_tools.CopyFile,
        file_tools.GetFileInfo,
        edit_tools.CreateDirectory,
        file_tools.BladeListDirectory,
        file_tools.GetWorkspaceStructure,
        file_tools.BladeFindFiles,
        file_tools.FindFilesGlob,
        file_tools.BladeGrepSearch,
        file_tools.CodebaseSearch,
        user_tools.EditorStateTool,
        user_tools.OpenFile,
        user_tools.GoToLineTool,
        user_tools.GetSelectionTool,
        user_tools.ReplaceSelectionTool,
        user_tools.InsertAtCursorTool,
        user_tools.RunCommandLine,
    ),
)
