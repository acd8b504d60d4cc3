"""What is wrong with the arguments of a call, by the tool's schema: one short sentence each, the error first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from adapter.core.events import Json, JsonObject
from adapter.tools.call_resolution import validator_of
from adapter.tools.coercion import schema_types
from adapter.tools.tool import Tool

if TYPE_CHECKING:
    from jsonschema import ValidationError

MOST = 4
"""Problems that are told of one call: a small model mends one or two at a time."""

MAX_CHOICES = 12
"""Values of a choice that are listed."""

COUNTED = frozenset({"required", "type", "enum", "const", "anyOf", "oneOf", "additionalProperties"})
"""What of a schema counts. Lengths, patterns and bounds are for the tool itself to judge: many are wrong there."""


def schema_errors(tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
    """Empty where the call can be made, or the schema is none."""
    from referencing.exceptions import Unresolvable

    validator = validator_of(tool)
    if validator is None:
        return ()
    try:
        errors = [error for error in validator.iter_errors(arguments) if error.validator in COUNTED]
    except (Unresolvable, RecursionError, ValueError):
        return ()
    return tuple(dict.fromkeys(said for error in errors for said in _said(error, tool)))[:MOST]


def _said(error: ValidationError, tool: Tool) -> Iterator[str]:
    place = ".".join(map(str, error.absolute_path))
    within = f" in {place!r}" if place else ""
    match error.validator:
        case "required":
            properties = error.schema.get("properties") or {} if isinstance(error.schema, dict) else {}
            given = error.instance if isinstance(error.instance, dict) else {}
            for name in error.validator_value:
                if name not in given:
                    yield f"{name!r} is missing{within} ({_expected(properties.get(name))})"
        case "additionalProperties":
            known = (error.schema.get("properties") or {}) if isinstance(error.schema, dict) else {}
            for name in error.instance:
                if name not in known:
                    yield f"there is no argument {name!r}{within}{_nearest(name, known)}"
        case _:
            yield f"{place or tool.name!r} is {_short(error.instance)}: expected {_expected(error.schema)}"


def _nearest(name: str, known: Mapping[str, Json]) -> str:
    from rapidfuzz import fuzz, process

    found = process.extractOne(name, list(known), scorer=fuzz.WRatio, score_cutoff=60)
    return f" (did you mean {found[0]!r}?)" if found else f"; there are: {', '.join(known) or 'none'}"


def _expected(schema: Json) -> str:
    if not isinstance(schema, Mapping):
        return "any value"
    if isinstance(listed := schema.get("enum"), list):
        more = ", ..." if len(listed) > MAX_CHOICES else ""
        return "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in listed[:MAX_CHOICES]) + more
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    return " or ".join(sorted(schema_types(schema))) or "any value"


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
