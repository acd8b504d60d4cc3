"""Locate one patch in a document: return its edits, or the reason to reject it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from adapter.core.text.plurals import pluralize
from adapter.editing.document import format_line_list, format_line_range, is_prose_file, normalize_newlines
from adapter.editing.error_messages import build_ambiguous_match_message, build_near_miss_message
from adapter.editing.matching.acceptance import find_nearest
from adapter.editing.matching.already_applied import find_applied_place, have_common_lines
from adapter.editing.matching.document_index import MAX_PLACES, DocumentIndex
from adapter.editing.matching.fuzzy_resolution import resolve_fuzzily
from adapter.editing.matching.match_task import MatchTask
from adapter.editing.matching.match_vetoes import MATCH_VETOES, check_already_there
from adapter.editing.matching.minified_code import match_minified
from adapter.editing.matching.strategies import STRATEGIES, TextMatch, match_literal, split_view_lines, splits_word
from adapter.editing.repairs.diff_markers import AmbiguousDiffMarkers, strip_new_text_markers
from adapter.editing.repairs.interpretations import OLD_MARKERS_NOTE, Interpretation, list_interpretations
from adapter.editing.repairs.omission_markers import (
    find_omissions,
    find_replacing_comments,
    is_elision,
    is_like_known_omission,
)
from adapter.editing.repairs.unescape import unescape_new_text
from adapter.editing.repairs.unicode_escapes import UNICODE_NOTE, match_unicode_escapes
from adapter.editing.resolved_edits import Rejection, Resolution, ResolvedEdit
from adapter.tools.operations import EmptyOldText, Hunk, ParameterNames, Patch

_STAGES = (*STRATEGIES, match_minified)
"""All ways to match a text, from the strictest to the most tolerant."""


def locate(search: DocumentIndex, patch: Patch, names: ParameterNames, empty_old_text: EmptyOldText) -> Resolution:
    """Return the edits of ``patch``, or its rejection. There is one edit unless the patch replaces all matches."""
    return _Locator(search, patch, names, empty_old_text).run()


class _Locator(MatchTask):
    def __init__(
        self, search: DocumentIndex, patch: Patch, names: ParameterNames, empty_old_text: EmptyOldText
    ) -> None:
        super().__init__(search, patch, names)
        self.empty_old_text = empty_old_text
        self.old, self.new = normalize_newlines(patch.old_text), self.document.normalize(patch.new_text)

    def run(self) -> Resolution:
        if not self.old:
            return self._resolve_insertion()
        if self.old == self.new:
            suffix = "" if self.patch.old_text == self.patch.new_text else ", except for line endings, which are kept"
            message = f"no change: {self.names.old_text} and {self.names.new_text} are the same{suffix}"
            return Rejection("no change", message)
        replacing = partial(find_replacing_comments, is_prose=is_prose_file(self.document.path))
        advice = "; if the comment is meant, delete the lines in one edit and add it in another"
        for find, alternative in ((find_omissions, ""), (replacing, advice)):
            if omission := self._find_omission(find):
                return Rejection(
                    "invalid",
                    f"{self.names.new_text} contains {omission.strip()[:80]!r} instead of real lines: write every line "
                    f"of {self.names.new_text}, or use a smaller {self.names.old_text}{alternative}",
                )
        if not self.patch.exact:
            return self._resolve_tolerantly()
        interpretation = Interpretation(self.old, self.new, is_whole_lines=isinstance(self.patch, Hunk))
        if matches := list(match_literal(self.search, interpretation)):
            return self._resolve(matches, interpretation)
        found = self._resolve_tolerantly()
        if isinstance(found, Rejection):
            return found
        return Rejection("not found", build_near_miss_message(self.search, found[0].match, self.names))

    def _find_omission(self, find: Callable[[Sequence[str], Sequence[str]], Iterator[int]]) -> str:
        """Return the first line that represents omitted lines of the old text, or an empty string."""
        old, new = split_view_lines(self.old), split_view_lines(self.new)
        known = {line.strip() for line in old}
        omissions = [line for index in find(old, new) if (line := new[index]).strip() not in known]
        unlike = [line for line in omissions if not self.is_in_file(line)]
        loses_nothing = isinstance(self.patch, Hunk) or known <= {line.strip() for line in new}
        kept = [line for line in self.document.lines if is_elision(line)] if unlike else []
        return next((line for line in unlike if not is_like_known_omission(line, kept, loses_nothing)), "")

    def _resolve_tolerantly(self) -> Resolution:
        is_hunk = isinstance(self.patch, Hunk)  # its markers are already removed: `+ item` is a line
        texts = self.old, self.new, self.document.view
        try:
            plain = None if is_hunk else strip_new_text_markers(*texts) or unescape_new_text(*texts)
        except AmbiguousDiffMarkers as error:
            return Rejection(
                "invalid",
                f"lines of {self.names.new_text} begin with '+' ({str(error)[:60]!r}), but no line of "
                f"{self.names.old_text} or of the file does: write {self.names.new_text} without diff markers, "
                "each line with its own indentation",
            )
        if plain is not None:
            self.new = plain[0]
        written = Interpretation(self.old, self.new, plain[1:] if plain else (), is_whole_lines=is_hunk)
        if found := self._resolve_strictly([written]):  # text that matches as written needs no interpretation
            return found
        if escaped := match_unicode_escapes(self.old, self.new, self.document.view):
            self.old, self.new = escaped
            written = replace(written, old=self.old, new=self.new, notes=(*written.notes, UNICODE_NOTE))
            if found := self._resolve_strictly([written]):
                return found
        alternatives = [one for one in list_interpretations(written) if not self._reads_own_markers(one)]
        if found := self._resolve_strictly(alternatives[1:]):
            return found
        with_context = filter(_keeps_lines, alternatives)  # only a copy of these is evidence that the patch was applied
        if rejection := next(filter(None, map(self._find_applied, with_context)), None):
            return rejection
        found = resolve_fuzzily(self, alternatives, self.old)
        applied = map(self._find_applied, alternatives if isinstance(found, Rejection) else ())
        return next(filter(None, applied), found)

    def _resolve_strictly(self, interpretations: Sequence[Interpretation]) -> Resolution | None:
        """Resolve the patch by the first stage that finds a match, or return None if none does."""
        for stage in _STAGES:
            for interpretation in interpretations:
                if matches := list(stage(self.search, interpretation)):
                    return self._resolve(matches, interpretation)
        return None

    def _reads_own_markers(self, interpretation: Interpretation) -> bool:
        """Return whether the interpretation strips a ``+`` or ``-`` that the file itself has."""
        marked = (line for line in split_view_lines(self.old) if line[:1] in ("+", "-"))
        return OLD_MARKERS_NOTE in interpretation.notes and any(map(self.is_in_file, marked))

    def _resolve_insertion(self) -> Resolution:
        """Resolve a patch without old text."""
        document, names, line = self.document, self.names, self.patch.start_line
        if self.empty_old_text == "refuse" or (self.empty_old_text == "create" and document.view.strip()):
            why = "give the text to replace" if self.empty_old_text == "refuse" else "the file is not empty"
            return Rejection("invalid", f"{names.old_text} is empty: {why}")
        if not self.new:
            return Rejection("no change", f"no change: {names.old_text} and {names.new_text} are both empty")
        if self.empty_old_text == "create":
            match = TextMatch(0, len(document.view), 0, len(document.lines) - 1, lambda: self.new, "exact")
            return (ResolvedEdit(match, self.new),)
        count = document.line_count
        if line is not None and not 1 <= line <= count + 1:
            where = f"{names.start_line or 'line'} {line}"
            return Rejection("invalid", f"cannot insert at {where}: the file has {pluralize(count, 'line')}")
        return (self._build_insertion(0 if line is None else line - 1, count),)

    def _build_insertion(self, at: int, count: int) -> ResolvedEdit:
        document = self.document
        body = self.new.removesuffix("\n")
        last = len(document.lines) - 1
        if at < count or not document.lines[-1]:
            start, text = document.get_view_offset(min(at, last)), body + "\n"
        else:
            start, text = len(document.view), "\n" + body
        text = text.replace("\n", document.choose_line_end(min(at, last)))
        line = min(at, max(count - 1, 0))
        where = f"the text was inserted before line {at + 1}" if at < count else "the text was added at the end"
        return ResolvedEdit(TextMatch(start, start, line, line, lambda: text, "exact"), text, (where,))

    def _resolve(self, matches: Sequence[TextMatch], interpretation: Interpretation) -> Resolution:
        if self.patch.replace_all:
            return self._replace_all(matches, interpretation)
        match, places = self._choose(matches, self.find_hint(interpretation))
        if match is None:
            given = (self.patch.start_line, interpretation.line, self.patch.end_line)
            hint = next((line for line in given if line is not None), None)
            message = build_ambiguous_match_message(self.search, matches, self.patch, self.names, hint)
            return Rejection("ambiguous", message, places)
        for veto in MATCH_VETOES:
            if rejection := veto(self, match, interpretation):
                return rejection
        where = format_line_range(match.first_line + 1, match.last_line + 1)
        verb = "was" if match.first_line == match.last_line else "were"
        notes = []
        if match.strictness != "exact":
            kind = "whitespace" if match.strictness == "whitespace" else "typographic characters or whitespace"
            notes.append(f"the old text matched {where} except for {kind}")
        if len(matches) > 1:
            notes.append(f"the old text matches {len(matches)} places; {where} {verb} chosen")
        built = self.build(match, tuple(notes), interpretation)
        return built if isinstance(built, Rejection) else (replace(built[0], places=places), *built[1:])

    def _choose(self, matches: Sequence[TextMatch], hint: int | None) -> tuple[TextMatch | None, tuple[int, ...]]:
        """Return the match to edit, or None if the choice is ambiguous. The match must be the only one, the only one
        with the same layout, or the one at the line hint. Without a hint, it may also be the only match of whole words.
        The second value has the first lines of all matches if a line number could select another one."""
        exact_layout = matches if len(matches) == 1 else [match for match in matches if match.is_exact_layout]
        if len(exact_layout) == 1:
            return exact_layout[0], ()
        if len(matches) >= MAX_PLACES:
            return None, ()
        places = tuple(match.first_line for match in matches)
        if hint is None and self.patch.end_line is None:
            whole_words = [match for match in matches if not self._splits_word(match)]
            return (whole_words[0], ()) if len(whole_words) == 1 else (None, places)
        distances = [self.measure_distance(match, hint) for match in matches]
        nearest = find_nearest(distances, self.lead)
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
        applied = [check_already_there(self, match, interpretation) for match in disjoint]
        if all(applied) and applied[0]:
            return applied[0]
        edits: list[ResolvedEdit] = []
        for match in disjoint:
            built = self.build(match, (), interpretation)
            if isinstance(built, Rejection):
                return built
            edits += built
        replaced = pluralize(len(edits), "place was replaced", "places were replaced")
        note = f"{replaced} ({format_line_list([edit.match.first_line + 1 for edit in edits])})"
        return (replace(edits[0], notes=(note, *interpretation.notes)), *edits[1:])

    def _find_applied(self, interpretation: Interpretation) -> Rejection | None:
        """Reject the patch if its new text has already replaced its old text in the document."""
        place = find_applied_place(
            self.search, interpretation.old, interpretation.new, self.find_hinted_index(interpretation)
        )
        if place is None:
            return None
        line, is_shown = place
        step = "continue with the next step" if is_shown else f"continue if line {line + 1} is the intended place"
        return Rejection(
            "already applied",
            f"already applied: {self.names.new_text} is already present at line {line + 1} and {self.names.old_text} "
            f"is not in the file; {step}",
        )


def _keeps_lines(interpretation: Interpretation) -> bool:
    return have_common_lines(split_view_lines(interpretation.old), split_view_lines(interpretation.new))
