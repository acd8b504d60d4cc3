"""Maki's tools that read, search and edit files."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from adapter.core.text.truncate import MAX_BYTES
from adapter.dialects import result_formatting
from adapter.dialects.tool_class import (
    EDIT_ALIASES,
    NestedModel,
    Parameter,
    PathText,
    Rendered,
    ToolClass,
    ToolMetadata,
    Unsigned,
    render_as,
)
from adapter.outline.formatter import format_outline
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import CONTENT, DIRECTORY, NEW_TEXT, OLD_TEXT, PATH, PATTERN

FilePath = Annotated[PathText, Parameter("Absolute path (or relative to the project root)", *PATH)]
MAX_PAGE_BYTES = MAX_BYTES - 2_000
"""Maximum size of a page from `Read`, in bytes, which leaves room for the hint below it. Only ``limit`` limits the
lines."""
MAX_LINE_CHARACTERS = 2_000
"""Maximum length of a line, in characters. Longer lines are cut."""


class Read(ToolClass):
    """Read a file, with 1-indexed line numbers, or list a directory."""

    naming = ToolMetadata(
        "read",
        aliases=("read_file", "cat", "view", "view_file", "open", "list_directory", "list_dir", "ls"),
        max_lines=MAX_PAGE_BYTES,
    )
    example = {"path": "src/main.rs", "offset": 40, "limit": 60}
    path: Annotated[
        PathText, Parameter("Absolute path to file or directory (or relative to the project root)", *PATH, *DIRECTORY)
    ]
    offset: Annotated[Unsigned | None, Parameter("Start line (1-indexed)", "start_line", "start", "line")] = None
    limit: Annotated[Unsigned, Parameter("Max lines to read", "max_lines", "num_lines")] = 2000

    def to_operation(self) -> ops.Operation:
        return ops.ReadText(
            self.path, self._first, max_lines=self.limit, max_line_characters=MAX_LINE_CHARACTERS, or_list=True
        )

    @property
    def _first(self) -> int | None:
        """The number of the first line. An offset of 0 means line 1."""
        return None if self.offset is None else max(self.offset, 1)

    def render(self, read: ops.FileText | ops.Listing) -> Rendered:
        def read_on(line: int) -> str:
            return f"continue with offset={line}"

        if isinstance(read, ops.Listing):
            return result_formatting.format_listing(read, self._first or 1, self.limit, read_on), None
        return result_formatting.format_numbered_page(read, MAX_PAGE_BYTES, read_on), None

    def list_notes(self) -> tuple[str, ...]:
        return () if self.offset == self._first else (f"offset {self.offset} was treated as 1: lines are 1-based",)


class Index(ToolClass):
    """Show the skeleton of a source file: imports, types and signatures, with line numbers. Cheaper than read."""

    naming = ToolMetadata("index", ops.Outline, aliases=("outline", "skeleton", "file_outline"))
    example = {"path": "src/lib.rs"}
    path: FilePath

    render = render_as(format_outline)


MAX_PATHS = 100
"""Maximum number of paths in a result of `MakiGlobTool`."""
MAX_MATCHES = 100
"""Maximum number of matches in a result of `GrepTool`."""


class MakiGlobTool(ToolClass):
    """Find files matching a glob pattern, newest first. Respects .gitignore."""

    naming = ToolMetadata(
        "glob",
        partial(ops.Glob, case_sensitive=True, limit=MAX_PATHS, gitignore=True, order="newest"),
        aliases=("find_files_glob", "glob_search"),
    )
    example = {"pattern": "**/*.rs", "path": "src"}
    pattern: Annotated[str, Parameter("Glob pattern (e.g. **/*.rs)", "glob", "query", "glob_pattern")]
    path: Annotated[PathText, Parameter("Directory to search (default: the project root)", *DIRECTORY)] = "."


class GrepTool(ToolClass):
    """Search file contents with a regex, grouped by file, newest files first. Respects .gitignore."""

    naming = ToolMetadata(
        "grep", aliases=("grep_search", "rg", "ripgrep", "search", "search_file_content", "search_code")
    )
    example = {"pattern": "fn\\s+main", "path": "src", "include": "*.rs"}
    pattern: Annotated[str, Parameter("Regex pattern", *PATTERN)]
    path: Annotated[PathText, Parameter("Directory to search (default: the project root)", *DIRECTORY, *PATH)] = "."
    include: Annotated[str | None, Parameter("File glob filter (e.g. *.rs)", "glob", "file_pattern", "filter")] = None

    def to_operation(self) -> ops.Operation:
        included = (self.include,) if self.include else ()
        return ops.Grep(self.pattern, self.path, included, max_results=MAX_MATCHES, order="newest")

    render = render_as(result_formatting.format_grouped_matches, "pattern")


OldString = Annotated[str, Parameter("Exact string to find", *OLD_TEXT)]
NewString = Annotated[str, Parameter("Replacement string", *NEW_TEXT)]
ReplaceAll = Annotated[bool, Parameter("Replace all occurrences", "all")]
_NAMES = ops.ParameterNames("old_string", "new_string", None, "replace_all")


class MakiWrite(ToolClass):
    """Overwrite a file with its complete new content. Creates parent directories if needed."""

    naming = ToolMetadata(
        "write",
        ops.WriteText,
        aliases=("write_file", "create_file", "create", "save_file", "write_to_file", "new_file"),
    )
    example = {"path": "src/version.rs", "content": 'pub const VERSION: &str = "2";\n'}
    path: FilePath
    content: Annotated[str, Parameter("Complete file content", *CONTENT)]


class MakiEdit(ToolClass):
    """Replace an exact string in a file, which must be unique unless replace_all is set."""

    naming = ToolMetadata("edit", aliases=EDIT_ALIASES, effect="write")
    example = {"path": "src/main.rs", "old_string": "let port = 8000;", "new_string": "let port = 9000;"}
    path: FilePath
    old_string: OldString
    new_string: NewString
    replace_all: ReplaceAll = False

    def to_operation(self) -> ops.Operation:
        patch = ops.Patch(self.old_string, self.new_string, replace_all=self.replace_all, exact=True)
        return ops.PatchText(self.path, (patch,), names=_NAMES)


class EditItem(NestedModel):
    """One replacement in a list."""

    old_string: OldString
    new_string: NewString
    replace_all: ReplaceAll = False


class MultiEdit(ToolClass):
    """Apply several replacements to one file in order, all or none. Each sees the result of those before it."""

    naming = ToolMetadata("multiedit", aliases=("edit_many", "multi_edit_file", "multi_replace"), effect="write")
    example = {
        "path": "src/main.rs",
        "edits": [
            {"old_string": "let port = 8000;", "new_string": "let port = 9000;"},
            {"old_string": "old_name", "new_string": "new_name", "replace_all": True},
        ],
    }
    path: FilePath
    edits: Annotated[list[EditItem], Parameter("Replacements, in order", "patches", "replacements", "changes")]

    def to_operation(self) -> ops.Operation:
        patches = tuple(
            ops.Patch(one.old_string, one.new_string, replace_all=one.replace_all, exact=True) for one in self.edits
        )
        return ops.PatchText(self.path, patches, basis="sequence", names=_NAMES)
