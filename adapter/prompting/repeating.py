"""Where a request wants a tool called several times: the part of it that each call is about.

"a base of 3 and a height of 4, then a base of 5 and a height of 6" has four numbers, for a tool that needs two: two
calls. What a request holds is counted by kind (numbers, dates, addresses, names and quoted texts), and a kind that it
has n times as often as the tool needs it tells n. Pure, and by no word of any language but those that join two parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from adapter.constraints.mentions import quoted, spelled_paths
from adapter.prompting import numbers
from adapter.prompting.beside import Value
from adapter.prompting.languages import AND, AND_SIGNS, IN, THEN, THEN_SIGNS
from adapter.prompting.ranking import KINDS, STOP, TYPED, kinds_of, spelled, stem
from adapter.tools.definition import Tool
from adapter.tools.schema import types_of
from adapter.values.events import Json
from adapter.values.lazy_pattern import lazy_pattern

MOST_CHARACTERS = 4_000
"""Of a request that is looked at."""
FARTHEST = 40
"""Characters before a value in which the word before it is sought."""


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Kind:
    """Values of a kind, of which a request has ``said``, and a call takes ``needed``."""

    name: str
    said: Sequence[_Span]
    needed: int

    @property
    def times(self) -> int:
        """For how many calls it is enough, 0 where something would be left over."""
        return 0 if len(self.said) % self.needed else len(self.said) // self.needed

    def of(self, at: int) -> Sequence[_Span]:
        return self.said[at * self.needed : (at + 1) * self.needed]


def parts(request: str, tool: Tool, once: Mapping[str, Value], optional: Sequence[str]) -> list[str]:
    """One for each call, in their order; one alone, which is the request, where it has as many numbers as a call takes;
    none where that cannot be told. ``once``: by parameter, what it says for all calls; ``optional``: parameters that
    may be left out, and of which it speaks."""
    if len(request) > MOST_CHARACTERS:
        return []
    readings = list(_readings(request, tool, once, optional))
    if any(kind.name == "_number_" and kind.needed > 1 == kind.times for kinds in readings for kind in kinds):
        return [request]
    for kinds in readings:
        several = {kind.times for kind in kinds} - {1}
        if len(several) == 1 and 0 not in several:
            (times,) = several
            own = [kind for kind in kinds if kind.times == times]
            if found := _cut(request, own, times):
                return found
    return []


def _readings(request: str, tool: Tool, once: Mapping[str, Value], optional: Sequence[str]) -> Iterator[list[_Kind]]:
    """What the request may be said to hold: with all that may be meant for a call, then without what may be left out,
    then without what is said for all. Its numbers come first, its texts last: all, those in quotes, the names, none."""
    rest, said = request, dict[str, list[_Span]]()
    for kind in TYPED:
        said[kind] = [_Span(*match.span()) for match in KINDS[kind].finditer(rest)]
        rest = _without(rest, said[kind])
    pieces = list(_quoted(rest))
    rest = _without(rest, pieces)
    said["_path_"] = sorted(_paths(rest), key=lambda span: span.start)
    rest = _without(rest, said["_path_"])
    names = list(_names(rest, tool))
    in_brackets = [_Span(*match.span()) for match in _BRACKETS.finditer(rest)]
    rest = _without(rest, [*names, *in_brackets])
    figures = {_Span(each.start, each.end): each for each in numbers.said(rest) if not rest[each.start].isalpha()}
    own = [span for span, each in figures.items() if not {each.value, each.share} & {*once.values()}]
    texts = sorted([*pieces, *names], key=lambda span: span.start)
    left = [name for name in tool.required if name not in once]
    for params, counted in (([*tool.required, *optional], [*figures]), (tool.required, [*figures]), (left, own)):
        needed = _needed(tool, params)
        found = [
            _Kind(kind, each, needed[kind])
            for kind, each in ({"_number_": counted} | said).items()
            if each and kind in needed
        ]
        is_told = len(pieces) == needed.get("_text_") == 1  # what else has a capital is no other text
        for some in (texts, pieces, names) if "_text_" in needed else ():
            if some and (some is pieces or not is_told):
                yield [*found, _Kind("_text_", some, needed["_text_"])]
        yield found
    if _needed(tool, tool.required).get("_text_", 0) > (1 if pieces else 0):
        yield from ([_Kind("_text_", echoes, 1)] for echoes in _echoes(request, texts))


def _echoes(request: str, texts: Sequence[_Span]) -> Iterator[list[_Span]]:
    """Those with the same word behind, or before them: "a Pop song and a Rock song in Oslo"."""
    for beside in (_behind, _before):
        found: dict[str, list[_Span]] = {}
        for text in texts:
            if (word := beside(request, text)) and word not in STOP | IN:
                found.setdefault(word, []).append(text)
        yield from (spans for spans in found.values() if len(spans) > 1)


def _needed(tool: Tool, names: Sequence[str]) -> dict[str, int]:
    needed: dict[str, int] = {}
    for name in dict.fromkeys(names):
        if kind := _kind(name, tool.properties.get(name, {})):
            needed[kind] = needed.get(kind, 0) + 1
    return needed


def _kind(name: str, schema: Json) -> str | None:
    if not isinstance(schema, dict) or schema.get("enum"):
        return None
    types = types_of(schema)
    if types and types <= {"integer", "number"}:
        return "_number_"
    if types != {"string"}:
        return None
    kinds = kinds_of(name, schema)
    return next((kind for kind in (*TYPED, "_path_") if kind in kinds), "_text_")


def _quoted(text: str) -> Iterator[_Span]:
    at = 0
    for piece in quoted(text):
        at = text.index(piece, at)
        yield _Span(at, at + len(piece))
        at += len(piece)


def _paths(text: str) -> Iterator[_Span]:
    for path in spelled_paths(text):
        for match in re.finditer(rf"(?<![\w./\\]){re.escape(path)}(?![\w/\\])", text):
            yield _Span(*match.span())


def _names(text: str, tool: Tool) -> Iterator[_Span]:
    """But for those that the tool is called itself."""
    own = {stem(word) for word in spelled(f"{tool.name.replace('_', ' ')} {tool.description}")} | STOP
    for match in _NAME.finditer(text):
        if not {stem(word) for word in spelled(match[0])} <= own:
            yield _Span(*match.span())


_WORD = r"(?:[A-Z](?:\.[A-Z])+\.?|[A-Z0-9][\w&'-]*+)"
_NAME = lazy_pattern(rf"(?<=[^\s.!?] )(?=[A-Z]){_WORD}(?: (?:of )?{_WORD})*+(?:, [A-Z]{{2}}(?!\w))?")
"""Words with capitals that do not begin a sentence."""


def _without(text: str, spans: Sequence[_Span]) -> str:
    for span in spans:
        text = text[: span.start] + "." * (span.end - span.start) + text[span.end :]
    return text


def _cut(request: str, own: Sequence[_Kind], times: int) -> list[str]:
    """Where something joins what one call is about to the next; nothing where they are not one after the other, or
    where only one value of each call tells, and nothing beside it does."""
    runs = [{each.start for each in run} for run in numbers.series(request)]
    if any(len({span.start for span in kind.said} & run) % kind.needed for kind in own for run in runs):
        return []
    calls = [sorted((span for kind in own for span in kind.of(at)), key=lambda span: span.start) for at in range(times)]
    is_sure = len(calls[0]) > 1
    at = [0]
    for one, after in pairwise(calls):
        joint = _JOINT.search(request, one[-1].end, after[0].start)
        if joint is None:
            return []
        if not is_sure and (_is_listed(request, one[0], after[0], runs) or not _are_alike(request, one[0], after[0])):
            return []
        at.append(joint.start())
    if own[0].needed < 2 and not _SURE_JOINT.search(request, calls[-2][-1].end, calls[-1][0].start):
        return []
    return [request[start:end].lstrip(" ,.;!?\n") for start, end in pairwise([*at, len(request)])]


def _is_listed(request: str, one: _Span, after: _Span, runs: Sequence[set[int]]) -> bool:
    """Whether nothing else stands between them: such a list may be meant for one call."""
    is_in_run = any({one.start, after.start} <= run for run in runs)
    return is_in_run or _LISTED.fullmatch(request, one.end, after.start) is not None


def _are_alike(request: str, one: _Span, other: _Span) -> bool:
    """Whether the same word stands before both or behind both, or they are numbers of two sentences."""
    if _SENTENCE_ENDS.search(request, one.end, other.start) and request[one.start].isdigit():
        return True
    return any(beside(request, one) == beside(request, other) != "" for beside in (_before, _behind))


def _before(request: str, span: _Span) -> str:
    found = _BEFORE.search(request[max(span.start - FARTHEST, 0) : span.start])
    return found[1].lower() if found else ""


def _behind(request: str, span: _Span) -> str:
    found = _BEHIND.match(request, span.end)
    return found[1].lower() if found else ""


_LISTED = lazy_pattern(rf"(?i)\W*(?:(?:{'|'.join(AND)})\W+|(?:{AND_SIGNS})\W*)?")
_BEFORE = lazy_pattern(r"([^\W\d_]+)\W{0,3}$")
_BEHIND = lazy_pattern(r"\W{0,3}([^\W\d_]+)")
_BRACKETS = lazy_pattern(r"\[[^\[\]]*\]")
_ENDS = rf"(?i)[.;!?](?=\s)|\n|{THEN_SIGNS}"
_SENTENCE_ENDS = lazy_pattern(rf"{_ENDS}|(?<!\w)(?:{'|'.join(THEN - AND)})(?!\w)")
_SURE_JOINT = lazy_pattern(rf"{_ENDS}|{AND_SIGNS}|(?<!\w)(?:{'|'.join(THEN)})(?!\w)")
_JOINT = lazy_pattern(rf"{_ENDS}|{AND_SIGNS}|,|(?<!\w)(?:{'|'.join(THEN)})(?!\w)")
