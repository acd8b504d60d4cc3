r"""GBNF for the JSON strings that a schema's ``pattern`` admits.

The subset of regular expressions that tools use: characters, classes, groups, ``|``, repetitions, and the anchors
at both ends. What is not in it (look-around, references, ``\b``, ``\p{...}``, flags) is not followed: `string_of`
gives None. Where ECMAScript and Python differ (``\w``, ``\d``, ``\s``) only what both admit can be written.

::

    pattern     = sequence *("|" sequence)
    sequence    = *(atom ["*" / "+" / "?" / "{" m ["," [n]] "}" ["?"]])
    atom        = character / "." / "[" class "]" / "\" escape / "(" ["?:" / "?<name>"] pattern ")" / "^" / "$"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

MOST_TIMES = 1999
"""llama.cpp reads larger bounds of a repetition as none."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points, first and last, in order and apart."""


@dataclass(frozen=True, slots=True)
class Chars:
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Times:
    """``most``: None without a bound."""

    item: Node
    fewest: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Series:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    choices: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Anchor:
    sign: str


Node: TypeAlias = Chars | Times | Series | Either | Anchor


class _NotFollowed(Exception):
    """The pattern has something that is not in the subset."""


def _joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return tuple(joined)


def _without(ranges: Ranges, left_out: Ranges) -> Ranges:
    kept = list(ranges)
    for first, last in left_out:
        kept = [
            part
            for low, high in kept
            for part in ((low, min(high, first - 1)), (max(low, last + 1), high))
            if part[0] <= part[1]
        ]
    return _joined(set(kept))


