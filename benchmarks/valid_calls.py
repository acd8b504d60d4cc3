"""Check that `adapter serve` makes even a model with random weights write only valid calls.

    python -m benchmarks.valid_calls [--requests N] [--seed N] [--format NAME ...] [--constraint MODE ...] [--show]

It uses a real llama.cpp with random weights, a real `adapter serve`, the openai SDK, and tools with random schemas:
nested objects, optional parameters, enums, constants, patterns, lengths, bounds of numbers and lists, unions,
``allOf``, maps, tuples, and references, even recursive ones. Only the grammar can make the calls valid; jsonschema
checks each. ``--requests`` is the number for each format and mode, and each format gets other schemas.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from jsonschema import Draft202012Validator, ValidationError
from openai import OpenAI
from rich.console import Console
from rich.table import Table

from adapter.backends.in_process_llama_cpp import EmbeddedServer
from adapter.core.events import Json, JsonObject
from adapter.grammars.call_layout import find_call_prefix
from adapter.grammars.constraint_mode import Constraint
from adapter.parsing.formats import FORMATS
from tests.engines import ONLY_ASCII, write_random_gguf
from tests.serving import serving

MODES: tuple[Constraint, ...] = ("required", "prefer")
MAX_TOKENS = 3000
CONTEXT = 16384
"""Context size in tokens. The model's tokens are bytes, and some schemas have thousands."""
NAMES = (
    *("path", "count", "unit", "mode", "labels", "filter", "options", "start", "limit"),
    "größe",
    "a-b",
    "x.y",
    "_1",
)
WORDS = ("celsius", "a b", 'say "x"', "back\\slash", "", "ümlaut", "on", "off", "1", "line\nend")
PATTERNS = (
    *(r"^[A-Z]{2,4}-\d+$", r"^\d{4}-\d{2}-\d{2}$", r"^(on|off|auto)$", r"^#[0-9a-fA-F]{6}$", r"^\S+@\S+\.[a-z]{2,}$"),
    *(r"^v?\d+(\.\d+)*$", r"foo", r"^/", r"\.py$", r"^[^\s/\\\"]+$", r"^\w[\w.-]*$", r"^(?:a|b(?:c|d)?)+$", r"^.{3}$"),
    *(r"^https?://[^\s]+$", r"^$", r"^\{\}\[\]\(\)\|\+\*\?\.\^\$$", r"^[\]\-^]+$", r"^\u00e9\x41\t?$"),
)


@dataclass
class Row:
    """The results of the requests with one format and mode."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def schema(chance: Random, depth: int = 0) -> JsonObject:
    """Return a random schema of one value. It may refer to ``#/$defs/shared`` and ``#/$defs/node``."""
    nested = (_object, _array, _union, _map, _tuple) if depth < 3 else ()
    kinds = (_string, _pattern, _integer, _number, _literals, _plain, _reference, *nested)
    made: JsonObject = chance.choice(kinds)(chance, depth)
    return made


def _string(chance: Random, _: int) -> JsonObject:
    shortest = chance.choice((0, 1, 5))
    return {"type": "string"} | chance.choice(({}, {"minLength": shortest}, {"maxLength": shortest + 10}))


def _pattern(chance: Random, _: int) -> JsonObject:
    return {"type": "string", "pattern": chance.choice(PATTERNS)}


def _integer(chance: Random, _: int) -> JsonObject:
    return {"type": "integer"} | _bounds(chance, [-1000, -7, 0, 1, 9, 10, 100, 255, 1024, 65535, 10**12])


def _number(chance: Random, _: int) -> JsonObject:
    return {"type": "number"} | _bounds(chance, [-273.15, -90, -0.5, 0, 0.25, 0.3, 1, 1.5, 37, 99.99, 180, 1e6])


def _bounds(chance: Random, at: Sequence[float]) -> JsonObject:
    low, high = sorted(chance.sample(at, 2))
    lowest = chance.choice(({}, {"minimum": low}, {"exclusiveMinimum": low}))
    # There is no integer strictly between 0 and 1.
    return {**lowest, **chance.choice(({}, {"maximum": high}, {"exclusiveMaximum": high + 1}))}


def _literals(chance: Random, _: int) -> JsonObject:
    values: list[Json] = [*chance.sample(WORDS, 3), 1, None, 2.5, {"a": [1]}]
    return chance.choice(({"enum": values}, {"const": chance.choice(values)}, {"type": "string", "enum": values[:3]}))


def _plain(chance: Random, _: int) -> JsonObject:
    return chance.choice(({"type": "boolean"}, {"type": "null"}, {"type": ["integer", "null"]}, {}))


def _reference(chance: Random, _: int) -> JsonObject:
    return {"$ref": f"#/$defs/{chance.choice(('shared', 'node'))}"}


def _object(chance: Random, depth: int) -> JsonObject:
    names = chance.sample(NAMES, chance.randint(0, 4))
    made: JsonObject = {
        "type": "object",
        "properties": {name: schema(chance, depth + 1) for name in names},
        "required": [name for name in names if chance.random() < 0.6],
        "additionalProperties": chance.choice((False, True)),
    }
    if names and chance.random() < 0.2:
        parts = [{"required": [name]} for name in names[:2]]
        made |= chance.choice(({"allOf": parts}, {"anyOf": parts}))
    return made


