"""The tools of Zaguan Blade, from its "Tool Calls Reference".

Names, arguments, defaults and result formats follow the document. Aliases are from the document, or other common names.
The six editor tools are offered only if the host has an editor.
"""

from __future__ import annotations

from adapter.dialects.blade import editor_tools, read_tools, write_tools
from adapter.dialects.dialect import Dialect

__all__ = ["DIALECT"]
DIALECT = Dialect(
    name="blade",
    title="Zaguan Blade",
    classes=(
        *(read_tools.BladeReadFile, read_tools.ReadFileRange),
        *(write_tools.BladeWriteFile, write_tools.EditFile, write_tools.ApplyEdit),
        *(write_tools.DeleteFile, write_tools.MoveFile, write_tools.CopyFile),
        *(read_tools.GetFileInfo, write_tools.CreateDirectory),
        *(read_tools.BladeListDirectory, read_tools.GetWorkspaceStructure),
        *(read_tools.BladeFindFiles, read_tools.FindFilesGlob, read_tools.BladeGrepSearch, read_tools.CodebaseSearch),
        *(editor_tools.EditorStateTool, editor_tools.OpenFile, editor_tools.GoToLineTool),
        *(editor_tools.GetSelectionTool, editor_tools.ReplaceSelectionTool, editor_tools.InsertAtCursorTool),
        write_tools.RunCommandLine,
    ),
    basic=frozenset((
        "read_file", "write_file", "edit_file", "delete_file", "move_file", "list_directory", "grep_search",
        "run_command",
    )),
)  # fmt: skip
