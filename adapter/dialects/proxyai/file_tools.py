"""ProxyAI's tools that read, search and edit files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field, field_validator

from adapter.core.text.lines import split_lines, strip_line_end
from adapter.core.text.truncate import shorten
from adapter.dialects import result_formatting
from adapter.dialects.proxyai.error_fields import FILE_ERROR
from adapter.dialects.tool_class import Parameter, PathText, Rendered, ToolClass, ToolMetadata
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import CONTENT, DIRECTORY, NEW_TEXT, OLD_TEXT, PATH

FilePath = Annotated[PathText, Parameter("Absolute path of the file", *PATH)]
READ_LINES = 2_000
"""Default number of lines to read."""
LINE_CHARACTERS = 2_000
"""Maximum length of a line, in characters. Longer lines are cut."""
_FILE_TYPES = {
    "bat": "Batch", "c": "C", "cc": "C++", "cpp": "C++", "cs": "C#", "css": "CSS", "csv": "CSV", "go": "Go",
    "gradle": "Groovy", "groovy": "Groovy", "h": "C", "hpp": "C++", "htm": "HTML", "html": "HTML", "java": "JAVA",
    "js": "JavaScript", "json": "JSON", "jsx": "JSX Harmony", "kt": "Kotlin", "kts": "Kotlin", "lua": "Lua",
    "markdown": "Markdown", "md": "Markdown", "php": "PHP", "properties": "Properties", "py": "Python",
    "pyi": "Python", "rb": "Ruby", "rs": "Rust", "scala": "Scala", "sh": "Shell Script", "sql": "SQL",
    "swift": "Swift", "toml": "TOML", "ts": "TypeScript", "tsx": "TypeScript JSX", "txt": "PLAIN_TEXT",
    "xml": "XML", "yaml": "YAML", "yml": "YAML",
}  # fmt: skip
"""IntelliJ's names for file types, by file name extension."""


class ProxyAIReadFile(ToolClass):
    """Read a file. Returns its lines with line numbers."""

    naming = ToolMetadata(
        "Read", aliases=("ReadFile", "view", "cat", "open_file"), max_lines=READ_LINES + 1, failure=FILE_ERROR
    )
    example = {"file_path": "/project/src/main.py", "offset": 10, "limit": 50}
    file_path: FilePath
    offset: Annotated[int | None, Parameter("First line to read (1-indexed)", "line")] = None
    limit: Annotated[int | None, Parameter("Number of lines to read", "maxLinesCount")] = None

    @field_validator("offset", "limit")
    @classmethod
    def _check_positive(cls, value: int | None) -> int | None:
        if value is not None and value < 1:
            raise ValueError(f"{value} is out of range; expected 1 or more")
        return value

    def to_operation(self) -> ops.Operation:
        return ops.ReadText(
            self.file_path, self.offset, max_lines=self.limit or READ_LINES, max_line_characters=LINE_CHARACTERS
        )

    def render(self, file: ops.FileText) -> Rendered:
        lines = [strip_line_end(line) for line in split_lines(file.text)]
        numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, file.start_line))
        fields = {
            "filePath": self.file_path,
            "content": numbered,
            "lineCount": len(lines),
            "truncated": file.truncated,
            "fileType": _FILE_TYPES.get(file.path.rpartition(".")[2].lower()),
            "startLine": file.start_line if self.offset is not None else None,
            "endLine": file.end_line if file.truncated else None,
        }
        if not lines:
            return f"({file.path} is empty)", fields
        more = f"\n(there are more lines; continue with offset {file.end_line + 1})" if file.truncated else ""
        return numbered + more, fields


_CONTEXTS: dict[str, ops.SymbolContext] = {
    "all": "any", "any": "any", "file": "files", "files": "files", "class": "classes", "classes": "classes",
    "type": "classes", "types": "classes", "symbol": "any", "symbols": "any", "function": "functions",
    "functions": "functions", "method": "functions", "methods": "functions", "variable": "variables",
    "variables": "variables", "field": "variables", "fields": "variables",
}  # fmt: skip


