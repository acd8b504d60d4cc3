"""Build the request fields that make a server constrain its output to tool calls. They depend on the kind of server."""

from __future__ import annotations

from adapter.backends.endpoint_discovery import Kind
from adapter.core.events import JsonObject
from adapter.grammars.call_layout import find_call_prefix
from adapter.grammars.gbnf import build_gbnf, build_json_schema, calls_begin_with, list_bare_call_tools
from adapter.grammars.schema_ir import Choices
from adapter.parsing.formats import get_format
from adapter.protocols.llama_cpp_completion import build_lazy_grammar_fields
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

_TAKES_GBNF: dict[Kind, str] = {"llama.cpp": "grammar", "koboldcpp": "grammar", "textgen": "grammar_string"}
_TAKES_JSON_SCHEMA: frozenset[Kind] = frozenset({"ollama", "lmstudio", "vllm", "sglang"})

WORDS_GRAMMAR = r"root ::= [^{<\x60\x5b \t\n] [^{<\x60]*"
"""GBNF for plain text. It excludes JSON, tags and code fences, and so every call."""

MAX_VALUE = 200
"""Maximum length of strings for short text, in characters. A small model rarely ends a string that is longer."""


def build_constraint_fields(
    kind: Kind,
    tools: ToolSet,
    choices: Choices | None = None,
    *,
    format: str = "hermes",
    reply: Tool | None = None,
    several: bool = False,
    waits: bool = False,
    max_string: int | None = MAX_VALUE,
    max_text: int | None = None,
) -> JsonObject:
    """Return the request fields that constrain a model to calls of ``tools``, or to plain text if there are no tools.

    The result is empty for servers that cannot constrain output. The options are explained by `build_gbnf` and
    `build_json_schema`. With GBNF, the call is written in ``format``. With a JSON Schema, the answer is a single call
    as a JSON object, with its arguments under ``parameters``. ``waits`` requests a lazy grammar, which applies only
    once the model begins a call. It requires llama.cpp, and a format whose calls have an opening marker.
    """
    if not tools:
        return build_no_call_fields(kind)
    if waits:
        return _build_waiting_fields(kind, tools, choices, format, max_string, max_text)
    if kind in _TAKES_GBNF:
        grammar = build_gbnf(
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
        schema = build_json_schema(tools, choices=choices, reply=reply, max_string=max_string, max_text=max_text)
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "tool_call", "schema": schema}}}
    return {}


def build_no_call_fields(kind: Kind) -> JsonObject:
    """Return the request fields that forbid calls although the prompt describes tools, or {} without such fields."""
    return build_grammar_fields(kind, WORDS_GRAMMAR)


def build_grammar_fields(kind: Kind, grammar: str) -> JsonObject:
    """Return the request fields that constrain an answer to a GBNF ``grammar``, or {} without such fields."""
    return {_TAKES_GBNF[kind]: grammar} if kind in _TAKES_GBNF else {}


def _build_waiting_fields(
    kind: Kind, tools: ToolSet, choices: Choices | None, format: str, max_string: int | None, max_text: int | None
) -> JsonObject:
    opening = find_call_prefix(format) if kind == "llama.cpp" else None
    if opening is None:
        return {}
    grammar = build_gbnf(
        tools, format=format, choices=choices, max_string=max_string, max_text=max_text, allow_bare=True
    )
    if not calls_begin_with(grammar, opening):
        return {}
    return build_lazy_grammar_fields(
        grammar, opening, get_format(format).special_tokens, list_bare_call_tools(grammar, tools)
    )
