"""Describe how a call's arguments violate the tool's schema, in one short sentence per problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from adapter.core.events import Json, JsonObject
from adapter.tools.call_resolution import describe_expected, short_json, validator_of
from adapter.tools.tool import Tool

if TYPE_CHECKING:
    from jsonschema import ValidationError

MAX_PROBLEMS = 4
"""Maximum number of problems reported per call. A small model fixes one or two at a time."""

CHECKED_KEYWORDS = frozenset({"required", "type", "enum", "const", "anyOf", "oneOf", "additionalProperties"})
"""Keywords that are checked. The tool checks lengths, patterns and bounds, which many schemas state wrongly."""


def schema_errors(tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
    """Return the problems of a call. The result is empty if the call is valid or the schema is invalid."""
    from referencing.exceptions import Unresolvable

    validator = validator_of(tool)
    if validator is None:
        return ()
    try:
        errors = [error for error in validator.iter_errors(arguments) if error.validator in CHECKED_KEYWORDS]
    except (Unresolvable, RecursionError, ValueError):
        return ()
    return tuple(dict.fromkeys(problem for error in errors for problem in _describe_error(error, tool)))[:MAX_PROBLEMS]


def _describe_error(error: ValidationError, tool: Tool) -> Iterator[str]:
    path = ".".join(map(str, error.absolute_path))
    within = f" in {path!r}" if path else ""
    match error.validator:
        case "required":
            properties = error.schema.get("properties") or {} if isinstance(error.schema, dict) else {}
            given = error.instance if isinstance(error.instance, dict) else {}
            for name in error.validator_value:
                if name not in given:
                    yield f"{name!r} is missing{within} ({describe_expected(properties.get(name))})"
        case "additionalProperties":
            known = (error.schema.get("properties") or {}) if isinstance(error.schema, dict) else {}
            for name in error.instance:
                if name not in known:
                    yield f"there is no argument {name!r}{within}{_suggest_argument(name, known)}"
        case _:
            yield f"{path or tool.name!r} is {short_json(error.instance)}: expected {describe_expected(error.schema)}"


def _suggest_argument(name: str, known: Mapping[str, Json]) -> str:
    from rapidfuzz import fuzz, process

    found = process.extractOne(name, list(known), scorer=fuzz.WRatio, score_cutoff=60)
    return f" (did you mean {found[0]!r}?)" if found else f"; there are: {', '.join(known) or 'none'}"