def _array(chance: Random, depth: int) -> JsonObject:
    bounds = chance.choice(({}, {"minItems": 2}, {"maxItems": 2}, {"minItems": 1, "maxItems": 3}))
    return {"type": "array", "items": schema(chance, depth + 1), **bounds}


def _union(chance: Random, depth: int) -> JsonObject:
    return {"anyOf": [schema(chance, depth + 1) for _ in range(chance.randint(1, 3))]}


def _map(chance: Random, depth: int) -> JsonObject:
    return {"type": "object", "additionalProperties": schema(chance, depth + 1)}


def _tuple(chance: Random, depth: int) -> JsonObject:
    items = [schema(chance, depth + 1) for _ in range(2)]
    return {"type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2}


SHARED: JsonObject = {"type": "object", "properties": {"id": {"type": "integer", "minimum": 1}}, "required": ["id"]}
NODE: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        "parent": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
    },
    "required": ["name", "parent"],
    "additionalProperties": False,
}


def tools(chance: Random) -> list[JsonObject]:
    """Return one to three tools in the format of an OpenAI request."""
    made = []
    for name in chance.sample(("search", "set_mode", "create-item", "update_3"), chance.randint(1, 3)):
        parameters = _object(chance, 0) | {"$defs": {"shared": SHARED, "node": NODE}}
        made.append({"type": "function", "function": {"name": name, "parameters": parameters}})
    return made


@contextmanager
def random_model(folder: Path) -> Iterator[str]:
    """Start a llama.cpp server with random weights, and yield its base URL."""
    with EmbeddedServer(write_random_gguf(folder / "random.gguf", CONTEXT), context_size=CONTEXT) as engine:
        yield engine.endpoint.base_url


def measure(upstream: str, format: str, mode: Constraint, seed: int, count: int) -> Row:
    row = Row()
    options = ("--constraint", mode, "--format", format)
    with serving(upstream, *options) as url, OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        for number in range(count):
            ask(client, tools(Random(f"{seed}, {number}")), number, mode, row)
    return row


def ask(client: OpenAI, offered: list[JsonObject], number: int, mode: Constraint, row: Row) -> None:
    answer = client.chat.completions.create(
        model="random",
        messages=[{"role": "user", "content": f"request {number}"}],
        tools=offered,  # type: ignore[arg-type]
        temperature=1.0,
        seed=number,
        max_tokens=MAX_TOKENS,
        extra_body=ONLY_ASCII,
    )
    (choice,) = answer.choices
    schemas = {each["function"]["name"]: each["function"]["parameters"] for each in offered}
    calls = choice.message.tool_calls or []
    for call in calls:
        assert call.type == "function"
        wrong = fault(call.function.name, call.function.arguments, schemas)
        row.outcomes["invalid" if wrong else "valid"] += 1
        row.wrong += [f"{number}: {wrong}"] if wrong else []
    if not calls:
        outcome = "cut" if choice.finish_reason == "length" else "reply" if mode == "prefer" else "no call"
        row.outcomes[outcome] += 1
        row.wrong += [f"{number}: {choice.message.content!r:.300}"] if outcome == "no call" else []


def fault(name: str, arguments: str, schemas: JsonObject) -> str:
    if name not in schemas:
        return f"unknown tool {name!r}"
    try:
        Draft202012Validator(schemas[name]).validate(json.loads(arguments))
    except ValidationError as error:
        return f"{error.message[:200]} ({error.validator}: {str(error.validator_value)[:120]})"
    except ValueError as error:
        return f"{error}: {arguments[:200]}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=20, help="for each format and mode")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", action="append", choices=list(FORMATS), help="default: those with a grammar")
    parser.add_argument("--constraint", action="append", choices=MODES, help="default: both")
    parser.add_argument("--show", action="store_true", help="what was wrong with the others")
    options = parser.parse_args()
    formats = options.format or [name for name in FORMATS if find_call_prefix(name)]
    modes = options.constraint or list(MODES)
    total: dict[Constraint, Counter[str]] = {mode: Counter() for mode in modes}
    table = Table("format", *(f"{mode}: {what}" for mode in modes for what in COLUMNS))
    with tempfile.TemporaryDirectory() as folder, random_model(Path(folder)) as upstream:
        for place, name in enumerate(formats):
            rows = {mode: measure(upstream, name, mode, options.seed + place, options.requests) for mode in modes}
            cells = [cell for row in rows.values() for cell in _cells(row.outcomes)]
            for mode, row in rows.items():
                total[mode] += row.outcomes
                for wrong in row.wrong if options.show else ():
                    print(f"{name}, {mode}, {wrong}", file=sys.stderr, flush=True)
            print(name, *cells, flush=True)
            table.add_row(name, *cells)
    table.add_row("all", *(cell for mode in modes for cell in _cells(total[mode])))
    Console().print(table)
    sys.exit(any(counts["invalid"] + counts["no call"] for counts in total.values()))


COLUMNS = ("valid", "invalid", "no call", "reply", "cut")


def _cells(outcomes: Counter[str]) -> list[str]:
    return [str(outcomes[what]) for what in COLUMNS]


if __name__ == "__main__":
    main()
