"""The task of finding a patch's old text in a document. A line hint is the line where the model expects the old
text."""

from __future__ import annotations

from adapter.editing.document import format_line_range
from adapter.editing.matching.acceptance import COPIED_LEAD, COUNTED_LEAD
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.normalize import normalize_line
from adapter.editing.matching.strategies import TextMatch
from adapter.editing.repairs.interpretations import Interpretation
from adapter.editing.replacement_text import AmbiguousReplacement
from adapter.editing.resolved_edits import Rejection, Resolution, ResolvedEdit
from adapter.tools.operations import Hunk, ParameterNames, Patch

NEAR_HINT = 10
"""Maximum distance, in lines, between a line hint and the text that it refers to."""


class MatchTask:
    """A patch, the document to search, and the tool's parameter names, which errors use."""

    def __init__(self, search: DocumentIndex, patch: Patch, names: ParameterNames) -> None:
        self.search, self.document, self.patch, self.names = search, search.document, patch, names

    def find_hint(self, interpretation: Interpretation) -> int | None:
        """Return the 1-based line where the model expects the old text, or None if the document has no such line."""
        line = self.patch.start_line if self.patch.start_line is not None else interpretation.line
        return None if line is None or line > self.document.line_count else line

    def find_hinted_index(self, interpretation: Interpretation) -> int | None:
        """Return the result of `find_hint` as a 0-based line."""
        hint = self.find_hint(interpretation)
        return None if hint is None else hint - 1

    @property
    def lead(self) -> int:
        return COUNTED_LEAD if isinstance(self.patch, Hunk) else COPIED_LEAD

    def measure_distance(self, match: TextMatch, hint: int | None) -> int:
        if hint is not None:
            return abs(match.first_line + 1 - hint)
        return abs(match.last_line + 1 - (self.patch.end_line or 0))

    def is_hinted(self, match: TextMatch, interpretation: Interpretation) -> bool:
        """Return whether the match begins within `NEAR_HINT` lines of the patch's line hint. If only the last line is
        hinted, return whether the match ends that close to it."""
        hint = self.find_hint(interpretation)
        return (hint is not None or self.patch.end_line is not None) and self.measure_distance(match, hint) <= NEAR_HINT

    def build(self, match: TextMatch, notes: tuple[str, ...], interpretation: Interpretation) -> Resolution:
        """Return the edit for a match, or a rejection if it would change nothing or is ambiguous."""
        document, where = self.document, format_line_range(match.first_line + 1, match.last_line + 1)
        try:
            replacement = match.replacement()
        except AmbiguousReplacement as error:
            return Rejection(
                "ambiguous",
                f"{self.names.old_text} matches {where}, but {error}; copy {self.names.old_text} from the file exactly",
            )
        if replacement == document.text[document.get_text_offset(match.start) : document.get_text_offset(match.end)]:
            verb = "matches" if match.first_line == match.last_line else "match"
            return Rejection("no change", f"no change: {where} already {verb} {self.names.new_text}")
        return (ResolvedEdit(match, replacement, (*interpretation.notes, *notes)),)

    def is_in_file(self, line: str) -> bool:
        return bool(self.search.find_lines_with_key(normalize_line(line)))
