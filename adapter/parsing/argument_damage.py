"""Find arguments that a lost or extra character has damaged. The model then gets an error, and the tool is not run with
wrong values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.decode import decode_values
from adapter.core.text.truncate import shorten
from adapter.tools.coercion import (
    find_member_schema,
    is_instance_of_types,
    list_item_schemas,
    list_required,
    list_types,
)
from adapter.tools.schema_refs import expand_schema
from adapter.tools.tool import Tool

_CONTAINERS = frozenset({"array", "object", "null"})
_SIGNS = frozenset('{}[]":')
_RESHAPING = frozenset({
    *("unescaped-quote", "missing-bracket", "extra-bracket", "missing-comma", "unquoted-string", "joined-strings"),
    *("repeated-argument", "flat-arguments"),
})  # fmt: skip
"""Repairs that may move a value or change where it ends. They are trusted only if the result fits the tool's schema."""
UNCERTAIN_ENDS = frozenset({"missing-inner-tag", "unescaped-quote"})
"""Repairs of a missing tag or backslash. The end of the repaired value is only a guess."""
_DAMAGED_NAME = re.compile(r"\W*|\s.*|.*\s|'[^']*|[^']*'|.*[\\\n{}\[\],].*|.*\"\s*:.*", re.DOTALL)
"""Matches a key that cannot be an argument's name: one without letters, with a space or single quote at either end, or
with a bracket, comma, backslash or ``":`` inside."""
_QUOTE = r"(?:\"|<\|\"\|>|</?escape>)"
_BETWEEN_ITEMS = re.compile(rf"{_QUOTE}\s*+[^\w\s\"]*+\s*+{_QUOTE}")
_OPEN_QUOTE = re.compile(r"(?:<\|\"\|>|\W{1,2}escape|escape>)|[<|:]\S*?[>|:]")
_CLOSE_QUOTE = re.compile(r"(?:<\|\"\|>|</?escape>)\Z")
_TAG_PIECE = re.compile(
    r"[<＜\[]?[\\/]?[\w:：|｜]*(?:param|arg[_-]|argument|minimax)[\w:：|｜=.-]*\s*[>＞\]]|<\|(?:sep|close|open)\||[<＜\[][\\/]?\s*\Z"
    r"|(?:<[|｜][\\/]?|[|｜])[\w:]+[|｜]?>\w{0,20}\s*\Z"
)
"""Matches part of a tag around an argument, in the spelling of any format, such as ``<parameter=`` or
``</arg_value``, or a damaged control token at the end."""
_UNPAIRED_TAG = re.compile(
    r"\A<(?P<first>[a-z_]+)\S{0,60}?>|</\W{0,3}(?P<last>\w+)(?:\S|[|｜] ){0,60}\s*\Z|^[ \t]*<[|｜]?[\w|｜]*\Z",
    re.MULTILINE | re.IGNORECASE,
)
"""Matches an opening tag at the start of a value, or a closing tag or an incomplete tag at its end."""
_ADVICE = "Write the call again, complete."


def find_damage(tool: Tool, arguments: JsonObject, fixes: Set[str]) -> str:
    """Return an error message for the model if the arguments of a call of ``tool`` are damaged, or "". ``fixes`` are
    the codes of the repairs that the call needed."""
    if "flat-arguments" in fixes and arguments and tool.properties and not arguments.keys() & tool.properties.keys():
        return f"the call of {tool.name!r} has no arguments, but {shorten(', '.join(map(repr, arguments)), 100)}."
    if {"json-as-text", "unescaped-quote"} <= fixes:
        return f"the arguments of {tool.name!r} are damaged: a text is a list or an object after repairs. {_ADVICE}"
    return _find_damaged_member(arguments, tool.schema, fixes)


