"""Operations on files, directories and declarations in source code, and the outcomes of these operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

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
    """Number of the first line in the caller's numbering, which messages use."""
    media: frozenset[MediaKind] = frozenset()
    """The media types that the model accepts, set by the workspace. If PDFs are not among them, a PDF is returned as
    text. Other media are refused."""


@dataclass(frozen=True, slots=True)
class WriteText:
    """Create or overwrite a file. Missing parent directories are created."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Patch:
    """A replacement of text. The line numbers are hints that select one of several matches.

    ``replace_all``: whether to replace every match. ``exact``: whether to match and insert the characters verbatim.
    """

    old_text: str
    new_text: str
    start_line: int | None = None
    end_line: int | None = None
    replace_all: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Hunk(Patch):
    """A patch in a line-based notation, such as a diff. Its old and new text consist of whole lines.

    A hunk without old text inserts its new text before ``start_line``. Without ``start_line``, the text is inserted at
    the end of the file, which may be empty.
    """

    below: tuple[str, ...] = ()
    """Lines that occur above the match, in file order, with any number of lines between them.

    If ``start_line`` is set, they are a hunk's heading, written by a diff tool, and only select one of several matches.
    """
    at_end: bool = False
    """True if the hunk's last line is the last line of the file."""
    final_newline: bool | None = None
    """True if the changed file ends with a line break; None if the notation does not specify this."""
    in_order: bool = field(default=False, compare=False)
    """True if the notation requires that a file's hunks are written in file order."""
    others: tuple[Hunk, ...] = ()
    """Alternative interpretations of the same text. The one that matches the file is used."""


@dataclass(frozen=True, slots=True)
class WholeFileRewrite(Patch):
    """A rewrite of a whole file. ``new_text``: the file's new text, in which a line such as ``# ... existing code ...``
    represents unchanged lines."""


@dataclass(frozen=True, slots=True)
class ParameterNames:
    """The tool's names for the parameters of a patch, which error messages use. A name is None if the tool has no such
    parameter."""

    old_text: str = "old_text"
    new_text: str = "new_text"
    start_line: str | None = "start_line"
    replace_all: str | None = None


PatchBasis: TypeAlias = Literal["original", "sequence"]
"""The text that a patch is matched against: the original text, or the result of the previous patches."""

Edits: TypeAlias = Literal["exact", "tolerant"]
"""Matching of old text: verbatim, or tolerant of unambiguous mistakes."""

EmptyOldText: TypeAlias = Literal["refuse", "create", "insert"]
"""The effect of a patch without old text: ``refuse`` raises an error, ``create`` writes a new or empty file, and
``insert`` inserts the new text at ``start_line`` (by default at the top)."""


@dataclass(frozen=True, slots=True)
class PatchText:
    """Apply all patches to a file, or none of them if one fails."""

    path: str
    patches: tuple[Patch, ...]
    basis: PatchBasis = "original"
    empty_old_text: EmptyOldText = "refuse"
    names: ParameterNames = ParameterNames()


FileAction: TypeAlias = Literal["update", "add", "delete"]


@dataclass(frozen=True, slots=True)
class FileEdit:
    """An edit to one file. An update has patches and may also move the file; a new file has ``content``."""

    path: str
    action: FileAction = "update"
    patches: tuple[Patch, ...] = ()
    content: str = ""
    moved_to: str | None = None


@dataclass(frozen=True, slots=True)
class PatchFiles:
    """Edit, add, delete and move several files. If one edit fails, no file is changed. Several edits to the same file
    build on each other."""

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
    """True to also count the line feeds in a file."""


