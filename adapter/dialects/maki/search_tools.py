"""Maki's tools that search for files and text."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.dialects import result_formatting
from adapter.dialects.tool_class import Aliases, ToolClass, ToolMetadata, render_as
from adapter.tools.argument_synonyms import DIRECTORY, PATH, PATTERN
from adapter.tools.operations import Glob, Grep, GrepResult, Operation, PathList

MAX_PATHS = 100
"""Maximum number of paths in the result of `MakiGlobTool`."""


MAX_MATCHES = 100
"""Maximum number of matches in the result of `GrepTool`."""


SearchedDirectory = Annotated[
    str, Field(description="Directory to search (default: the project root)"), Aliases(*DIRECTORY)
]


class MakiGlobTool(ToolClass):
    """Find files matching a glob pattern, newest first. Respects .gitignore."""

    naming = ToolMetadata(
        "glob", aliases=("find_files_glob", "glob_search"), example={"pattern": "**/*.rs", "path": "src"}
    )
    pattern: Annotated[str, Field(description="Glob pattern (e.g. **/*.rs)"), Aliases("glob", "query", "glob_pattern")]
    path: SearchedDirectory = "."

    def to_operation(self) -> Operation:
        return Glob(self.pattern, self.path, case_sensitive=True, limit=MAX_PATHS, gitignore=True, order="newest")

    render = render_as(PathList, result_formatting.format_paths, "pattern")


class GrepTool(ToolClass):
    """Search file contents with a regex, grouped by file, newest files first. Respects .gitignore."""

    naming = ToolMetadata(
        "grep",
        aliases=("grep_search", "rg", "ripgrep", "search", "search_file_content", "search_code"),
        example={"pattern": "fn\\s+main", "path": "src", "include": "*.rs"},
    )
    pattern: Annotated[str, Field(description="Regex pattern"), Aliases(*PATTERN)]
    path: Annotated[
        str,
        Field(description="Directory to search (default: the project root)"),
        Aliases(*DIRECTORY, *PATH),
    ] = "."
    include: Annotated[
        str | None, Field(description="File glob filter (e.g. *.rs)"), Aliases("glob", "file_pattern", "filter")
    ] = None

    def to_operation(self) -> Operation:
        included = (self.include,) if self.include else ()
        return Grep(self.pattern, self.path, included, max_results=MAX_MATCHES, order="newest")

    render = render_as(GrepResult, result_formatting.format_grouped_matches, "pattern")
