r"""Texts that were escaped once too often, undone as far as the old text needs it and no further.

A model that escapes its line breaks may well have meant the ``\n`` in a string. So every
set of escapes that the old text shows is one way to read both texts, the smallest first, and
the document says which was meant. What only the new text has stays, unless both texts
are spelled like the inside of a JSON string throughout.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_KIND = {"n": "break", "r": "break", "t": "tab", '"': "quote", "'": "quote", "`": "quote", "\\": "slash", "/": "slant"}
_PLAIN = {"n": "\n", "r": "", "t": "\t"}
_ALL = frozenset(_KIND.values())
MAX_KINDS = 3
"""Kinds up to which each set of them is a reading; of more only single ones and all of them."""
MAX_PARTS = 3
"""Line breaks in a string behind which a quote ends it that may as well begin another one."""

_QUOTED = re.compile(r'"""|\'\'\'|\'"\'|"\'"')
"""Quotes of several lines, and a quote that is quoted."""
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
_REMARK = re.compile(r'\s*"(?= \w)')
"""How comments of Vim begin."""
_PREFIX = re.compile(r"(?<!\w)[a-zA-Z]{1,2}$")
"""Of a string, as in ``f"..."``."""
_PATTERN = re.compile(r"(?:(?<=[(\[^])|(?<=[ (=,:]/))(?:\\[nr])+(?:\|(?:\\[nr])+)*(?=[)\]|*+?]|/(?![/*]))")
"""Line breaks that a regular expression looks for, as ``[^\\n]`` and ``(\\r\\n|\\n)``."""
_DOUBLED = re.compile(r"\\\\[nrt]")
_PAIR = re.compile(r'(?<!\w)\\"[^"\\\n]*\\"(?!\w)')
_QUOTE = '\\"'
_MARKUP = "&<>\"'"
QUOTES_NOTE = "backslashes before the quotes of the new text were left off"
ENTITIES_NOTE = "HTML entities in the new text were undone"


def undo_double_escaping(old: str, new: str) -> Iterator[tuple[str, str]]:
    """The ways to take escapes off both texts, the most cautious first."""
    shown = sorted({_KIND[match[1]] for match in _ESCAPE.finditer(old) if match[1] in _KIND})
    sizes = range(1, len(shown) + 1) if len(shown) <= MAX_KINDS else (1, len(shown))
    is_json = _is_json(old) and _is_json(new)
    is_quoted = is_json and '"' in old + new  # breaks in strings are escaped twice then
    is_doubtful = bool(shown) and not is_json and _is_doubled(new) and "\\\\" not in old
    for size in sizes:
        for some in combinations(shown, size):
            kinds = frozenset(some)
            if is_doubtful and "break" in kinds:
                continue  # two backslashes may be meant, or be those of a text that was escaped as a whole
            of_new = _ALL if is_json and size == len(shown) else kinds
            for in_strings in (True,) if is_quoted and size == len(shown) else (False, True):
                bare = _undone(old, kinds, in_strings)
                yield bare, _undone(new, of_new, in_strings, frozenset(bare.split("\n")))


def _is_doubled(text: str) -> bool:
    """Whether all line breaks in strings have two backslashes."""
    return _DOUBLED.search(text) is not None and not _breaks_in_strings(text, frozenset(["break"]), frozenset())


def unescape_new_text(old: str, new: str, view: str) -> tuple[str, str] | None:
    """The new text without escapes that only it has, and a note.

    All of its quotes, or all that HTML escapes, are escaped, while the old text has none of these, and the document,
    which is no markup, none that are escaped. With an old text that stands there by every character the new one is
    meant so, too.
    """
    is_alone = _ESCAPE.search(old) is None or not (_is_json(old) and _is_json(new))
    if is_alone and '"' not in old and _QUOTE in new and _QUOTE not in view and '"' not in new.replace(_QUOTE, ""):
        is_slip = old not in view and ('"' in view or _are_pairs(new))
        return (new.replace(_QUOTE, '"'), QUOTES_NOTE) if is_slip else None
    plain = html.unescape(new)
    is_code = "&" not in view and "</" not in view
    if plain != new and not any(mark in old for mark in _MARKUP) and html.escape(plain) == new and is_code:
        return None if old in view else (plain, ENTITIES_NOTE)
    return None


