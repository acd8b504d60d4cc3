"""Grammars from tool definitions, sampled by a real llama.cpp with random weights.

The model's choices are random, so its output samples the grammar.
"""

from __future__ import annotations

import json
import re
from urllib.request import Request, urlopen

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adapter.backends.chat_client import ChatClient
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.grammars.call_layout import (
    _find_json_layout,
    find_call_prefix,
    find_json_call_layout,
    find_key_value_call_layout,
)
from adapter.grammars.gbnf import MAX_GRAMMAR, build_gbnf, build_json_schema, calls_begin_with
from adapter.grammars.grammar_builder import LONGEST_REPETITION
from adapter.grammars.key_value_rules import KeyValueGrammarBuilder
from adapter.grammars.reply_tool import REPLY
from adapter.grammars.schema_ir import Choices
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import parse
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from tests.effort import examples
from tests.engines import ONLY_ASCII

PATH = {"type": "string"}
READ = Tool("read_file", parameters={"type": "object", "properties": {"path": PATH}, "required": ["path"]})
WRITE = Tool(
    "write_file",
    parameters={"properties": {"path": PATH, "content": {"type": "string"}}, "required": ["path", "content"]},
)


def tool_of(schema, name="tool") -> Tool:
    return Tool(name, parameters=schema)


def parameter(schema, *, required=True) -> Tool:
    return tool_of({"type": "object", "properties": {"p": schema}, "required": ["p"] if required else []})


def sample(client: ChatClient, grammar: str, seed: int = 0, max_tokens: int = 3000) -> str:
    """Return a random text of the grammar. Raises HTTPError for a grammar that llama.cpp does not take."""
    fields = {"grammar": grammar, "temperature": 1.0, "seed": seed, "max_tokens": max_tokens} | ONLY_ASCII
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], **fields}
    with urlopen(Request(f"{client.endpoint.base_url}/chat/completions", json.dumps(body).encode())) as answer:
        text: str = json.load(answer)["choices"][0]["message"]["content"]
    return text


def call_in(text: str) -> Json:
    assert text.startswith("<tool_call>\n{")
    assert text.endswith("}\n</tool_call>")
    return json.loads(text[len("<tool_call>\n") : -len("\n</tool_call>")])


def arguments_of(client: ChatClient, tool: Tool, seed: int = 0, **options) -> Json:
    return call_in(sample(client, build_gbnf(ToolSet([tool]), max_string=20, **options), seed))["arguments"]


@pytest.mark.parametrize("seed", range(4))
def test_one_call_of_a_known_tool_in_canonical_spacing(random_chat, seed):
    text = sample(random_chat, build_gbnf(ToolSet([READ, WRITE]), max_string=30), seed)
    call = call_in(text)
    assert list(call) == ["name", "arguments"]
    expected = {"read_file": {"path"}, "write_file": {"path", "content"}}
    assert {*call["arguments"]} == expected[call["name"]]
    assert text == f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder"])
def test_few_required_arguments_come_in_any_order_and_many_in_one(random_chat, format):
    """All required ones, each once; the optional ones follow, as before."""

    def orders(names: str, seeds: int) -> set[str]:
        flag: JsonObject = {"type": "boolean"}
        schema = {"properties": dict.fromkeys(names, flag) | {"z": flag}, "required": [*names]}
        tools = ToolSet([tool_of(schema)])
        texts = (sample(random_chat, build_gbnf(tools, format=format), seed) for seed in range(seeds))
        return {"".join(parse(text, tools, format).calls[0].arguments).removesuffix("z") for text in texts}

    assert orders("ab", 4) <= {"ab", "ba"}
    assert all(sorted(order) == [*"abcd"] for order in orders("abcd", 6))
    assert len(orders("abcd", 6)) > 1
    assert orders("abcde", 6) == {"abcde"}


ODD = 'a"b\\c\nd\té\u2028😀\ud800 [x] {y} ::= | <z>'


