"""Text from outside made safe to look at: nothing in it can hide, move the cursor or reorder what is read.

Source of the list of bidirectional controls: CVE-2021-42574 (Trojan Source).
"""

from __future__ import annotations

import json
import re

_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_RAW_BYTES = range(0xDC80, 0xDD00)
"""How Python spells the bytes of a file name that is not UTF-8 (PEP 383)."""


def visible(text: str, keep: str = "") -> str:
    """``text`` with control, invisible and surrogate characters spelled out, except those in ``keep``."""
    return _HIDDEN.sub(lambda match: match[0] if match[0] in keep else _spelled(ord(match[0])), text)


def visible_json(value: object, indent: int | None = None) -> str:
    """``value`` as JSON in which nothing is hidden: other characters than ASCII stay, those that hide are escaped."""
    return _HIDDEN.sub(_escaped, json.dumps(value, ensure_ascii=False, indent=indent))


def encodable(text: str) -> str:
    """``text`` as it can always be written as UTF-8: surrogate pairs are joined, lone surrogates become U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}"


def _spelled(code: int) -> str:
    if code in _RAW_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
