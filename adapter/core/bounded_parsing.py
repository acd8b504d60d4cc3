"""Parse untrusted TOML and JSON within limits on size and depth, and write TOML literals.

Invalid text, and text beyond a limit, raises ValueError.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from adapter.core.errors import FormatError
from adapter.core.json.strict import decode_shallow

MAX_TOML = 1_000_000
"""Maximum length of TOML text, in characters."""
MAX_DOTS = 1_000
"""Maximum number of dots in a line of TOML. Parsing a dotted key takes time quadratic in its number of dots."""
MAX_DOT_PAIRS = 50_000_000
"""Maximum sum of the squared numbers of dots in all lines of TOML, which limits the parsing time of dotted keys."""
MAX_JSON = 16_000_000
"""Maximum length of JSON text, in characters or bytes."""
MAX_VALUES = 1_000_000
"""Maximum number of lists and objects in JSON text. Empty ones need 20 times as much memory as their text."""
MAX_DEPTH = 100
"""Maximum nesting of lists and objects."""
_COMMENTS = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML text. Raises ValueError if it is invalid or beyond the limits."""
    _check_length(len(text), MAX_TOML)
    dots = [line.count(".") for line in text.split("\n")]
    if max(dots) > MAX_DOTS or sum(count * count for count in dots) > MAX_DOT_PAIRS:
        raise ValueError(f"a line has {max(dots):,} dots, so its keys may be nested too deeply")
    values: dict[str, Any] = decode_shallow(tomllib.loads, text, MAX_DEPTH)
    return values


def parse_json(text: str | bytes) -> Any:
    """Parse JSON text. Raises ValueError if it is invalid or beyond the limits."""
    _check_length(len(text), MAX_JSON)
    count = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if count > MAX_VALUES:
        raise ValueError(f"the text has {count:,} lists and objects; the maximum is {MAX_VALUES:,}")
    return decode_shallow(json.loads, text, MAX_DEPTH)


def parse_json_with_comments(text: str | bytes) -> Any:
    """Parse JSON like `parse_json`, but allow comments and trailing commas, as in editor settings."""
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        from adapter.core.json.decode import decode_json

        settings = text if isinstance(text, str) else text.decode()
        try:
            decoded = decode_json(settings)
        except FormatError:
            raise error from None
        if not {"comment", "trailing-comma"}.issuperset(decoded.fixes) or not _COMMENTS.fullmatch(
            settings, decoded.end
        ):
            raise
        return decoded.value


def _check_length(length: int, most: int) -> None:
    if length > most:
        raise ValueError(f"the text has {length:,} characters; the maximum is {most:,}")


def format_toml_literal(value: object) -> str:
    """Return a TOML literal. TOML's basic strings have the same escapes as JSON's, except that DEL must be escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
