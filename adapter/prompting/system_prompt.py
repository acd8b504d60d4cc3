"""Generate system prompts that describe a dialect's tools and the format of calls.

The text comes from templates in `prompts/`, and the descriptions come from the tool definitions. The format's encoder
writes the example, so that the prompt always agrees with the parser.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Literal, get_args

from adapter.core.argument_checks import NONE, PATH, check_types
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.program_lookup import find_program
from adapter.dialects import NO_TOOLS, Dialect, get_dialect
from adapter.parsing.format import Format
from adapter.parsing.formats import get_format
from adapter.prompting.escaping import escape_control_tokens, map_strings
from adapter.tools.coercion import list_required, list_types, select_branch
from adapter.tools.operations.capabilities import list_default_capabilities
from adapter.tools.signatures import describe_type, format_parameters
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolDefinitions, ToolSet

Style = Literal["compact", "args", "full", "trained", "small", "bare", "native"]
"""The style in which a system prompt describes tools.

- compact: one line per tool.
- args: one line per tool, with JSON that maps its arguments to their types.
- full: an explanation of every parameter.
- trained: definitions as JSON, as in chat templates.
- small: only the names of tools and parameters, for models with a few hundred million parameters, which copy all other
  text.
- bare: definitions as JSON without an example, for constrained calls, because small models copy an example's values.
- native: no tools, for servers that add them to the prompt.
"""


def system_prompt(
    dialect: str | Dialect = "blade",
    format: str | Format = "hermes",
    style: str = "compact",
    *,
    tools: ToolDefinitions | None = None,
    prompts: str | None = None,
    session: str = "",
) -> str:
    """Return a system prompt that teaches a model without native tool calling to call tools.

    ``style`` is one of `Style`. ``tools`` replace the dialect's tools. If they include none of the dialect's tools, the
    dialect's introduction is omitted. ``prompts`` is a folder of templates that replace packaged ones with the same
    names. ``session`` is added to the values in the example call, so that they are not real files, commands or words.
    Raises UsageError for an unknown dialect, format or style, an empty tool list, or an unusable template.
    """
    check_types("system_prompt", prompts=(prompts, *PATH, NONE), session=(session, str))
    if style not in get_args(Style):
        raise UsageError(f"unknown prompt style {style!r}; expected {', '.join(get_args(Style))}")
    offered = ToolSet(load_default_tools(dialect) if tools is None else tools)
    if not offered:
        raise UsageError("a system prompt needs at least one tool, got none; pass tools or another dialect")
    chosen, own = get_format(format), get_dialect(dialect)
    described = [ToolDescription(_escape(tool, chosen, offered)) for tool in offered.values()]
    example = min(described, key=lambda tool: (not tool.has_example, not (tool.has_example or tool.has_known_values)))
    values = {
        "dialect": NO_TOOLS.name if own.tools and own.tools.keys().isdisjoint(offered) else own.name,
        "format": chosen.name,
        "tools": described,
        "example": {
            "request": f"use {example.name}",
            "call": chosen.encode_calls(
                [(example.name, _make_unique(session if example.has_example else "", example.example))]
            ),
            "result": chosen.encode_result(example.name, "...", "call_1"),
        },
    }
    from adapter.prompting.prompt_rendering import render_prompt_template

    return render_prompt_template(f"{style}.md", values, prompts).strip() + "\n"


def load_default_tools(dialect: str | Dialect) -> ToolSet:
    """Return the dialect's tools that work in a workspace with the default capabilities and the installed programs."""
    present = list_default_capabilities()
    return ToolSet(
        tool
        for tool in get_dialect(dialect).tools.values()
        if (tool.needs is None or tool.needs in present) and (not tool.program or find_program(tool.program))
    )


def create_prompt_session() -> str:
    """Return four random hexadecimal digits for the ``session`` of `system_prompt`."""
    import secrets

    return secrets.token_hex(2)


