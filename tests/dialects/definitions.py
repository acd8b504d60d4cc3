"""What holds for the definitions of every dialect, over a table of what its document says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from adapter.dialects import Dialect
from adapter.tools.tool import Tool

Documented: TypeAlias = Mapping[str, Sequence[tuple[str, str, bool, object]]]
"""By tool its parameters: name, JSON type, required, default."""


def make_files(directory: Path, *names: str, text: str = "") -> None:
    """Files, each changed a second after the one before."""
    for number, name in enumerate(names):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))


def check_parameters(tool: Tool, documented: Sequence[tuple[str, str, bool, object]]) -> None:
    """Exactly the documented ones, each with its type, requirement, default and a description."""
    assert list(tool.properties) == [name for name, *_ in documented]
    for name, kind, required, default in documented:
        schema = tool.properties[name]
        assert (name, schema["type"]) == (name, kind)
        assert schema["description"]
        assert (name, name in tool.required) == (name, required)
        assert (name, schema.get("default")) == (name, default)


def check_example(tool: Tool) -> None:
    """The example shown to a model passes its own checks."""
    assert tool.example is not None
    assert set(tool.required) <= set(tool.example)
    assert set(tool.example) <= set(tool.properties)
    assert tool.validate is not None
    tool.validate(tool.example).operation()


def check_names(dialect: Dialect) -> None:
    """No name or alias means two tools, no alias two arguments, and no schema has what small grammars do not know."""
    tools = dialect.tools
    names = [name for tool in tools.values() for name in (tool.name, *tool.aliases)]
    assert len(names) == len(set(names))
    for tool in tools.values():
        aliases = [alias for each in tool.argument_aliases.values() for alias in each]
        assert (tool.name, len(aliases)) == (tool.name, len(set(aliases)))
        assert not set(aliases) & set(tool.properties), tool.name
    text = json.dumps([tool.parameters for tool in tools.values()])
    for keyword in ("$ref", "$defs", '"title"', "anyOf", '"null"', "x-required"):
        assert keyword not in text
