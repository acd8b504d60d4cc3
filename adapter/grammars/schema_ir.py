"""The shapes that a constrained decoder can follow: what is left of JSON Schema, and what narrows it.

`adapter.grammars.schema_lowering` makes them of a schema, `adapter.grammars.gbnf` writes them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from adapter.core.events import Json

Choices: TypeAlias = Mapping[tuple[str, str] | str, Sequence[str]]
"""The only values a string parameter may take, by ``(tool, parameter)`` or by parameter alone.

It applies at any depth (``old_text`` inside a list of patches) and to the items of a list of strings.
No values at all means that the parameter cannot be written: an optional one is left out,
a required one takes its tool with it.
"""
MAX_ITEMS = 16
"""Of a list; a small model that starts one rarely ends it by itself."""


@dataclass(frozen=True, slots=True)
class EnumShape:
    """One of these JSON values, spelled exactly so."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class StringShape:
    """A string of ``min_length`` to ``max_length`` characters; None: no bound.

    ``pattern``: a regular expression that is found in it.
    """

    min_length: int = 0
    max_length: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class NumberShape:
    """A number from ``lowest`` to ``highest``, both included; None: no bound."""

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
    """Whether any value has this shape: choices may have left none."""
    match shape:
        case EnumShape(values):
            return bool(values)
        case UnionShape(shapes):
            return any(map(is_satisfiable, shapes))
        case ObjectShape(properties):
            return all(is_satisfiable(each.shape) for each in properties if each.required)
        case ArrayShape(item, min_items):
            return min_items == 0 or is_satisfiable(item)
        case TupleShape(items):
            return all(map(is_satisfiable, items))
        case _:
            return True


NOTHING = EnumShape(())
