"""The fields of a request that make a server enforce how calls are written, by what kind of server it is."""

from __future__ import annotations

from adapter.constraints.frames import opening_of
from adapter.constraints.grammar import gbnf, json_schema
from adapter.constraints.shapes import Choices
from adapter.tools.definition import Tool, ToolSet
from adapter.upstream.endpoints import Kind
from adapter.values.errors import UsageError
from adapter.values.events import JsonObject
from adapter.wire.llama_cpp import lazy_fields

_TAKES_GBNF: dict[Kind, str] = {"llama.cpp": "grammar", "koboldcpp": "grammar", "textgen": "grammar_string"}
_TAKES_JSON_SCHEMA: frozenset[Kind] = frozenset({"ollama", "lmstudio", "vllm", "sglang"})

MAX_VALUE = 200
"""Characters of a string that is no text of any length. A small model that writes more has lost its way."""


def constraint_fields(
    kind: Kind,
    tools: ToolSet,
    choices: Choices | None = None,
    *,
    format: str = "hermes",
    reply: Tool | None = None,
    several: bool = False,
    max_string: int | None = MAX_VALUE,
    max_text: int | None = None,
) -> JsonObject:
    """The request fields that make this kind of server write nothing but a call of one of the tools.

    Empty for a server that is not known to enforce any. The options are those of `gbnf` and `json_schema`.
    With GBNF the call is written as in ``format``; with a JSON Schema it is bare and one, its arguments under
    ``parameters``.
    """
    if kind in _TAKES_GBNF:
        grammar = gbnf(
            tools,
            format=format,
            choices=choices,
            reply=reply,
            several=several,
            max_string=max_string,
            max_text=max_text,
        )
        return {_TAKES_GBNF[kind]: grammar}
    if kind in _TAKES_JSON_SCHEMA:
        schema = json_schema(tools, choices=choices, reply=reply, max_string=max_string, max_text=max_text)
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "tool_call", "schema": schema}}}
    return {}


def waiting_fields(kind: Kind, tools: ToolSet, *, format: str = "hermes") -> JsonObject:
    """The fields that leave the model free until it begins a call, which must then be a valid one.

    Empty for a server that cannot wait, and where no grammar can be made.
    """
    opening = opening_of(format) if kind == "llama.cpp" else None
    try:
        return lazy_fields(gbnf(tools, format=format, max_string=MAX_VALUE, max_text=None), opening) if opening else {}
    except UsageError:  # too large, or nothing left to choose
        return {}
