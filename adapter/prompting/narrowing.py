"""What of a request a parameter may take by its schema: its choices, its flags, its numbers and its lists."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from adapter.constraints.grounding import MAX_CHOICES
from adapter.constraints.mentions import quoted, spelled_paths
from adapter.prompting import numbers, series
from adapter.prompting.languages import NOT
from adapter.prompting.ranking import KINDS, STOP, TYPED, asked, kinds_of, spelled, stem, words
from adapter.tools.schema import types_of
from adapter.values.events import Json, JsonObject


def narrowed(request: str, name: str, schema: Json) -> Json:
    """A number, or a list of them, as one of those that the request has; of choices those that it names; a flag as the
    request speaks of it."""
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("enum"), list):
        return {**schema, "enum": choices_named(request, schema) or schema["enum"]}
    types = types_of(schema)
    if is_flag(schema) and (said := _said_of(request, name)) is not None:
        return {**schema, "enum": [said]}
    if "array" in types and len(lists := json_lists(request) or _said_lists(request, schema)) == 1:
        return {**schema, "enum": lists}
    if "array" in types and isinstance(items := schema.get("items"), dict):
        return _counted(request, {**schema, "items": narrowed(request, name, items)})
    if not types & {"integer", "number"} or "string" in types:
        return schema
    fitting = numbers.meant(request, name, schema)
    return {**schema, "enum": fitting} if 0 < len(fitting) <= MAX_CHOICES else schema


def choices_named(request: str, schema: Json) -> list[Json]:
    """Of the choices that a parameter has, those that the request names."""
    if not isinstance(schema, dict) or not isinstance(schema.get("enum"), list):
        return []
    asked_for = set(asked(request))
    return [value for value in schema["enum"] if (of := words(str(value))) and asked_for.issuperset(of)]


def _said_of(request: str, flag: str) -> bool | None:
    """Whether the request wants what a flag is called, or without it; None where it does not speak of all its words."""
    own = {stem(word) for word in spelled(flag.replace("_", " ")) if word not in STOP}
    said = [stem(word) for word in spelled(request)]
    if not own or not own.issubset(said):
        return None
    first = min(said.index(word) for word in own)
    return _NOT.isdisjoint(said[max(first - 3, 0) : first])


_NOT = frozenset(map(stem, NOT))


def _said_lists(request: str, schema: JsonObject) -> list[list[Json]]:
    """The list of numbers, or of texts that are not of a kind known by its looks, that the request says in words."""
    items = schema.get("items")
    if not isinstance(items, dict) or items.get("enum"):
        return []
    if types_of(items) and types_of(items) <= {"integer", "number"}:
        return [[each.value for each in run] for run in numbers.series(request)]
    if types_of(items) != {"string"} or kinds_of("", {**schema, "type": "string"}) & {"_path_", "_folder_", *TYPED}:
        return []
    named = described(request, schema) or series.things(request)
    return [list(named)] if named else []


def described(request: str, schema: JsonObject) -> list[str]:
    """Of the values that a description quotes, those that the request names: "either 'summary' or 'full'"."""
    asked_for = set(asked(request))
    values = quoted(str(schema.get("description") or "").replace("/", " "))
    return [value for value in dict.fromkeys(values) if (of := words(value)) and asked_for.issuperset(of)]


def json_lists(request: str) -> list[list[Json]]:
    """The lists that the request has as JSON."""
    found = []
    for text in re.findall(r"\[[^\[\]]*\]", request):
        with suppress(ValueError):
            found.append(json.loads(text))
    return found


def _counted(request: str, schema: JsonObject) -> JsonObject:
    """A list with no more items than the request has of what one of them needs: small models do not end a list."""
    items: JsonObject = schema["items"]
    named = [(name, each) for name, each in strings({"item": items}) if kinds_of(name, each) & _COUNTED.keys()]
    counts = [len(items["enum"])] if items.get("enum") else []
    counts += [len(_COUNTED[kind](request)) for name, each in named for kind in kinds_of(name, each) & _COUNTED.keys()]
    most = min((count for count in counts if count), default=0)
    return {**schema, "maxItems": max(most, schema.get("minItems") or 0)} if most else schema


_COUNTED: Mapping[str, Callable[[str], Sequence[str]]] = {
    **{kind: KINDS[kind].findall for kind in ("_mail_", "_url_", "_date_", "_time_")},
    "_path_": spelled_paths,
}


def strings(properties: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """The parameters that take texts, those inside lists and objects included."""
    for name, schema in properties.items():
        if not isinstance(schema, dict) or schema.get("enum"):
            continue
        if "string" in types_of(schema):
            yield name, schema
        items = schema.get("items")
        if isinstance(items, dict):
            yield from strings({name: items})
        if isinstance(inner := schema.get("properties"), dict):
            yield from strings(inner)


def is_flag(schema: Json) -> bool:
    return isinstance(schema, dict) and types_of(schema) == {"boolean"}