def test_names_enums_and_choices_may_be_any_text(random_chat):
    tool = tool_of({"properties": {ODD: {"enum": [ODD]}, "free": {"type": "string"}}, "required": [ODD, "free"]}, ODD)
    call = call_in(sample(random_chat, build_gbnf(ToolSet([tool]), choices={"free": [ODD]})))
    assert call == {"name": ODD, "arguments": {ODD: ODD, "free": ODD}}


def test_names_that_look_alike_or_like_rules_stay_apart(random_chat):
    names = ["root", "call", "char", "string", "a.b", "a-b", "A_B", "工具", "?", ""]
    tools = ToolSet(
        [
            Tool(name, parameters={"properties": {name or "p": {"const": name}}, "required": [name or "p"]})
            for name in names
        ]
    )
    for seed in range(5):
        call = call_in(sample(random_chat, build_gbnf(tools), seed))
        assert call["name"] in names
        assert list(call["arguments"].values()) == [call["name"]]


@pytest.mark.parametrize("bound", [0, 1, 7, LONGEST_REPETITION, LONGEST_REPETITION + 1, 50_000, None])
def test_strings_are_bounded(random_chat, bound):
    text = sample(random_chat, build_gbnf(ToolSet([READ]), max_string=bound))
    if bound is not None:
        assert len(call_in(text)["arguments"]["path"]) <= bound


# ------------------------------------------------------------------ any schema

_scalars = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 2, "maxLength": 4},
        {"type": "string", "pattern": "^[ab]$", "format": "date"},
        {"type": "string", "pattern": "x", "maxLength": 6},
        {"type": "integer"},
        {"type": "integer", "minimum": 0, "multipleOf": 3},
        {"type": "integer", "exclusiveMinimum": -20, "maximum": 1234},
        {"type": "number", "minimum": -0.5, "exclusiveMaximum": 0.25},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["string", "null"]},
        {"enum": ["a", 1, None, True, {"x": [1]}]},
        {"const": -1.5},
        {"$ref": "#/$defs/shared"},
    ]
)
_names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4)


def _nested(inner):
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner, "minItems": st.integers(0, 2)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
        _objects(inner),
    )


def _objects(inner):
    return st.dictionaries(_names, inner, max_size=4).flatmap(
        lambda properties: st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.just(properties),
                "required": st.lists(st.sampled_from(sorted(properties)), unique=True) if properties else st.just([]),
                "additionalProperties": st.booleans(),
            }
        )
    )


SCHEMAS = _objects(st.recursive(_scalars, _nested, max_leaves=6))
WIDENED = {"format", "multipleOf"}


def without_widened(schema):
    """The schema as far as a grammar promises it."""
    if isinstance(schema, dict):
        return {key: without_widened(value) for key, value in schema.items() if key not in WIDENED}
    return [without_widened(each) for each in schema] if isinstance(schema, list) else schema


@examples(15)
@given(schema=SCHEMAS, seed=st.integers(0, 1000))
def test_grammar_output_is_valid_for_the_schema(random_chat, schema, seed):
    schema = schema | {"$defs": {"shared": {"type": "boolean"}}, "nowhere": {}}
    tool = tool_of(schema)
    arguments = arguments_of(random_chat, tool, seed)
    Draft202012Validator(without_widened(schema)).validate(arguments)


@examples(60)
@given(schema=SCHEMAS)
def test_the_json_schema_is_valid_and_uses_the_common_subset(schema):
    produced = build_json_schema(ToolSet([tool_of(schema), READ]))
    Draft202012Validator.check_schema(produced)
    text = json.dumps(produced["anyOf"][0]["properties"]["parameters"])
    names = json.dumps(schema)
    assert "$ref" in names or '"$ref"' not in text
    assert '"type": [' not in text


