"""Describe how a call's arguments violate the tool's schema, in one short sentence per violation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.core.events import Json, JsonObject
from adapter.tools.bounded_validator import UNCHECKED, find_violations, may_match
from adapter.tools.call_validation import changes_meaning, describe_expected, find_validator, shorten_json
from adapter.tools.tool import Tool

if TYPE_CHECKING:
    from jsonschema import ValidationError

MAX_PROBLEMS = 4
"""Maximum number of problems reported per call. A small model fixes one or two at a time."""

CHECKED_KEYWORDS = frozenset({"required", "type", "enum", "const", "anyOf", "oneOf", "additionalProperties", UNCHECKED})
"""Keywords whose violations are reported. The tool itself checks lengths, patterns and bounds, because many schemas
have wrong ones."""


def find_schema_errors(tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
    """Return the problems with a call's arguments: none if the arguments are valid, or if the schema itself is not."""
    errors = [error for error in _find_errors(tool, arguments) if error.validator in CHECKED_KEYWORDS]
    return tuple(dict.fromkeys(problem for error in errors for problem in _describe_error(error, tool)))[:MAX_PROBLEMS]


def _find_errors(tool: Tool, arguments: JsonObject) -> list[ValidationError]:
    """Return all violations of the schema, or an empty list if the schema is invalid."""
    validator = find_validator(tool)
    return [] if validator is None else find_violations(validator, arguments)


def find_missing_arguments(tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
    """Return the required parameters that have no argument and no default value."""
    properties = tool.properties
    return tuple(
        name
        for name in tool.required
        if name not in arguments and "default" not in (properties.get(name) or {}) and isinstance(name, str)
    )


@dataclass(frozen=True, slots=True)
class AllowedArguments:
    """A call's arguments without the ones that ``additionalProperties: false`` forbids."""

    arguments: JsonObject
    forbidden: tuple[str, ...]
    """Names of the removed arguments."""
    is_safe: bool = True
    """True if the remaining arguments are valid, and no removed one is a misspelled parameter or changes the call's
    meaning."""
    changes_meaning: bool = False
    """True if the call has another effect without the removed arguments."""


def select_allowed_arguments(tool: Tool, arguments: JsonObject) -> AllowedArguments:
    """Return the arguments that the schema does not forbid. Forbidden arguments in nested objects are also removed."""
    has_containers = any(isinstance(each, dict | list) for each in arguments.values())
    if arguments.keys() <= tool.properties.keys() and not has_containers:
        return AllowedArguments(arguments, ())
    copy: JsonObject = deepcopy(arguments)
    removed: list[tuple[str, Json]] = []
    is_misspelt = False
    for error in _find_errors(tool, copy):
        if error.validator == "additionalProperties" and error.schema.get("additionalProperties") is False:
            names = _find_forbidden(error)
            removed += [(name, error.instance.pop(name)) for name in names]
            unused = (error.schema.get("properties") or {}).keys() - error.instance.keys()
            is_misspelt = is_misspelt or any(_find_nearest(name, unused) for name in names)
    changes = any(changes_meaning(tool, *each) for each in removed)
    is_safe = not (changes or is_misspelt or (removed and find_schema_errors(tool, copy)))
    return AllowedArguments(copy, tuple(name for name, _ in removed), is_safe, changes)


def _describe_error(error: ValidationError, tool: Tool) -> Iterator[str]:
    path = ".".join(map(str, error.absolute_path))
    within = f" in {path!r}" if path else ""
    match error.validator:
        case "required":
            known = error.schema.get("properties") or {}
            for name in error.validator_value:
                if name not in error.instance:
                    yield f"{name!r} is missing{within} ({describe_expected(known.get(name))})"
        case "additionalProperties":
            known = error.schema.get("properties") or {}
            for name in _find_forbidden(error):
                near = _find_nearest(name, known)
                hint = f" (did you mean {near!r}?)" if near else f"; there are: {', '.join(known) or 'none'}"
                yield f"there is no argument {name!r}{within}{hint}"
        case keyword if keyword == UNCHECKED:
            yield error.message
        case _:
            yield f"{path or tool.name!r} is {shorten_json(error.instance)}: expected {describe_expected(error.schema)}"


def _find_forbidden(error: ValidationError) -> list[str]:
    """Return the names of properties that ``additionalProperties`` forbids."""
    patterns = error.schema.get("patternProperties") or {}
    known = error.schema.get("properties") or {}
    return [name for name in error.instance if name not in known and not may_match(patterns, name)]


def _find_nearest(name: str, known: Iterable[str]) -> str:
    from rapidfuzz import fuzz, process

    best = process.extractOne(name, list(known), scorer=fuzz.WRatio, score_cutoff=60)
    return best[0] if best else ""
