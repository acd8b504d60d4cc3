"""Build regular expressions for sets of literal markers, in any letter case, for `marker_set`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

_AFTER_ANCHOR = 3
"""Maximum number of characters after a marker's anchor (see `MarkerSet`) that the pattern contains. With more,
compiling the pattern for all families' markers would take longer than parsing most answers."""
_sign = re.compile(r"[^\w\s]")
_KELVIN = "\u212a"
"""KELVIN SIGN, the only non-ASCII character whose lower case is an ASCII letter."""


def equals_ignoring_case(literal: str, text: str) -> bool:
    """Return whether ``text``, which may not be ASCII, equals ``literal`` in any letter case."""
    return text.lower() == literal and _KELVIN not in text


def choose_anchors(literals: Iterable[str]) -> frozenset[str]:
    """Return a small set of characters such that each literal contains at least one of them. The characters are
    punctuation, or the first character of a literal without punctuation."""
    candidates = [dict.fromkeys(_sign.findall(literal) or literal[0]) for literal in literals]
    anchors = set[str]()
    while candidates:
        [(anchor, _)] = Counter(chain.from_iterable(candidates)).most_common(1)
        anchors.add(anchor)
        candidates = [each for each in candidates if anchor not in each]
    return frozenset(anchors)


def build_branch(char: str, by_offset: Mapping[int, Sequence[str]]) -> str:
    """Return a pattern for the anchor ``char`` (see `MarkerSet`) that also checks the characters around it.
    ``by_offset`` has the markers with this anchor, by its index in them."""
    rests: dict[str, list[str]] = {}
    for offset, literals in sorted(by_offset.items(), reverse=True):
        for literal in literals:
            before = literal[: offset + 1] if offset else ""
            rests.setdefault(before, []).append(literal[offset + 1 : offset + 1 + _AFTER_ANCHOR])
    behind = [_build_rest_pattern(rests.pop(""))] if "" in rests else []
    branches = [f"(?<={_build_any_case(before)}){_build_rest_pattern(after)}" for before, after in rests.items()]
    if branches:
        behind.append(f"(?<={_build_last_characters(rests)})(?:{'|'.join(branches)})")
    return f"{_build_any_case(char)}(?:{'|'.join(behind)})"


def _build_last_characters(literals: Collection[str]) -> str:
    """Return a pattern that matches the last characters of every literal: three, or fewer if a literal is shorter. It
    also matches some other text, but rejects most text faster than a pattern for the whole literals."""
    length = min(3, *map(len, literals))
    return "".join(_build_class({literal[at] for literal in literals}) for at in range(-length, 0))


def build_neighbor_pattern(char: str, by_offset: Mapping[int, Sequence[str]]) -> str:
    """Return a pattern to match directly after ``char``, an anchor (see `MarkerSet`). It requires that the character
    before or after the anchor is the same as in one of the markers. ``by_offset`` is as in `build_branch`."""
    after = {literal[1:2] for literal in by_offset.get(0, [])}
    before = {literal[offset - 1] for offset, literals in by_offset.items() for literal in literals if offset}
    sides = [f"(?<={_build_class(before)}{_build_any_case(char)})"] if before else []
    return "|".join(sides + ([_build_next_pattern(after)] if after else []))


def _build_class(characters: Iterable[str]) -> str:
    """Return a pattern for one of ``characters``, in any letter case."""
    return f"[{re.escape(''.join(spelling for char in sorted(characters) for spelling in list_letter_cases(char)))}]"


def list_letter_cases(char: str) -> Iterable[str]:
    """Return ``char`` in lower and upper case, without duplicates."""
    return dict.fromkeys((char, char.upper() if len(char.upper()) == 1 else char))


def join_firsts(literals: Iterable[str]) -> str:
    return "".join({spelling for literal in literals for spelling in list_letter_cases(literal[0])})


def build_beginnings(literals: Iterable[str]) -> str:
    """Return a pattern that matches every prefix of every literal."""
    rests: dict[str, list[str]] = {}
    for literal in filter(None, literals):
        rests.setdefault(literal[0], []).append(literal[1:])
    return "|".join(f"{_build_any_case(first)}(?:{build_beginnings(rest)})?" for first, rest in rests.items())


def build_anchor(literal: str, offset: int, behind: str) -> str:
    """Return a pattern that matches from the character of the marker ``literal`` at ``offset``, its anchor (see
    `MarkerSet`), to the end of the marker, if the whole marker is there and ``behind`` matches the text after it."""
    before, char, after = map(re.escape, (literal[:offset], literal[offset], literal[offset + 1 :]))
    return f"{char}{f'(?<={before}{char})' if offset else ''}{after}{behind}"


def build_alternatives(literals: Iterable[str], *, exact: bool = False) -> str:
    """Return a pattern for the longest matching literal. It ignores letter case unless ``exact`` is true. The pattern
    is a tree whose branches begin with a literal or a character set, so that `re` can choose by one character."""
    branches: dict[str, list[str]] = {}
    for literal in dict.fromkeys(literals):
        branches.setdefault(literal[:1], []).append(literal[1:])
    is_optional = branches.pop("", None) is not None
    to_pattern = re.escape if exact else _build_any_case
    pattern = "|".join(to_pattern(first) + _build_rest_pattern(rests, exact=exact) for first, rests in branches.items())
    return f"(?:{pattern})?" if is_optional else pattern


def build_first_two(literals: Iterable[str]) -> str:
    """Return a pattern for the first two characters of any literal, in any letter case. At the end of the text, the
    first character suffices."""
    seconds: dict[str, set[str]] = {}
    for first_two in dict.fromkeys(literal[:2] for literal in literals):
        seconds.setdefault(first_two[0], set()).add(first_two[1:])
    return "|".join(_build_any_case(first) + _build_next_pattern(some) for first, some in seconds.items())


def _build_next_pattern(characters: set[str]) -> str:
    """Return a pattern for one of ``characters`` or the end of the text. If "" is one of them, return ""."""
    return "" if "" in characters else rf"(?:{_build_class(characters)}|\Z)"


def _build_rest_pattern(rests: list[str], *, exact: bool = False) -> str:
    if len(rests) > 1:
        return f"(?:{build_alternatives(rests, exact=exact)})"
    return re.escape(rests[0]) if exact else _build_any_case(rests[0])


def _build_any_case(text: str) -> str:
    return "".join(f"[{char}{char.upper()}]" if "a" <= char <= "z" else re.escape(char) for char in text)