@examples(30)
@given(
    schema=st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-2, 9)
        | st.sampled_from(["object", "array", "string", "#", "#/properties"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "properties",
                        "required",
                        "items",
                        "enum",
                        "anyOf",
                        "allOf",
                        "$ref",
                        "const",
                        "maxItems",
                        "maxLength",
                        "minLength",
                        "additionalProperties",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ).filter(lambda value: isinstance(value, dict))
)
@example(schema={"maxLength": False})
def test_odd_schemas_give_valid_grammars(random_chat, schema):
    try:
        grammar = build_gbnf(ToolSet([parameter(schema, required=False)]))
    except UsageError:
        return
    assert sample(random_chat, grammar, max_tokens=3)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"$ref": "#/nowhere"},
        {"$ref": "other.json#/x"},
        {"type": "unheard-of"},
        {"type": "object"},
        {"not": {"type": "null"}},
    ],
)
def test_unsupported_constraints_are_widened(random_chat, schema):
    assert list(arguments_of(random_chat, parameter(schema))) == ["p"]


def test_all_parts_of_a_schema_count(random_chat):
    both = {"allOf": [{"properties": {"a": {"type": "null"}}}, {"required": ["a"]}]}
    assert arguments_of(random_chat, parameter(both)) == {"p": {"a": None}}


def test_recursive_reference_is_eventually_omitted(random_chat):
    """Unless it must be there, which no call could satisfy: then it may be anything."""
    node = {
        "type": "object",
        "properties": {"value": {"type": "null"}, "next": {"$ref": "#/properties/p"}},
        "additionalProperties": False,
    }
    tool = parameter(node)
    for seed in range(8):
        arguments = arguments_of(random_chat, tool, seed)
        Draft202012Validator(tool.parameters).validate(arguments)
    assert "next" in arguments_of(random_chat, parameter(node | {"required": ["next"]}))["p"]


def test_keywords_next_to_alternatives_apply_to_each(random_chat):
    one_of_two = {
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"type": "boolean"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    for seed in range(6):
        Draft202012Validator(one_of_two).validate(arguments_of(random_chat, tool_of(one_of_two), seed))


def test_required_undeclared_property_is_included(random_chat):
    assert "p" in arguments_of(random_chat, tool_of({"type": "object", "properties": {}, "required": ["p"]}))


def test_referenced_base_is_merged_with_own_properties(random_chat):
    base = {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}
    own = {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"const": 1}}, "required": ["b"]}]}
    assert arguments_of(random_chat, tool_of(own | {"$defs": {"base": base}})) == {"a": None, "b": 1}


def test_tuples_have_their_items(random_chat):
    pair = {"type": "array", "prefixItems": [{"type": "null"}, {"const": 1}], "minItems": 3, "items": {"const": "x"}}
    assert arguments_of(random_chat, parameter(pair)) == {"p": [None, 1, "x"]}
    assert arguments_of(random_chat, parameter({"type": "array", "items": [{"const": 2}]})) == {"p": [2]}
    told = build_json_schema(ToolSet([parameter(pair)]))["properties"]["parameters"]["properties"]["p"]
    assert (len(told["prefixItems"]), told["minItems"], told["maxItems"]) == (3, 3, 3)


def test_number_bounds_are_inclusive():
    schema = parameter({"type": "integer", "exclusiveMinimum": 0, "maximum": 9.5})
    told = build_json_schema(ToolSet([schema]))["properties"]["parameters"]["properties"]["p"]
    assert told == {"type": "integer", "minimum": 1, "maximum": 9}


@pytest.mark.parametrize("schema", [True, {"type": "string"}, {"anyOf": [{"type": "null"}, {"required": ["a"]}]}])
def test_arguments_are_an_object_under_any_schema(random_chat, schema):
    tool = Tool("tool", parameters=schema if isinstance(schema, dict) else {})
    assert isinstance(arguments_of(random_chat, tool), dict)