def _undone(text: str, kinds: frozenset[str], in_strings: bool, known: frozenset[str] = frozenset()) -> str:
    """``text`` without the escapes of some kinds; a line break that would part a string or is in a pattern only if
    ``in_strings``, or beside one of the lines ``known``."""
    kept = set() if in_strings or "break" not in kinds else _breaks_in_strings(text, kinds, known)

    def plain(match: re.Match[str]) -> str:
        if _KIND.get(match[1]) not in kinds or match.start() in kept:
            return match[0]
        return _PLAIN.get(match[1], match[1])

    return _ESCAPE.sub(plain, text)


def _breaks_in_strings(text: str, kinds: frozenset[str], known: frozenset[str]) -> set[int]:
    r"""Where a ``\n`` stands in a string, with an odd number of quotes before and an end after it, or in a pattern."""
    found = {at for pattern in _PATTERN.finditer(text) for at in range(*pattern.span())}
    start = 0
    for line in text.split("\n"):
        breaks = [match.start() for match in _ESCAPE.finditer(line) if match[1] in "nr"]
        parts = [_undone(line[a:b], kinds, True).removeprefix("\n") for a, b in pairwise([0, *breaks, len(line)])]
        sure = [bool(part.strip()) and part in known for part in parts]
        ends = [at for number, at in enumerate(breaks) if sure[number] or sure[number + 1]]
        for first, last in pairwise([0, *ends, len(line)]):
            found.update(start + first + at for at in _in_strings(line[first:last], kinds) if at or not first)
        start += len(line) + 1
    return found


def _in_strings(line: str, kinds: frozenset[str]) -> Iterator[int]:
    breaks = [match.start() for match in _ESCAPE.finditer(line) if match[1] in "nr"]
    edges = [0, *(at + 2 for at in breaks)]
    parts = [line[start:end] for start, end in zip(edges, [*breaks, len(line)], strict=True)]
    if sum(map(bool, map(_REMARK.match, parts))) > 1:
        parts = [_REMARK.sub("", part) for part in parts]
    odd = [_odd_quotes(part, kinds) for part in parts]
    closing = _closing(parts)
    is_open = ""
    for number, at in enumerate(breaks):
        is_open = _toggled(is_open, odd[number]) if is_open or _opens(parts[number], odd[number][:1]) else ""
        is_soon_closed = is_open and any(is_open in later for later in odd[number + 1 : number + 1 + MAX_PARTS])
        if is_soon_closed or (is_open and is_open in closing[number + 1]):
            yield at
        else:
            is_open = ""


def _closing(parts: Sequence[str]) -> list[str]:
    """For each part the quotes that end a string where they come next, in it or behind it: with nothing or no blank
    before them and no word after."""
    found = [""] * (len(parts) + 1)
    for number in range(len(parts) - 1, -1, -1):
        bare = _ESCAPE.sub("", parts[number])
        for quote in "\"'":
            before, is_there, after = bare.partition(quote)
            found[number] += quote if (_ends(before, after) if is_there else quote in found[number + 1]) else ""
    return found


def _ends(before: str, after: str) -> bool:
    return before[-1:] not in (" ", *"([{=,:+") and not after[:1].isalnum()


def _opens(part: str, quote: str) -> bool:
    """Whether the last ``quote`` of a part may open a string; that of ``END;';`` closes what began before."""
    before, _, after = _ESCAPE.sub("", part).rpartition(quote) if quote else ("", "", "")
    return not before or not _ends(before, after) or _PREFIX.search(before) is not None


def _are_pairs(text: str) -> bool:
    """Whether all escaped quotes stand around something, and not in a string of other quotes."""
    if _QUOTE in _PAIR.sub("", text):
        return False
    lines = (line[: match.start()] for line in text.split("\n") for match in _PAIR.finditer(line))
    return all(head.count("'") % 2 == 0 == head.count("`") % 2 for head in lines)


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