@dataclass(frozen=True, slots=True)
class FileText:
    """Lines ``start_line`` to ``end_line`` of a file."""

    path: str
    text: str
    """The lines with the file's line endings. An empty file has 0 lines."""
    start_line: int
    end_line: int
    total_lines: int | None
    """Number of lines of the file; None for a large file that was not read to its end."""
    truncated: bool = False
    """True if a limit omitted requested lines. The first omitted line is ``end_line`` + 1."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Media:
    """The bytes of a file that is not text. ``mime``: MIME type, such as ``image/png``."""

    path: str
    kind: MediaKind
    mime: str
    data: bytes
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileWritten:
    path: str
    size: int
    """Size of the changed file, in bytes."""
    created: bool
    diff: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """The 1-based position of a change. ``context``: the changed line and the lines around it."""

    line: int
    column: int
    context: str


@dataclass(frozen=True, slots=True)
class FilePatched:
    path: str
    count: int
    diff: str
    notes: tuple[str, ...] = ()
    """Tolerated differences: one sentence for each match that was not exact."""
    places: tuple[ChangedLine, ...] = ()
    """Changed positions in file order. Empty if patches were applied in sequence."""


@dataclass(frozen=True, slots=True)
class FilesPatched:
    """The result of `PatchFiles`. ``done``: one entry per edit, such as ``updated a.py``, ``added b.py``, ``deleted
    c.py`` or ``moved d.py to e.py``."""

    done: tuple[str, ...]
    diff: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperationDone:
    """A completed change that has no result except the affected paths."""

    path: str
    destination: str | None = None
    entries: int = 1
    """Number of files and directories deleted or copied."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileInfo:
    path: str
    size: int
    is_directory: bool
    is_file: bool
    modified: int
    """Time of the last modification, in seconds since the Unix epoch."""
    readonly: bool
    lines: int | None = None
    notes: tuple[str, ...] = ()


TreeOrder: TypeAlias = Literal["path", "directories_first"]
FileOrder: TypeAlias = Literal["path", "newest"]
"""Order of files. ``newest``: by modification time, latest first."""


@dataclass(frozen=True, slots=True)
class Tree:
    """List a directory and its contents, ``depth`` levels deep, at most ``limit`` entries."""

    path: str = "."
    depth: int = 1
    limit: int = 2000
    skip_common: bool = False
    """True to skip common build and cache directories."""
    gitignore: bool = False
    """True to skip entries that ``.gitignore`` files exclude."""
    ignore: tuple[str, ...] = ()
    """Globs for entries to skip, matched against an entry's name and its path relative to ``path``."""
    order: TreeOrder = "path"
    details: bool = False
    """True to include the size and modification time of each entry."""


@dataclass(frozen=True, slots=True)
class FindByName:
    """Find files and directories whose name contains ``text``."""

    text: str
    path: str = "."
    max_depth: int | None = None
    limit: int = 200


@dataclass(frozen=True, slots=True)
class Glob:
    """Find files whose path relative to ``path`` matches a glob (``**`` matches any number of directories).

    ``directories``: whether to also find directories.
    """

    pattern: str
    path: str = "."
    case_sensitive: bool = False
    limit: int = 200
    gitignore: bool = False
    order: FileOrder = "path"
    directories: bool = False


@dataclass(frozen=True, slots=True)
class Grep:
    """Find lines that match a regular expression in files that ``.gitignore`` does not exclude."""

    pattern: str
    path: str = "."
    file_patterns: tuple[str, ...] = ()
    """Globs for the names or relative paths of the files to search; empty for all files."""
    context_lines: int = 0
    max_results: int | None = None
    case_sensitive: bool = True
    order: FileOrder = "path"
    """Order of the files. A file's lines stay together."""
    leave_out: tuple[str, ...] = ()
    """Globs for files to skip."""
    ignored: bool = False
    """True to also search files that ``.gitignore`` excludes."""