def test_deep_nesting_ends(random_chat):
    schema: JsonObject = {"type": "string"}
    for _ in range(40):
        schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    assert arguments_of(random_chat, parameter(schema))


def test_optional_parameters_are_omitted_instead_of_null(random_chat):
    tool = parameter({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}, required=False)
    seen = [arguments_of(random_chat, tool, seed) for seed in range(6)]
    assert all(isinstance(arguments["p"], int) for arguments in seen if arguments)


# --------------------------------------------------------------------- choices


def test_choices_are_the_only_values(random_chat):
    tools = ToolSet([READ, WRITE])
    for seed in range(4):
        choices: Choices = {"path": ["a.py", "b.py"], ("write_file", "path"): ["c.py"]}
        call = call_in(sample(random_chat, build_gbnf(tools, choices=choices, max_string=9), seed))
        assert call["arguments"]["path"] in {"read_file": ["a.py", "b.py"], "write_file": ["c.py"]}[call["name"]]


def test_choices_reach_into_lists_and_objects(random_chat):
    patch = {"type": "object", "properties": {"old_text": {"type": "string"}}, "required": ["old_text"]}
    tool = tool_of(
        {
            "properties": {
                "patches": {"type": "array", "items": patch, "minItems": 1, "maxItems": 2},
                "paths": {"type": "array", "items": PATH, "minItems": 1, "maxItems": 2},
            },
            "required": ["patches", "paths"],
        }
    )
    arguments = arguments_of(random_chat, tool, choices={"old_text": ["x"], "paths": ["y"]})
    assert {each["old_text"] for each in arguments["patches"]} == {"x"}
    assert {*arguments["paths"]} == {"y"}


def test_choices_never_widen_an_enum(random_chat):
    tool = parameter({"enum": ["a", "b", 3]})
    assert arguments_of(random_chat, tool, choices={"p": ["b", "z"]}) == {"p": "b"}


def test_parameter_without_choices_excludes_only_tools_that_require_it():
    grammar = build_gbnf(
        ToolSet([READ, WRITE, parameter(PATH, required=False)]), choices={("read_file", "path"): [], "p": []}
    )
    assert "read_file" not in grammar
    assert "write_file" in grammar
    assert '"p' not in grammar.replace("path", "").replace("parameters", "")


@pytest.mark.parametrize("make", [build_gbnf, build_json_schema])
def test_nothing_to_call_is_an_error(make):
    with pytest.raises(UsageError, match="no tool can be called"):
        make(ToolSet([]))
    with pytest.raises(UsageError, match=r"tools: read_file"):
        make(ToolSet([READ]), choices={"path": []})


def test_keys_survive_the_sorting_of_ollama():
    """The name must be written before the arguments, also where a server sorts keys."""
    for call in build_json_schema(ToolSet([READ, REPLY]))["anyOf"]:
        assert sorted(call["properties"]) == list(call["properties"]) == ["name", "parameters"]
        assert call["properties"]["name"]["const"] in ("read_file", "reply")


FRAMED = [name for name in FORMATS if find_json_call_layout(name) != find_json_call_layout("hermes")]


@pytest.mark.parametrize("name", FRAMED)
def test_call_in_a_format_layout_is_parsed_by_that_format(name):
    """The layout is derived from the encoder's output and gives a call again."""
    frame = find_json_call_layout(name)
    text = f'{frame.head}read_file{frame.middle}{{"path"{frame.colon}"a.py"}}{frame.tail}'
    for format in (name, None):
        (call,) = parse(text, ToolSet([READ]), format, policy="lenient").calls
        assert (call.name, call.arguments) == ("read_file", {"path": "a.py"})


@pytest.mark.parametrize("name", ["mistral", "llama3_json", "deepseek_v3"])
def test_grammar_of_a_format_admits_its_calls(random_chat, name):
    tools = ToolSet([READ, WRITE])
    text = sample(random_chat, build_gbnf(tools, format=name, max_string=9, max_text=9))
    (call,) = parse(text, tools, name, policy="lenient").calls
    assert call.name in tools
    assert "path" in call.arguments


