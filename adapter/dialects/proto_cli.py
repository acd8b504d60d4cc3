"""The file system tools of proto CLI, from its "File System Tools" documentation page.

The document requires absolute paths. Relative paths are also accepted, from the project root, and results contain
relative paths. ``read_file`` counts lines from 0.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic.json_schema import SkipJsonSchema

from adapter.dialects import result_formatting
from adapter.dialects.dialect import Dialect
from adapter.dialects.tool_class import (
    EDIT_ALIASES,
    Parameter,
    PathText,
    Rendered,
    ToolClass,
    ToolMetadata,
    Unsigned,
    render_as,
)
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import CONTENT, DIRECTORY, NEW_TEXT, OLD_TEXT, PATH, PATTERN

MAX_READ_LINES = 1_000
"""Default number of lines in a page from `ProtoReadFile`."""
MAX_READ_BYTES = 25_000
"""Maximum size of a page from `ProtoReadFile`, in bytes: proto CLI's own, undocumented limit."""
MAX_LINE_CHARACTERS = 2_000
"""Maximum length of a line, in characters. Longer lines are cut."""
MAX_PATHS = 100
"""Maximum number of paths in a result of `ProtoGlobTool`."""
MAX_ENTRIES = 1_000
"""Maximum number of entries in a listing."""
MAX_MATCHES = 500
"""Maximum number of matches in a result of `ProtoGrepSearch`."""


class ProtoListDirectory(ToolClass):
    """List the contents of a directory: directories first, then files, alphabetically."""

    naming = ToolMetadata("list_directory", aliases=("list_dir", "ls", "list_files", "list"))
    example = {"path": "src"}
    path: Annotated[
        PathText, Parameter("Absolute path to the directory (or relative to the project root)", *DIRECTORY, *PATH)
    ]
    ignore: Annotated[list[str] | None, Parameter("Glob patterns to exclude", "exclude", "ignore_patterns")] = None
    respect_git_ignore: Annotated[bool, Parameter("Respect .gitignore", "respect_gitignore", "git_ignore")] = True
    file_filtering_options: SkipJsonSchema[dict[str, bool] | None] = None
    """An object with ``respect_git_ignore``: the undocumented form that proto CLI expects."""

    def to_operation(self) -> ops.Operation:
        respected = (self.file_filtering_options or {}).get("respect_git_ignore", self.respect_git_ignore)
        ignore = tuple(self.ignore or ())
        return ops.Tree(self.path, limit=MAX_ENTRIES, gitignore=respected, ignore=ignore, order="directories_first")

    render = render_as(result_formatting.format_listing)


class ProtoReadFile(ToolClass):
    """Read a file: text, image, PDF, audio or video; offset counts lines from 0 and requires limit.

    A large text is returned in pages, which explain how to read the next one.
    """

    naming = ToolMetadata("read_file", aliases=("read", "cat", "view", "view_file", "open", "get_file"))
    example = {"path": "src/main.ts", "offset": 100, "limit": 50}
    path: Annotated[PathText, Parameter("Absolute path to the file (or relative to the project root)", *PATH)]
    offset: Annotated[
        Unsigned | None, Parameter("0-based line number to start reading from (requires limit)", "start", "skip")
    ] = None
    limit: Annotated[Unsigned | None, Parameter("Maximum lines to read", "max_lines", "num_lines", "line_count")] = None

    def to_operation(self) -> ops.Operation:
        start = None if self.offset is None else self.offset + 1
        lines = MAX_READ_LINES if self.limit is None else self.limit
        return ops.ReadText(self.path, start, max_lines=lines, max_line_characters=MAX_LINE_CHARACTERS, counts_from=0)

    def render(self, read: ops.FileText) -> Rendered:
        limit = self.limit or MAX_READ_LINES

        def read_on(line: int) -> str:
            return f"offset {line - 1} is line {line}; continue with offset {line - 1} and limit {limit}"

        return result_formatting.format_plain_page(read, MAX_READ_BYTES, read_on), None

    def list_notes(self) -> tuple[str, ...]:
        if self.offset is None or self.limit is not None:
            return ()
        return (f"offset requires limit; {MAX_READ_LINES} lines were read by default",)


