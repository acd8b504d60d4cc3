"""ProxyAI's tool that reads files."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from adapter.core.text.lines import split_lines, strip_line_end
from adapter.dialects.proxyai.parameters import FilePath, render_file_error
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, require_outcome
from adapter.tools.operations import FileText, Operation, Outcome, ReadText

READ_LINES = 2_000
"""Default number of lines to read."""


LINE_CHARACTERS = 2_000
"""Maximum length of a line, in characters. The rest of the line is omitted."""


_FILE_TYPES = {
    "bat": "Batch", "c": "C", "cc": "C++", "cpp": "C++", "cs": "C#", "css": "CSS", "csv": "CSV", "go": "Go",
    "gradle": "Groovy", "groovy": "Groovy", "h": "C", "hpp": "C++", "htm": "HTML", "html": "HTML", "java": "JAVA",
    "js": "JavaScript", "json": "JSON", "jsx": "JSX Harmony", "kt": "Kotlin", "kts": "Kotlin", "lua": "Lua",
    "markdown": "Markdown", "md": "Markdown", "php": "PHP", "properties": "Properties", "py": "Python",
    "pyi": "Python", "rb": "Ruby", "rs": "Rust", "scala": "Scala", "sh": "Shell Script", "sql": "SQL",
    "swift": "Swift", "toml": "TOML", "ts": "TypeScript", "tsx": "TypeScript JSX", "txt": "PLAIN_TEXT",
    "xml": "XML", "yaml": "YAML", "yml": "YAML",
}  # fmt: skip
"""IntelliJ's names of file types, by file name extension."""


class ProxyAIReadFile(ToolClass):
    """Read a file. Gives its lines with their numbers."""

    naming = ToolMetadata(
        "Read",
        aliases=("ReadFile", "view", "cat", "open_file"),
        example={"file_path": "/project/src/main.py", "offset": 10, "limit": 50},
        max_lines=READ_LINES + 1,
        failure=render_file_error,
    )
    file_path: FilePath
    offset: Annotated[int | None, Field(description="First line to read (1-indexed)"), Aliases("line")] = None
    limit: Annotated[int | None, Field(description="Number of lines to read"), Aliases("maxLinesCount")] = None

    @field_validator("offset", "limit")
    @classmethod
    def _check_positive(cls, value: int | None) -> int | None:
        if value is not None and value < 1:
            raise ValueError(f"{value} is out of range; expected 1 or more")
        return value

    def to_operation(self) -> Operation:
        return ReadText(
            self.file_path, self.offset, max_lines=self.limit or READ_LINES, max_line_characters=LINE_CHARACTERS
        )

    def render(self, outcome: Outcome) -> Rendered:
        file = require_outcome(outcome, FileText)
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
