"""Operations on files and directories, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapter.tools.operations.outcome import Outcome

MediaKind: TypeAlias = Literal["image", "pdf", "audio", "video"]


@dataclass(frozen=True, slots=True)
class ReadText:
    """Read a text file, or its lines ``start_line`` to ``end_line`` (inclusive) with ``context_lines`` on both sides.

    At most ``max_lines`` lines are returned, and at most ``max_line_characters`` of each line.
    """

    path: str
    start_line: int | None = None
    end_line: int | None = None
    context_lines: int = 0
    max_lines: int | None = None
    max_line_characters: int | None = None
    or_list: bool = False
    """True to return a `Listing` for a directory, instead of an error."""
    counts_from: Literal[0, 1] = 1
    """The number that the model's tool gives to the first line of a file. Error messages use the same numbers."""
    media: frozenset[MediaKind] = frozenset()
    """The media types that the model accepts, set by the workspace. Without PDF among them, a PDF is returned as text.
    Other media are refused."""


@dataclass(frozen=True, slots=True)
class WriteText:
    """Create or overwrite a file. Missing parent directories are created."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class Copy:
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class MakeDirectory:
    path: str


@dataclass(frozen=True, slots=True)
class Stat:
    path: str
    count_lines: bool = False
    """True to also count the line feeds in a file."""


@dataclass(frozen=True, slots=True)
class FileText(Outcome):
    """Lines ``start_line`` to ``end_line`` of a file."""

    path: str
    text: str
    """The lines with the file's line endings. An empty file has 0 lines."""
    start_line: int
    end_line: int
    total_lines: int | None
    """Number of lines in the file; None for a large file that was not read to its end."""
    truncated: bool = False
    """True if a limit omitted requested lines. The first omitted line is ``end_line`` + 1."""


@dataclass(frozen=True, slots=True)
class Media(Outcome):
    """The bytes of a file that is not text. ``mime``: MIME type, such as ``image/png``."""

    path: str
    kind: MediaKind
    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class FileWritten(Outcome):
    path: str
    size: int
    """Size of the changed file, in bytes."""
    created: bool
    diff: str


@dataclass(frozen=True, slots=True)
class OperationDone(Outcome):
    """A completed change without a result other than the affected paths."""

    path: str
    destination: str | None = None
    entries: int = 1
    """Number of files and directories deleted or copied."""


@dataclass(frozen=True, slots=True)
class FileInfo(Outcome):
    path: str
    size: int
    is_directory: bool
    is_file: bool
    modified: int
    """Time of the last modification, in seconds since the Unix epoch."""
    readonly: bool
    lines: int | None = None
