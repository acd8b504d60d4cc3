"""Parse arguments written without JSON's brackets.

::

    query=abc, limit=3            query: abc              "query": "abc", "limit": 3
    query="abc" limit=3           limit: 3                None, for a tool that needs no arguments

Only names of the tool's parameters begin a pair, so that ``FOO=1 make`` is a value. Other text is the value of the only
required parameter (or the only one) if that is a string.
"""

from __future__ import annotations

import re
from functools import lru_cache

from adapter.core.events import JsonObject
from adapter.core.json.strict import DecodedJson, decode_strict
from adapter.tools.coercion import coerce_text, list_types
from adapter.tools.tool import Tool

_NOTHING = frozenset({"", "none", "null", "n/a", "na", "-", "()", "nothing", "empty", "no input", "no arguments"})
TYPE_NAMES = frozenset(
    {"string", "str", "integer", "int", "number", "float", "boolean", "bool", "array", "list", "object", "dict"}
)
"""Values that describe a parameter, such as ``query: string``."""
_SINGLE_QUOTED = re.compile(r"'([^'\n]*)'")
_WITHOUT_ESCAPES = re.compile(r'"([^"\n]*)"')


def parse_plain_arguments(text: str, tool: Tool) -> tuple[JsonObject, str] | None:
    """Return the arguments in ``text`` and the repair, or None if the text could mean something else."""
    text = text.strip()
    if len(text) > 2 and text[0] == text[-1] == "`" and text.count("`") == 2:
        text = text[1:-1].strip()
    if text.lower() in _NOTHING:
        return None if tool.required else ({}, "no-arguments")
    pairs = _split_pairs(text, tool)
    if pairs != {}:
        return None if pairs is None else (pairs, "plain-arguments")
    key = _find_only_text_parameter(tool)
    if not key or "\n" in text:
        return None
    is_quoted = text[:1] == '"' == text[-1:] and text.count('"') == 2
    return {key: text[1:-1] if is_quoted else text}, "positional-arguments"


def _find_only_text_parameter(tool: Tool) -> str:
    """Return the only required parameter, or the only one, if it is a string, or ""."""
    keys = tool.required or tuple(tool.properties)
    is_text = len(keys) == 1 and "string" in list_types(tool.properties.get(keys[0], {}))
    return keys[0] if is_text else ""


def _split_pairs(text: str, tool: Tool) -> JsonObject | None:
    """Return the values by parameter, {} if ``text`` does not begin with a parameter's name, or None if a name occurs
    twice or precedes a type instead of a value."""
    pairs: JsonObject = {}
    separator, after_literal = _compile_separators(tuple(tool.properties))
    text = "\n" + text
    match = separator.match(text)
    while match is not None:
        key, start = match["key"], match.end()
        if key in pairs:
            return None
        literal = _decode_literal(text, start)
        following = after_literal.match(text, literal.end) if literal is not None else None
        if literal is not None and (following or not text[literal.end :].strip()):
            pairs[key] = literal.value
        else:
            following = separator.search(text, start)
            value = text[start : following.start() if following else None].strip()
            if value in TYPE_NAMES:
                return None
            pairs[key] = coerce_text(value, tool.properties[key])
        match = following
    return pairs


@lru_cache(maxsize=256)
def _compile_separators(keys: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return two patterns for the text before a value: a line break or comma, one of ``keys``, and ``=`` or a colon.
    The second, for text after a literal, also accepts a space as the separator."""
    names = "|".join(map(re.escape, sorted(keys, key=len, reverse=True))) or "(?!)"
    pair = rf"\s{{0,9}}(?:[-*]\s)?(?P<quote>[\"'`]?)(?P<key>{names})(?P=quote)\s?(?:=(?!=)|:)\s{{0,9}}"
    return re.compile(rf"\s{{0,9}}[,;\n]{pair}"), re.compile(rf"(?:\s{{0,9}}[,;\n]|\s){pair}")


def _decode_literal(text: str, start: int) -> DecodedJson | None:
    """Decode a string, list or object at ``start``."""
    match = _SINGLE_QUOTED.match(text, start)
    if match is not None:
        return DecodedJson(match[1], match.end(), ())
    value = decode_strict(text, start) if text[start : start + 1] in ('"', "[", "{") else None
    literal = _WITHOUT_ESCAPES.match(text, start)  # a Windows path
    return DecodedJson(literal[1], literal.end(), ()) if value is None and literal else value
