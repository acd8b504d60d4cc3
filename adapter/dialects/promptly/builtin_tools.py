"""Promptly's built-in tools, which do not run programs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from pydantic import Field

from adapter.core.text.truncate import MAX_BYTES, MAX_LINES
from adapter.dialects import result_formatting
from adapter.dialects.promptly.tools_file_entries import MAX_ENTRIES
from adapter.dialects.tool_class import Parameter, PathText, Rendered, ToolClass, ToolMetadata, render_as
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import CONTENT, DESTINATION, DIRECTORY, NEW_TEXT, OLD_TEXT, PATH, PATTERN, SOURCE

MAX_PAGE_BYTES = MAX_BYTES - 2_000
"""Maximum size of a page of a file, in bytes, which leaves room for the hint above it."""


class WriteToFile(ToolClass):
    """Write content to a file, creating or overwriting it."""

    naming = ToolMetadata("WriteToFile", ops.WriteText)
    example = {"file": "notes/plan.txt", "content": "first step\n"}
    file: Annotated[PathText, Parameter("File to write", *PATH)]
    content: Annotated[str, Parameter("Complete new content", *CONTENT)]


class SearchAndReplace(ToolClass):
    """Replace all occurrences of a text in a file."""

    naming = ToolMetadata("SearchAndReplace", effect="write")
    example = {"search": "old_name", "replace": "new_name", "file": "src/main.c"}
    search: Annotated[str, Parameter("Text to find", *OLD_TEXT)]
    replace: Annotated[str, Parameter("Replacement text", *NEW_TEXT)]
    file: Annotated[PathText, Parameter("File to change", *PATH)]

    def to_operation(self) -> ops.Operation:
        patch = ops.Patch(self.search, self.replace, replace_all=True)
        return ops.PatchText(self.file, (patch,), names=ops.ParameterNames("search", "replace", start_line=None))


class MakeDirectories(ToolClass):
    """Create a directory and its parents."""

    naming = ToolMetadata("MakeDirectory", ops.MakeDirectory)
    example = {"dir": "src/parts"}
    dir: Annotated[PathText, Parameter("Directory to create", *DIRECTORY, "path")]


class RemoveFiles(ToolClass):
    """Remove a file, or a directory with its contents."""

    naming = ToolMetadata("RemoveFiles", partial(ops.Delete, recursive=True))
    example = {"target": "build"}
    target: Annotated[PathText, Parameter("File or directory to remove", *PATH, *DIRECTORY)]


class MoveFiles(ToolClass):
    """Move or rename a file or directory."""

    naming = ToolMetadata("MoveFiles", ops.Move)
    example = {"source": "a.txt", "destination": "docs/a.txt"}
    source: Annotated[PathText, Parameter("Path to move", *SOURCE)]
    destination: Annotated[PathText, Parameter("Its new path", *DESTINATION)]


class CopyFiles(ToolClass):
    """Copy a file, or a directory with its contents."""

    naming = ToolMetadata("CopyFiles", ops.Copy)
    example = {"source": "a.txt", "destination": "b.txt"}
    source: Annotated[PathText, Parameter("Path to copy", *SOURCE)]
    destination: Annotated[PathText, Parameter("The path of the copy", *DESTINATION)]


class SearchText(ToolClass):
    """Find the lines that match a regular expression, as path:line:text."""

    naming = ToolMetadata("SearchText", ops.Grep)
    example = {"pattern": "TODO|FIXME", "path": "src"}
    pattern: Annotated[str, Parameter("Regular expression", *PATTERN)]
    path: Annotated[PathText, Parameter("File or directory to search", *PATH, *DIRECTORY)]


class RipGrep(SearchText):
    """Find the lines that match a regular expression, leaving out ignored files."""

    naming = ToolMetadata("RipGrep", ops.Grep)
    example = {"pattern": "TODO|FIXME", "path": "src"}


class RipGrepWithGlob(SearchText):
    """Find the lines that match a regular expression in files whose paths match globs."""

    naming = ToolMetadata("RipGrepWithGlob")
    example = {"pattern": "TODO", "glob": ["*.c", "!*_test.c"], "path": "src"}
    glob: Annotated[list[str], Parameter("Such as *.c or !*.min.js", "globs", "include"), Field(min_length=1)]

    def to_operation(self) -> ops.Operation:
        wanted = tuple(glob for glob in self.glob if not glob.startswith("!"))
        unwanted = tuple(glob[1:] for glob in self.glob if glob.startswith("!"))
        return ops.Grep(self.pattern, self.path, wanted, leave_out=unwanted)


class RipGrepIncludingHidden(SearchText):
    """Find the lines that match a regular expression, also in hidden and ignored files."""

    naming = ToolMetadata("RipGrepIncludingHidden", partial(ops.Grep, ignored=True))
    example = {"pattern": "TODO|FIXME", "path": "src"}


class ListFiles(ToolClass):
    """List a directory with sizes and dates."""

    naming = ToolMetadata("ListFiles", partial(ops.Tree, limit=MAX_ENTRIES, details=True))
    example = {"path": "src"}
    path: Annotated[PathText, Parameter("Directory to list (default: the project folder)", *DIRECTORY, *PATH)] = "."

    render = render_as(result_formatting.format_listing)


class PromptlyFindFiles(ToolClass):
    """Find files and directories by name, with * and ?."""

    naming = ToolMetadata("FindFiles")
    example = {"pattern": "*.c", "path": "src"}
    pattern: Annotated[str, Parameter("Name to find, such as *.c", "name", *PATTERN)]
    path: Annotated[PathText, Parameter("Directory to search", *DIRECTORY, *PATH)]

    def to_operation(self) -> ops.Operation:
        return ops.Glob(f"**/{self.pattern}", self.path, case_sensitive=True, limit=MAX_ENTRIES, directories=True)

    render = render_as(result_formatting.format_paths, "pattern")


class ShowFileContents(ToolClass):
    """Show a text file, or lineCount lines of it after the first startLine lines."""

    naming = ToolMetadata("ShowFileContents", max_lines=MAX_PAGE_BYTES)
    example = {"file": "src/main.c", "startLine": 40, "lineCount": 20}
    file: Annotated[PathText, Parameter("File to show", *PATH)]
    startLine: Annotated[int, Parameter("Lines to skip", "offset", "skip"), Field(ge=0)] = 0
    lineCount: Annotated[int | None, Parameter("Lines to show", "limit"), Field(ge=1)] = None

    def to_operation(self) -> ops.Operation:
        start = self.startLine + 1 if self.startLine else None
        return ops.ReadText(self.file, start, max_lines=self.lineCount or MAX_LINES)

    def render(self, read: ops.FileText) -> Rendered:
        def read_on(line: int) -> str:
            return f"for more: startLine={line - 1}"

        if read.end_line - read.start_line + 1 == self.lineCount:  # the whole requested range
            read = replace(read, truncated=False)
        return result_formatting.format_plain_page(read, MAX_PAGE_BYTES, read_on), None


class LineCount(ToolClass):
    """Count the lines of a file."""

    naming = ToolMetadata("LineCount", partial(ops.Stat, count_lines=True))
    example = {"file": "src/main.c"}
    file: Annotated[PathText, Parameter("File to count", *PATH)]

    def render(self, info: ops.FileInfo) -> Rendered:
        return f"{info.lines} {info.path}", None
