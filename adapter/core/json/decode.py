"""Decode JSON written by models. Invalid JSON is repaired, and each repair is named.

The repairer is imported only for invalid JSON.
"""

from __future__ import annotations

import json
import re

from adapter.core.errors import FormatError
from adapter.core.json.strict import (
    DecodedJson,
    UnterminatedError,
    decode_strict,
    is_encodable,
    quote_excerpt,
    replace_surrogates,
)

_BETWEEN = re.compile(r"(?:[ \t\r\n\ufeff\u200b\u2060,;}\]]|```[A-Za-z]*)*")
_REGROUPS = frozenset({"unescaped-quote", "missing-bracket", "missing-comma", "single-quotes", "unquoted-key"})
"""Repairs that may put a key and its value into the wrong object, or into a string."""
_MEMBER = re.compile(r"\"?([\w.-]+)\"\s*:")
"""Matches a key and its colon. Directly after an object, they show that the object was closed too early."""


def decode_json(text: str, start: int = 0, *, closed: bool = True) -> DecodedJson:
    """Decode the JSON value at ``start``. Invalid JSON is repaired if the repair is unambiguous.

    ``closed``: whether a closing marker ends the value, so that missing closing brackets may be added. Raises
    FormatError with the reason and position, or UnterminatedError if the text ends inside a value.
    """
    decoded = decode_strict(text, start)
    if decoded is not None:
        return decoded
    from adapter.core.json.repair import JsonRepairer

    reader = JsonRepairer(text, start, closed)
    value = reader.parse_value(0)
    if not closed and {"unescaped-quote", "missing-bracket"} <= reader.fixes.keys():
        # Truncated text would cause the same two repairs if its quotes were paired wrongly.
        raise UnterminatedError("brackets are missing after a stray quote")
    if reader.repeated_key is not None and not _REGROUPS.isdisjoint(reader.fixes):
        raise FormatError(f"one object has two values for {reader.repeated_key!r}: a bracket or a quote is missing")
    if not is_encodable(json.dumps(value, ensure_ascii=False)):
        value = replace_surrogates(value)
        reader.fix("lone-surrogate")
    return DecodedJson(value, reader.position, tuple(reader.fixes))


def decode_values(text: str, *, closed: bool = True) -> tuple[list[DecodedJson], tuple[str, ...]]:
    """Decode all consecutive JSON values in ``text``. Return the values, and the repairs between them.

    Code fences, commas and semicolons around the values, and unmatched closing brackets, are skipped. Raises
    FormatError for any other text, or if there is no value.
    """
    values: list[DecodedJson] = []
    fixes: dict[str, None] = {}
    position = 0
    if (inner := text.rstrip()).endswith("```") and inner[:-3].rstrip(" \t").endswith("\n"):
        text, fixes["code-fence"] = inner[:-3], None  # these backticks do not begin a string
    while True:
        gap = _BETWEEN.match(text, position)
        assert gap is not None  # the pattern also matches an empty string
        if "```" in gap.group():
            fixes["code-fence"] = None
        if values and ("}" in gap.group() or "]" in gap.group()):
            fixes["extra-bracket"] = None
        position = gap.end()
        if position >= len(text):
            break
        if values and (member := _MEMBER.match(text, position)):
            raise FormatError(f"an object is closed before {member[1]!r}")
        if text[position] not in "{[":
            raise FormatError(f"expected a JSON object, got {quote_excerpt(text, position)}")
        values.append(decode_json(text, position, closed=closed))
        position = values[-1].end
    if not values:
        raise FormatError("expected a JSON object, got nothing")
    return values, tuple(fixes)
