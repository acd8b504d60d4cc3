"""Determine the kinds of values that a tool's parameters accept."""

from __future__ import annotations

import re

from adapter.core.events import Json
from adapter.tools.coercion import list_types

PATHS = frozenset({"_path_", "_folder_"})
_HINTS = {
    "_mail_": r"^\S*mail|mail address|recipient",
    "_url_": r"ur[il]|link|website",
    "_date_": r"date|day|YYYY",
    "_time_": r"\btime|hour|HH",
    "_folder_": r"folder|director",
    "_path_": r"(?<!pro)file(?!d\b)|^(?!.*(?:folder|director)).*path",
    "_text_": r"text|message|content|subject|quer|pattern|title|command|search|body|note|comment",
    "_code_": r"\bid\b|_id|number of|sku|symbol|code|currenc",
    "_name_": r"\bname\b|[a-z]Name\b|_name\b",
}
"""Maps a kind of value to a pattern for the name and description of string parameters that accept it."""


def get_description(schema: Json) -> str:
    return str(schema.get("description") or "") if isinstance(schema, dict) else ""


def find_value_kinds(name: str, schema: Json) -> set[str]:
    """Return the kinds of values, such as ``_url_``, that a parameter accepts according to its name and schema."""
    if not isinstance(schema, dict):
        return set()
    types, text = list_types(schema), f"{name} {get_description(schema)}"
    kinds = {kind for kind, hint in _HINTS.items() if "string" in types and re.search(f"(?i){hint}", text)}
    return kinds | {"_number_"} if (types | list_types(schema.get("items"))) & {"integer", "number"} else kinds
