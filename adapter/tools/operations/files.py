"""Operations on files and directories, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

MediaKind: TypeAlias = Literal["image", "pdf", "audio", "video"]


@dataclass(frozen=True, slots=True)
class ReadText:
    """Read a text file, whole or the lines ``start_line`` to ``end_line`` (inclusive)
    widened by ``context_lines`` on both sides.

    At most ``max_lines`` lines are given, and of each line ``max_line_characters``.
    ``or_list``: a directory is no mistake, its Listing is given. ``media``: the kinds
    that the model takes as they are, set by the workspace; a PDF that it does not take is given as
    its text, other media are refused in a sentence.
    """

    path: str
    start_line: int | None = None
    end_line: int | None = None
    context_lines: int = 0
    max_lines: int | None = None
    max_line_characters: int | None = None
    or_list: bool = False
    counts_from: Literal[0, 1] = 1
    """What the caller calls the first line: messages give its numbers back."""
    media: frozenset[MediaKind] = frozenset()


@dataclass(frozen=True, slots=True)
class WriteText:
    """Create or overwrite a file; missing parent directories are made."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Patch:
    """One replacement. The lines are hints that decide between equal places;
    ``replace_all`` takes every place instead of the only one. ``exact``: only the
    very characters count, and the new text goes in as it is written."""

    old_text: str
    new_text: str
    start_line: int | None = None
    end_line: int | None = None
    replace_all: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Hunk(Patch):
    """A patch in a notation of lines, such as a diff: both texts are whole lines.

    Without old text it inserts before ``start_line`` or at the end; with neither it fills an empty file.
    """

    below: tuple[str, ...] = ()
    """Lines that stand above its place, from the outermost in, each at an unknown distance. With a
    ``start_line`` they are what a diff tool found there, and only tell equal places apart."""
    at_end: bool = False
    """Its last line is the last one of the file."""
    final_newline: bool | None = None
    """Whether the file is to end with a line end, where the notation says so."""
    others: tuple[Hunk, ...] = ()
    """What the same text can also be read as; the one that stands in the file was meant."""


@dataclass(frozen=True, slots=True)
class WholeFileRewrite(Patch):
    """The file as a whole, in ``new_text``; a line such as ``# ... existing code ...`` stands for lines that stay."""


@dataclass(frozen=True, slots=True)
class ParameterNames:
    """What the calling tool names the parts of a patch, for messages; None for what it does not have."""

    old_text: str = "old_text"
    new_text: str = "new_text"
    start_line: str | None = "start_line"
    replace_all: str | None = None


PatchBasis: TypeAlias = Literal["original", "sequence"]
"""What a patch is sought in: the text as it was, or as the patches before it left it."""

Edits: TypeAlias = Literal["exact", "tolerant"]
"""Whether an old text must stand in the file as it was given, or slips that are certain to be such are tolerated."""

EmptyOldText: TypeAlias = Literal["refuse", "create", "insert"]
"""What a patch without old text does: nothing, fill a new or empty file, or insert at
``start_line`` (without one, at the top)."""


@dataclass(frozen=True, slots=True)
class PatchText:
    """Apply all patches to one file or none of them."""

    path: str
    patches: tuple[Patch, ...]
    basis: PatchBasis = "original"
    empty_old_text: EmptyOldText = "refuse"
    names: ParameterNames = ParameterNames()


FileAction: TypeAlias = Literal["update", "add", "delete"]


@dataclass(frozen=True, slots=True)
class FileEdit:
    """What is to happen to one file: patches for an update, which may move it, too; the ``content`` of a new one."""

    path: str
    action: FileAction = "update"
    patches: tuple[Patch, ...] = ()
    content: str = ""
    moved_to: str | None = None


@dataclass(frozen=True, slots=True)
class PatchFiles:
    """Edit, add, delete and move several files, all or none.

    A file that is named again is taken as the edits before left it.
    """

    files: tuple[FileEdit, ...]
    basis: PatchBasis = "original"
    empty_old_text: EmptyOldText = "refuse"
    names: ParameterNames = ParameterNames()


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
    """Of a file, also how many line feeds it has."""


@dataclass(frozen=True, slots=True)
class FileText:
    """Lines ``start_line`` to ``end_line`` of a file that has ``total_lines``.

    ``text`` keeps the file's own line ends. An empty file has 0 lines.
    ``total_lines`` is None for a large file that was not read to its end.
    ``truncated``: a limit left out lines that were asked for; reading goes on at ``end_line`` + 1.
    """

    path: str
    text: str
    start_line: int
    end_line: int
    total_lines: int | None
    truncated: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Media:
    """A file that is no text, as it is; ``mime`` such as ``image/png``."""

    path: str
    kind: MediaKind
    mime: str
    data: bytes
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileWritten:
    path: str
    size: int
    """Bytes on disk afterwards."""
    created: bool
    diff: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A place as it is after a change, 1-based; ``context`` is its line and the ones around it."""

    line: int
    column: int
    context: str


@dataclass(frozen=True, slots=True)
class FilePatched:
    path: str
    count: int
    diff: str
    notes: tuple[str, ...] = ()
    """What was tolerated, one sentence per loose match."""
    places: tuple[ChangedLine, ...] = ()
    """In the order of the file; none where patches were applied in sequence."""


@dataclass(frozen=True, slots=True)
class FilesPatched:
    """``done`` names each edit: ``updated a.py``, ``added b.py``, ``deleted c.py``, ``moved d.py to e.py``."""

    done: tuple[str, ...]
    diff: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperationDone:
    """A change that has nothing more to say than which paths it touched."""

    path: str
    destination: str | None = None
    entries: int = 1
    """Files and directories deleted or copied."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileInfo:
    path: str
    size: int
    is_directory: bool
    is_file: bool
    modified: int
    """Seconds since the epoch."""
    readonly: bool
    lines: int | None = None
    notes: tuple[str, ...] = ()
