r"""Texts that were escaped once too often, undone as far as the old text needs it and no further.

A model that escapes its line breaks may well have meant the ``\n`` in a string. So every
set of escapes that the old text shows is one way to read both texts, the smallest first, and
the document says which was meant. What only the new text has stays, unless both texts
are spelled like the inside of a JSON string throughout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations

from adapter.values.lazy_pattern import lazy_pattern

_ESCAPE = lazy_pattern(r"\\(.)", re.DOTALL)
_KIND = {"n": "break", "r": "break", "t": "tab", '"': "quote", "'": "quote", "`": "quote", "\\": "slash", "/": "slant"}
_PLAIN = {"n": "\n", "r": "", "t": "\t"}
_ALL = frozenset(_KIND.values())
MAX_KINDS = 3
"""Kinds up to which each set of them is a reading; of more only single ones and all of them."""
MAX_PARTS = 3
"""Line breaks in a string behind which its end is looked for."""

_QUOTED = lazy_pattern(r'"""|\'\'\'|\'"\'|"\'"')
"""Quotes of several lines, and a quote that is quoted."""
_APOSTROPHE = lazy_pattern(r"(?<=\w)'(?=\w)")


def unescaped(old: str, new: str) -> Iterator[tuple[str, str]]:
    """The ways to take escapes off both texts, the most cautious first."""
    shown = sorted({_KIND[match[1]] for match in _ESCAPE.finditer(old) if match[1] in _KIND})
    sizes = range(1, len(shown) + 1) if len(shown) <= MAX_KINDS else (1, len(shown))
    is_json = _is_json(old) and _is_json(new)
    for size in sizes:
        for some in combinations(shown, size):
            kinds = frozenset(some)
            of_new = _ALL if is_json and size == len(shown) else kinds
            for in_strings in (False, True):
                yield _undone(old, kinds, in_strings), _undone(new, of_new, in_strings)


def _undone(text: str, kinds: frozenset[str], in_strings: bool) -> str:
    """``text`` without the escapes of some kinds; a line break that would part a string only if ``in_strings``."""
    kept = set() if in_strings or "break" not in kinds else _breaks_in_strings(text, kinds)

    def plain(match: re.Match[str]) -> str:
        if _KIND.get(match[1]) not in kinds or match.start() in kept:
            return match[0]
        return _PLAIN.get(match[1], match[1])

    return _ESCAPE.sub(plain, text)


def _breaks_in_strings(text: str, kinds: frozenset[str]) -> set[int]:
    r"""Where a ``\n`` stands in a string: an odd number of quotes before it, and soon after it another."""
    found: set[int] = set()
    start = 0
    for line in text.split("\n"):
        found.update(start + at for at in _in_strings(line, kinds))
        start += len(line) + 1
    return found


def _in_strings(line: str, kinds: frozenset[str]) -> Iterator[int]:
    breaks = [match.start() for match in _ESCAPE.finditer(line) if match[1] in "nr"]
    edges = [0, *(at + 2 for at in breaks)]
    odd = [_odd_quotes(line[start:end], kinds) for start, end in zip(edges, [*breaks, len(line)], strict=True)]
    is_open = ""
    for number, at in enumerate(breaks):
        is_open = _toggled(is_open, odd[number])
        if is_open and any(is_open in later for later in odd[number + 1 : number + 1 + MAX_PARTS]):
            yield at
        else:
            is_open = ""


def _odd_quotes(part: str, kinds: frozenset[str]) -> str:
    """The kinds of quotes that stand in ``part`` an odd number of times, without those that are escaped for good."""
    unescaped = part if "quote" in kinds else _ESCAPE.sub("", part)
    bare = _APOSTROPHE.sub("", _QUOTED.sub("", unescaped))
    return "".join(quote for quote in "\"'" if bare.count(quote) % 2)


def _toggled(is_open: str, odd: str) -> str:
    """The quote that is open after a part; none when it closes what was open."""
    if is_open:
        return "" if is_open in odd else is_open
    return odd[:1]


def _is_json(text: str) -> bool:
    """Whether ``text`` is spelled like the inside of a JSON string."""
    if "\\" not in text and '"' not in text and "\n" not in text:
        return True
    try:
        json.loads(f'"{text}"')
    except ValueError:
        return False
    return True
