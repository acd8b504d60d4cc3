"""Build GBNF grammars and JSON Schemas for constrained decoding from tool definitions.

`build_gbnf` returns a llama.cpp grammar that admits exactly one call::

    <tool_call>
    {"name": "read_file", "arguments": {"path": "src/main.rs"}}
    </tool_call>

The call is in the model's own format, if this format writes arguments as JSON or key-value pairs (see
`adapter.grammars.call_layout`). `build_json_schema` does the same for servers that accept a JSON Schema
(``response_format``, Ollama's ``format``). Such a call has no markers, and its arguments are under ``parameters``:
Ollama sorts the keys, and a model must choose the name before the arguments.

Spacing is fixed, as in ``json.dumps``, because small models ramble when any whitespace is allowed. The length of
strings is limited, because whenever a constrained 135M model failed to produce a valid call, the cause was an endless
string.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import assert_never

from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.grammars import schema_ir as ir
from adapter.grammars.call_layout import (
    JsonCallLayout,
    KeyValueCallLayout,
    find_json_call_layout,
    find_key_value_call_layout,
)
from adapter.grammars.grammar_builder import (
    GrammarBuilder,
    format_gbnf_json_literal,
    format_gbnf_literal,
    join_alternatives,
)
from adapter.grammars.key_value_rules import KeyValueGrammarBuilder, UnrepresentableValue
from adapter.grammars.schema_to_ir import LoweringOptions, SchemaLowering
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

MAX_STRING = 1500
"""Maximum string length, in characters. SmolLM2 needs about 512 tokens for this, a common limit for a call."""
MAX_GRAMMAR = 300_000
"""Maximum length of a grammar, in characters. llama.cpp parses that in a fraction of a second."""
MAX_CALLS = 8
"""Maximum number of calls in an answer. Without a limit, small models often continue a list of calls indefinitely."""


def build_gbnf(
    tools: ToolSet,
    *,
    format: str = "hermes",
    choices: ir.Choices | None = None,
    max_string: int | None = MAX_STRING,
    max_text: int | None = MAX_STRING,
    reply: Tool | None = None,
    several: bool = False,
    allow_bare: bool = False,
) -> str:
    """Build a grammar that admits one call to one of the tools, with arguments that match its schema.

    Args:
        format: The call's format; replaced with Hermes if its arguments are neither JSON nor key-value pairs.
        max_string: Maximum characters per string; unlimited if None or more than `LONGEST_REPETITION`.
        max_text: Maximum characters per string in the parameters in `schema_to_ir.LONG_TEXTS`, because truncated text
            would be useless.
        reply: An additional tool. The grammar also admits a single call to it; all calls are then written as JSON.
        several: Whether to admit up to `MAX_CALLS` calls. With ``reply``, the start of a reply may follow them, because
            models continue with text after their calls.
        allow_bare: Whether to also admit bare or fenced JSON in a format with markers.

    Raises UsageError if no tool can be called, or if the grammar is longer than `MAX_GRAMMAR`.
    """
    options = LoweringOptions(choices or {}, max_string, max_text)
    layouts: list[JsonCallLayout | KeyValueCallLayout] = [find_json_call_layout(format)]
    # `ReplyParser` can stream a reply only if it is JSON.
    if reply is None and (key_value_layout := find_key_value_call_layout(format)):
        layouts.insert(0, key_value_layout)
    for options_tried, layout in product((options, replace(options, max_depth=2)), layouts):
        try:
            grammar = _build_grammar(tools, layout, options_tried, reply, several, allow_bare)
        except UnrepresentableValue:  # only for key-value pairs; JSON can represent every value
            continue
        if len(grammar) <= MAX_GRAMMAR:
            return grammar
    raise UsageError(
        f"the grammar for these {len(tools)} tools has {len(grammar)} characters; the maximum is {MAX_GRAMMAR}. "
        "Offer fewer tools, or shorter lists of choices."
    )


def _build_grammar(
    tools: ToolSet,
    layout: JsonCallLayout | KeyValueCallLayout,
    options: LoweringOptions,
    reply: Tool | None,
    several: bool,
    allow_bare: bool,
) -> str:
    rules = KeyValueGrammarBuilder(layout) if isinstance(layout, KeyValueCallLayout) else GrammarBuilder(layout)

    def build_call_rule(tools: ToolSet) -> str:
        shapes = _find_callable_shapes(tools, options)
        calls = join_alternatives(rules.add(name, rules.build_call(name, shape)) for name, shape in shapes.items())
        return rules.add("call", f"{format_gbnf_literal(layout.head)} ({calls}) {rules.tail}".rstrip())

    if reply is not None and not _find_satisfiable_shapes(tools, options):
        tools, reply, several = ToolSet([reply]), None, False
    root = build_call_rule(tools)
    if several and layout.between is not None:
        end = ""
        if reply is not None and isinstance(layout, JsonCallLayout):
            end = f"({format_gbnf_literal(layout.between + layout.head + reply.name + layout.middle)})?"
        root = f"{root} ({format_gbnf_literal(layout.between)} {root}){{0,{MAX_CALLS - 1}}} {end}"
    if reply is not None:
        root = f"{build_call_rule(ToolSet([reply]))} | {root}"
    if allow_bare and isinstance(rules, GrammarBuilder) and isinstance(layout, JsonCallLayout):
        shapes = _find_callable_shapes(tools, options)
        bare = (rules.add(f"bare-{name}", rules.build_bare_call(name, shape)) for name, shape in shapes.items())
        body = rf'"{{" spaces "\"name\"" spaces ":" spaces ({join_alternatives(bare)}) spaces "}}"'
        bare_call = rules.add("bare-call", body)
        root = f'{root} | {bare_call} | "```" "json"? spaces {bare_call} spaces "```"'
    return "\n".join([f"root ::= {root}", *(f"{name} ::= {body}" for name, body in rules.bodies.items()), ""])


def list_bare_call_tools(grammar: str, tools: ToolSet) -> list[str]:
    """Return the names of the tools that a grammar from `build_gbnf` admits as bare JSON calls, without markers."""
    return [name for name in tools if f" ::= {format_gbnf_literal(format_gbnf_json_literal(name))} spaces " in grammar]


def calls_begin_with(grammar: str, opening: str) -> bool:
    """Return whether every call in a grammar from `build_gbnf` begins with ``opening``."""
    return f"\ncall ::= {format_gbnf_literal(opening)[:-1]}" in grammar


def build_json_schema(
    tools: ToolSet,
    *,
    choices: ir.Choices | None = None,
    max_string: int | None = MAX_STRING,
    max_text: int | None = MAX_STRING,
    reply: Tool | None = None,
) -> JsonObject:
    """Build a JSON Schema for ``{"name": ..., "parameters": {...}}``, with one alternative per tool. It contains
    neither ``$ref`` nor lists of types. ``reply`` is an additional tool. Raises UsageError if no tool can be called."""
    if reply is not None:
        tools = ToolSet([*tools.values(), reply])
    calls = [
        _to_schema(
            ir.ObjectShape((ir.Property("name", ir.EnumShape((name,)), True), ir.Property("parameters", shape, True)))
        )
        for name, shape in _find_callable_shapes(tools, LoweringOptions(choices or {}, max_string, max_text)).items()
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


GAP = "\0"
"""Placeholder in the texts for `build_code_fence_grammar`, for one or more characters on the same line."""


def build_code_fence_grammar(texts: Iterable[str]) -> str:
    """Build a grammar that admits a code fence with one of ``texts``. A `GAP` in a text admits any characters except
    line breaks and backticks. Without texts, the fence may contain any lines that do not begin with a backtick."""
    choices = [" gap ".join(map(format_gbnf_literal, text.split(GAP))) for text in texts]
    rules = {
        "root": f'"```\\n" ({" | ".join(choices) or "line+"}) "```"',
        "gap": r"[^\x60\n]+",
        "line": r'([^\x60\n] [^\n]*)? "\n"',
    }
    return "".join(f"{name} ::= {rule}\n" for name, rule in rules.items())


def _find_satisfiable_shapes(tools: ToolSet, options: LoweringOptions) -> dict[str, ir.Shape]:
    """Return the argument shapes of the tools that can be called, by tool name."""
    shapes = {name: SchemaLowering(name, tool.parameters, options).lower() for name, tool in tools.items()}
    return {name: shape for name, shape in shapes.items() if ir.is_satisfiable(shape)}


def _find_callable_shapes(tools: ToolSet, options: LoweringOptions) -> dict[str, ir.Shape]:
    possible = _find_satisfiable_shapes(tools, options)
    if not possible:
        tool_names = ", ".join(tools) or "none"
        raise UsageError(
            f"no tool can be called (tools: {tool_names}): each has a required parameter without an allowed value; "
            "pass more tools or fewer restrictions"
        )
    return possible


def _to_schema(shape: ir.Shape) -> JsonObject:
    match shape:
        case ir.EnumShape(values):
            kind: JsonObject = {"type": "string"} if all(isinstance(value, str) for value in values) else {}
            return kind | ({"const": values[0]} if len(values) == 1 else {"enum": list(values)})
        case ir.StringShape(shortest, longest):  # some servers reject patterns that are not anchored at both ends
            return {"type": "string"} | _drop_none(minLength=shortest or None, maxLength=longest)
        case ir.NumberShape(integer, lowest, highest):
            as_json = int if integer else float
            bounds = {"minimum": lowest, "maximum": highest}
            given_bounds = {keyword: as_json(bound) for keyword, bound in bounds.items() if bound is not None}
            return {"type": "integer" if integer else "number", **given_bounds}
        case ir.Boolean():
            return {"type": "boolean"}
        case ir.Null():
            return {"type": "null"}
        case ir.AnyShape():
            return {}
        case ir.UnionShape(shapes):
            return {"anyOf": [_to_schema(item) for item in shapes]}
        case ir.ArrayShape(item, fewest, most):
            return {"type": "array", "items": _to_schema(item), "maxItems": most} | _drop_none(minItems=fewest or None)
        case ir.TupleShape(items):
            count = len(items)
            return {"type": "array", "prefixItems": [*map(_to_schema, items)], "minItems": count, "maxItems": count}
        case ir.MapShape(value):
            return {"type": "object", "additionalProperties": _to_schema(value)}
        case ir.ObjectShape(properties):
            return {
                "type": "object",
                "properties": {item.name: _to_schema(item.shape) for item in properties},
                "required": [item.name for item in properties if item.required],
                "additionalProperties": False,
            }
        case _:
            assert_never(shape)


def _drop_none(**keywords: int | None) -> JsonObject:
    return {keyword: value for keyword, value in keywords.items() if value is not None}
