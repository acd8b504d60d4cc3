"""Find where one patch belongs in a document and what it writes there, or why it must be rejected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from adapter.core.text.plurals import pluralize
from adapter.editing.document import format_line_list, format_line_range, normalize_newlines
from adapter.editing.error_messages import ambiguous_match_message, near_miss_message, not_found_message
from adapter.editing.matching.acceptance import HINT_REACH, RejectedMatch, accept_best_match, describe_match
from adapter.editing.matching.already_applied import (
    find_applied_lines,
    find_enclosing_new_text,
    find_inline_copy,
    find_roughly_applied,
    find_verbatim_copies,
    have_common_lines,
)
from adapter.editing.matching.anchors import find_anchored_changes
from adapter.editing.matching.document_index import MAX_PLACES, DocumentIndex
from adapter.editing.matching.fuzzy_match import MatchCandidate, find_fuzzy_matches
from adapter.editing.matching.normalize import is_distinctive
from adapter.editing.matching.strategies import (
    STAGES,
    TextMatch,
    are_whole_lines,
    match_from_lines,
    match_literal,
    match_whole_lines,
    split_view_lines,
)
from adapter.editing.rejection import Rejection, Resolution, ResolvedEdit
from adapter.editing.repairs.diff_markers import AmbiguousDiffMarkers, strip_new_text_markers
from adapter.editing.repairs.interpretations import Interpretation, find_omission_comments, interpretations, is_elision
from adapter.editing.repairs.reindent import indent_of
from adapter.editing.repairs.unescape import unescape_new_text
from adapter.editing.splice import AmbiguousReplacement
from adapter.tools.operations import EmptyOldText, Hunk, ParameterNames, Patch

MAX_ALIGNED = 6
"""Interpretations of one patch that are aligned."""
NEAR_HINT = 10
"""Lines that a hint may be off and still outweigh other matches."""
VERBATIM_REACH = 8
"""Lines by which a match may be longer than its text."""


def locate(search: DocumentIndex, patch: Patch, names: ParameterNames, empty_old_text: EmptyOldText) -> Resolution:
    """Return the edits that ``patch`` makes, one unless it replaces all matches, or why it is rejected."""
    return _Locator(search, patch, names, empty_old_text).run()


class _Locator:
    def __init__(
        self, search: DocumentIndex, patch: Patch, names: ParameterNames, empty_old_text: EmptyOldText
    ) -> None:
        self.search, self.document, self.patch, self.names = search, search.document, patch, names
        self.empty_old_text = empty_old_text
        self.old, self.new = normalize_newlines(patch.old_text), normalize_newlines(patch.new_text)

    def run(self) -> Resolution:
        if not self.old:
            return self._resolve_insertion()
        if self.old == self.new:
            message = f"no change: {self.names.old_text} and {self.names.new_text} are the same"
            return Rejection("no change", message)
        promised = next(find_omission_comments(self.new, self.old, self.document.view), None)
        if promised is not None:
            return self._invalid(
                f"{self.names.new_text} holds {promised[:80]!r} in place of real lines: write all lines that "
                f"{self.names.new_text} is to have, or take a smaller {self.names.old_text}"
            )
        if not self.patch.exact:
            return self._resolve_tolerantly()
        reading = Interpretation(self.old, self.new, is_whole_lines=isinstance(self.patch, Hunk))
        if places := list(match_literal(self.search, reading)):
            return self._resolve(places, reading)
        match self._resolve_tolerantly():
            case Rejection() as rejection:
                return rejection
            case edits:
                return Rejection("not found", near_miss_message(self.search, edits[0].match, self.names))

    def _resolve_tolerantly(self) -> Resolution:
        is_hunk = isinstance(self.patch, Hunk)  # its marks are off already: `+ item` is a line
        try:
            view = self.document.view
            plain = (
                None
                if is_hunk
                else strip_new_text_markers(self.old, self.new, view) or unescape_new_text(self.old, self.new, view)
            )
        except AmbiguousDiffMarkers as doubt:
            return self._invalid(
                f"lines of {self.names.new_text} begin with '+' ({str(doubt)[:60]!r}) and no line of "
                f"{self.names.old_text} and of the file does: write {self.names.new_text} without diff marks, "
                "each line with its own indentation"
            )
        if plain is not None:
            self.new = plain[0]
        written = Interpretation(self.old, self.new, plain[1:] if plain else (), is_whole_lines=is_hunk)
        for stage in STAGES:  # a text that is there as it is written needs no other reading
            if places := list(stage(self.search, written)):
                return self._resolve(places, written)
        found = interpretations(written)
        others = sorted(found[1:], key=self._strangeness)
        for stage in STAGES:
            for reading in others:
                if places := list(stage(self.search, reading)):
                    return self._resolve(places, reading)
        for reading in found:
            if have_common_lines(split_view_lines(reading.old), split_view_lines(reading.new)) and (
                made := self._applied(reading)
            ):
                return made
        match self._resolve_fuzzily(found):
            case Rejection() as rejection:
                return self._applied(found[0]) or rejection
            case edits:
                return edits

    def _strangeness(self, reading: Interpretation) -> tuple[float, float]:
        """How many old lines the document does not have exactly so, and how many old and new text do not share."""
        old = {line for line in split_view_lines(reading.old) if line.strip()}
        kept = old.intersection(split_view_lines(reading.new))
        return -len(self.search.lines_set.intersection(old)) / max(len(old), 1), -len(kept) / max(len(old), 1)

    # --------------------------------------------------------------------- insertions

    def _resolve_insertion(self) -> Resolution:
        """What a patch without old text does."""
        document, names, line = self.document, self.names, self.patch.start_line
        if self.empty_old_text == "refuse" or (self.empty_old_text == "create" and document.view.strip()):
            why = "give the text to replace" if self.empty_old_text == "refuse" else "the file is not empty"
            return self._invalid(f"{names.old_text} is empty: {why}")
        if not self.new:
            return Rejection("no change", f"no change: {names.old_text} and {names.new_text} are both empty")
        if self.empty_old_text == "create":
            place = TextMatch(0, len(document.view), 0, len(document.lines) - 1, lambda: self.new, "exact")
            return (ResolvedEdit(place, self.new),)
        count = document.line_count
        if line is not None and not 1 <= line <= count + 1:
            where = f"{names.start_line or 'line'} {line}"
            return self._invalid(f"{where} is not a place to insert at: the file has {pluralize(count, 'line')}")
        return (self._insertion(0 if line is None else line - 1, count),)

    def _insertion(self, at: int, count: int) -> ResolvedEdit:
        document = self.document
        body = self.new.removesuffix("\n")
        last = len(document.lines) - 1
        if at < count or not document.lines[-1]:
            start, text = document.view_offset(min(at, last)), body + "\n"
        else:
            start, text = len(document.view), "\n" + body
        text = text.replace("\n", document.new_end(min(at, last)))
        line = min(at, max(count - 1, 0))
        where = f"the text was inserted before line {at + 1}" if at < count else "the text was added at the end"
        return ResolvedEdit(TextMatch(start, start, line, line, lambda: text, "exact"), text, (where,))

    # ------------------------------------------------------------------- exact matches

    def _hint(self, reading: Interpretation) -> int | None:
        """The 1-based line that the text is claimed to start at."""
        return self.patch.start_line if self.patch.start_line is not None else reading.line

    def _distance(self, place: TextMatch, hint: int | None) -> int:
        if hint is not None:
            return abs(place.first_line + 1 - hint)
        return abs(place.last_line + 1 - (self.patch.end_line or 0))

    def _is_hinted(self, place: TextMatch, reading: Interpretation) -> bool:
        """Whether a line hint names the place."""
        hint = self._hint(reading)
        return (hint is not None or self.patch.end_line is not None) and self._distance(place, hint) <= NEAR_HINT

    def _resolve(self, places: Sequence[TextMatch], reading: Interpretation) -> Resolution:
        if self.patch.replace_all:
            return self._replace_all(places, reading)
        place = self._choose(places, self._hint(reading))
        if place is None:
            hint = self.patch.end_line if self._hint(reading) is None else self._hint(reading)
            message = ambiguous_match_message(self.search, places, self.patch, self.names, hint)
            return Rejection("ambiguous", message)
        vetoes = (
            self._already_there,
            self._already_nearer,
            self._twin_hinted,
            self._applied_elsewhere,
            self._verbatim_elsewhere,
        )
        for veto in vetoes:
            if rejection := veto(place, reading):
                return rejection
        where = format_line_range(place.first_line + 1, place.last_line + 1)
        notes = []
        if place.strictness != "exact":
            kind = "white space" if place.strictness == "whitespace" else "typographic characters and white space"
            notes.append(f"the old text matched {where} except for {kind}")
        if len(places) > 1:
            notes.append(f"the old text matches {len(places)} places; {where} was meant")
        return self._build(place, tuple(notes), reading)

    def _choose(self, places: Sequence[TextMatch], hint: int | None) -> TextMatch | None:
        """The only place, the only one with the right indentation, or the one strictly nearest to the line hint."""
        sharp = places if len(places) == 1 else [place for place in places if place.is_exact_layout]
        if len(sharp) == 1:
            return sharp[0]
        if (hint is None and self.patch.end_line is None) or len(places) >= MAX_PLACES:
            return None
        distances = [self._distance(place, hint) for place in places]
        nearest = min(distances)
        if nearest > HINT_REACH or distances.count(nearest) > 1:
            return None
        return places[distances.index(nearest)]

    def _replace_all(self, places: Sequence[TextMatch], reading: Interpretation) -> Resolution:
        """Every place that does not overlap the one before it."""
        apart: list[TextMatch] = []
        for place in places:
            if not apart or place.start >= apart[-1].end:
                apart.append(place)
        if len(places) >= MAX_PLACES:
            message = f"{self.names.old_text} matches more than {MAX_PLACES} places; take a longer text"
            return Rejection("ambiguous", message)
        applied = [self._already_there(place, reading) for place in apart]
        if all(applied) and applied[0]:
            return applied[0]
        edits: list[ResolvedEdit] = []
        for place in apart:
            match self._build(place, (), reading):
                case Rejection() as rejection:
                    return rejection
                case built:
                    edits += built
        replaced = pluralize(len(edits), "place was replaced", "places were replaced")
        note = f"{replaced} ({format_line_list([edit.match.first_line + 1 for edit in edits])})"
        return (replace(edits[0], notes=(note, *reading.notes)), *edits[1:])

    def _build(self, place: TextMatch, notes: tuple[str, ...], reading: Interpretation) -> Resolution:
        """The edit of one place, unless it would change nothing or its change is unclear there."""
        document, where = self.document, format_line_range(place.first_line + 1, place.last_line + 1)
        try:
            replacement = place.replacement()
        except AmbiguousReplacement as unclear:
            return Rejection(
                "ambiguous",
                f"{self.names.old_text} fits {where}, but {unclear}; copy {self.names.old_text} from the file exactly",
            )
        if replacement == document.text[document.text_offset(place.start) : document.text_offset(place.end)]:
            verb = "reads" if place.first_line == place.last_line else "read"
            return Rejection("no change", f"no change: {where} already {verb} like {self.names.new_text}")
        return (ResolvedEdit(place, replacement, (*reading.notes, *notes)),)

    # ------------------------------------------------------- vetoes against an exact match

    def _already_there(self, place: TextMatch, reading: Interpretation) -> Rejection | None:
        """The new text, which holds the old one, is around the place already."""
        if not reading.new.strip():
            return None
        line = find_enclosing_new_text(self.search, place, reading.old, reading.new, self.patch.replace_all)
        if line is None:
            return None
        return self._made(
            f"{self.names.new_text} stands there as it is (line {line + 1}); if it is meant once "
            f"more, copy more lines around the place into {self.names.old_text}"
        )

    def _already_nearer(self, place: TextMatch, reading: Interpretation) -> Rejection | None:
        """The line hint names a place that has the new text, and the old one is only elsewhere."""
        hint = self._hint(reading)
        if hint is None or self._distance(place, hint) == 0:
            return None
        places = [first for first, _ in find_applied_lines(self.search, reading.old, reading.new)]
        places = places or find_verbatim_copies(self.search, place, reading.new)
        nearest = min(places, key=lambda first: abs(first + 1 - hint), default=None)
        if nearest is None or abs(nearest + 1 - hint) >= self._distance(place, hint):
            return None
        return self._made(
            f"{self.names.new_text} stands at line {nearest + 1}, and {self.names.old_text} only at "
            f"line {place.first_line + 1}; if that is meant, too, give its line"
        )

    def _twin_hinted(self, place: TextMatch, reading: Interpretation) -> Rejection | None:
        """The line hint names lines that only blanks tell from the old text, which is found elsewhere."""
        hint = self._hint(reading)
        if hint is None or self._is_hinted(place, reading):
            return None
        twins = match_whole_lines(self.search, reading)
        twin = next((other for other in twins if self._is_hinted(other, reading)), None)
        if twin is None:
            return None
        return Rejection(
            "ambiguous",
            f"{self.names.old_text} stands at line {place.first_line + 1} and, except for white space, at line "
            f"{twin.first_line + 1}, which line {hint} names; copy {self.names.old_text} from the place that is meant "
            "exactly, and give its line",
        )

    def _applied_elsewhere(self, place: TextMatch, reading: Interpretation) -> Rejection | None:
        """The new text is somewhere else: the patch was probably applied, and this is a near twin of its place."""
        if place.strictness == "exact" or self._is_hinted(place, reading):
            return None
        view = self.document.view
        if place.is_exact_layout and are_whole_lines(view, place.start, view[place.start : place.end]):
            return None
        found = find_applied_lines(self.search, reading.old, reading.new)
        lines = [first + 1 for first, last in found if first > place.last_line or last < place.first_line]
        if not lines:
            return None
        return Rejection(
            "ambiguous",
            f"{self.names.new_text} is already there ({format_line_list(lines)}) and "
            f"{self.names.old_text} is there only roughly, at line {place.first_line + 1}; "
            f"if that place is meant, copy {self.names.old_text} from it exactly",
        )

    def _verbatim_elsewhere(self, place: TextMatch, reading: Interpretation) -> Rejection | None:
        """The lines, all or all but one, are somewhere else with the indentation as written, which is another here."""
        if place.strictness == "exact" or place.is_exact_layout or self._is_hinted(place, reading):
            return None
        lines = [line.rstrip() for line in split_view_lines(reading.old) if line.strip()]
        span = range(place.first_line, place.last_line + 1)
        first = next(filter(str.strip, self.document.lines[span.start : span.stop]), "")
        if indent_of(first) == indent_of(lines[0]):
            return None
        line = self.search.verbatim(list(filter(is_distinctive, lines)), len(lines) + VERBATIM_REACH, span)
        if line is None:
            return None
        return Rejection(
            "ambiguous",
            f"{self.names.old_text} fits {format_line_range(place.first_line + 1, place.last_line + 1)} except for white "
            f"space, and most of its lines stand as written from line {line + 1} on; "
            f"copy {self.names.old_text} from the place that is meant exactly",
        )

    def _applied(self, reading: Interpretation) -> Rejection | None:
        """The text is not there, and what it should become is."""
        if found := find_applied_lines(self.search, reading.old, reading.new):
            line = found[0][0]
        elif (start := find_inline_copy(self.search, reading.old, reading.new)) >= 0:
            line = self.document.line_at(start)
        else:
            return None
        return self._made(
            f"{self.names.new_text} is there (line {line + 1}) and {self.names.old_text} is not; "
            "go on with the next step"
        )

    def _made(self, message: str) -> Rejection:
        return Rejection("already applied", f"already applied: {message}")

    def _invalid(self, message: str) -> Rejection:
        return Rejection("invalid", message)

    # ------------------------------------------------------------------- fuzzy matches

    def _resolve_fuzzily(self, found: Sequence[Interpretation]) -> Resolution:
        """The best alignment of all readings, or the rejection that shows the closest lines."""
        tried: list[tuple[Interpretation, list[str], list[MatchCandidate]]] = []
        for reading in dict.fromkeys((*found[: MAX_ALIGNED - 1], found[-1])):
            hint, old = self._hint(reading), split_view_lines(reading.old)
            if candidates := find_fuzzy_matches(self.search, old, None if hint is None else hint - 1):
                tried.append((reading, old, candidates))
        if not tried:
            return Rejection(
                "not found", not_found_message(self.search, split_view_lines(self.old), None, None, self.names)
            )
        reading, old, candidates = max(tried, key=lambda one: one[2][0].score)
        hint, new = self._hint(reading), _with_same_elisions(old, split_view_lines(reading.new))
        best = accept_best_match(self.search, old, new, candidates, None if hint is None else hint - 1)
        edits: tuple[ResolvedEdit, ...] = ()
        match best:
            case MatchCandidate():
                meant = best
            case RejectedMatch():
                meant = candidates[0]
                edits = self._resolve_anchored(reading, meant)
                if not edits:
                    message = not_found_message(self.search, old, meant, best, self.names)
                    return Rejection("not found", message)
        line = find_roughly_applied(self.search, meant, old, new)
        if line is not None:
            return self._made(f"what {self.names.new_text} leads to is there (line {line + 1})")
        if edits:
            return edits
        written = replace(reading, new="\n".join(new) + "\n" if new else "")
        place = match_from_lines(self.document, written, meant.steps, "aligned")
        return self._build(place, (describe_match(self.search, old, meant),), reading)

    def _resolve_anchored(self, reading: Interpretation, best: MatchCandidate) -> tuple[ResolvedEdit, ...]:
        """The edits of changes that are sure although the lines around them moved on; none when one is not, or
        when the text as a whole is more like another place."""
        edits: list[ResolvedEdit] = []
        parts = (
            []
            if self.patch.replace_all
            else find_anchored_changes(self.search, split_view_lines(reading.old), split_view_lines(reading.new))
        )
        hint = self._hint(reading)
        for part in parts:
            places = match_whole_lines(self.search, replace(reading, old=part.old, new=part.new))
            place = replace(
                next(place for place in places if self._first_filled(place) == part.first), strictness="aligned"
            )
            is_far = hint is not None and self._distance(place, hint) > HINT_REACH
            if is_far or place.last_line < best.first_line or best.last_line < place.first_line:
                return ()
            match self._build(place, (part.note,), reading):
                case Rejection():
                    return ()
                case built:
                    edits += built
        return tuple(edits)

    def _first_filled(self, place: TextMatch) -> int:
        return next(line for line in range(place.first_line, place.last_line + 1) if self.search.keys[line])


def _with_same_elisions(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """``new`` with the ``...`` lines spelled as in ``old``, in their order, so that they count as kept."""
    spelled = iter([line for line in old if is_elision(line)])
    return [next(spelled, line) if is_elision(line) else line for line in new]
