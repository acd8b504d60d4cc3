"""The lists of things that a request says: "tomatoes and lettuce", "Olten, Bern and Basel", "'Age', 'Income'"."""

from __future__ import annotations

import re

from adapter.constraints.mentions import quoted
from adapter.prompting.languages import AND, ASKING, IN
from adapter.prompting.ranking import STOP
from adapter.values.lazy_pattern import lazy_pattern

LONGEST_ITEM = 3
"""Words."""

MOST_CHARACTERS = 4_000
"""Of a request that is looked at; a longer one is a text, and has lists of its own."""

# Each word is taken once and for all (possessive): "Rome, CA, CA, ..." can be read in one way only.
_ITEM = r"[A-Z][\w&'-]*+(?: [A-Z0-9&][\w&'-]*+)*+(?:(?<=[a-z.]), [A-Z]{2}(?!\w))?+"
_AND = rf"(?:{'|'.join(AND)})"
_LITTLE = rf"(?:(?:{'|'.join(IN)}|of|for|at|from|with|the|a|an) )?"
_NAMES = lazy_pattern(rf"({_ITEM})((?:, {_ITEM})*),? {_AND} {_LITTLE}({_ITEM})")


def names(text: str) -> list[str]:
    """Of the first list of names with capitals; the last stands behind "and"."""
    found = _NAMES.search(text[:MOST_CHARACTERS])
    if found is None:
        return []
    return list(dict.fromkeys([_own(found[1]), *re.findall(_ITEM, found[2]), found[3]]))


def quotations(text: str) -> list[str]:
    """Of the first list of quoted texts: "'Rome' and 'Bern', each for the book 'Lakes'" has two."""
    found, at = list[str](), 0
    for piece in quoted(text[:MOST_CHARACTERS]):
        start = text.index(piece, at)
        if found and not _JOINED.fullmatch(text, at, start):
            if len(found) > 1:
                break
            found = []
        found.append(piece)
        at = start + len(piece)
    return list(dict.fromkeys(found)) if len(found) > 1 else []


def _own(name: str) -> str:
    """Without the word that begins the sentence: "In Olten", "Show Olten"."""
    first, _, rest = name.partition(" ")
    return rest if rest and first.lower() in _LEADING else name


_LEADING = (STOP | IN | ASKING) - {"a", "an", "the"}


_PAIR = lazy_pattern(rf"({_ITEM}) (?:to|nach|à|a) ({_ITEM})")


def pairs(text: str) -> list[tuple[str, str]]:
    """Names with "to" between them: "Olten to Bern and Bern to Basel"."""
    return [(_own(one), other) for one, other in _PAIR.findall(text[:MOST_CHARACTERS])]


def things(text: str) -> list[str]:
    """Of the only list of quoted texts, of names or of common words; nothing where there are several."""
    if len(text) > MOST_CHARACTERS:
        return []
    if len(pieces := list(dict.fromkeys(quoted(text)))) > 1:
        return pieces
    if found := names(text):
        return found
    lists = [items for part in _CLAUSE.split(text) for items in _lists(part)]
    return lists[0] if len(lists) == 1 else []


def _lists(clause: str) -> list[list[str]]:
    found = []
    for at, piece in enumerate(_ENDING.split(clause)):
        items = [re.sub(r"^(?:the|a|an) ", "", item.strip()) for item in _BETWEEN.split(f" {piece} ")]
        if at == 0:  # "buy milk and eggs"
            items[0] = items[0].partition(" ")[2] or items[0]
        if len(items) > 1 and all(0 < len(item.split()) <= LONGEST_ITEM for item in items):
            found.append(items)
    return found


_JOINED = lazy_pattern(rf"\W*(?:{_AND}\W+(?:{_LITTLE})?)?")
_CLAUSE = lazy_pattern(r"[.;:!?()\"\n]+(?:\s|$)")
_BETWEEN = lazy_pattern(rf",\s*{_AND}\s|,\s|\s{_AND}\s")
_ENDING = lazy_pattern(rf"(?<!\w)(?:{'|'.join((STOP | {*IN, 'over', 'under'}) - {*AND, 'a', 'an', 'the'})})(?!\w)")
