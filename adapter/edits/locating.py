"""Where one patch belongs in a document and what it puts there, or why nowhere."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.edits.acceptance import HINT_REACH, accepted, described
from adapter.edits.alignment import Candidate, align
from adapter.edits.anchors import anchored
from adapter.edits.document import line_list, line_range, view_of
from adapter.edits.escapes import escaped_new
from adapter.edits.indent import indent_of
from adapter.edits.made import (
    MIN_TELLING_CHARACTERS,
    made_roughly,
    shares_lines,
    standing,
    standing_verbatim,
    stands_around,
    stands_as_part,
)
from adapter.edits.marks import Unmarkable, plain_new
from adapter.edits.readings import Reading, is_elision, placeholders, readings
from adapter.edits.refusals import absent, ambiguous, nearly
from adapter.edits.search import MAX_PLACES, Search
from adapter.edits.splice import Unclear
from adapter.edits.stages import STAGES, Place, are_whole_lines, line_place, lines_of, literal, whole_lines
from adapter.operations import EmptyOldText, Hunk, Patch, PatchNames
from adapter.text.counted import counted
from adapter.values.fields import frozen, replace

MAX_ALIGNED = 6
"""Readings of one patch that are aligned roughly."""
NEAR_HINT = 10
"""Lines that a hint may be off and still outweigh what stands elsewhere."""
VERBATIM_REACH = 8
"""Lines by which a place may be longer than its text."""


@frozen
class Spot:
    """A place and the text that takes it. ``notes`` say what was tolerated or decided."""

    place: Place
    replacement: str
    notes: tuple[str, ...]


def locate(search: Search, patch: Patch, names: PatchNames, empty_old_text: EmptyOldText) -> list[Spot] | str:
    """The spots that ``patch`` changes, one unless it is to replace all, or why there are none."""
    return _Locator(search, patch, names, empty_old_text).run()


class _Locator:
    def __init__(self, search: Search, patch: Patch, names: PatchNames, empty_old_text: EmptyOldText) -> None:
        self.search, self.patch, self.names, self.empty_old_text = search, patch, names, empty_old_text
        self.old, self.new = view_of(patch.old_text), view_of(patch.new_text)

    def run(self) -> list[Spot] | str:
        if not self.old:
            return self._inserted()
        if self.old == self.new:
            return f"no change: {self.names.old_text} and {self.names.new_text} are the same"
        promised = next(placeholders(self.new, self.old, self.search.document.view), None)
        if promised is not None:
            return (
                f"{self.names.new_text} holds {promised[:80]!r} in place of real lines: write all lines that "
                f"{self.names.new_text} is to have, or take a smaller {self.names.old_text}"
            )
        if self.patch.exact:
            reading = Reading(self.old, self.new, is_whole_lines=isinstance(self.patch, Hunk))
            places = list(literal(self.search, reading))
            return self._chosen(places, reading) if places else self._inexact()
        return self._tolerant()

    def _inexact(self) -> str:
        """Where a text that must stand exactly so would fit if that were not asked."""
        found = self._tolerant()
        if isinstance(found, str):
            return found
        return nearly(self.search, found[0].place, self.names)

    def _tolerant(self) -> list[Spot] | str:
        is_hunk = isinstance(self.patch, Hunk)  # its marks are off already: `+ item` is a line
        try:
            view = self.search.document.view
            plain = None if is_hunk else plain_new(self.old, self.new, view) or escaped_new(self.old, self.new, view)
        except Unmarkable as doubt:
            return (
                f"lines of {self.names.new_text} begin with '+' ({str(doubt)[:60]!r}) and no line of "
                f"{self.names.old_text} and of the file does: write {self.names.new_text} without diff marks, "
                "each line with its own indentation"
            )
        if plain is not None:
            self.new = plain[0]
        written = Reading(self.old, self.new, plain[1:] if plain else (), is_whole_lines=is_hunk)
        for stage in STAGES:  # a text that stands there as it is written needs no other reading
            if places := list(stage(self.search, written)):
                return self._chosen(places, written)
        found = readings(written)
        others = sorted(found[1:], key=self._strangeness)
        for stage in STAGES:
            for reading in others:
                if places := list(stage(self.search, reading)):
                    return self._chosen(places, reading)
        sharing = [reading for reading in found if shares_lines(lines_of(reading.old), lines_of(reading.new))]
        if applied := next(filter(None, map(self._applied, sharing)), ""):
            return applied
        aligned = self._aligned(found)
        return (self._applied(found[0]) or aligned) if isinstance(aligned, str) else aligned

    def _strangeness(self, reading: Reading) -> tuple[float, float]:
        """How many old lines the document does not have exactly so, and how many old and new text do not share."""
        old = {line for line in lines_of(reading.old) if line.strip()}
        kept = old.intersection(lines_of(reading.new))
        return -len(self.search.lines_set.intersection(old)) / max(len(old), 1), -len(kept) / max(len(old), 1)

    def _inserted(self) -> list[Spot] | str:
        """What a patch without old text does."""
        document, line = self.search.document, self.patch.start_line
        if self.empty_old_text == "refuse" or (self.empty_old_text == "create" and document.view.strip()):
            why = "give the text to replace" if self.empty_old_text == "refuse" else "the file is not empty"
            return f"{self.names.old_text} is empty: {why}"
        if not self.new:
            return f"no change: {self.names.old_text} and {self.names.new_text} are both empty"
        if self.empty_old_text == "create":
            place = Place(0, len(document.view), 0, len(document.lines) - 1, lambda: self.new, "exact")
            return [self._spot(place, (), Reading(self.old, self.new))]
        count = document.line_count
        if line is not None and not 1 <= line <= count + 1:
            where = f"{self.names.start_line or 'line'} {line}"
            return f"{where} is not a place to insert at: the file has {counted(count, 'line')}"
        at = 0 if line is None else line - 1
        return [self._insertion(at, count)]

    def _insertion(self, at: int, count: int) -> Spot:
        document = self.search.document
        body = self.new.removesuffix("\n")
        if at < count or not document.lines[-1]:
            start = document.view_offset(min(at, len(document.lines) - 1))
            text = body + "\n"
        else:
            start, text = len(document.view), "\n" + body
        end = document.new_end(max(0, min(at, len(document.lines) - 1)))
        line = min(at, max(count - 1, 0))
        where = f"the text was inserted before line {at + 1}" if at < count else "the text was added at the end"
        place = Place(start, start, line, line, lambda: text.replace("\n", end), "exact")
        return Spot(place, place.replacement(), (where,))

    # -------------------------------------------------------------- a clear reading

    def _hint(self, reading: Reading) -> int | None:
        """A 1-based line that the text is said to start at."""
        return self.patch.start_line if self.patch.start_line is not None else reading.line

    def _chosen(self, places: Sequence[Place], reading: Reading) -> list[Spot] | str:
        if self.patch.replace_all:
            return self._all(places, reading)
        hint = self._hint(reading)
        place = self._meant(places, hint)
        if place is None:
            hint = hint if hint is not None else self.patch.end_line
            return ambiguous(self.search, places, self.patch, self.names, hint)
        if refusal := self._made(place, reading) or self._made_nearer(place, reading) or self._twin(place, reading):
            return refusal
        first, last = place.first_line + 1, place.last_line + 1
        notes: list[str] = []
        if place.strictness != "exact":
            elsewhere = self._applied_elsewhere(place, reading) or self._verbatim_elsewhere(place, reading)
            if elsewhere:
                return elsewhere
            kind = "white space" if place.strictness == "whitespace" else "typographic characters and white space"
            notes.append(f"the old text matched {line_range(first, last)} except for {kind}")
        if len(places) > 1:
            notes.append(f"the old text matches {len(places)} places; {line_range(first, last)} was meant")
        return self._unless_unchanged(place, tuple(notes), reading)

    def _meant(self, places: Sequence[Place], hint: int | None) -> Place | None:
        """The only place, the only one with the right indentation, or the one strictly nearest to the line hint."""
        if len(places) == 1:
            return places[0]
        sharp = [place for place in places if place.is_sharp]
        if len(sharp) == 1:
            return sharp[0]
        if (hint is None and self.patch.end_line is None) or len(places) >= MAX_PLACES:
            return None
        distances = [self._distance(place, hint) for place in places]
        nearest = min(distances)
        if nearest > HINT_REACH or distances.count(nearest) > 1:
            return None
        return places[distances.index(nearest)]

    def _distance(self, place: Place, hint: int | None) -> int:
        if hint is not None:
            return abs(place.first_line + 1 - hint)
        return abs(place.last_line + 1 - (self.patch.end_line or 0))

    def _is_hinted(self, place: Place, reading: Reading) -> bool:
        """Whether a line hint names the place."""
        hint = self._hint(reading)
        return (hint is not None or self.patch.end_line is not None) and self._distance(place, hint) <= NEAR_HINT

    def _all(self, places: Sequence[Place], reading: Reading) -> list[Spot] | str:
        """Every place that does not overlap the one before it."""
        apart: list[Place] = []
        for place in places:
            if not apart or place.start >= apart[-1].end:
                apart.append(place)
        if len(places) >= MAX_PLACES:
            return f"{self.names.old_text} matches more than {MAX_PLACES} places; take a longer text"
        made = [self._made(place, reading) for place in apart]
        if all(made):
            return made[0]
        spots = []
        for place in apart:
            spot = self._unless_unchanged(place, (), reading)
            if isinstance(spot, str):
                return spot
            spots += spot
        replaced = counted(len(spots), "place was replaced", "places were replaced")
        note = f"{replaced} ({line_list([spot.place.first_line + 1 for spot in spots])})"
        return [replace(spots[0], notes=(note, *reading.notes)), *spots[1:]]

    def _unless_unchanged(self, place: Place, notes: tuple[str, ...], reading: Reading) -> list[Spot] | str:
        try:
            spot = self._spot(place, notes, reading)
        except Unclear as unclear:
            first, last = place.first_line + 1, place.last_line + 1
            return (
                f"{self.names.old_text} fits {line_range(first, last)}, but {unclear}; "
                f"copy {self.names.old_text} from the file exactly"
            )
        document = self.search.document
        if spot.replacement == document.text[document.text_offset(place.start) : document.text_offset(place.end)]:
            where, verb = line_range(place.first_line + 1, place.last_line + 1), "read"
            verb += "s" if place.first_line == place.last_line else ""
            return f"no change: {where} already {verb} like {self.names.new_text}"
        return [spot]

    def _spot(self, place: Place, notes: tuple[str, ...], reading: Reading) -> Spot:
        return Spot(place, place.replacement(), (*reading.notes, *notes))

    # ---------------------------------------------------------------- applied before

    def _made(self, place: Place, reading: Reading) -> str:
        """Said when the new text, which holds the old one, stands around the place already."""
        if not reading.new.strip():
            return ""
        line = stands_around(self.search, place, reading.old, reading.new, self.patch.replace_all)
        if line is None:
            return ""
        return (
            f"already applied: {self.names.new_text} stands there as it is (line {line + 1}); if it is meant once "
            f"more, copy more lines around the place into {self.names.old_text}"
        )

    def _made_nearer(self, place: Place, reading: Reading) -> str:
        """Said when the line hint names a place where the new text stands, and the old one only stands elsewhere."""
        hint = self._hint(reading)
        if hint is None or self._distance(place, hint) == 0:
            return ""
        places = [first for first, _ in standing(self.search, reading.old, reading.new)]
        places = places or standing_verbatim(self.search, place, reading.new)
        nearest = min(places, key=lambda first: abs(first + 1 - hint), default=None)
        if nearest is None or abs(nearest + 1 - hint) >= self._distance(place, hint):
            return ""
        return (
            f"already applied: {self.names.new_text} stands at line {nearest + 1}, and {self.names.old_text} only at "
            f"line {place.first_line + 1}; if that is meant, too, give its line"
        )

    def _twin(self, place: Place, reading: Reading) -> str:
        """Said when the line hint names lines that only blanks tell from the old text, which stands elsewhere."""
        hint = self._hint(reading)
        if hint is None or self._is_hinted(place, reading):
            return ""
        others = (other for other in whole_lines(self.search, reading) if self._is_hinted(other, reading))
        twin = next(others, None)
        if twin is None:
            return ""
        return (
            f"{self.names.old_text} stands at line {place.first_line + 1} and, except for white space, at line "
            f"{twin.first_line + 1}, which line {hint} names; copy {self.names.old_text} from the place that is meant "
            "exactly, and give its line"
        )

    def _applied_elsewhere(self, place: Place, reading: Reading) -> str:
        """A loose match is not trusted when the new text already stands somewhere else:
        the patch was probably applied before, and this is a near twin of its place."""
        if self._is_hinted(place, reading) or (place.is_sharp and self._is_of_whole_lines(place)):
            return ""
        lines = [
            first
            for first, last in standing(self.search, reading.old, reading.new)
            if first > place.last_line or last < place.first_line
        ]
        if not lines:
            return ""
        return (
            f"{self.names.new_text} is already there ({line_list([line + 1 for line in lines])}) and "
            f"{self.names.old_text} is there only roughly, at line {place.first_line + 1}; "
            f"if that place is meant, copy {self.names.old_text} from it exactly"
        )

    def _is_of_whole_lines(self, place: Place) -> bool:
        view = self.search.document.view
        return are_whole_lines(view, place.start, view[place.start : place.end])

    def _verbatim_elsewhere(self, place: Place, reading: Reading) -> str:
        """A place whose lines are indented differently is not trusted when the lines stand, indented
        as written, somewhere else, all of them or all but one."""
        if place.is_sharp or self._is_hinted(place, reading):
            return ""
        lines = [line.rstrip() for line in lines_of(reading.old) if line.strip()]
        filled = (self.search.document.lines[at] for at in range(place.first_line, place.last_line + 1))
        first = next((line for line in filled if line.strip()), "")
        if indent_of(first) == indent_of(lines[0]):
            return ""
        telling = [line for line in lines if sum(map(str.isalnum, line)) >= MIN_TELLING_CHARACTERS]
        line = self.search.verbatim(telling, len(lines) + VERBATIM_REACH, range(place.first_line, place.last_line + 1))
        if line is None:
            return ""
        return (
            f"{self.names.old_text} fits {line_range(place.first_line + 1, place.last_line + 1)} except for white "
            f"space, and most of its lines stand as written from line {line + 1} on; "
            f"copy {self.names.old_text} from the place that is meant exactly"
        )

    def _applied(self, reading: Reading) -> str:
        """Said of a text that is not there while what it should become is."""
        found = standing(self.search, reading.old, reading.new)
        if found:
            line = found[0][0] + 1
        else:
            start = stands_as_part(self.search, reading.old, reading.new)
            if start < 0:
                return ""
            line = self.search.document.line_at(start) + 1
        return (
            f"already applied: {self.names.new_text} is there (line {line}) and {self.names.old_text} is not; "
            "go on with the next step"
        )

    def _anchored(self, reading: Reading, best: Candidate) -> list[Spot]:
        """The spots of changes that are sure although the lines around them moved on; none when one is not, or
        when the text as a whole is more like another place."""
        if self.patch.replace_all:
            return []
        spots: list[Spot] = []
        for part in anchored(self.search, lines_of(reading.old), lines_of(reading.new)):
            places = whole_lines(self.search, replace(reading, old=part.old, new=part.new))
            found_there = (place for place in places if self._first_filled(place) == part.first)
            place = replace(next(found_there), strictness="aligned")
            hint = self._hint(reading)
            is_far = hint is not None and self._distance(place, hint) > HINT_REACH
            if is_far or place.last_line < best.first_line or best.last_line < place.first_line:
                return []
            found = self._unless_unchanged(place, (part.note,), reading)
            if isinstance(found, str):
                return []
            spots += found
        return spots

    def _first_filled(self, place: Place) -> int:
        return next(line for line in range(place.first_line, place.last_line + 1) if self.search.keys[line])

    # ------------------------------------------------------------------ a rough match

    def _aligned(self, found: Sequence[Reading]) -> list[Spot] | str:
        """The best of all readings, each aligned roughly, or the refusal that shows the closest lines."""
        tried: list[tuple[Reading, list[str], list[Candidate]]] = []
        for reading in dict.fromkeys((*found[: MAX_ALIGNED - 1], found[-1])):
            old = lines_of(reading.old)
            hint = self._hint(reading)
            candidates = align(self.search, old, None if hint is None else hint - 1)
            if candidates:
                tried.append((reading, old, candidates))
        if not tried:
            return absent(self.search, lines_of(self.old), None, "", self.names)
        reading, old, candidates = max(tried, key=lambda one: one[2][0].score)
        hint = self._hint(reading)
        new = _same_elisions(old, lines_of(reading.new))
        best = accepted(self.search, old, new, candidates, None if hint is None else hint - 1)
        spots = self._anchored(reading, candidates[0]) if isinstance(best, str) else []
        if isinstance(best, str) and not spots:
            return absent(self.search, old, candidates[0], best, self.names)
        line = made_roughly(self.search, candidates[0] if isinstance(best, str) else best, old, new)
        if line is not None:
            return f"already applied: what {self.names.new_text} leads to is there (line {line + 1})"
        if isinstance(best, str):
            return spots
        written = replace(reading, new="\n".join(new) + "\n" if new else "")
        place = line_place(self.search.document, written, best.steps, "aligned")
        return self._unless_unchanged(place, (described(self.search, old, best),), reading)


def _same_elisions(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """``new`` with the ``...`` lines spelled as in ``old``, in their order, so that they count as kept."""
    spelled = iter([line for line in old if is_elision(line)])
    return [next(spelled, line) if is_elision(line) else line for line in new]