class IntelliJSearch(ToolClass):
    """Find files, classes and symbols by name; the scopes directory and file need a path, custom needs globs.

    Use it when you do not know the path. It does not search file contents.
    """

    naming = ToolMetadata("IntelliJSearch", aliases=("search", "search_files", "find_symbol"))
    example = {"pattern": "UserService", "scope": "project"}
    pattern: Annotated[str, Parameter("Name, or part of a name, to search for", "searchText", "query", "nameKeyword")]
    scope: Annotated[ops.SymbolScope, Parameter("Where to search")] = "project"
    path: Annotated[
        str | None,
        Parameter("Directory or file to search, or globs for the scope custom", "directoryToSearch", *DIRECTORY),
    ] = None
    fileType: Annotated[str | None, Parameter("Language or file extension to search", "file_type", "language")] = None
    context: Annotated[
        str | None,
        Parameter("Kind of names: any, files, classes, functions or variables"),
        Field(json_schema_extra={"enum": ["any", "files", "classes", "functions", "variables"]}),
    ] = None
    caseSensitive: Annotated[bool, Parameter("Case-sensitive matching")] = False
    regex: Annotated[bool, Parameter("Treat the pattern as a regular expression")] = False
    wholeWords: Annotated[bool, Parameter("Match whole words only")] = False
    outputMode: Annotated[Literal["content", "files_with_matches", "count"], Parameter("Output format")] = "content"
    limit: Annotated[int, Parameter("Maximum number of matches", "maxUsageCount", "fileCountLimit", "max_results")] = 10

    @field_validator("context")
    @classmethod
    def _check_context(cls, given: str | None) -> str | None:
        if given is not None and given.strip().lower() not in _CONTEXTS:
            raise ValueError(f"unknown context {given!r}; expected any, files, classes, functions or variables")
        return given

    @field_validator("limit")
    @classmethod
    def _check_limit(cls, given: int) -> int:
        if given < 1:
            raise ValueError(f"limit must be at least 1, got {given}")
        return given

    def to_operation(self) -> ops.Operation:
        context = _CONTEXTS[(self.context or "any").strip().lower()]
        found_in = self.pattern, self.scope, self.path or ".", self.fileType, context
        return ops.FindSymbols(*found_in, self.caseSensitive, self.regex, self.wholeWords, self.limit)

    def render(self, found: ops.SymbolMatches) -> Rendered:
        matches = found.matches if self.outputMode == "content" else ()
        text = self._describe_matches(found)
        fields = {
            "pattern": self.pattern,
            "scope": self.scope,
            "totalMatches": len(matches) if self.outputMode == "content" else found.total,
            "matches": [
                {"file": one.path, "line": one.line, "column": one.column, "text": one.text, "context": one.context}
                for one in matches
            ],
            "output": text,
        }
        return text, fields

    def _describe_matches(self, found: ops.SymbolMatches) -> str:
        if not found.total:
            return f"No names match {self.pattern!r}."
        files = found.files[: self.limit]
        more = [f"({len(found.files) - len(files)} more files)"] if len(files) < len(found.files) else []
        match self.outputMode:
            case "files_with_matches":
                return "\n".join([*(path for path, _ in files), *more])
            case "count":
                counts = [f"{path}: {count}" for path, count in files]
                return "\n".join([f"{found.total} in all", *counts, *more])
        omitted = found.total - len(found.matches)
        rest = [f"({omitted} more; be more specific, or raise limit)"] if omitted else []
        matches = (f"{one.path}:{one.line}:{one.column}: {one.text} ({one.context})" for one in found.matches)
        return "\n".join([*matches, *rest])


PREVIEW_CHARACTERS = 200
"""Maximum length of a preview of an edit's old or new text, in characters."""


class ProxyAIEdit(ToolClass):
    """Replace an exact text in a file, which must occur once unless replace_all is true. The user is asked first."""

    naming = ToolMetadata(
        "Edit",
        aliases=("Replace", "ReplaceText", "str_replace", "search_replace", "edit_file"),
        effect="write",
        label="short_description",
        failure=FILE_ERROR,
    )
    example = {
        "file_path": "/project/src/main.py",
        "old_string": "retries = 3",
        "new_string": "retries = 5",
        "short_description": "Raise the number of retries",
    }
    file_path: FilePath
    old_string: Annotated[str, Parameter("Text to replace, exactly as in the file", *OLD_TEXT)]
    new_string: Annotated[str, Parameter("Replacement text; may be empty", *NEW_TEXT)]
    short_description: Annotated[
        str, Parameter("Purpose of the edit, shown to the user", "description", is_required=True)
    ] = ""
    replace_all: Annotated[bool, Parameter("Replace every occurrence", "replaceAll", "all")] = False

    def to_operation(self) -> ops.Operation:
        patch = ops.Patch(self.old_string, self.new_string, replace_all=self.replace_all, exact=True)
        names = ops.ParameterNames("old_string", "new_string", None, "replace_all")
        return ops.PatchText(self.file_path, (patch,), names=names)

    def render(self, patched: ops.FilePatched) -> Rendered:
        count = len(patched.places)
        message = f"Replaced {count} occurrence{'' if count == 1 else 's'} in {patched.path}."
        fields = {
            "filePath": self.file_path,
            "replacementsMade": count,
            "message": message,
            "oldStringPreview": shorten(self.old_string, PREVIEW_CHARACTERS),
            "newStringPreview": shorten(self.new_string, PREVIEW_CHARACTERS),
            "editLocations": [asdict(place) for place in patched.places],
        }
        return message, fields


class ProxyAIWrite(ToolClass):
    """Create a file, or overwrite it with new contents. The user is asked first."""

    naming = ToolMetadata("Write", ops.WriteText, aliases=("WriteFile", "create_file", "save_file"), failure=FILE_ERROR)
    example = {"file_path": "/project/notes.txt", "content": "first line\n"}
    file_path: FilePath
    content: Annotated[str, Parameter("The whole contents of the file", *CONTENT)]

    def render(self, written: ops.FileWritten) -> Rendered:
        message = result_formatting.format_written(written)
        fields = {"filePath": self.file_path, "bytesWritten": written.size, "isNewFile": written.created}
        return message, {**fields, "message": message}
