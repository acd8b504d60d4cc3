"""Parse arguments that are written without the brackets of JSON.

::

    query=abc, limit=3            query: abc              "query": "abc", "limit": 3
    query="abc", limit=3          limit: 3                None, for a tool that needs no arguments

Only names of the tool's parameters begin a pair, so that ``FOO=1 make`` is a value. Other text is the argument of a
tool with only one parameter that must be given, a string.
"""

from __future__ import annotations

import re
from functools import lru_cache

from adapter.core.events import Json
from adapter.core.json.strict import DecodedJson, decode_strict
from adapter.parsing.bodies.argument_collection import PendingCall
from adapter.parsing.format import TEXT, BodyResult
from adapter.tools.call_shapes import DecodedCall
from adapter.tools.coercion import list_types
from adapter.tools.tool import Tool

_NOTHING = frozenset({"", "none", "null", "n/a", "na", "-", "()", "nothing", "empty", "no input", "no arguments"})
_SINGLE_QUOTED = re.compile(r"'([^'\n]*)'")


def read_plain_arguments(text: str, name: str, tool: Tool) -> BodyResult:
    """Return the call of ``name`` with the arguments in ``text``, or `TEXT` if they could mean something else."""
    text = text.strip()
    if len(text) > 2 and text[0] == text[-1] == "`" and text.count("`") == 2:
        text = text[1:-1].strip()
    if text.lower() in _NOTHING:
        return TEXT if tool.required else BodyResult((DecodedCall(name, {}),), ("no-arguments",))
    pairs = _split_pairs(text, tool)
    if pairs:
        call = PendingCall(name, tool)
        for key, value in pairs:
            if isinstance(value, str):
                call.add_text(key, value)
            else:
                call.add_value(key, value)
        return call.build_result("plain-arguments")
    key = _find_only_text_parameter(tool)
    if not key or "\n" in text:
        return TEXT
    value = text[1:-1] if text[:1] == '"' == text[-1:] and text.count('"') == 2 else text
    return BodyResult((DecodedCall(name, {key: value}),), ("positional-arguments",))


def _find_only_text_parameter(tool: Tool) -> str:
    """Return the parameter that text without a name can only be: the single one that must be given, a string."""
    keys = tool.required or tuple(tool.properties)
    is_text = len(keys) == 1 and "string" in list_types(tool.properties.get(keys[0], {}))
    return keys[0] if is_text else ""


def _split_pairs(text: str, tool: Tool) -> list[tuple[str, Json]]:
    """Return the pairs of parameters and values; none if ``text`` does not begin with one, or repeats a parameter."""
    if not tool.properties:
        return []
    separator = _compile_separator(tuple(tool.properties))
    pairs: list[tuple[str, Json]] = []
    text = "\n" + text
    match = separator.match(text)
    while match is not None:
        start = match.end()
        decoded = _decode_literal(text, start)
        following = separator.match(text, decoded.end) if decoded is not None else None
        if decoded is not None and (following or not text[decoded.end :].strip()):
            pairs.append((match["key"], decoded.value))
        else:
            following = separator.search(text, start)
            pairs.append((match["key"], text[start : following.start() if following else None].strip()))
        match = following
    return pairs if len({key for key, _ in pairs}) == len(pairs) else []


@lru_cache(maxsize=256)
def _compile_separator(keys: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern of the text between two values, which begins with a line break or a comma."""
    names = "|".join(map(re.escape, sorted(keys, key=len, reverse=True)))
    return re.compile(
        rf"\s{{0,9}}[,;\n]\s{{0,9}}(?:[-*]\s)?(?P<quote>[\"'`]?)(?P<key>{names})(?P=quote)\s?(?:=(?!=)|:)\s{{0,9}}"
    )


def _decode_literal(text: str, start: int) -> DecodedJson | None:
    """Decode a string, list or object at ``start``."""
    match = _SINGLE_QUOTED.match(text, start)
    if match is not None:
        return DecodedJson(match[1], match.end(), ())
    return decode_strict(text, start) if text[start : start + 1] in ('"', "[", "{") else None
