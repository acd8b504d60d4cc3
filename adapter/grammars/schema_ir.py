"""Intermediate representation of JSON Schema for constrained decoding.

`adapter.grammars.schema_lowering` converts a schema to these shapes; `adapter.grammars.gbnf` writes them as a grammar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from adapter.core.events import Json

Choices: TypeAlias = Mapping[tuple[str, str] | str, Sequence[str]]
"""Allowed values of a string parameter, by ``(tool, parameter)`` or by parameter alone.

They apply at any depth (``old_text`` inside a list of patches) and to the items of a list of strings. Without any
value, an optional parameter is omitted, and a tool with such a required parameter cannot be called.
"""
MAX_ITEMS = 16
"""Maximum number of list items; small models rarely end a list on their own."""


@dataclass(frozen=True, slots=True)
class EnumShape:
    """One of these JSON values, verbatim."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class StringShape:
    """A string of ``min_length`` to ``max_length`` characters (None: unbounded) that matches ``pattern``."""

    min_length: int = 0
    max_length: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class NumberShape:
    """A number from ``lowest`` to ``highest``, both inclusive; None: unbounded."""

    integer: bool
    lowest: Decimal | None = None
    highest: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Boolean:
    pass


@dataclass(frozen=True, slots=True)
class Null:
    pass


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """A list of ``min_items`` to ``max_items`` items of the same shape."""

    item: Shape
    min_items: int = 0
    max_items: int = MAX_ITEMS


@dataclass(frozen=True, slots=True)
class TupleShape:
    """A list of exactly these items."""

    items: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    shape: Shape
    required: bool


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """An object with exactly these properties, the required ones first."""

    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class MapShape:
    """An object with any keys."""

    value: Shape


@dataclass(frozen=True, slots=True)
class UnionShape:
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class AnyShape:
    pass


Shape: TypeAlias = (
    EnumShape
    | StringShape
    | NumberShape
    | Boolean
    | Null
    | ArrayShape
    | TupleShape
    | ObjectShape
    | MapShape
    | UnionShape
    | AnyShape
)


def is_satisfiable(shape: Shape) -> bool:
    """Return whether any value has this shape; choices may exclude all."""
    match shape:
        case EnumShape(values):
            return bool(values)
        case UnionShape(shapes):
            return any(map(is_satisfiable, shapes))
        case ObjectShape(properties):
            return all(is_satisfiable(item.shape) for item in properties if item.required)
        case ArrayShape(item, min_items):
            return min_items == 0 or is_satisfiable(item)
        case TupleShape(items):
            return all(map(is_satisfiable, items))
        case _:
            return True


NOTHING = EnumShape(())