class ProtoWriteFile(ToolClass):
    """Write content to a file. Creates it, and parent directories, if it does not exist; overwrites it if it does."""

    naming = ToolMetadata(
        "write_file",
        ops.WriteText,
        aliases=("write", "create_file", "create", "save_file", "write_to_file", "new_file"),
    )
    example = {"file_path": "src/config.ts", "content": "export const port = 8000;\n"}
    file_path: Annotated[PathText, Parameter("Absolute path to write to (or relative to the project root)", *PATH)]
    content: Annotated[str, Parameter("Content to write", *CONTENT)]


class ProtoEdit(ToolClass):
    """Replace a string in a file, which must match exactly, whitespace included, and occur once unless replace_all."""

    naming = ToolMetadata("edit", aliases=EDIT_ALIASES, effect="write")
    example = {
        "file_path": "src/main.ts",
        "old_string": "function main() {\n  const port = 8000;\n  start(port);\n",
        "new_string": "function main() {\n  const port = 9000;\n  start(port);\n",
    }
    file_path: Annotated[PathText, Parameter("Absolute path to the file (or relative to the project root)", *PATH)]
    old_string: Annotated[str, Parameter("Exact literal text to replace (include 3+ lines of context)", *OLD_TEXT)]
    new_string: Annotated[str, Parameter("Replacement text", *NEW_TEXT)]
    replace_all: Annotated[bool, Parameter("Replace all occurrences", "all")] = False

    def to_operation(self) -> ops.Operation:
        patch = ops.Patch(self.old_string, self.new_string, replace_all=self.replace_all, exact=True)
        names = ops.ParameterNames("old_string", "new_string", None, "replace_all")
        return ops.PatchText(self.file_path, (patch,), empty_old_text="create", names=names)


class ProtoGlobTool(ToolClass):
    """Find files matching a glob pattern, most recently modified first."""

    naming = ToolMetadata(
        "glob",
        partial(ops.Glob, limit=MAX_PATHS, gitignore=True, order="newest"),
        aliases=("find_files_glob", "glob_search", "find_glob"),
    )
    example = {"pattern": "src/**/*.tsx"}
    pattern: Annotated[str, Parameter("Glob pattern (e.g. **/*.ts, src/**/*.tsx)", "glob", "query", "glob_pattern")]
    path: Annotated[PathText, Parameter("Directory to search in (default: project root)", *DIRECTORY)] = "."


class ProtoGrepSearch(ToolClass):
    """Search file contents using a regular expression, as ripgrep does. Gives path:line:text."""

    naming = ToolMetadata(
        "grep_search", aliases=("grep", "rg", "ripgrep", "search_file_content", "search_code", "search")
    )
    example = {"pattern": "function\\s+\\w+", "path": "src", "glob": "*.ts", "limit": 20}
    pattern: Annotated[str, Parameter("Regex pattern to search for", *PATTERN)]
    path: Annotated[PathText, Parameter("File or directory to search in", *DIRECTORY, *PATH)] = "."
    glob: Annotated[str | None, Parameter("Glob filter for files (e.g. *.ts)", "include", "file_pattern", "filter")] = (
        None
    )
    limit: Annotated[
        Unsigned | None, Parameter("Limit output to first N lines", "max_results", "head_limit", "max_matches")
    ] = None

    def to_operation(self) -> ops.Operation:
        globs = (self.glob,) if self.glob else ()
        return ops.Grep(self.pattern, self.path, globs, max_results=MAX_MATCHES if self.limit is None else self.limit)

    def render(self, found: ops.GrepResult) -> Rendered:
        matches = result_formatting.format_matches(found, self.pattern)
        return "\n".join([matches, *result_formatting.format_omitted_matches(found)]), None


DIALECT = Dialect(
    name="proto",
    title="proto CLI",
    classes=(ProtoListDirectory, ProtoReadFile, ProtoWriteFile, ProtoEdit, ProtoGlobTool, ProtoGrepSearch),
)