# Control characters but for these three, DEL and its like, and half surrogate pairs are nothing to write.
ANY: Ranges = ((9, 10), (13, 13), (0x20, 0x7E), (0xA0, 0xD7FF), (0xE000, 0x10FFFF))
ASCII: Ranges = ((9, 10), (13, 13), (0x20, 0x7E))
DIGITS: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Ranges = ((9, 10), (13, 13), (0x20, 0x20))
ALL_SPACE: Ranges = (
    *((9, 13), (0x1C, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x180E, 0x180E), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
NO_LINE_END = _without(ANY, ((10, 10), (13, 13), (0x2028, 0x2029)))

CLASSES: dict[str, Ranges] = {
    "d": DIGITS,
    "D": _without(ASCII, DIGITS),
    "w": WORD,
    "W": _without(ASCII, WORD),
    "s": SPACE,
    "S": _without(ANY, ALL_SPACE),
}
# Of what a negated class leaves out, all that either of the two readings means.
ALL_OF: dict[str, Ranges] = {
    "s": ALL_SPACE,
    "D": _without(((0, 0x10FFFF),), DIGITS),
    "W": _without(((0, 0x10FFFF),), WORD),
}
ALL_OF |= {"d": (*DIGITS, (0x80, 0x10FFFF)), "w": _joined((*WORD, (0x80, 0x10FFFF)))}
ALL_OF |= {"S": _without(((0, 0x10FFFF),), SPACE)}
ESCAPES = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "0": 0}
_CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_COUNT = re.compile(r"\{(\d{1,4})(?:(,)(\d{1,4})?)?\}")
_GROUP = re.compile(r"\?(?::|P?<[A-Za-z_]\w*>)")


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._text, self._at = pattern, 0

    def whole(self) -> Node:
        node = self._pattern()
        if self._at < len(self._text):
            raise _NotFollowed  # a bracket too many
        return node

    def _pattern(self) -> Node:
        choices = [self._sequence()]
        while self._takes("|"):
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else Either(tuple(choices))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            items.append(self._repeated(self._atom()))
        return items[0] if len(items) == 1 else Series(tuple(items))

    def _repeated(self, atom: Node) -> Node:
        bounds: tuple[int, int | None] | None = None
        if self._takes("*"):
            bounds = 0, None
        elif self._takes("+"):
            bounds = 1, None
        elif self._takes("?"):
            bounds = 0, 1
        elif count := _COUNT.match(self._text, self._at):
            self._at = count.end()
            fewest = int(count[1])
            bounds = fewest, (int(count[3]) if count[3] else None if count[2] else fewest)
        if bounds is None:
            return atom
        fewest, most = bounds
        if isinstance(atom, Anchor) or fewest > MOST_TIMES or (most or 0) > MOST_TIMES:
            raise _NotFollowed
        self._takes("?")  # how eagerly it is matched makes no difference to what is
        if self._text[self._at : self._at + 1] in ("*", "+"):
            raise _NotFollowed
        return Times(atom, fewest, most)

    def _atom(self) -> Node:
        character = self._next()
        match character:
            case "(":
                if group := _GROUP.match(self._text, self._at):
                    self._at = group.end()
                elif self._text.startswith("?", self._at):
                    raise _NotFollowed
                node = self._pattern()
                if not self._takes(")"):
                    raise _NotFollowed
                return node
            case "[":
                return Chars(self._class())
            case ".":
                return Chars(NO_LINE_END)
            case "^" | "$":
                return Anchor(character)
            case "\\":
                ranges, _ = self._escape()
                return Chars(_written(ranges))
            case "*" | "+" | "?":
                raise _NotFollowed
            case "{" if self._text.startswith(",", self._at):
                raise _NotFollowed  # a repetition in Python, and itself in ECMAScript
            case _:
                return Chars(_written(_one(ord(character))))

    def _class(self) -> Ranges:
        is_negated = self._takes("^")
        ranges: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self._takes("]"):
            is_first = False
            first, name = self._member()
            if name:
                ranges += ALL_OF[name] if is_negated else first
            elif self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                last, name = self._member()
                if name or last[0][0] < first[0][0]:
                    raise _NotFollowed
                ranges.append((first[0][0], last[0][0]))
            else:
                ranges += first
        return _without(ANY, _joined(ranges)) if is_negated else _written(_joined(ranges))

    def _member(self) -> tuple[Ranges, str]:
        character = self._next()
        if character == "\\":
            if self._takes("b"):
                raise _NotFollowed  # a backspace here
            return self._escape()
        return _one(ord(character)), ""

    def _escape(self) -> tuple[Ranges, str]:
        """What is meant, and the letter of a class."""
        if code := _CODE.match(self._text, self._at):
            self._at = code.end()
            return _one(int(code[1] or code[2], 16)), ""
        letter = self._next()
        if letter in CLASSES:
            return CLASSES[letter], letter
        if letter in ESCAPES:
            return _one(ESCAPES[letter]), ""
        if letter.isalnum():
            raise _NotFollowed
        return _one(ord(letter)), ""

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise _NotFollowed
        self._at += 1
        return self._text[self._at - 1]

    def _takes(self, sign: str) -> bool:
        found = self._text.startswith(sign, self._at)
        self._at += len(sign) * found
        return found


def _one(code: int) -> Ranges:
    return ((code, code),)


def _written(ranges: Ranges) -> Ranges:
    """Those of them that can be written."""
    return _without(ANY, _without(((0, 0x10FFFF),), ranges))


# ------------------------------------------------------------------------ as GBNF


def string_of(pattern: str, shortest: int = 0, longest: int | None = None, *, is_bare: bool = False) -> str | None:
    """A GBNF expression for what stands between the quotes of a JSON string that the pattern admits.

    ``shortest`` and ``longest``: characters. ``is_bare``: it is not JSON, but stands as it is between tags: then
    there is no ``<`` in it, and no line end, which a reader may take for the tags' own. None where the pattern is
    not followed, or leaves nothing to write.
    """
    try:
        node = _anchored(_Reader(pattern).whole())
        if isinstance(node, Times) and isinstance(node.item, Chars) and (node.most is None or node.most >= shortest):
            node = Times(node.item, max(node.fewest, shortest), node.most)
        low, high = _lengths(node)
        if longest is not None and low > longest:
            return None
        if longest is not None and (high is None or high > longest):
            node = _bounded(node, longest)
        elif low < shortest:
            return None
        return _expression(node, _bare_characters if is_bare else _characters)
    except (_NotFollowed, RecursionError):
        return None


def _anchored(node: Node) -> Node:
    """Without its anchors, and with any text where it has none."""
    choices = node.choices if isinstance(node, Either) else (node,)
    return _either([_free(choice) for choice in choices])


def _free(node: Node) -> Node:
    items = list(node.items if isinstance(node, Series) else (node,))
    anything = Times(Chars(ANY), 0, None)
    before: list[Node] = [anything]
    after: list[Node] = [anything]
    while items and items[0] == Anchor("^"):
        before, items = [], items[1:]
    while items and items[-1] == Anchor("$"):
        after, items = [], items[:-1]
    items = [*before, *items, *after]
    return items[0] if len(items) == 1 else Series(tuple(items))


def _either(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Either(tuple(nodes))


def _lengths(node: Node) -> tuple[int, int | None]:
    """Of the shortest and the longest text; None where there is no longest."""
    match node:
        case Chars():
            return 1, 1
        case Anchor():
            raise _NotFollowed  # in the middle
        case Times(item, fewest, most):
            low, high = _lengths(item)
            return low * fewest, None if most is None or high is None else high * most
        case Series(items):
            both = [_lengths(item) for item in items]
            return sum(low for low, _ in both), _sum([high for _, high in both])
        case Either(choices):
            both = [_lengths(choice) for choice in choices]
            highs = [high for _, high in both]
            return min(low for low, _ in both), None if None in highs else max(high or 0 for high in highs)


def _sum(numbers: Sequence[int | None]) -> int | None:
    return None if None in numbers else sum(number or 0 for number in numbers)


def _bounded(node: Node, longest: int) -> Node:
    """With repetitions as often as fits ``longest`` at the most, all of them alike."""
    few, many = 0, longest + 1
    if (_lengths(_capped(node, few))[1] or 0) > longest:
        raise _NotFollowed
    while many - few > 1:
        middle = (few + many) // 2
        if (_lengths(_capped(node, middle))[1] or 0) <= longest:
            few = middle
        else:
            many = middle
    return _capped(node, few)


def _capped(node: Node, times: int) -> Node:
    match node:
        case Times(item, fewest, most):
            return Times(_capped(item, times), fewest, max(fewest, min(times, times if most is None else most)))
        case Series(items):
            return Series(tuple(_capped(item, times) for item in items))
        case Either(choices):
            return Either(tuple(_capped(choice, times) for choice in choices))
        case _:
            return node


def _expression(node: Node, characters: Callable[[Ranges], str]) -> str:
    match node:
        case Chars(ranges):
            return characters(ranges)
        case Times(item, fewest, most):
            written = _writable(item, characters) if fewest == 0 else _expression(item, characters)
            if most == 0 or written is None:
                return '""'
            return f"({written}){{{fewest},{'' if most is None else min(most, MOST_TIMES)}}}"
        case Series(items):
            return " ".join(_expression(item, characters) for item in items) or '""'
        case Either(choices):
            writable = [written for choice in choices if (written := _writable(choice, characters)) is not None]
            if not writable:
                raise _NotFollowed
            return f"({' | '.join(writable)})"
        case Anchor():
            raise _NotFollowed


def _writable(node: Node, characters: Callable[[Ranges], str]) -> str | None:
    """The expression of what may also be left out; None where it holds only what is not to be written."""
    try:
        return _expression(node, characters)
    except _NotFollowed:
        return None


_IN_JSON = {ord('"'): r'"\\\""', ord("\\"): r'"\\\\"', 10: r'"\\n"', 13: r'"\\r"', 9: r'"\\t"'}
"""Characters that a JSON string escapes, as GBNF."""


def _characters(ranges: Ranges) -> str:
    escaped = [text for code, text in _IN_JSON.items() if any(first <= code <= last for first, last in ranges)]
    return _class_of(_without(ranges, tuple((code, code) for code in sorted(_IN_JSON))), escaped)


def _bare_characters(ranges: Ranges) -> str:
    return _class_of(_without(ranges, ((9, 13), _one(ord("<"))[0])), [])


def _class_of(plain: Ranges, escaped: list[str]) -> str:
    inside = "".join(_code(first) if first == last else f"{_code(first)}-{_code(last)}" for first, last in plain)
    parts = [*([f"[{inside}]"] if inside else []), *escaped]
    if not parts:
        raise _NotFollowed
    return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"


def _code(code: int) -> str:
    if 0x30 <= code < 0x3A or 0x41 <= code < 0x5B or 0x61 <= code < 0x7B:
        return chr(code)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
