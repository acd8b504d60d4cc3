"""Random calls: any tool, with random arguments by its schema, a few of them invalid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from adapter.core.events import Json, JsonObject
from adapter.tools.operations import Effect
from adapter.tools.tool import Tool

TEXTS = (
    *(
        "",
        "x",
        "one\n",
        "one\ntwo\nthree\n",
        "a\r\nb\r\n",
        "def f(x):\n    return x\n",
        "\ufeffmark\n",
        "no end",
        "\t \n",
    ),
    *("line\u2028separator\n", "# Title\n\ntext\n", '{"a": [1, 2]}', "é ü 漢字 🎉\n", "two\n", "    return x\n"),
)
PATTERNS = ("one", "def", ".*", r"\bx\b", "(", "**/*", "*.py", "**/*.{md,txt}", "[a-z]+", "", "T", "zzz")
WORDS = ("python", "function", "project", "content", "1", "pending", "shell_1", "/python/pathlib", "pathlib")


@dataclass(frozen=True, slots=True)
class World:
    """The values for the arguments of random calls. ``without``: effects that no call may have."""

    paths: Sequence[str]
    commands: Sequence[str] = ("true",)
    urls: Sequence[str] = ("http://127.0.0.1:1/",)
    texts: Sequence[str] = TEXTS
    without: frozenset[Effect] = field(default_factory=frozenset)


def random_call(chance: Random, tools: Mapping[str, Tool], world: World) -> tuple[str, JsonObject]:
    """Return a tool's name and arguments, which usually match its schema."""
    tool = chance.choice([tool for tool in tools.values() if tool.effect not in world.without])
    if tool.name in ("batch", "code_execution"):
        return tool.name, _of_calls(chance, tool.name, tools, world)
    return tool.name, _object(chance, tool.parameters, world)


def _of_calls(chance: Random, name: str, tools: Mapping[str, Tool], world: World) -> JsonObject:
    plain = {key: tool for key, tool in tools.items() if tool.name not in ("batch", "code_execution", "task")}
    calls = [random_call(chance, plain, world) for _ in range(chance.randint(1, 4))]
    if name == "batch":
        return {"tool_calls": [{"tool": tool, "parameters": arguments} for tool, arguments in calls]}
    lines = [f"r{number} = {tool}(**{arguments!r})" for number, (tool, arguments) in enumerate(calls)]
    last = "while True: pass" if chance.random() < 0.05 else chance.choice(("print(r0)", "r0", "1 / 0"))
    return {"code": "\n".join([*lines, last]), "timeout": 1}


def _object(chance: Random, schema: JsonObject, world: World) -> JsonObject:
    required = schema.get("required") or ()
    made: JsonObject = {}
    for name, each in (schema.get("properties") or {}).items():
        if chance.random() < (0.98 if name in required else 0.4):
            made[name] = _value(chance, name, each, world)
    return made


def _value(chance: Random, name: str, schema: JsonObject, world: World) -> Json:
    if chance.random() < 0.02:
        return chance.choice((None, -1, "", [], {}, 2**70, "\0", "\ud800"))
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return chance.random() < 0.5
        case "integer" | "number":
            return 1 if "time" in name.lower() else chance.choice((1, 1, 2, 3, 5, 100, 0, -1, 10**9))
        case "array":
            return [_value(chance, name, schema.get("items") or {}, world) for _ in range(chance.randint(0, 3))]
        case "object":
            return _object(chance, schema, world)
        case _:
            return chance.choice(_pool(name.lower(), world))


def _pool(name: str, world: World) -> Sequence[str]:
    return next((pool for pattern, pool in _pools(world) if re.search(pattern, name)), WORDS)


def _pools(world: World) -> Iterable[tuple[str, Sequence[str]]]:
    yield "command", world.commands
    yield "url", world.urls
    yield "project_path|short_description", WORDS
    yield "path|file$|source|destination|dir|target|cwd", world.paths
    yield "pattern|glob|include|ignore|filter|query|search", PATTERNS
    yield "content|text|string|replace|old|new", world.texts
