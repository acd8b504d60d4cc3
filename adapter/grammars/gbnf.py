r"""Constrained decoding: from tool definitions to what a server can enforce.

`gbnf` writes a llama.cpp grammar that admits exactly one call::

    <tool_call>
    {"name": "read_file", "arguments": {"path": "src/main.rs"}}
    </tool_call>

in the model's own format, as far as that writes arguments as JSON or in pairs of a key and a value (see
`adapter.grammars.call_layout`).
`json_schema` says the same for servers that take a JSON Schema
(``response_format``, Ollama's ``format``); there the call has no markers and
its arguments stand under ``parameters``, because Ollama sorts keys and a model
must choose the name before it writes the arguments.

Spacing is fixed to that of ``json.dumps``: where white space is free, small
models ramble in it. Strings are bounded: a string that never ends was the only
way in which a constrained 135M model failed to give a valid call.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.grammars.call_layout import JsonCallLayout, KeyValueCallLayout, json_call_layout, key_value_call_layout
from adapter.grammars.key_value_rules import KeyValueGrammarBuilder, UnrepresentableValue
from adapter.grammars.rule_builder import GrammarBuilder, alternatives, gbnf_json_literal, gbnf_literal
from adapter.grammars.schema_ir import (
    AnyShape,
    ArrayShape,
    Boolean,
    Choices,
    EnumShape,
    MapShape,
    Null,
    NumberShape,
    ObjectShape,
    Property,
    Shape,
    StringShape,
    TupleShape,
    UnionShape,
    is_satisfiable,
)
from adapter.grammars.schema_lowering import LoweringOptions, SchemaLowering
from adapter.tools.tool import Tool, ToolSet

MAX_STRING = 1500
"""Characters. About what SmolLM2 writes in the 512 tokens that a call is usually given."""

MAX_GRAMMAR = 300_000
"""Characters. llama.cpp parses as much in a fraction of a second."""

MAX_CALLS = 8
"""In one answer. A small model that makes a list of calls does not end it by itself."""


def build_gbnf(
    tools: ToolSet,
    *,
    format: str = "hermes",
    choices: Choices | None = None,
    max_string: int | None = MAX_STRING,
    max_text: int | None = MAX_STRING,
    allow_text: bool = False,
    reply: Tool | None = None,
    several: bool = False,
    allow_bare: bool = False,
) -> str:
    """A grammar whose every text is one call of one of the tools with arguments of its schema.

    ``format``: how the call is written, where that format puts arguments as JSON or in pairs; else as Hermes does.
    ``max_string``: characters per string; None, or more than `LONGEST_REPETITION`, leaves them unbounded.
    ``max_text``: the same for texts of any length, of which a piece would look whole (see `SchemaLowering`).
    ``allow_text``: or any text that does not look like the start of a call. ``reply``: or a call of this tool
    alone; then all is in JSON. ``several``: up to `MAX_CALLS` calls; one that begins like a reply ends them, as
    models that have called what they wanted go on to talk about it. ``allow_bare``: or one whose JSON stands alone or
    in a fence, where the format's stands between markers. Raises UsageError when no tool is left to call, and for
    more than `MAX_GRAMMAR`.
    """
    shaping = LoweringOptions(choices or {}, max_string, max_text)
    # A reply is streamed while it is written: its text stands in JSON.
    own = None if reply else key_value_call_layout(format)
    frames: list[JsonCallLayout | KeyValueCallLayout] = (
        [json_call_layout(format)] if own is None else [own, json_call_layout(format)]
    )
    shallow = replace(shaping, max_depth=2)
    for frame, shaped in ((frame, shaped) for shaped in (shaping, shallow) for frame in frames):
        try:
            grammar = _gbnf(tools, frame, shaped, allow_text, reply, several, allow_bare)
        except UnrepresentableValue:  # in pairs; as JSON everything can be written
            continue
        if len(grammar) <= MAX_GRAMMAR:
            return grammar
    raise UsageError(
        f"a grammar for these {len(tools)} tools has {len(grammar)} characters, and more than {MAX_GRAMMAR} are "
        "more than a server should be asked to read; offer fewer tools, or shorter lists of choices"
    )


def _gbnf(
    tools: ToolSet,
    frame: JsonCallLayout | KeyValueCallLayout,
    shaping: LoweringOptions,
    allow_text: bool,
    reply: Tool | None,
    several: bool,
    allow_bare: bool,
) -> str:
    rules = KeyValueGrammarBuilder(frame) if isinstance(frame, KeyValueCallLayout) else GrammarBuilder(frame)

    def call_of(tools: ToolSet) -> str:
        calls = [rules.add(name, rules.call(name, shape)) for name, shape in _callable(tools, shaping).items()]
        return rules.add("call", f"{gbnf_literal(frame.head)} ({alternatives(calls)}) {rules.tail}".rstrip())

    if reply is not None and not _possible(tools, shaping):
        tools, reply, several = ToolSet([reply]), None, False
    root = call_of(tools)
    if several and frame.between is not None:
        end = ""
        if reply is not None and isinstance(frame, JsonCallLayout):
            end = f"({gbnf_literal(frame.between + frame.head + reply.name + frame.middle)})?"
        root = f"{root} ({gbnf_literal(frame.between)} {root}){{0,{MAX_CALLS - 1}}} {end}"
    if reply is not None:
        root = f"{call_of(ToolSet([reply]))} | {root}"
    if allow_text:
        root = f"{root} | text"
    if allow_bare and isinstance(rules, GrammarBuilder) and isinstance(frame, JsonCallLayout):
        calls = [
            rules.add(f"bare-{name}", rules.bare(name, shape)) for name, shape in _callable(tools, shaping).items()
        ]
        bare = rules.add("bare-call", rf'"{{" spaces "\"name\"" spaces ":" spaces ({alternatives(calls)}) spaces "}}"')
        root = f'{root} | {bare} | "```" "json"? spaces {bare} spaces "```"'
    return "\n".join([f"root ::= {root}", *(f"{name} ::= {body}" for name, body in rules.bodies.items()), ""])


def with_bare_names(grammar: str, tools: ToolSet) -> list[str]:
    """The tools whose calls a grammar that `gbnf` wrote admits in bare JSON."""
    return [name for name in tools if f" ::= {gbnf_literal(gbnf_json_literal(name))} spaces " in grammar]


def with_prefix(grammar: str, opening: str) -> bool:
    """Whether each call of a grammar that `gbnf` wrote begins with this text."""
    return f"\ncall ::= {gbnf_literal(opening)[:-1]}" in grammar


def build_json_schema(
    tools: ToolSet,
    *,
    choices: Choices | None = None,
    max_string: int | None = MAX_STRING,
    max_text: int | None = MAX_STRING,
    reply: Tool | None = None,
) -> JsonObject:
    """A JSON Schema for ``{"name": ..., "parameters": {...}}``: one alternative per tool, no ``$ref``, no type lists.

    ``reply``: one more tool. Raises UsageError when no tool is left to call.
    """
    if reply is not None:
        tools = ToolSet([*tools.values(), reply])
    calls = [
        _as_schema(ObjectShape((Property("name", EnumShape((name,)), True), Property("parameters", shape, True))))
        for name, shape in _callable(tools, LoweringOptions(choices or {}, max_string, max_text)).items()
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


def _possible(tools: ToolSet, shaping: LoweringOptions) -> dict[str, Shape]:
    """The arguments' shape of each tool that can be called at all."""
    shapes = {name: SchemaLowering(name, tool.parameters, shaping).lower() for name, tool in tools.items()}
    return {name: shape for name, shape in shapes.items() if is_satisfiable(shape)}


