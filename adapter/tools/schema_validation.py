"""Validate arguments against JSON Schemas from strangers: clients and MCP servers write them.

A pattern in a schema can take exponential time for a short argument: ``^(x+x+)+y$``. So patterns are searched within
limits; a search that takes too long counts as a match.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from adapter.core.events import Json, JsonObject

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError


def bounded_validator(schema: JsonObject) -> Draft202012Validator:
    """Return a validator of the valid schema ``schema``. It ignores ``unevaluatedProperties``."""
    validator: Draft202012Validator = _validator_class()(schema)
    return validator


@cache
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator, validators

    keywords = {
        "pattern": _pattern, "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties, "unevaluatedProperties": _ignore, "uniqueItems": _unique_items,
    }  # fmt: skip
    return validators.extend(Draft202012Validator, keywords)


def may_match(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of the patterns occurs in ``name``, or may do so."""
    from adapter.core.text.safe_regex import occurs  # imports regex, which few schemas need

    return any(occurs(pattern, name) is not False for pattern in patterns)


def _pattern(validator: Any, pattern: str, instance: Json, _: Json) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if validator.is_type(instance, "string") and not may_match([pattern], str(instance)):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Json], instance: Json, _: Json) -> Iterator[Any]:
    for pattern, inner in patterns.items() if isinstance(instance, Mapping) else ():
        for name, value in instance.items():
            if may_match([pattern], name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Json, instance: Json, schema: Mapping[str, Any]) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(instance, Mapping):
        return
    known, patterns = schema.get("properties") or {}, schema.get("patternProperties") or {}
    others = [name for name in instance if name not in known and not may_match(patterns, name)]
    if isinstance(allowed, Mapping):
        for name in others:
            yield from validator.descend(instance[name], allowed, path=name)
    elif allowed is False and others:
        verb = "was" if len(others) == 1 else "were"
        names = ", ".join(map(repr, others))
        yield ValidationError(f"Additional properties are not allowed ({names} {verb} unexpected)")


def _unique_items(_: Any, is_unique: Json, instance: Json, __: Json) -> Iterator[ValidationError]:
    """Compare the items by their text, in linear time."""
    from jsonschema import ValidationError

    if is_unique is True and isinstance(instance, list):
        texts = [json.dumps(item, sort_keys=True) for item in instance]
        if len(set(texts)) < len(texts):
            yield ValidationError(f"{instance!r} has non-unique elements")


def _ignore(*_: object) -> Iterable[ValidationError]:
    return ()
