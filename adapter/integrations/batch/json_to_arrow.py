"""Convert JSON rows to Arrow types and back, so that a Parquet file can store the rows unchanged.

Objects and lists become nested types. Values that have no common type are stored as JSON strings. The metadata of the
schema lists the paths of such values. It also lists the fields that some objects lack. In these fields, null means that
the field is missing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from adapter.core.events import Json, JsonObject
from adapter.core.json.strict import is_encodable

MAX_FIELDS = 100
"""Maximum number of fields of a nested object type. Objects with more are probably mappings with any keys."""
MAX_COLUMNS = 1_000
"""Maximum number of columns of a table. A row with more fields is stored as JSON."""
MAX_DEPTH = 8
"""Maximum depth of nested types."""
METADATA = b"toolcall_adapter"
"""Key for the paths in a schema's metadata."""

Path: TypeAlias = tuple[str | int, ...]
"""Path of a nested value: the column's name, then the names of fields. 0 stands for the items of a list."""


@dataclass(slots=True)
class ColumnShape:
    """Statistics of the values in a column, or in a nested field or list. They determine the Arrow type.

    ``count`` is the number of values, and ``is_json`` is True if they must be stored as JSON strings.
    """

    depth: int = 0
    count: int = 0
    kinds: set[type] = field(default_factory=set)
    has_null: bool = False
    has_large: bool = False
    is_json: bool = False
    fields: dict[str, ColumnShape] = field(default_factory=dict)
    items: ColumnShape | None = None

    def add(self, value: Json) -> None:
        self.count += 1
        if value is None:
            self.has_null = True
            return
        self.kinds.add(type(value))
        if isinstance(value, int):
            self.has_large = self.has_large or not -(2**53) <= value <= 2**53
            self.is_json = self.is_json or not -(2**63) <= value < 2**63
        elif isinstance(value, str):
            self.is_json = self.is_json or not is_encodable(value)
        is_mixed = len(self.kinds) > 1 and (self.kinds != {int, float} or self.has_large)
        is_nested = isinstance(value, dict | list)
        self.is_json = self.is_json or is_mixed or (is_nested and self.depth >= MAX_DEPTH)
        if isinstance(value, dict):
            self._add_object(value)
        elif isinstance(value, list):
            self._add_list(value)

    def _add_object(self, value: JsonObject) -> None:
        most = MAX_FIELDS if self.depth else MAX_COLUMNS
        self.is_json = self.is_json or not value or len(self.fields.keys() | value.keys()) > most
        if self.is_json:
            self.fields, self.items = {}, None
            return
        for name, inner in value.items():
            self.is_json = self.is_json or not is_encodable(name)
            self.fields.setdefault(name, ColumnShape(self.depth + 1)).add(inner)

    def _add_list(self, value: list[Json]) -> None:
        if self.is_json:
            self.fields, self.items = {}, None
            return
        self.items = self.items or ColumnShape(self.depth + 1)
        for inner in value:
            self.items.add(inner)

    def is_optional(self, name: str) -> bool:
        """Return whether some objects lack the field ``name``."""
        return self.fields[name].count < self.count - self.has_null

    def settle(self, is_optional: bool = False) -> None:
        """Decide which values become JSON strings, once all rows have been added."""
        self.is_json = self.is_json or (is_optional and self.has_null)
        for name, inner in self.fields.items():
            inner.settle(self.is_optional(name))
        if self.items is not None:
            self.items.settle()

    def build_type(self) -> Any:
        """Return the column's pyarrow.DataType."""
        if self.is_json or not self.kinds:
            return pa.string()
        if dict in self.kinds:
            return pa.struct([(name, inner.build_type()) for name, inner in self.fields.items()])
        if self.items is not None:
            return pa.list_(self.items.build_type())
        if float in self.kinds:
            return pa.float64()
        return pa.bool_() if bool in self.kinds else pa.int64() if int in self.kinds else pa.string()

    def encode(self, value: Json, is_optional: bool = False) -> Any:
        """Convert a value to the type that `build_type` returns."""
        if self.is_json:
            return None if value is None and not is_optional else json.dumps(value)
        if isinstance(value, dict):
            return {name: self.fields[name].encode(inner, self.is_optional(name)) for name, inner in value.items()}
        if isinstance(value, list) and self.items is not None:
            return [self.items.encode(inner) for inner in value]
        return float(value) if type(value) is int and float in self.kinds else value

    def list_paths(self, path: Path = ()) -> Iterator[tuple[str, Path]]:
        """Yield ("json", path) for each JSON string, and ("optional", path) for each field that some objects lack."""
        if self.is_json:
            yield "json", path
            return
        for name, inner in self.fields.items():
            if self.is_optional(name):
                yield "optional", (*path, name)
            yield from inner.list_paths((*path, name))
        if self.items is not None:
            yield from self.items.list_paths((*path, 0))


def build_metadata(rows: ColumnShape) -> dict[bytes, bytes]:
    """Return the schema metadata that `RowDecoder` needs to restore the rows: the paths of JSON strings and of optional
    fields."""
    found: dict[str, list[Path]] = {"json": [], "optional": []}
    for kind, path in rows.list_paths():
        found[kind].append(path)
    return {METADATA: json.dumps(found).encode()} if found["json"] or found["optional"] else {}


class RowDecoder:
    """Restores the original JSON rows of a table. ``metadata`` is the metadata of its schema, built by
    `build_metadata`. Rows of tables from other programs stay unchanged."""

    def __init__(self, metadata: dict[bytes, bytes] | None) -> None:
        try:
            found = json.loads((metadata or {}).get(METADATA, b"{}"))
            self._json, self._optional = (frozenset(map(tuple, found.get(kind, ()))) for kind in ("json", "optional"))
        except (ValueError, TypeError, AttributeError):  # another program has changed the list
            self._json = self._optional = frozenset()

    def decode(self, value: Any, path: Path = ()) -> Any:
        if not self._json and not self._optional:
            return value
        if path in self._json and isinstance(value, str):
            try:
                return json.loads(value)
            except ValueError:
                return value
        if isinstance(value, dict):
            return {
                name: self.decode(inner, (*path, name))
                for name, inner in value.items()
                if inner is not None or (*path, name) not in self._optional
            }
        return [self.decode(inner, (*path, 0)) for inner in value] if isinstance(value, list) else value


def to_json(value: object) -> Json:
    """Convert a value of a type that JSON lacks, such as a date."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case _:
            return str(value)
