"""Arguments written one by one, as tags have them: the same one may come several times, and in a CDATA section."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from adapter.core.events import Json, JsonObject
from adapter.parsing.bodies.raw_value import ambiguous_end_message, has_ambiguous_end
from adapter.parsing.format import CUT_OFF, BodyResult
from adapter.tools.call_shapes import DecodedCall
from adapter.tools.coercion import coerce_text, schema_types
from adapter.tools.tool import Tool

_CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)


class BodyError(Exception):
    """Ends the reading of a body that is invalid, or (`CUT_OFF`, the default) ends too early."""

    def __init__(self, error: str = CUT_OFF, *, result: BodyResult | None = None) -> None:
        super().__init__(error)
        self.result = result or BodyResult(error=error)


@dataclass(slots=True)
class PendingCall:
    """A call whose arguments are still being read."""

    name: str
    tool: Tool | None
    arguments: JsonObject = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    """The arguments that have begun, the one that is being read included."""
    fixes: dict[str, None] = field(default_factory=dict)
    problem: str | None = None
    """Why the call is invalid, although it can be read to its end."""

    def has_parameter(self, key: str) -> bool:
        """Return whether the tool is known and declares ``key``."""
        return self.tool is not None and key in self.tool.properties

    def expects(self, key: str) -> bool:
        """Return whether ``key`` is a parameter of the tool that has not been given yet."""
        return key not in self.keys and self.has_parameter(key)

    def schema_of(self, key: str) -> JsonObject | None:
        return self.tool.properties.get(key) if self.tool else None

    def fix(self, *names: str) -> None:
        self.fixes.update(dict.fromkeys(names))

    def add_text(self, key: str, text: str, schema: JsonObject | None = None) -> None:
        """Add an argument. ``schema`` declares its type where the tool does not."""
        self.keys.add(key)
        add_text(self.arguments, key, text, self.schema_of(key) or schema, self.fixes)

    def add_value(self, key: str, value: Json) -> None:
        add_value(self.arguments, key, value, self.schema_of(key), self.fixes)

    def check_end(self, key: str, text: str, opens: Sequence[str], closes: Sequence[str]) -> None:
        """Reject the call if the value ``text``, closed by one of ``closes``, seems to be closed twice."""
        if twice := has_ambiguous_end(text, opens, closes):
            self.problem = ambiguous_end_message(self.name, key, twice)

    def result(self, *fixes: str) -> BodyResult:
        if self.problem is not None:
            return BodyResult(error=self.problem)
        return BodyResult((DecodedCall(self.name, self.arguments),), (*self.fixes, *fixes))


def without_cdata(text: str, fixes: dict[str, None]) -> str:
    """``text``, or what it holds where it is one CDATA section and no XML format asked for that."""
    data = _CDATA.fullmatch(text)
    if data is None:
        return text
    fixes["cdata"] = None
    return data[1]


def add_text(arguments: JsonObject, key: str, text: str, schema: JsonObject | None, fixes: dict[str, None]) -> None:
    """Add the value that is written as ``text``; its type is the one that ``schema`` declares."""
    add_value(arguments, key, coerce_text(without_cdata(text, fixes), schema), schema, fixes)


def add_value(arguments: JsonObject, key: str, value: Json, schema: JsonObject | None, fixes: dict[str, None]) -> None:
    """Add ``value``; where the argument is there already a list takes all of them, anything else the last."""
    if key in arguments:
        fixes["repeated-argument"] = None
        if schema and "array" in schema_types(schema):
            value = [*_items(arguments[key]), *_items(value)]
    arguments[key] = value


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


# --------------------------------------------------------------- encoding


def encode_unescaped(value: Json) -> str:
    """Write a string as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def reads_as_null(value: Json) -> bool:
    """Return whether ``value`` is a word that is read back as null where a parameter may be null."""
    return isinstance(value, str) and value.strip().lower() in ("null", "none")