def _callable(tools: ToolSet, shaping: LoweringOptions) -> dict[str, Shape]:
    possible = _possible(tools, shaping)
    if not possible:
        given = ", ".join(tools) or "none"
        raise UsageError(
            f"no tool can be called (tools: {given}): a grammar needs at least one whose required parameters "
            "have a choice left; pass more tools or fewer choices"
        )
    return possible


# ----------------------------------------------------------------- JSON Schema


def _as_schema(shape: Shape) -> JsonObject:
    match shape:
        case EnumShape(values):
            kind: JsonObject = {"type": "string"} if all(isinstance(value, str) for value in values) else {}
            return kind | ({"const": values[0]} if len(values) == 1 else {"enum": list(values)})
        case StringShape(shortest, longest):  # patterns are refused by some, unless anchored at both ends
            return {"type": "string"} | _given(minLength=shortest or None, maxLength=longest)
        case NumberShape(integer, lowest, highest):
            as_json = int if integer else float
            bounds = {"minimum": lowest, "maximum": highest}
            told = {keyword: as_json(bound) for keyword, bound in bounds.items() if bound is not None}
            return {"type": "integer" if integer else "number", **told}
        case Boolean():
            return {"type": "boolean"}
        case Null():
            return {"type": "null"}
        case AnyShape():
            return {}
        case UnionShape(shapes):
            return {"anyOf": [_as_schema(each) for each in shapes]}
        case ArrayShape(item, fewest, most):
            return {"type": "array", "items": _as_schema(item), "maxItems": most} | _given(minItems=fewest or None)
        case TupleShape(items):
            count = len(items)
            return {"type": "array", "prefixItems": [*map(_as_schema, items)], "minItems": count, "maxItems": count}
        case MapShape(value):
            return {"type": "object", "additionalProperties": _as_schema(value)}
        case ObjectShape(properties):
            return {
                "type": "object",
                "properties": {each.name: _as_schema(each.shape) for each in properties},
                "required": [each.name for each in properties if each.required],
                "additionalProperties": False,
            }
        case _:
            assert_never(shape)


def _given(**keywords: int | None) -> JsonObject:
    return {keyword: value for keyword, value in keywords.items() if value is not None}
