r"""Undo one superfluous level of escaping, only as far as the old text requires it.

A model that escapes its line breaks may have intended the ``\n`` in a string. Therefore, each subset of the kinds of
escapes in the old text gives one interpretation of both texts, the smallest subset first, and the document decides.
Escapes that only the new text has are kept, unless both texts look entirely like the inside of a JSON string.
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
_OF_JSON = frozenset(_KIND.values()) - {"slant"}
"""Kinds of escapes that JSON encoders write, except escaped slashes, which regular expressions contain."""
MAX_KINDS = 3
"""Maximum number of kinds of escapes for which all subsets are tried. If there are more, each kind is tried alone, and
then all kinds together."""
MAX_INDENT = 80
"""Maximum width of an indentation that is compared, in spaces and tabs."""
MAX_PARTS = 3
"""Maximum number of line breaks in a string if its closing quote may also open another string."""

_QUOTED = re.compile(r'"""|\'\'\'|\'"\'|"\'"')
"""Matches quotes of multi-line strings, and a quote in quotes."""
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
_VIM_COMMENT = re.compile(r'\s*"(?= \w)')
"""Matches the start of a comment in Vim's script language."""
_PREFIX = re.compile(r"(?<!\w)[a-zA-Z]{1,2}$")
"""Matches the prefix of a string, as in ``f"..."``."""
_PATTERN = re.compile(r"(?:(?<=[(\[^])|(?<=[ (=,:]/))(?:\\[nr])+(?:\|(?:\\[nr])+)*(?=[)\]|*+?]|/(?![/*]))")
r"""Matches line breaks in a regular expression, as in ``[^\n]`` and ``(\r\n|\n)``."""
_WINDOWS_PATH = re.compile(r"(?<![\w\\])[a-zA-Z]:(?:\\\w[\w.-]+){2,}")
_DOUBLED = re.compile(r"\\\\[nrt]")
_ESCAPED_LEAD = re.compile(r"(\\[nr])(?:\\t)+")
_PAIR = re.compile(r'(?<!\w)\\"[^"\\\n]*\\"(?!\w)')
_QUOTE = '\\"'
_MARKUP = "&<>\"'"
QUOTES_NOTE = "backslashes before quotes were removed from the new text"
ENTITIES_NOTE = "HTML entities in the new text were unescaped"