IN_PAIRS = [name for name in FORMATS if find_key_value_call_layout(name)]
ALL_KINDS = tool_of(
    {
        "properties": {
            "path": {"type": "string"},
            "short": {"type": "string", "minLength": 2, "maxLength": 4},
            "content": {"type": "string", "minLength": 1},
            "mode": {"enum": ["fast", "two words", 3, None]},
            "count": {"type": "integer"},
            "many": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
            "more": {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"]},
            "either": {"anyOf": [{"type": "null"}, {"type": "number"}, {"type": "array", "items": {"type": "null"}}]},
            "any": {},
        },
        "required": ["short", "mode", "many", "more", "either"],
    },
    "all_kinds",
)


def test_key_value_formats_are_detected():
    """The most popular ones; a missing one would silently use the format of Hermes."""
    asked_for = {"qwen3_coder", "glm45", "glm47", "minimax_m2", "deepseek_v32", "seed_oss", "step3", "kimi_k3"}
    assert asked_for <= {*IN_PAIRS}
    assert sum(_find_json_layout(name) is not None for name in FORMATS) + len(IN_PAIRS) > 3 * len(FORMATS) // 4
    assert find_call_prefix("qwen3_coder") == find_call_prefix("glm45") == "<tool_call>"


@pytest.mark.parametrize("name", IN_PAIRS)
def test_key_value_format_uses_key_value_rules(random_chat, name):
    """Each call that its grammar makes is read as a valid one, by the format's own reader and by all of them."""
    tools = ToolSet([ALL_KINDS, Tool("now", parameters={"properties": {}}), parameter(PATH, required=False)])
    grammar = build_gbnf(tools, format=name, max_string=12, max_text=300)
    for seed in range(2):
        text = sample(random_chat, grammar, seed)
        for told in (name, None):
            (call,) = parse(text, tools, told).calls
            Draft202012Validator(tools[call.name].parameters).validate(call.arguments)
        assert '{"short"' not in text


def test_unrepresentable_values_fall_back_to_json(random_chat):
    """A choice contains a tag of the format; the calls then do not begin with the format's marker."""
    tool = parameter({"enum": ["</parameter>"]})
    grammar = build_gbnf(ToolSet([tool]), format="minimax_m2")
    assert call_in(sample(random_chat, grammar))["arguments"] == {"p": "</parameter>"}
    opening = find_call_prefix("minimax_m2") or ""
    assert not calls_begin_with(grammar, opening)
    assert calls_begin_with(build_gbnf(ToolSet([READ]), format="minimax_m2"), opening)


@pytest.mark.parametrize(("name", "kinds"), [("glm45", {str}), ("deepseek_v32", {str, int}), ("kimi_k3", {str, int})])
def test_number_or_text_is_allowed_if_the_tag_has_a_type(random_chat, name, kinds):
    """Else it would be read as text, which the schema may not admit."""
    tools = ToolSet([parameter({"anyOf": [{"type": "string", "pattern": "^x+$"}, {"type": "integer", "minimum": 0}]})])
    grammar = build_gbnf(tools, format=name, max_string=3)
    (rule,) = (line for line in grammar.splitlines() if line.startswith("tool-arguments-p ::="))
    assert ("natural" in rule) == (int in kinds)
    read = [parse(sample(random_chat, grammar, seed), tools, name).calls[0].arguments["p"] for seed in range(4)]
    assert {type(value) for value in read} <= kinds


@examples(20)
@given(schema=SCHEMAS, seed=st.integers(0, 1000), name=st.sampled_from(IN_PAIRS))
def test_key_value_grammar_output_is_valid_for_the_schema(random_chat, schema, seed, name):
    """Whatever cannot be written in pairs (a key with a quote in it) is written as JSON."""
    schema = schema | {"$defs": {"shared": {"type": "boolean"}}, "nowhere": {}}
    text = sample(random_chat, build_gbnf(ToolSet([tool_of(schema)]), format=name, max_string=20, max_text=20), seed)
    (call,) = parse(text, [tool_of(schema)]).calls
    Draft202012Validator(without_widened(schema)).validate(call.arguments)


TEXT_PIECES = ["<", "</", "para", "meter", ">", "<parameter", "</PARAMETER>", "</p>", "a < b", "\n", "<tool", "_call>"]


@given(st.lists(st.sampled_from(TEXT_PIECES), max_size=8).map("".join))
def test_key_value_text_never_contains_a_marker(text):
    """All other text can be written, unless a tag begins where another one did."""
    pairs = find_key_value_call_layout("qwen3_coder")
    assert pairs
    piece = KeyValueGrammarBuilder(pairs).bodies["unit"].replace('"<"+', "<+").replace(" ", "")
    is_writable = re.fullmatch(f"(?:{piece})*", text) is not None
    holds_marker = any(marker in text.lower() for marker in pairs.markers)
    assert not (is_writable and holds_marker)
    if not holds_marker and not re.search(r"<(?=[a-z/]*<)|<[a-z/]*$", text, re.IGNORECASE):
        assert is_writable


def test_a_reply_is_written_as_json_so_that_it_streams():
    """In every format, because key-value arguments are known only when they are closed."""
    assert build_gbnf(ToolSet([READ]), format="glm45", reply=REPLY) == build_gbnf(ToolSet([READ]), reply=REPLY)


def test_a_schema_that_grows_without_end_is_bounded():
    """Ten references to ten references to ten: short to write, and a hundred million schemas."""
    level = {f"p{number}": {"$ref": "#/$defs/next"} for number in range(10)}
    definitions = {"next": {"type": "object", "properties": {key: {"$ref": f"#/$defs/{key}"} for key in level}}}
    definitions |= {key: {"type": "object", "properties": level, "required": [*level]} for key in level}
    tool = tool_of({"type": "object", "properties": level, "$defs": definitions})
    assert len(build_gbnf(ToolSet([tool]))) < MAX_GRAMMAR
    assert len(json.dumps(build_json_schema(ToolSet([tool])))) < MAX_GRAMMAR


def test_grammar_size_is_linear_in_optional_parameters(random_chat):
    """Any of them may be the first; llama.cpp takes it."""
    tool = tool_of({"type": "object", "properties": {f"parameter_{number}": PATH for number in range(200)}})
    grammar = build_gbnf(ToolSet([tool]), max_string=3)
    assert len(grammar) < 60_000
    assert isinstance(call_in(sample(random_chat, grammar))["arguments"], dict)


def test_too_large_grammar_is_rejected():
    tools = ToolSet([Tool(f"tool_{number}_{'x' * 100}") for number in range(1500)])
    with pytest.raises(UsageError, match="Offer fewer tools"):
        build_gbnf(tools)


def test_tool_without_parameters_takes_none(random_chat):
    tool = tool_of({"type": "object", "properties": {}})
    assert arguments_of(random_chat, tool) == {}


def test_only_texts_of_any_length_are_unbounded():
    """A truncated file would look complete, and an endless name is invalid."""
    grammar = build_gbnf(ToolSet([WRITE]), max_string=40, max_text=None)
    assert "string-0-40" in grammar
    assert "char*" in grammar


def test_length_limit_counts_characters_if_markers_are_excluded(random_chat):
    """The start of a marker is matched together with the next characters, which must not count as one."""
    tool = parameter({"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 3})
    grammar = build_gbnf(ToolSet([tool]), format="glm45")
    assert "short{0,5}" in grammar
    (call,) = parse(sample(random_chat, grammar), ToolSet([tool]), "glm45", policy="lenient").calls
    assert all(len(text) <= 5 for text in call.arguments["p"])
