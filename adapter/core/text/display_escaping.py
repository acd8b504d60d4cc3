"""Text from outside made safe to look at: nothing in it can hide, move the cursor or reorder what is read.

What hides is told by Unicode's own properties, not by a list: controls (Cc), formats (Cf: directions, zero width,
tags), surrogates, separators of lines, and whatever fonts leave out (Default_Ignorable_Code_Point: fillers, selectors);
and the blank of Braille. Emoji that are written as several characters stay, where these are the one sign that is seen.
Sources: UAX #44; UTS #51, ED-16 and ED-17; CVE-2021-42574 (Trojan Source).
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

MAX_BLANKS = 60
"""Blanks in a row that a question shows as they are: more move what comes after them out of sight."""
MAX_EMPTY_LINES = 3
"""Likewise, of lines."""
_CONTROLS = re.compile("[\x00-\x1f\x7f]")
_HIDDEN = r"[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]"
_PICTURE = r"\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})?"
_COUNTRY = "|".join("".join(chr(0xE0000 + ord(letter)) for letter in name) for name in ("gbeng", "gbsct", "gbwls"))
_EMOJI = rf"[0-9#*]\ufe0f\u20e3|\U0001f3f4(?:{_COUNTRY})\U000e007f|{_PICTURE}(?:\u200d{_PICTURE}){{0,5}}"
_RAW_BYTES = range(0xDC80, 0xDD00)
"""How Python spells the bytes of a file name that is not UTF-8 (PEP 383)."""
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""What a backslash begins in JSON: a pair of surrogates, in group 1 a lone one, or anything else."""
_BLANKS = re.compile(rf"[^\S\n]{{{MAX_BLANKS + 1},}}")
_EMPTY_LINES = re.compile(rf"\n(?:[ +-]?[^\S\n]*\n){{{MAX_EMPTY_LINES + 1},}}")


def escape_for_display(text: str, keep: str = "") -> str:
    """``text`` with control, invisible and surrogate characters spelled out, except those in ``keep``."""
    if text.isascii():
        return _CONTROLS.sub(lambda match: match[0] if match[0] in keep else _spelled(ord(match[0])), text)
    return _shown().sub(
        lambda match: match[0] if match[1] is None or match[1] in keep else _spelled(ord(match[1])), text
    )


def json_for_display(value: object, indent: int | None = None) -> str:
    """``value`` as JSON in which nothing is hidden: other characters than ASCII stay, those that hide are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _shown().sub(
        lambda match: match[0] if match[1] is None or match[1] == "\n" else json.dumps(match[1])[1:-1], text
    )


def collapse_blanks(text: str) -> str:
    """``text`` with long runs of blanks and of empty lines told as counts, for a question whose end has to be seen."""
    text = _EMPTY_LINES.sub(lambda match: f"\n[... {match[0].count(chr(10)) - 1} empty lines ...]\n", text)
    return _BLANKS.sub(lambda match: f" [... {len(match[0])} blanks ...] ", text)


def replace_lone_surrogates(text: str) -> str:
    """``text`` as it can always be written as UTF-8: surrogate pairs are joined, lone surrogates become U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def encodable_json(text: str) -> str:
    """JSON for those who take no lone surrogates: their escapes become that of U+FFFD, as in `encodable`."""
    return _ESCAPE.sub(lambda match: r"\ufffd" if match[1] else match[0], text)


@cache
def _shown() -> regex.Pattern[str]:
    """An emoji, or in group 1 a character that hides."""
    import regex

    return regex.compile(f"{_EMOJI}|({_HIDDEN})")


def _spelled(code: int) -> str:
    if code in _RAW_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
