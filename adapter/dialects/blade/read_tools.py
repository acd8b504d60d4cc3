"""Blade's tools that read files."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from adapter.dialects import result_formatting
from adapter.dialects.blade.parameters import FilePath
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, render_as, require_outcome
from adapter.tools.argument_synonyms import DIRECTORY, PATH
from adapter.tools.operations import FileInfo, FileText, Operation, Outcome, ReadText, Stat


class BladeReadFile(ToolClass):
    """Read the complete contents of a file."""

    naming = ToolMetadata(
        "read_file", aliases=("read", "cat", "view", "view_file", "open", "get_file"), example={"path": "src/main.rs"}
    )
    path: FilePath

    def to_operation(self) -> Operation:
        return ReadText(self.path)

    render = render_as(FileText, result_formatting.format_file)


class ReadFileRange(ToolClass):
    """Read a line range from a file with optional context."""

    naming = ToolMetadata(
        "read_file_range",
        aliases=("read_range", "read_lines", "view_range"),
        example={"path": "src/lib.rs", "start_line": 50, "end_line": 100, "context_lines": 3},
    )
    path: FilePath
    start_line: Annotated[int, Field(description="Start line (1-indexed)"), Aliases("start", "from_line", "line")] = 1
    end_line: Annotated[
        int | None, Field(description="End line (1-indexed, default: end of file)"), Aliases("end", "to_line")
    ] = None
    context_lines: Annotated[int, Field(description="Extra context lines before/after range"), Aliases("context")] = 0

    def to_operation(self) -> Operation:
        return ReadText(self.path, self.start_line, self.end_line, self.context_lines)

    render = render_as(FileText, result_formatting.format_numbered_lines)


class GetFileInfo(ToolClass):
    """Get metadata about a file or directory."""

    naming = ToolMetadata("get_file_info", aliases=("file_info", "stat", "file_stat"), example={"path": "Cargo.toml"})
    path: Annotated[str, Field(description="Path to inspect"), Aliases(*PATH, *DIRECTORY)]

    def to_operation(self) -> Operation:
        return Stat(self.path)

    def render(self, outcome: Outcome) -> Rendered:
        info = asdict(require_outcome(outcome, FileInfo))
        fields = {name: info[name] for name in ("path", "size", "is_directory", "is_file", "readonly", "modified")}
        return json.dumps(fields, ensure_ascii=False), fields