def undo_double_escaping(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield the possible ways to unescape both texts, the most cautious first."""
    if _WINDOWS_PATH.search(new) and not _WINDOWS_PATH.search(old):  # then the new text is not escaped, or partly
        if _ESCAPE.search(_WINDOWS_PATH.sub("", new)) is None:
            yield _unescape(old, _OF_JSON, True), new
        return
    found_kinds = sorted({_KIND[match[1]] for match in _ESCAPE.finditer(old) if match[1] in _KIND})
    sizes = range(1, len(found_kinds) + 1) if len(found_kinds) <= MAX_KINDS else (1, len(found_kinds))
    is_json = _is_json(old) and _is_json(new)
    is_quoted = is_json and '"' in old + new  # then line breaks in strings are escaped twice
    is_doubtful = bool(found_kinds) and not is_json and _is_doubled(new) and "\\\\" not in old
    has_doubtful_break = _has_doubtful_break(old, new, frozenset(found_kinds))
    for size in sizes:
        for some in combinations(found_kinds, size):
            kinds = frozenset(some)
            if is_doubtful and "break" in kinds:
                continue  # two backslashes may be intended, or the whole text may be escaped
            new_kinds = _OF_JSON | kinds if is_json and size == len(found_kinds) else kinds
            if "break" in kinds and has_doubtful_break:
                continue
            if "break" in kinds and "tab" not in found_kinds and _has_escaped_indentation(new):
                new_kinds |= {"tab"}
            for in_strings in (True,) if is_quoted and size == len(found_kinds) else (False, True):
                unescaped_old = _unescape(old, kinds, in_strings)
                yield unescaped_old, _unescape(new, new_kinds, in_strings, frozenset(unescaped_old.split("\n")))


def _has_doubtful_break(old: str, text: str, kinds: frozenset[str]) -> bool:
    r"""Return whether each ``\n`` in quotes is between equally indented lines. It may then be a real line break."""
    if "break" not in kinds:
        return False
    protected = _breaks_in_strings(text, kinds, frozenset(_unescape(old, kinds, False).split("\n")))
    indents: list[tuple[str, str]] = []
    start = 0
    for match in _ESCAPE.finditer(text):
        if match[1] == "n" and match.start() in protected:
            indents.append((_get_blanks(text, start), _get_blanks(text, match.end())))
        elif match[1] == "n":
            start = match.end()
    return bool(indents) and all(len(indent) > 1 and indent == below for indent, below in indents)


def _get_blanks(text: str, start: int) -> str:
    rest = text[start : start + MAX_INDENT]
    return rest[: len(rest) - len(rest.lstrip(" \t"))]


def _has_escaped_indentation(text: str) -> bool:
    r"""Return whether ``\t`` at the start of lines is the only escaped letter except line breaks."""
    rest = _ESCAPED_LEAD.sub(r"\1", text)
    return rest != text and all(match[1] in "nr" or not match[1].isalpha() for match in _ESCAPE.finditer(rest))


def _is_doubled(text: str) -> bool:
    """Return whether all line breaks in strings are written with two backslashes."""
    return _DOUBLED.search(text) is not None and not _breaks_in_strings(text, frozenset(["break"]), frozenset())


def unescape_new_text(old: str, new: str, view: str) -> tuple[str, str] | None:
    """Undo escapes that only the new text has. Return the new text and a note, or None if there are no such escapes.

    All double quotes of the new text, or all its HTML special characters, must be escaped. The old text must have none
    of these characters. The document must have none of them escaped, and must not be markup. If the old text occurs
    verbatim, the new text is assumed to be intended as written.
    """
    is_alone = _ESCAPE.search(old) is None or not (_is_json(old) and _is_json(new))
    if is_alone and '"' not in old and _QUOTE in new and _QUOTE not in view and '"' not in new.replace(_QUOTE, ""):
        is_slip = old not in view and ('"' in view or _are_pairs(new))
        return (new.replace(_QUOTE, '"'), QUOTES_NOTE) if is_slip else None
    unescaped = html.unescape(new)
    if unescaped == new or html.escape(unescaped) != new or any(mark in old for mark in _MARKUP):
        return None
    return None if "&" in view or "</" in view or old in view else (unescaped, ENTITIES_NOTE)


def _unescape(text: str, kinds: frozenset[str], in_strings: bool, known_lines: frozenset[str] = frozenset()) -> str:
    """Undo these ``kinds`` of escapes. Line breaks in strings and regular expressions stay escaped, unless
    ``in_strings`` is true or they are next to one of ``known_lines``, the lines of the unescaped old text."""
    protected = set() if in_strings or "break" not in kinds else _breaks_in_strings(text, kinds, known_lines)
    for lead in _ESCAPED_LEAD.finditer(text):
        if lead.start() in protected:
            protected.update(range(*lead.span(), 2))

    def unescape_match(match: re.Match[str]) -> str:
        if _KIND.get(match[1]) not in kinds or match.start() in protected:
            return match[0]
        return _PLAIN.get(match[1], match[1])

    return _ESCAPE.sub(unescape_match, text)


def _breaks_in_strings(text: str, kinds: frozenset[str], known_lines: frozenset[str]) -> set[int]:
    r"""Return the offsets of ``\n`` and ``\r`` in regular expressions and in strings, that is, after an odd number of
    quotes. Line breaks next to ``known_lines`` are not in strings."""
    offsets = {at for pattern in _PATTERN.finditer(text) for at in range(*pattern.span())}
    start = 0
    for line in text.split("\n"):
        breaks = [match.start() for match in _ESCAPE.finditer(line) if match[1] in "nr"]
        parts = [_unescape(line[a:b], kinds, True).removeprefix("\n") for a, b in pairwise([0, *breaks, len(line)])]
        is_known_line = [bool(part.strip()) and part in known_lines for part in parts]
        ends = [at for number, at in enumerate(breaks) if is_known_line[number] or is_known_line[number + 1]]
        for first, last in pairwise([0, *ends, len(line)]):
            offsets.update(start + first + at for at in _find_in_strings(line[first:last], kinds) if at or not first)
        start += len(line) + 1
    return offsets


def _find_in_strings(line: str, kinds: frozenset[str]) -> Iterator[int]:
    breaks = [match.start() for match in _ESCAPE.finditer(line) if match[1] in "nr"]
    edges = [0, *(at + 2 for at in breaks)]
    parts = [line[start:end] for start, end in zip(edges, [*breaks, len(line)], strict=True)]
    if sum(map(bool, map(_VIM_COMMENT.match, parts))) > 1:
        parts = [_VIM_COMMENT.sub("", part) for part in parts]
    odd = [_find_odd_quotes(part, kinds) for part in parts]
    closing = _find_closing_quotes(parts)
    is_open = ""
    for number, at in enumerate(breaks):
        is_open = _toggle_quote(is_open, odd[number]) if is_open or _may_open(parts[number], odd[number][:1]) else ""
        is_soon_closed = is_open and any(is_open in later for later in odd[number + 1 : number + 1 + MAX_PARTS])
        if is_soon_closed or (is_open and is_open in closing[number + 1]):
            yield at
        else:
            is_open = ""


def _find_closing_quotes(parts: Sequence[str]) -> list[str]:
    """For each part, return the kinds of quotes that may close a string when they occur next."""
    found = [""] * (len(parts) + 1)
    for number in range(len(parts) - 1, -1, -1):
        plain = _ESCAPE.sub("", parts[number])
        for quote in "\"'":
            before, is_there, after = plain.partition(quote)
            found[number] += quote if (_may_close(before, after) if is_there else quote in found[number + 1]) else ""
    return found


def _may_close(before: str, after: str) -> bool:
    return before[-1:] not in (" ", *"([{=,:+") and not after[:1].isalnum()


def _may_open(part: str, quote: str) -> bool:
    """Return whether a part's last ``quote`` may open a string, unlike the quote in ``END;';``."""
    before, _, after = _ESCAPE.sub("", part).rpartition(quote) if quote else ("", "", "")
    return not before or not _may_close(before, after) or _PREFIX.search(before) is not None


def _are_pairs(text: str) -> bool:
    """Return whether all escaped quotes form pairs outside strings with another kind of quotes."""
    if _QUOTE in _PAIR.sub("", text):
        return False
    lines = (line[: match.start()] for line in text.split("\n") for match in _PAIR.finditer(line))
    return all(head.count("'") % 2 == 0 == head.count("`") % 2 for head in lines)


def _find_odd_quotes(part: str, kinds: frozenset[str]) -> str:
    """Return the kinds of quotes that occur an odd number of times in ``part``, ignoring quotes that remain escaped."""
    unescaped = part if "quote" in kinds else _ESCAPE.sub("", part)
    plain = _APOSTROPHE.sub("", _QUOTED.sub("", unescaped))
    return "".join(quote for quote in "\"'" if plain.count(quote) % 2)


def _toggle_quote(is_open: str, odd: str) -> str:
    """Return the quote that is open after a part with the ``odd`` quotes. ``is_open`` is the quote that is open before
    the part."""
    if is_open:
        return "" if is_open in odd else is_open
    return odd[:1]


def _is_json(text: str) -> bool:
    """Return whether ``text`` is valid inside a JSON string."""
    if "\\" not in text and '"' not in text and "\n" not in text:
        return True
    try:
        json.loads(f'"{text}"')
    except ValueError:
        return False
    return True