def _find_damaged_member(value: JsonObject, schema: Mapping[str, Json], fixes: Set[str]) -> str:
    is_reshaped = not fixes.isdisjoint(_RESHAPING)
    if "unescaped-quote" in fixes and (swallowed := _find_swallowed(value, schema)):
        return (
            f"a string contains {swallowed!r}, another argument: a quotation mark is missing or not escaped. {_ADVICE}"
        )
    properties = schema.get("properties") or {}
    for key, item in value.items():
        if not fixes and _is_plain(item, properties.get(key)):
            continue
        inner = expand_schema(find_member_schema(schema, key))
        is_odd = is_reshaped or key.count('"') % 2 or _DAMAGED_NAME.fullmatch(key)
        is_unknown = not inner and properties and key not in properties and not schema.get("additionalProperties")
        if is_unknown and is_odd:
            names = ", ".join(map(repr, properties))
            return f"{key!r} is not an argument here, so the call is damaged. Write it again with these names: {names}."
        parts, schemas = [item], [inner]
        if isinstance(item, list):
            parts, schemas = [*parts, *item], [*schemas, *map(expand_schema, list_item_schemas(inner, len(item)))]
        for each, inner in zip(parts, schemas, strict=True):
            if not fixes and _is_plain(each, inner):
                continue
            if is_reshaped and _misses_type(each, inner):
                return f"the argument {key!r} is damaged: after repairs, it is {shorten(repr(item), 80)}. {_ADVICE}"
            if isinstance(each, dict) and isinstance(inner, Mapping):
                if error := _find_damaged_member(each, inner, fixes):
                    return error
            elif isinstance(each, str) and (error := _explain_text(each, inner)):
                return f"the argument {key!r} is not valid JSON: {error}. {_ADVICE}"
            elif fixes and isinstance(each, str) and _is_part(each, fixes, is_item=each is not item):
                return f"the argument {key!r} contains part of its delimiters: {shorten(repr(each), 80)}. {_ADVICE}"
    return ""


def _is_plain(value: Json, schema: Json) -> bool:
    """Return whether ``value`` cannot be damaged if its call needed no repairs: it is a string where ``schema`` expects
    one, or a number, boolean or null with a declared type."""
    if not isinstance(schema, dict) or isinstance(value, list | dict):
        return False
    return not isinstance(value, str) or schema.get("type") == "string"


def _misses_type(value: Json, schema: Json) -> bool:
    """Return whether ``value`` has a type that ``schema`` does not allow, or lacks a required key."""
    types = list_types(schema)
    if types and not is_instance_of_types(value, types):
        return True
    return isinstance(value, dict) and any(key not in value for key in list_required(schema))


def _explain_text(text: str, schema: Json) -> str:
    """Return why ``text`` is not valid JSON, if ``schema`` allows only a list or an object. Return "" if the text is
    valid or ``schema`` also allows strings."""
    types = list_types(schema)
    if not types or not types <= _CONTAINERS or _SIGNS.isdisjoint(text):
        return ""
    try:
        values, _ = decode_values(text)
    except FormatError as error:
        return str(error)
    return "more text follows it" if len(values) > 1 else ""


def _find_swallowed(value: JsonObject, schema: Mapping[str, Json]) -> str:
    """Return the name of an argument that is missing because it became part of another argument's string, or ""."""
    strings = [text for item in value.values() for text in _list_texts(item) if '"' in text]
    missing = (key for key in schema.get("properties") or () if key not in value) if strings else ()
    found = (key for key in missing if any(re.search(rf"\b{re.escape(key)}(?:[:=]?\"|\s*=)", text) for text in strings))
    own = (
        key
        for key, item in value.items()
        if isinstance(item, str) and (item.startswith(f'{key}"') or re.search(rf'\{{\s*"{re.escape(key)}"\s*:', item))
    )
    return next(found, next(own, ""))


def _list_texts(value: Json) -> Iterator[str]:
    """Yield the strings in ``value``, at any depth."""
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _list_texts(item)


def _is_unpaired(tag: re.Match[str], text: str) -> bool:
    """Return whether ``text``, which begins or ends with ``tag``, lacks the tag's counterpart."""
    if tag["first"]:
        return f"</{tag['first']}" not in text
    return not tag["last"] or f"<{tag['last']}" not in text


def _is_part(text: str, fixes: Set[str], *, is_item: bool) -> bool:
    """Return whether repairs gave the string ``text`` a wrong start or end: it contains part of a tag, has an unpaired
    quote or tag at one end, or (if ``is_item``) consists of two list items."""
    if not UNCERTAIN_ENDS.isdisjoint(fixes) and _TAG_PIECE.search(text):
        return True
    if "missing-inner-tag" in fixes and any(_is_unpaired(tag, text) for tag in _UNPAIRED_TAG.finditer(text)):
        return True
    if "unquoted-string" in fixes and _OPEN_QUOTE.match(text):
        return True
    is_unpaired = text.count('"') % 2 == 1 and '"' in (text[:1], text[-1:])
    is_joined = is_item and _BETWEEN_ITEMS.search(text) is not None
    has_quote = bool(_CLOSE_QUOTE.search(text) or text.startswith(('<|"|>', "<escape>")))
    return "unescaped-quote" in fixes and (is_unpaired or is_joined or has_quote)