def _make_unique(session: str, value: Json) -> Json:
    """Add ``session`` to every string in ``value``, so that the strings are not real files, commands or words."""
    if isinstance(value, dict):
        return {key: _make_unique(session, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_make_unique(session, each) for each in value]
    if not session or not isinstance(value, str) or value.startswith("<"):
        return value
    first, newline, rest = value.partition("\n")
    stem, dot, suffix = first.rpartition(".")
    is_file = bool(dot) and stem[-1:].isalnum() and suffix.isalnum() and " " not in first
    return (f"{stem}_{session}.{suffix}" if is_file else f"{first}_{session}") + newline + rest


_PROPOSALS = frozenset({"const", "default", "enum", "examples"})
"""Schema keywords that propose values."""


class ToolDescription:
    """A tool, described for the templates of system prompts. Most properties are computed on first access."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self.name = tool.name
        self.description = tool.description
        self.has_example = tool.example is not None

    @cached_property
    def summary(self) -> str:
        return self.description.split("\n")[0].split(". ")[0].rstrip(".")

    @cached_property
    def signature(self) -> str:
        """The signature: ``read_file_range(path, start_line = 1, end_line?: integer)``. Types default to string."""
        return f"{self._tool.name}({format_parameters(self._tool)})"

    @cached_property
    def arguments(self) -> str:
        """The arguments as JSON with types as values: ``{"path": "string", "start_line": "integer, default 1"}``."""
        return json.dumps(_build_typed(self._tool.properties, self._tool.required), ensure_ascii=False)

    @cached_property
    def parameters(self) -> list[JsonObject]:
        """Each parameter's name, type, description and default value, and whether it is required."""
        return [
            {
                "name": name,
                "type": describe_type(schema),
                "required": name in self._tool.required,
                "description": str(schema.get("description", "")),
                "default": json.dumps(schema["default"]) if schema.get("default") is not None else "",
            }
            for name, schema in self._tool.properties.items()
        ]

    @cached_property
    def definition(self) -> str:
        """The tool's definition in OpenAI's format, as one line of JSON."""
        return json.dumps(self._tool.to_openai(), ensure_ascii=False)

    @cached_property
    def example(self) -> JsonObject:
        """The tool's example arguments.

        For a tool without an example, they are values from its schema, and placeholders such as ``<name>``.
        """
        return _build_sample(self._tool) if self._tool.example is None else self._tool.example

    @property
    def has_known_values(self) -> bool:
        """True if all values in the example come from the schema. Small models would copy other values."""
        schemas = (self._tool.properties.get(name) for name in self.example)
        return bool(self.example) and all(
            isinstance(schema, dict) and not _PROPOSALS.isdisjoint(schema) for schema in schemas
        )


def _escape(tool: Tool, format: Format, tools: ToolSet) -> Tool:
    """Return ``tool`` with escaped control tokens in its description and schema, which may come from an untrusted
    server.
    """

    def escape(text: str) -> str:
        return escape_control_tokens(text, format, tools)

    parameters: JsonObject = map_strings(escape, tool.parameters)
    return replace(tool, description=escape(tool.description), parameters=parameters)


def _build_sample(tool: Tool) -> JsonObject:
    """Return sample arguments for a tool without an example."""
    names = tool.required or tuple(tool.properties)[:1]
    return {name: _build_sample_value(name, tool.properties.get(name, {})) for name in names}


def _build_sample_value(name: str, schema: Json) -> Json:
    if not isinstance(schema, dict):
        return f"<{name}>"
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    types = list_types(schema)
    if "string" in types or not types:
        return f"<{name}>"
    if "array" in types:
        return [_build_sample_value(name, select_branch(schema, "array").get("items"))]
    if "object" in types:
        return {}
    return True if "boolean" in types else 1


def _build_typed(properties: Mapping[str, Json], required: tuple[str, ...]) -> JsonObject:
    """Map each property to the name of its type, also inside lists and objects."""
    return {name: _build_typed_value(schema, name in required) for name, schema in properties.items()}


def _build_typed_value(schema: Mapping[str, Json], is_required: bool) -> Json:
    types = list_types(schema) - {"null"}
    items = schema.get("items") or {}
    if types == {"array"} and items:
        return [_build_typed_value(items, True)]
    if types == {"object"} and schema.get("properties"):
        return _build_typed(schema["properties"], tuple(list_required(schema)))
    kind = " or ".join(map(str, schema["enum"])) if "enum" in schema else describe_type(schema)
    if is_required:
        return kind
    default = schema.get("default")
    return f"{kind}, optional" if default is None else f"{kind}, default {json.dumps(default, ensure_ascii=False)}"
