"""Blade's tools that read, list and search files."""

from __future__ import annotations

import json
from typing import Annotated

from adapter.dialects import result_formatting
from adapter.dialects.tool_class import Parameter, PathText, Rendered, ToolClass, ToolMetadata, render_as
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import DIRECTORY, PATH, PATTERN

FilePath = Annotated[PathText, Parameter("File path (relative to workspace or absolute)", *PATH)]


class BladeReadFile(ToolClass):
    """Read the complete contents of a file."""

    naming = ToolMetadata("read_file", ops.ReadText, aliases=("read", "cat", "view", "view_file", "open", "get_file"))
    example = {"path": "src/main.rs"}
    path: FilePath


class ReadFileRange(ToolClass):
    """Read a line range from a file with optional context."""

    naming = ToolMetadata("read_file_range", ops.ReadText, aliases=("read_range", "read_lines", "view_range"))
    example = {"path": "src/lib.rs", "start_line": 50, "end_line": 100, "context_lines": 3}
    path: FilePath
    start_line: Annotated[int, Parameter("Start line (1-indexed)", "start", "from_line", "line")] = 1
    end_line: Annotated[int | None, Parameter("End line (1-indexed, default: end of file)", "end", "to_line")] = None
    context_lines: Annotated[int, Parameter("Extra context lines before/after range", "context")] = 0

    render = render_as(result_formatting.format_numbered_lines)


class GetFileInfo(ToolClass):
    """Get metadata about a file or directory."""

    naming = ToolMetadata("get_file_info", ops.Stat, aliases=("file_info", "stat", "file_stat"))
    example = {"path": "Cargo.toml"}
    path: Annotated[PathText, Parameter("Path to inspect", *PATH, *DIRECTORY)]

    def render(self, info: ops.FileInfo) -> Rendered:
        names = ("path", "size", "is_directory", "is_file", "readonly", "modified")
        fields = {name: getattr(info, name) for name in names}
        return json.dumps(fields, ensure_ascii=False), fields


MAX_STRUCTURE_ENTRIES = 200
"""Maximum number of entries in a result of `get_workspace_structure`, from Blade's document."""
CONTEXT_LINES = 2
StartPath = Annotated[PathText, Parameter("Directory path", *DIRECTORY, *PATH)]


class BladeListDirectory(ToolClass):
    """List directory contents with tree view."""

    naming = ToolMetadata(
        "list_directory", ops.Tree, second_names=("list_dir",), aliases=("ls", "list_files", "list", "tree")
    )
    example = {"path": "src", "max_depth": 2}
    path: StartPath = "."
    max_depth: Annotated[int, Parameter("Max traversal depth", "depth")] = 1


class GetWorkspaceStructure(ToolClass):
    """Get a tree view of the workspace, at most 200 entries. Leaves out node_modules, target, .git and the like."""

    naming = ToolMetadata(
        "get_workspace_structure", aliases=("workspace_structure", "project_structure", "get_project_structure")
    )
    example = {"path": ".", "depth": 3, "limit": 100}
    path: Annotated[PathText, Parameter("Starting path", *DIRECTORY, *PATH)] = "."
    depth: Annotated[int, Parameter("Max depth", "max_depth")] = 2
    limit: Annotated[int, Parameter("Max entries (at most 200)", "max_entries")] = 50

    def to_operation(self) -> ops.Operation:
        return ops.Tree(self.path, self.depth, self._limit, skip_common=True, gitignore=True)

    def list_notes(self) -> tuple[str, ...]:
        if self.limit == self._limit:
            return ()
        return (f"limit {self.limit} is out of range (1-{MAX_STRUCTURE_ENTRIES}); using {self._limit}",)

    @property
    def _limit(self) -> int:
        return max(1, min(self.limit, MAX_STRUCTURE_ENTRIES))


class BladeFindFiles(ToolClass):
    """Find files by a part of their name."""

    naming = ToolMetadata("find_files", ops.FindByName, aliases=("find", "find_file", "search_files", "file_search"))
    example = {"pattern": "test", "path": "src", "max_depth": 5}
    pattern: Annotated[str, Parameter("Substring to match in filenames", "query", "name", "filename", "substring")]
    path: Annotated[PathText, Parameter("Starting path", *DIRECTORY)] = "."
    max_depth: Annotated[int | None, Parameter("Max search depth", "depth")] = None


class FindFilesGlob(ToolClass):
    """Find files using glob patterns."""

    naming = ToolMetadata("find_files_glob", ops.Glob, second_names=("glob",), aliases=("glob_search", "find_glob"))
    example = {"pattern": "**/*.tsx", "path": "src"}
    pattern: Annotated[str, Parameter("Glob pattern (e.g., **/*.rs)", "glob", "query")]
    path: Annotated[PathText, Parameter("Base path for search", *DIRECTORY)] = "."
    case_sensitive: Annotated[bool, Parameter("Case-sensitive matching")] = False


class BladeGrepSearch(ToolClass):
    """Search file contents using regex patterns. Gives filepath:line_number:line_content."""

    naming = ToolMetadata(
        "grep_search",
        ops.Grep,
        second_names=("rg",),
        aliases=("grep", "ripgrep", "search", "search_file_content", "search_code"),
    )
    example = {"pattern": "fn\\s+main", "path": "src"}
    pattern: Annotated[str, Parameter("Regex pattern to search", *PATTERN)]
    path: Annotated[PathText, Parameter("Directory to search", *DIRECTORY, *PATH)] = "."


class CodebaseSearch(ToolClass):
    """Search with regex in files such as *.rs,*.toml, with context lines around matches."""

    naming = ToolMetadata("codebase_search", aliases=("search_codebase", "code_search"))
    example = {"query": "struct.*Config", "file_pattern": "*.rs", "max_results": 20}
    query: Annotated[str, Parameter("Regex pattern to search", *PATTERN)]
    file_pattern: Annotated[
        str | None, Parameter("Filter files (e.g., *.rs,*.toml)", "include", "glob", "file_patterns")
    ] = None
    max_results: Annotated[int, Parameter("Maximum results", "limit")] = 50

    def to_operation(self) -> ops.Operation:
        patterns = tuple(part.strip() for part in (self.file_pattern or "").split(",") if part.strip())
        return ops.Grep(self.query, ".", patterns, CONTEXT_LINES, self.max_results)

    render = render_as(result_formatting.format_matches_with_context, "query")
