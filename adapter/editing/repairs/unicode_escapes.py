r"""Convert special characters in a patch to the document's spelling: escaped (``\u2019``) or literal."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

_CONTROL = "".join(map(chr, (*range(9), 11, 12, *range(14, 32), 127)))
_SPECIAL = re.compile(rf"[{re.escape(_CONTROL)}\x80-\uffff]")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
UNICODE_NOTE = "characters were written as in the file, as escapes or as they are"


def match_unicode_escapes(old: str, new: str, view: str) -> tuple[str, str] | None:
    """Return both texts with special characters written as in the document ``view``: escaped, or not. Return None if no
    line has to change.

    A line of the old text is changed only if the document contains it with the other spelling, and not as written. If
    all old lines with special characters are changed, lines that only the new text has are changed as well.
    """
    characters = {*_SPECIAL.findall(old), *_CONTROL}
    if "\\u" not in old and (not _SPECIAL.search(old) or "\\u" not in view):
        return None
    lines = old.split("\n")
    forms: list[Callable[[str], str]] = [partial(_escape, characters, spelling) for spelling in ("04x", "04X")]
    for form in (*forms, _unescape):
        changed = {
            line: other
            for line in lines
            if (other := form(line)) != line and line.strip() not in view and other.strip() in view
        }
        if changed:
            is_everywhere = all(line in changed for line in lines if form(line) != line)
            written = (changed.get(line, form(line) if is_everywhere else line) for line in new.split("\n"))
            return "\n".join(changed.get(line, line) for line in lines), "\n".join(written)
    return None


def _escape(characters: set[str], spelling: str, text: str) -> str:
    return "".join(f"\\u{ord(one):{spelling}}" if one in characters else one for one in text)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
