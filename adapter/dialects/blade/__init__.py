"""The tools of Zaguan Blade, from its "Tool Calls Reference".

Names, arguments, defaults and result formats follow the document. Aliases are those in the document and other common
names. The six editor tools are offered only if the host has an editor.
"""

from __future__ import annotations

from adapter.dialects.blade import command_and_editor_tools, edit_tools, read_and_search_tools
from adapter.dialects.dialect import Dialect

__all__ = ["DIALECT"]

DIALECT = Dialect(
    name="blade",
    title="Zaguan Blade",
    classes=(
        read_and_search_tools.BladeReadFile,
        read_and_search_tools.ReadFileRange,
        edit_tools.BladeWriteFile,
        edit_tools.EditFile,
        edit_tools.ApplyEdit,
        edit_tools.DeleteFile,
        edit_tools.MoveFile,
        edit_tools.CopyFile,
        read_and_search_tools.GetFileInfo,
        edit_tools.CreateDirectory,
        read_and_search_tools.BladeListDirectory,
        read_and_search_tools.GetWorkspaceStructure,
        read_and_search_tools.BladeFindFiles,
        read_and_search_tools.FindFilesGlob,
        read_and_search_tools.BladeGrepSearch,
        read_and_search_tools.CodebaseSearch,
        command_and_editor_tools.EditorStateTool,
        command_and_editor_tools.OpenFile,
        command_and_editor_tools.GoToLineTool,
        command_and_editor_tools.GetSelectionTool,
        command_and_editor_tools.ReplaceSelectionTool,
        command_and_editor_tools.InsertAtCursorTool,
        command_and_editor_tools.RunCommandLine,
    ),
)
