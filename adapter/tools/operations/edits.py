"""Edits to the text of files: patches, hunks and rewrites, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adapter.tools.operations.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Patch:
    """A replacement of text. The line numbers are hints that select one of several matches.

    ``replace_all``: whether to replace every match. ``exact``: whether to match and insert text verbatim.
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

    A hunk without old text inserts its new text before ``start_line``, or at the end of the file without that.
    """

    below: tuple[str, ...] = ()
    """Lines above the match, in file order, with any number of lines between them.

    If ``start_line`` is set, they are the hunk's heading, written by a diff tool, and only select one of several
    matches.
    """
    at_end: bool = False
    """True if the hunk's last line is the last line of the file."""
    final_newline: bool | None = None
    """True if the changed file ends with a line break; None if the notation does not specify this."""
    in_order: bool = field(default=False, compare=False)
    """True if the notation requires a file's hunks to be in file order."""
    others: tuple[Hunk, ...] = field(default=(), compare=False)
    """Other ways to divide the same text into old and new lines. The one that matches the file is used."""


@dataclass(frozen=True, slots=True)
class WholeFileRewrite(Patch):
    """A rewrite of a whole file. ``new_text`` is the new text, in which a line such as ``# ... existing code ...``
    represents unchanged lines."""


@dataclass(frozen=True, slots=True)
class ParameterNames:
    """Names of a patch's parameters in error messages; None for a parameter that the tool lacks."""

    old_text: str = "old_text"
    new_text: str = "new_text"
    start_line: str | None = "start_line"
    replace_all: str | None = None


PatchBasis: TypeAlias = Literal["original", "sequence"]
"""The text that a patch is matched against: the original text, or the result of the previous patches."""
Edits: TypeAlias = Literal["exact", "tolerant"]
"""Strictness of matching old text: verbatim, or with a tolerance for unambiguous mistakes."""
EmptyOldText: TypeAlias = Literal["refuse", "create", "insert"]
"""The effect of a patch without old text: ``refuse`` raises an error, ``create`` writes a new or empty file, ``insert``
inserts the new text at ``start_line`` (by default at the top)."""


@dataclass(frozen=True, slots=True)
class PatchText:
    """Apply all patches to a file, or none if one fails."""

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
    """Edit, add, delete and move several files. If one edit fails, no file is changed. Edits to the same file build on
    each other."""

    files: tuple[FileEdit, ...]
    basis: PatchBasis = "original"
    empty_old_text: EmptyOldText = "refuse"
    names: ParameterNames = ParameterNames()


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """The 1-based position of a change. ``context``: the changed line and the lines around it."""

    line: int
    column: int
    context: str


@dataclass(frozen=True, slots=True)
class FilePatched(Outcome):
    path: str
    count: int
    diff: str
    places: tuple[ChangedLine, ...] = ()
    """Changed positions in file order. Empty if patches were applied in sequence."""


@dataclass(frozen=True, slots=True)
class FilesPatched(Outcome):
    """The result of `PatchFiles`. ``done`` has one entry per edit: ``updated a.py``, ``added b.py``, ``deleted c.py``
    or ``moved d.py to e.py``."""

    done: tuple[str, ...]
    diff: str
