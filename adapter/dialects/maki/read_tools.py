"""Maki's tools that read files."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.core.text.truncate import MAX_BYTES
from adapter.dialects import result_formatting
from adapter.dialects.maki.parameters import FilePath
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, Unsigned, require_outcome
from adapter.outline.formatter import format_outline
from adapter.tools.argument_synonyms import DIRECTORY, PATH
from adapter.tools.operations import FileOutline, FileText, Listing, Operation, Outcome, Outline, ReadText

MAX_PAGE_BYTES = MAX_BYTES - 2_000
"""Maximum size of a page from `Read`, in bytes, which leaves room for the hint below the page. The number of lines is
limited only by ``limit``."""


MAX_LINE_CHARACTERS = 2_000
"""Maximum length of a line, in characters. The rest of the line is omitted."""


class Read(ToolClass):
    """Read a file, with 1-indexed line numbers, or list a directory."""

    naming = ToolMetadata(
        "read",
        aliases=("read_file", "cat", "view", "view_file", "open", "list_directory", "list_dir", "ls"),
        example={"path": "src/main.rs", "offset": 40, "limit": 60},
        max_lines=MAX_PAGE_BYTES,
    )
    path: Annotated[
        str,
        Field(description="Absolute path to file or directory (or relative to the project root)"),
        Aliases(*PATH, *DIRECTORY),
    ]
    offset: Annotated[
        Unsigned | None, Field(description="Start line (1-indexed)"), Aliases("start_line", "start", "line")
    ] = None
    limit: Annotated[Unsigned, Field(description="Max lines to read"), Aliases("max_lines", "num_lines")] = 2000

    def to_operation(self) -> Operation:
        return ReadText(
            self.path, self._first, max_lines=self.limit, max_line_characters=MAX_LINE_CHARACTERS, or_list=True
        )

    @property
    def _first(self) -> int | None:
        """The number of the first line. An offset of 0 means line 1."""
        return None if self.offset is None else max(self.offset, 1)

    def render(self, outcome: Outcome) -> Rendered:
        def read_on(line: int) -> str:
            return f"continue with offset={line}"

        if isinstance(outcome, Listing):
            return result_formatting.format_listing(outcome, self._first or 1, self.limit, read_on), None
        return result_formatting.format_numbered_page(require_outcome(outcome, FileText), MAX_PAGE_BYTES, read_on), None

    def list_notes(self) -> tuple[str, ...]:
        return () if self.offset == self._first else (f"offset {self.offset} was treated as 1: lines are 1-based",)


class Index(ToolClass):
    """Give the skeleton of a source file: imports, types and signatures, with line numbers. Cheaper than read."""

    naming = ToolMetadata("index", aliases=("outline", "skeleton", "file_outline"), example={"path": "src/lib.rs"})
    path: FilePath

    def to_operation(self) -> Operation:
        return Outline(self.path)

    def render(self, outcome: Outcome) -> Rendered:
        return format_outline(require_outcome(outcome, FileOutline)), None
