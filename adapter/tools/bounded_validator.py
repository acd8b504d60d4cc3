"""Validate arguments in bounded time against untrusted JSON Schemas, for example from clients and MCP servers.

Two things can take exponential time even for a short argument, and are limited: a pattern such as ``^(x+x+)+y$``, and a
chain of definitions that each refer twice to the next. A value that cannot be compared with a pattern in time is
invalid. No reference is fetched. ``unevaluatedProperties`` is ignored, because it takes exponential time if nested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from adapter.core.events import Json, JsonObject

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError


def build_bounded_validator(schema: JsonObject) -> Draft202012Validator:
    """Return a validator for ``schema``, which must be valid. Use it with `find_violations`."""
    from referencing import Registry

    # Without a registry, jsonschema opens every URL that a schema refers to.
    validator: Draft202012Validator = _build_validator_class()(schema, registry=Registry())
    return validator


def find_violations(validator: Draft202012Validator, value: Json) -> list[ValidationError]:
    """Return all violations of a schema. The list is empty if the schema refers to missing parts or has invalid
    patterns.

    If the check needs more than `MAX_REFERENCES` references, the only violation has the keyword `UNCHECKED`.
    """
    from jsonschema import ValidationError
    from referencing.exceptions import Unresolvable

    _followed.set(count(1))
    try:
        return list(validator.iter_errors(value))
    except RecursionError:
        reason = (
            f"the arguments cannot be checked, because the tool's schema needs more than {MAX_REFERENCES:,} references "
            "for them; send fewer and less nested values"
        )
        return [ValidationError(reason, validator=UNCHECKED, instance=value)]
    except (Unresolvable, re.error, ValueError):
        return []


MAX_REFERENCES = 3_000
"""Maximum number of references followed to validate a value. Following so many takes 0.2 seconds."""
UNCHECKED = "unchecked"
"""Keyword of the violation for a value that could not be checked."""

_followed: ContextVar[Iterator[int]] = ContextVar("followed")
"""Counts the references of the current validation."""


@cache
def _build_validator_class() -> Any:
    from jsonschema import Draft202012Validator, validators

    keywords = {
        "pattern": _check_pattern, "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional_properties, "unevaluatedProperties": _ignore,
        "uniqueItems": _check_unique_items,
        "$ref": _limit_references(Draft202012Validator.VALIDATORS["$ref"]),
        "$dynamicRef": _limit_references(Draft202012Validator.VALIDATORS["$dynamicRef"]),
    }  # fmt: skip
    return validators.extend(Draft202012Validator, keywords)


def may_match(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of the regular expressions ``patterns`` matches a part of ``name``, or could not be compared
    with it in time."""
    return any(_occurs(pattern, name) is not False for pattern in patterns)


def _occurs(pattern: str, text: str) -> bool | None:
    from adapter.core.text.safe_regex import occurs  # imports regex, which few schemas need

    return occurs(pattern, text)


def _limit_references(follow: Callable[..., Iterator[ValidationError]]) -> Callable[..., Iterator[ValidationError]]:
    """Wrap ``follow``, which follows a reference, so that it raises RecursionError after `MAX_REFERENCES` calls."""

    def follow_reference(*arguments: Any) -> Iterator[ValidationError]:
        if next(_followed.get()) > MAX_REFERENCES:
            raise RecursionError
        yield from follow(*arguments)

    return follow_reference


def _check_pattern(validator: Any, pattern: str, instance: Json, _: Json) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string"):
        yield from _find_mismatch(pattern, str(instance), _occurs(pattern, str(instance)))


def _find_mismatch(pattern: str, text: str, occurs: bool | None) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if occurs is None:
        yield ValidationError(f"comparing {text!r} with {pattern!r} takes too long; use a shorter text")
    elif not occurs:
        yield ValidationError(f"{text!r} does not match {pattern!r}")


def _check_pattern_properties(validator: Any, patterns: Mapping[str, Json], instance: Json, _: Json) -> Iterator[Any]:
    for pattern, inner in patterns.items() if isinstance(instance, Mapping) else ():
        for name, value in instance.items():
            if occurs := _occurs(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)
            elif occurs is None:
                yield from _find_mismatch(pattern, name, None)


def _check_additional_properties(
    validator: Any, allowed: Json, instance: Json, schema: Mapping[str, Any]
) -> Iterator[Any]:
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


def _check_unique_items(_: Any, is_unique: Json, instance: Json, __: Json) -> Iterator[ValidationError]:
    """Compare the items as JSON text, which takes linear time."""
    from jsonschema import ValidationError

    if is_unique is True and isinstance(instance, list):
        texts = [json.dumps(item, sort_keys=True) for item in instance]
        if len(set(texts)) < len(texts):
            yield ValidationError(f"{instance!r} has non-unique elements")


def _ignore(*_: object) -> Iterable[ValidationError]:
    return ()
