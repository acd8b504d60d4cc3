"""Intermediate representation of JSON Schema for constrained decoding.

`adapter.grammars.schema_to_ir` converts a schema to the shapes in this module, and `adapter.grammars.gbnf` writes them
as a grammar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from adapter.core.events import Json

Choices: TypeAlias = Mapping[tuple[str, str] | str, Sequence[str]]
"""Allowed values of string parameters, by ``(tool, parameter)`` or by parameter alone.

They apply at any depth (``old_text`` in a list of patches) and to the items of a list of strings. If a parameter has no
allowed values, it is omitted or, if it is required, its tool cannot be called.
"""
MAX_ITEMS = 16
"""Maximum number of items in a list. Without a limit, small models rarely end a list."""


@dataclass(frozen=True, slots=True)
class EnumShape:
    """A value that is one of several JSON values."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class StringShape:
    """A string of ``min_length`` to ``max_length`` characters that matches ``pattern``. None means no restriction."""

    min_length: int = 0
    max_length: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class NumberShape:
    """A number from ``lowest`` to ``highest``, both inclusive. None means no bound."""

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
    """A list of ``min_items`` to ``max_items`` items that all have the shape ``item``."""

    item: Shape
    min_items: int = 0
    max_items: int = MAX_ITEMS


@dataclass(frozen=True, slots=True)
class TupleShape:
    """A fixed-length list: item *i* has shape ``items[i]``."""

    items: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    shape: Shape
    required: bool


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """An object with exactly these properties, required ones first."""

    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class MapShape:
    """An object with arbitrary keys."""

    value: Shape


@dataclass(frozen=True, slots=True)
class UnionShape:
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class AnyShape:
    pass


Shape: TypeAlias = (
    EnumShape | StringShape | NumberShape | Boolean | Null | ArrayShape | TupleShape | ObjectShape | MapShape
    | UnionShape | AnyShape
)  # fmt: skip


def is_satisfiable(shape: Shape) -> bool:
    """Return whether any value has this shape. `Choices` may exclude every value."""
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
