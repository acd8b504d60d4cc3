"""JSON as models write it: strict first, then a tolerant reading that names each fix.

Valid JSON is never touched, and does not load the tolerant reader.
"""

from __future__ import annotations

import json
import re

from adapter.core.errors import FormatError
from adapter.core.json.strict import (
    DecodedJson,
    UnterminatedError,
    decode_strict,
    excerpt,
    is_encodable,
    replace_surrogates,
)

_BETWEEN = re.compile(r"(?:[ \t\r\n\ufeff\u200b\u2060,;}\]]|```[A-Za-z]*)*")


def decode_json(text: str, start: int = 0, *, closed: bool = True) -> DecodedJson:
    """The JSON value at ``start``, mended where that is certain.

    ``closed``: the value's end is known from outside (a closing marker), so that
    missing closing brackets may be added. Raises FormatError with the reason and
    the place; UnterminatedError when the text ends inside a string.
    """
    decoded = decode_strict(text, start)
    if decoded is not None:
        return decoded
    from adapter.core.json.repair import JsonRepairer

    reader = JsonRepairer(text, start, closed)
    value = reader.value(0)
    if not closed and {"unescaped-quote", "missing-bracket"} <= reader.fixes.keys():
        # A cut text whose strings are read out of step looks just like this.
        raise UnterminatedError("brackets are missing after a stray quote")
    if not is_encodable(json.dumps(value, ensure_ascii=False)):
        value = replace_surrogates(value)
        reader.fix("lone-surrogate")
    return DecodedJson(value, reader.position, tuple(reader.fixes))


def decode_values(text: str, *, closed: bool = True) -> tuple[list[DecodedJson], tuple[str, ...]]:
    """All JSON values in ``text``, one after the other, and the fixes between them.

    Code fences around them, commas or semicolons between them and closing
    brackets that close nothing are passed over. Raises FormatError when there is
    anything else, or no value at all.
    """
    values: list[DecodedJson] = []
    fixes: dict[str, None] = {}
    position = 0
    while True:
        gap = _BETWEEN.match(text, position)
        assert gap is not None  # the pattern matches the empty string
        if "```" in gap.group():
            fixes["code-fence"] = None
        if values and ("}" in gap.group() or "]" in gap.group()):
            fixes["extra-bracket"] = None
        position = gap.end()
        if position >= len(text):
            break
        if text[position] not in "{[":
            raise FormatError(f"expected a JSON object, got {excerpt(text, position)}")
        values.append(decode_json(text, position, closed=closed))
        position = values[-1].end
    if not values:
        raise FormatError("expected a JSON object, got nothing")
    return values, tuple(fixes)