@dataclass(frozen=True, slots=True)
class ListingEntry:
    """One line of a listing. ``path``: relative to the listed directory, with ``/``.

    With details: ``size`` in bytes, and ``modified`` in local time, as ``2026-01-31 12:00``.
    """

    path: str
    depth: int
    is_directory: bool
    size: int | None = None
    modified: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    path: str
    entries: tuple[ListingEntry, ...]
    omitted: int = 0
    """Number of entries beyond the limit."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PathList:
    """Paths relative to the workspace root, with ``/``. ``truncated``: whether a limit cut off the list."""

    paths: tuple[str, ...]
    truncated: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrepMatch:
    path: str
    line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrepResult:
    hits: tuple[GrepMatch, ...]
    total: int
    """The number of all matches. ``hits`` contains at most ``max_results`` of them."""
    files: tuple[tuple[str, int], ...] = ()
    """Each file with its number of matches, including files without a match in ``hits``."""
    notes: tuple[str, ...] = ()


Section: TypeAlias = Literal[
    "imports", "mods", "consts", "types", "traits", "impls", "classes", "fns", "macros", "tests", "fields"
]
"""The section of an outline to which an item belongs. ``fields`` occurs only within items."""

SymbolContext: TypeAlias = Literal["any", "files", "classes", "functions", "variables"]
"""Kinds of names that a symbol search finds.

``classes`` includes modules, ``functions`` includes methods, ``variables`` includes constants and fields.
"""

SymbolScope: TypeAlias = Literal["project", "module", "directory", "file", "custom"]


@dataclass(frozen=True, slots=True)
class Outline:
    """List the imports, types and signatures of a source file, with their lines."""

    path: str


@dataclass(frozen=True, slots=True)
class FindSymbols:
    """Find files, types, functions and other symbols whose name matches ``pattern``."""

    pattern: str
    """Words that must all occur in the name, or the capitals of its words (``FiCh`` for ``FileChange``)."""
    scope: SymbolScope = "project"
    """The project; the module around ``path`` (the nearest directory with a file such as ``pyproject.toml`` or
    ``package.json``); the directory or file ``path``; or, for ``custom``, the files that match one of the
    comma-separated globs in ``path``.
    """
    path: str = "."
    file_type: str | None = None
    """A language's name or a file name extension."""
    context: SymbolContext = "any"
    case_sensitive: bool = False
    regex: bool = False
    """True if ``pattern`` is a regular expression, which may match any part of the name."""
    whole_words: bool = False
    """True to reject a match that is followed by a letter, a digit or ``_``."""
    limit: int = 10


@dataclass(frozen=True, slots=True)
class OutlineName:
    """A name that an item declares. ``line`` and ``column`` are 1-based, and columns count characters."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class OutlineItem:
    """A declaration in lines ``start_line`` to ``end_line``, which include the comments directly above it."""

    section: Section
    text: str
    """The signature, on one line."""
    start_line: int
    end_line: int
    names: tuple[OutlineName, ...] = ()
    members: tuple[OutlineItem, ...] = ()


@dataclass(frozen=True, slots=True)
class FileOutline:
    path: str
    language: str
    total_lines: int
    items: tuple[OutlineItem, ...]
    """Items in file order."""
    imports: tuple[str, ...] = ()
    """Full paths of the imports. `adapter.outline.formatter` merges common prefixes."""
    separator: str = ""
    """Separator between the components of an import path; "" if the language has none."""
    module_doc: tuple[int, int] | None = None
    """First and last line of the comment that describes the whole file."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SymbolMatch:
    """A name that matches the pattern. ``line`` and ``column`` are 1-based; a match of a file's name has line 1 and
    column 1."""

    path: str
    line: int
    column: int
    name: str
    text: str
    """The line of code that contains the name, or the file's path."""
    context: str
    """Description of the named symbol: ``file``, ``class Parser``, ``method of class Parser`` ..."""


@dataclass(frozen=True, slots=True)
class SymbolMatches:
    """The result of a symbol search."""

    matches: tuple[SymbolMatch, ...]
    """The best matches, best first, up to the limit."""
    total: int
    """The number of matches, including those beyond the limit."""
    files: tuple[tuple[str, int], ...] = ()
    """Path and number of matches for each file with a match."""
    notes: tuple[str, ...] = ()
