"""Escape untrusted text for display, so that it cannot hide or reorder characters or move the cursor.

Hidden characters are identified by Unicode properties: controls (Cc), formats (Cf: directions, zero width, tags),
surrogates, line separators, characters that fonts omit (Default_Ignorable_Code_Point: fillers, selectors), and the
Braille blank. Character sequences that display as one emoji are unchanged. Sources: UAX #44; UTS #51, ED-16 and ED-17;
CVE-2021-42574 (Trojan Source).
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

MAX_BLANKS = 60
"""Maximum number of consecutive whitespace characters shown verbatim in an approval request. More could push the text
after them off the screen."""
MAX_EMPTY_LINES = 3
"""Maximum number of consecutive empty lines shown verbatim in an approval request."""
_CONTROLS = re.compile("[\x00-\x1f\x7f]")
_HIDDEN = r"[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]"
_PICTURE = r"\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})?"
_COUNTRY = "|".join("".join(chr(0xE0000 + ord(letter)) for letter in name) for name in ("gbeng", "gbsct", "gbwls"))
_EMOJI = rf"[0-9#*]\ufe0f\u20e3|\U0001f3f4(?:{_COUNTRY})\U000e007f|{_PICTURE}(?:\u200d{_PICTURE}){{0,5}}"
_RAW_BYTES = range(0xDC80, 0xDD00)
"""Surrogates with which Python represents the bytes of a file name that is not UTF-8 (PEP 383)."""
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Matches a JSON escape: a surrogate pair, a lone surrogate (group 1), or another escape."""
_BLANKS = re.compile(rf"[^\S\n]{{{MAX_BLANKS + 1},}}")
_EMPTY_LINES = re.compile(rf"\n(?:[ +-]?[^\S\n]*\n){{{MAX_EMPTY_LINES + 1},}}")


def escape_for_display(text: str, keep: str = "") -> str:
    """Escape control, invisible and surrogate characters in ``text``, except the characters in ``keep``."""
    if text.isascii():
        return _CONTROLS.sub(lambda match: match[0] if match[0] in keep else _escape_character(ord(match[0])), text)
    return _compile_hidden_pattern().sub(
        lambda match: match[0] if match[1] is None or match[1] in keep else _escape_character(ord(match[1])), text
    )


def dump_for_display(value: object, indent: int | None = None) -> str:
    """Dump ``value`` as JSON with hidden characters escaped. Other non-ASCII characters are unchanged."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _compile_hidden_pattern().sub(
        lambda match: match[0] if match[1] is None or match[1] == "\n" else json.dumps(match[1])[1:-1], text
    )


def collapse_blanks(text: str) -> str:
    """Replace long runs of whitespace or empty lines with their length, so that an approval request cannot hide its
    end."""
    text = _EMPTY_LINES.sub(lambda match: f"\n[... {match[0].count(chr(10)) - 1} empty lines ...]\n", text)
    return _BLANKS.sub(lambda match: f" [... {len(match[0])} blanks ...] ", text)


def replace_lone_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates with U+FFFD, so that ``text`` can be encoded as UTF-8."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def replace_surrogates_in_json(text: str) -> str:
    """Replace escaped lone surrogates in JSON text with an escaped U+FFFD."""
    return _ESCAPE.sub(lambda match: r"\ufffd" if match[1] else match[0], text)


@cache
def _compile_hidden_pattern() -> regex.Pattern[str]:
    """Return a pattern that matches an emoji, or a hidden character as group 1."""
    import regex

    return regex.compile(f"{_EMOJI}|({_HIDDEN})")


def _escape_character(code: int) -> str:
    if code in _RAW_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
