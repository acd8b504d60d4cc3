"""Locate one patch in a document: return its edits, or the reason to reject it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from adapter.core.text.plurals import pluralize
from adapter.editing.document import format_line_list, format_line_range, normalize_newlines
from adapter.editing.error_messages import ambiguous_match_message, near_miss_message, not_found_message
from adapter.editing.matching.acceptance import (
    COPIED_LEAD,
    COUNTED_LEAD,
    HINT_REACH,
    RejectedMatch,
    accept_best_match,
    describe_match,
    find_nearest,
)
from adapter.editing.matching.already_applied import (
    find_applied_lines,
    find_applied_place,
    find_enclosing_new_text,
    find_roughly_applied,
    find_verbatim_copies,
    have_common_lines,
)
from adapter.editing.matching.anchors import find_anchored_changes
from adapter.editing.matching.document_index import MAX_PLACES, DocumentIndex
from adapter.editing.matching.fuzzy_match import MatchCandidate, find_fuzzy_matches
from adapter.editing.matching.minified import match_minified
from adapter.editing.matching.normalize import is_distinctive, normalized_line
from adapter.editing.matching.strategies import (
    STRATEGIES,
    TextMatch,
    are_whole_lines,
    match_from_lines,
    match_literal,
    match_whole_lines,
    split_view_lines,
    splits_word,
)
from adapter.editing.rejection import Rejection, Resolution, ResolvedEdit
from adapter.editing.repairs.diff_markers import AmbiguousDiffMarkers, strip_new_text_markers
from adapter.editing.repairs.interpretations import OLD_MARKERS_NOTE, Interpretation, interpretations
from adapter.editing.repairs.omissions import find_omissions, is_elision, is_like_own, may_be_elision
from adapter.editing.repairs.reindent import indent_of
from adapter.editing.repairs.unescape import unescape_new_text
from adapter.editing.repairs.unicode_escapes import UNICODE_NOTE, match_unicode_escapes
from adapter.editing.splice import AmbiguousReplacement
from adapter.tools.operations import EmptyOldText, Hunk, ParameterNames, Patch

MAX_ALIGNED = 6
"""Maximum number of interpretations of a patch that are aligned with the document."""
NEAR_HINT = 10
"""Maximum distance, in lines, between a line hint and another version of the old text that it points to."""
MIN_REPEATED = 3
"""Minimum number of lines below a match that a new text repeats by mistake."""
VERBATIM_REACH = 8
"""Maximum number of lines by which a match may be longer than the old text."""

_STAGES = (*STRATEGIES, match_minified)
"""All ways to match a text, the strictest first."""


def locate(search: DocumentIndex, patch: Patch, names: ParameterNames, empty_old_text: EmptyOldText) -> Resolution:
    """Return the edits of ``patch``, or its rejection. There is one edit unless the patch replaces all matches."""
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
        if omission := self._find_omission():
            return self._invalid(
                f"{self.names.new_text} contains {omission.strip()[:80]!r} instead of real lines: write every line of "
                f"{self.names.new_text}, or use a smaller {self.names.old_text}"
            )
        if not self.patch.exact:
            return self._resolve_tolerantly()
        interpretation = Interpretation(self.old, self.new, is_whole_lines=isinstance(self.patch, Hunk))
        if matches := list(match_literal(self.search, interpretation)):
            return self._resolve(matches, interpretation)
        match self._resolve_tolerantly():
            case Rejection() as rejection:
                return rejection
            case edits:
                return Rejection("not found", near_miss_message(self.search, edits[0].match, self.names))

    def _find_omission(self) -> str:
        """Return a line of the new text that stands for lines of the old text, or an empty string."""
        old, new = split_view_lines(self.old), split_view_lines(self.new)
        known = {line.strip() for line in old}
        omissions = [line for index in find_omissions(old, new) if (line := new[index]).strip() not in known]
        unlike = [line for line in omissions if not self._is_in_file(line)]
        loses_nothing = isinstance(self.patch, Hunk) or known <= {line.strip() for line in new}
        own = [line for line in self.document.lines if is_elision(line)] if unlike else []
        return next((line for line in unlike if not is_like_own(line, own, loses_nothing)), "")

    def _is_in_file(self, line: str) -> bool:
        return bool(self.search.lines_with_key(normalized_line(line)))

    def _resolve_tolerantly(self) -> Resolution:
        is_hunk = isinstance(self.patch, Hunk)  # its markers are already removed: `+ item` is a line
        try:
            view = self.document.view
            plain = (
                None
                if is_hunk
                else strip_new_text_markers(self.old, self.new, view) or unescape_new_text(self.old, self.new, view)
            )
        except AmbiguousDiffMarkers as error:
            return self._invalid(
                f"lines of {self.names.new_text} begin with '+' ({str(error)[:60]!r}), but no line of "
                f"{self.names.old_text} or of the file does: write {self.names.new_text} without diff markers, "
                "each line with its own indentation"
            )
        if plain is not None:
            self.new = plain[0]
        written = Interpretation(self.old, self.new, plain[1:] if plain else (), is_whole_lines=is_hunk)
        for stage in _STAGES:  # text that matches as written needs no interpretation
            if matches := list(stage(self.search, written)):
                return self._resolve(matches, written)
        if escaped := match_unicode_escapes(self.old, self.new, view):
            self.old, self.new = escaped
            written = replace(written, old=self.old, new=self.new, notes=(*written.notes, UNICODE_NOTE))
            for stage in _STAGES:
                if matches := list(stage(self.search, written)):
                    return self._resolve(matches, written)
        alternatives = [one for one in interpretations(written) if not self._reads_own_markers(one)]
        others = sorted(alternatives[1:], key=self._unfamiliarity)
        for stage in _STAGES:
            for interpretation in others:
                if matches := list(stage(self.search, interpretation)):
                    return self._resolve(matches, interpretation)
        for interpretation in alternatives:
            if have_common_lines(split_view_lines(interpretation.old), split_view_lines(interpretation.new)) and (
                rejection := self._find_applied(interpretation)
            ):
                return rejection
        match self._resolve_fuzzily(alternatives):
            case Rejection() as rejection:
                return self._find_applied(alternatives[0]) or rejection
            case edits:
                return edits

    def _reads_own_markers(self, interpretation: Interpretation) -> bool:
        """Return whether a line that would lose its diff marker is in the file as it is written."""
        marked = (line for line in split_view_lines(self.old) if line[:1] in ("+", "-"))
        return OLD_MARKERS_NOTE in interpretation.notes and any(map(self._is_in_file, marked))

    def _unfamiliarity(self, interpretation: Interpretation) -> tuple[float, float]:
        """Return sort keys: the negative shares of the old lines that occur in the document and in the new text."""
        old = {line for line in split_view_lines(interpretation.old) if line.strip()}
        kept = old.intersection(split_view_lines(interpretation.new))
        return -len(self.search.lines_set.intersection(old)) / max(len(old), 1), -len(kept) / max(len(old), 1)

    # --------------------------------------------------------------------- insertions

    def _resolve_insertion(self) -> Resolution:
        """Resolve a patch without old text."""
        document, names, line = self.document, self.names, self.patch.start_line
        if self.empty_old_text == "refuse" or (self.empty_old_text == "create" and document.view.strip()):
            why = "give the text to replace" if self.empty_old_text == "refuse" else "the file is not empty"
            return self._invalid(f"{names.old_text} is empty: {why}")
        if not self.new:
            return Rejection("no change", f"no change: {names.old_text} and {names.new_text} are both empty")
        if self.empty_old_text == "create":
            match = TextMatch(0, len(document.view), 0, len(document.lines) - 1, lambda: self.new, "exact")
            return (ResolvedEdit(match, self.new),)
        count = document.line_count
        if line is not None and not 1 <= line <= count + 1:
            where = f"{names.start_line or 'line'} {line}"
            return self._invalid(f"cannot insert at {where}: the file has {pluralize(count, 'line')}")
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

    def _hint(self, interpretation: Interpretation) -> int | None:
        """Return the 1-based line at which the model expects the old text; None if the document has no such line."""
        line = self.patch.start_line if self.patch.start_line is not None else interpretation.line
        return None if line is None or line > self.document.line_count else line

    @property
    def _lead(self) -> int:
        return COUNTED_LEAD if isinstance(self.patch, Hunk) else COPIED_LEAD

    def _distance(self, match: TextMatch, hint: int | None) -> int:
        if hint is not None:
            return abs(match.first_line + 1 - hint)
        return abs(match.last_line + 1 - (self.patch.end_line or 0))

    def _is_hinted(self, match: TextMatch, interpretation: Interpretation) -> bool:
        """Return whether a line hint points to the match."""
        hint = self._hint(interpretation)
        return (hint is not None or self.patch.end_line is not None) and self._distance(match, hint) <= NEAR_HINT

    def _resolve(self, matches: Sequence[TextMatch], interpretation: Interpretation) -> Resolution:
        if self.patch.replace_all:
            return self._replace_all(matches, interpretation)
        match, places = self._choose(matches, self._hint(interpretation))
        if match is None:
            given = (self.patch.start_line, interpretation.line, self.patch.end_line)
            hint = next((line for line in given if line is not None), None)
            message = ambiguous_match_message(self.search, matches, self.patch, self.names, hint)
            return Rejection("ambiguous", message, places)
        vetoes = (
            self._check_already_there,
            self._check_applied_near_hint,
            self._check_hinted_twin,
            self._check_applied_elsewhere,
            self._check_verbatim_elsewhere,
            self._check_lines_below,
        )
        for veto in vetoes:
            if rejection := veto(match, interpretation):
                return rejection
        where = format_line_range(match.first_line + 1, match.last_line + 1)
        notes = []
        if match.strictness != "exact":
            kind = "whitespace" if match.strictness == "whitespace" else "typographic characters and whitespace"
            notes.append(f"the old text matched {where} except for {kind}")
        if len(matches) > 1:
            notes.append(f"the old text matches {len(matches)} places; {where} was chosen")
        match self._build(match, tuple(notes), interpretation):
            case Rejection() as rejection:
                return rejection
            case edits:
                return (replace(edits[0], places=places), *edits[1:])

    def _choose(self, matches: Sequence[TextMatch], hint: int | None) -> tuple[TextMatch | None, tuple[int, ...]]:
        """Return the only match; otherwise the only match with an equal layout; otherwise the match to which the line
        hint points, or without a hint the only match of whole words, or None. If there are several matches, also return
        the first line of each."""
        exact_layout = matches if len(matches) == 1 else [match for match in matches if match.is_exact_layout]
        if len(exact_layout) == 1:
            return exact_layout[0], ()
        if len(matches) >= MAX_PLACES:
            return None, ()
        places = tuple(match.first_line for match in matches)
        if hint is None and self.patch.end_line is None:
            whole_words = [match for match in matches if not self._splits_word(match)]
            return (whole_words[0], ()) if len(whole_words) == 1 else (None, places)
        distances = [self._distance(match, hint) for match in matches]
        nearest = find_nearest(distances, self._lead)
        return None if nearest is None else matches[nearest], places

    def _splits_word(self, match: TextMatch) -> bool:
        view = self.document.view
        return splits_word(view, match.start) or splits_word(view, match.end)

    def _replace_all(self, matches: Sequence[TextMatch], interpretation: Interpretation) -> Resolution:
        """Replace every match that does not overlap the match before it."""
        disjoint: list[TextMatch] = []
        for match in matches:
            if not disjoint or match.start >= disjoint[-1].end:
                disjoint.append(match)
        if len(matches) >= MAX_PLACES:
            message = f"{self.names.old_text} matches more than {MAX_PLACES} places; use a longer text"
            return Rejection("ambiguous", message)
        applied = [self._check_already_there(match, interpretation) for match in disjoint]
        if all(applied) and applied[0]:
            return applied[0]
        edits: list[ResolvedEdit] = []
        for match in disjoint:
            match self._build(match, (), interpretation):
                case Rejection() as rejection:
                    return rejection
                case built:
                    edits += built
        replaced = pluralize(len(edits), "place was replaced", "places were replaced")
        note = f"{replaced} ({format_line_list([edit.match.first_line + 1 for edit in edits])})"
        return (replace(edits[0], notes=(note, *interpretation.notes)), *edits[1:])

    def _build(self, match: TextMatch, notes: tuple[str, ...], interpretation: Interpretation) -> Resolution:
        """Return the edit of a match, or a rejection if the edit changes nothing or is ambiguous there."""
        document, where = self.document, format_line_range(match.first_line + 1, match.last_line + 1)
        try:
            replacement = match.replacement()
        except AmbiguousReplacement as error:
            return Rejection(
                "ambiguous",
                f"{self.names.old_text} matches {where}, but {error}; copy {self.names.old_text} from the file exactly",
            )
        if replacement == document.text[document.text_offset(match.start) : document.text_offset(match.end)]:
            verb = "matches" if match.first_line == match.last_line else "match"
            return Rejection("no change", f"no change: {where} already {verb} {self.names.new_text}")
        return (ResolvedEdit(match, replacement, (*interpretation.notes, *notes)),)

    # ------------------------------------------------------- vetoes against an exact match

    def _check_already_there(self, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
        """Reject the patch if its new text contains the old text and already surrounds the match."""
        if not interpretation.new.strip():
            return None
        line = find_enclosing_new_text(
            self.search, match, interpretation.old, interpretation.new, self.patch.replace_all
        )
        if line is None:
            return None
        return self._already_applied(
            f"{self.names.new_text} is already present at line {line + 1}; to apply it again, add surrounding lines "
            f"to {self.names.old_text}"
        )

    def _check_applied_near_hint(self, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
        """Reject the patch if its new text occurs nearer to the line hint than the only match of the old text."""
        hint = self._hint(interpretation)
        if hint is None or self._distance(match, hint) == 0:
            return None
        matches = [first for first, _ in find_applied_lines(self.search, interpretation.old, interpretation.new)]
        matches = matches or find_verbatim_copies(self.search, match, interpretation.new)
        nearest = min(matches, key=lambda first: abs(first + 1 - hint), default=None)
        if nearest is None or abs(nearest + 1 - hint) >= min(self._distance(match, hint), NEAR_HINT + 1):
            return None
        return self._already_applied(
            f"{self.names.new_text} is already present at line {nearest + 1}, and {self.names.old_text} occurs only at "
            f"line {match.first_line + 1}; to edit that as well, give its line number"
        )

    def _check_hinted_twin(self, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
        """Reject the match if lines at the line hint, not these lines, differ from the old text only in whitespace."""
        hint = self._hint(interpretation)
        if hint is None or self._is_hinted(match, interpretation):
            return None
        twins = match_whole_lines(self.search, interpretation)
        twin = next((other for other in twins if self._is_hinted(other, interpretation)), None)
        if twin is None:
            return None
        return Rejection(
            "ambiguous",
            f"{self.names.old_text} occurs at line {match.first_line + 1} and, except for whitespace, at line "
            f"{twin.first_line + 1}, near the given line {hint}; copy {self.names.old_text} exactly from the intended "
            "place, and give its line number",
        )

    def _check_applied_elsewhere(self, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
        """Reject an approximate match if the new text already occurs elsewhere, because the patch was probably applied
        there."""
        if match.strictness == "exact" or self._is_hinted(match, interpretation):
            return None
        view = self.document.view
        if match.is_exact_layout and are_whole_lines(view, match.start, view[match.start : match.end]):
            return None
        ranges = find_applied_lines(self.search, interpretation.old, interpretation.new)
        lines = [first + 1 for first, last in ranges if first > match.last_line or last < match.first_line]
        if not lines:
            return None
        return Rejection(
            "ambiguous",
            f"{self.names.new_text} is already present ({format_line_list(lines)}), and {self.names.old_text} only "
            f"roughly matches line {match.first_line + 1}; to edit it, copy {self.names.old_text} from there exactly",
        )

    def _check_verbatim_elsewhere(self, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
        """Reject the match if its indentation differs and all old lines, or all but one, occur verbatim elsewhere."""
        if match.strictness == "exact" or match.is_exact_layout or self._is_hinted(match, interpretation):
            return None
        lines = [line.rstrip() for line in split_view_lines(interpretation.old) if line.strip()]
        span = range(match.first_line, match.last_line + 1)
        first = next(filter(str.strip, self.document.lines[span.start : span.stop]), "")
        if indent_of(first) == indent_of(lines[0]):
            return None
        line = self.search.find_verbatim(list(filter(is_distinctive, lines)), len(lines) + VERBATIM_REACH, span)
        if line is None:
            return None
        return Rejection(
            "ambiguous",
            f"{self.names.old_text} matches {format_line_range(match.first_line + 1, match.last_line + 1)} except for "
            f"whitespace, but most of its lines occur exactly as written from line {line + 1} on; "
            f"copy {self.names.old_text} exactly from the intended place",
        )

    def _check_lines_below(self, match: TextMatch, interpretation: Interpretation) -> Rejection | None:
        """Reject the patch if its new text ends with the lines below the match, which would then be there twice."""
        old, new = map(_keys, (interpretation.old, interpretation.new))
        keys = map(normalized_line, islice(self.document.lines, match.last_line + 1, None))
        below = list(islice(filter(None, keys), len(new)))
        sizes = (size for size in range(len(below), MIN_REPEATED - 1, -1) if new[-size] == below[0])
        size = next((size for size in sizes if new[-size:] == below[:size]), 0)
        if not size or old[-1:] == new[-1:] or not any(map(is_distinctive, new[-size:])):
            return None
        return self._invalid(
            f"the last {size} lines of {self.names.new_text} are already below line {match.last_line + 1}: add them to "
            f"the end of {self.names.old_text} too, or leave them out"
        )

    def _find_applied(self, interpretation: Interpretation) -> Rejection | None:
        """Reject the patch if the document contains its new text where the old text would be, but not its old text."""
        hint = self._hint(interpretation)
        first_line = None if hint is None else hint - 1
        place = find_applied_place(self.search, interpretation.old, interpretation.new, first_line)
        if place is None:
            return None
        line, is_shown = place
        step = "continue with the next step" if is_shown else f"continue if line {line + 1} is the intended place"
        return self._already_applied(
            f"{self.names.new_text} is already present at line {line + 1} and {self.names.old_text} is not in the "
            f"file; {step}"
        )

    def _already_applied(self, message: str) -> Rejection:
        return Rejection("already applied", f"already applied: {message}")

    def _invalid(self, message: str) -> Rejection:
        return Rejection("invalid", message)

    # ------------------------------------------------------------------- fuzzy matches

    def _resolve_fuzzily(self, alternatives: Sequence[Interpretation]) -> Resolution:
        """Resolve the best alignment of all interpretations, or reject it and show the most similar lines."""
        tried: list[tuple[Interpretation, list[str], list[MatchCandidate]]] = []
        for interpretation in map(
            self._with_plain_elisions, dict.fromkeys((*alternatives[: MAX_ALIGNED - 1], alternatives[-1]))
        ):
            hint, old = self._hint(interpretation), split_view_lines(interpretation.old)
            if candidates := find_fuzzy_matches(self.search, old, None if hint is None else hint - 1):
                tried.append((interpretation, old, candidates))
        if not tried:
            return Rejection(
                "not found", not_found_message(self.search, split_view_lines(self.old), None, None, self.names)
            )
        interpretation, old, candidates = max(tried, key=lambda one: one[2][0].score)
        hint, new = self._hint(interpretation), _with_same_elisions(old, split_view_lines(interpretation.new))
        best = accept_best_match(self.search, old, new, candidates, None if hint is None else hint - 1, self._lead)
        edits: tuple[ResolvedEdit, ...] = ()
        match best:
            case MatchCandidate():
                candidate = best
            case RejectedMatch():
                candidate = candidates[0]
                edits = self._resolve_anchored(interpretation, candidate)
                if not edits:
                    message = not_found_message(self.search, old, candidate, best, self.names)
                    return Rejection("not found", message)
        line = find_roughly_applied(self.search, candidate, old, new)
        if line is not None:
            return self._already_applied(f"the result of {self.names.new_text} is already present at line {line + 1}")
        if edits:
            return edits
        written = replace(interpretation, new="\n".join(new) + "\n" if new else "")
        match = match_from_lines(self.document, written, candidate.steps, "aligned")
        return self._build(match, (describe_match(self.search, old, candidate),), interpretation)

    def _with_plain_elisions(self, interpretation: Interpretation) -> Interpretation:
        """Return the texts with ``...`` for comments like ``// unchanged`` of the old text that are not in the file."""
        written = filter(may_be_elision, interpretation.old.split("\n"))
        omissions = {line.strip() for line in written if not self._is_in_file(line)}
        old, new = (
            "\n".join(f"{indent_of(line)}..." if line.strip() in omissions else line for line in text.split("\n"))
            for text in (interpretation.old, interpretation.new)
        )
        return replace(interpretation, old=old, new=new)

    def _resolve_anchored(self, interpretation: Interpretation, best: MatchCandidate) -> tuple[ResolvedEdit, ...]:
        """Return the edits of changes that are located with certainty although their context differs.

        Returns an empty tuple if a change is uncertain, or if the text as a whole is closer to another location.
        """
        edits: list[ResolvedEdit] = []
        changes = (
            []
            if self.patch.replace_all
            else find_anchored_changes(
                self.search, split_view_lines(interpretation.old), split_view_lines(interpretation.new)
            )
        )
        hint = self._hint(interpretation)
        for change in changes:
            matches = match_whole_lines(self.search, replace(interpretation, old=change.old, new=change.new))
            match = replace(
                next(match for match in matches if self._first_nonblank(match) == change.first), strictness="aligned"
            )
            is_far = hint is not None and self._distance(match, hint) > HINT_REACH
            if is_far or match.last_line < best.first_line or best.last_line < match.first_line:
                return ()
            match self._build(match, (change.note,), interpretation):
                case Rejection():
                    return ()
                case built:
                    edits += built
        return tuple(edits)

    def _first_nonblank(self, match: TextMatch) -> int:
        return next(line for line in range(match.first_line, match.last_line + 1) if self.search.keys[line])


def _keys(text: str) -> list[str]:
    return list(filter(None, map(normalized_line, split_view_lines(text))))


def _with_same_elisions(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return ``new`` with its ``...`` lines spelled as in ``old``, so that they count as kept lines."""
    spelled = iter([line for line in old if is_elision(line)])
    return [next(spelled, line) if is_elision(line) else line for line in new]
