"""Damage in one call costs nothing but that call, in every format.

The second of three calls is damaged at random, between text and text. The text must remain content, and the damaged
call must be a call, an error or a rejected call. The other two calls must remain, unless the format writes all calls as
one value.
"""

from __future__ import annotations

import re
from random import Random

import pytest

from adapter.core.events import Json, JsonObject, ToolCall, ToolCallDelta
from adapter.core.turn import Turn
from adapter.parsing.formats import FORMATS, get_format
from adapter.parsing.parser import Parser, parse
from adapter.tools.coercion import has_schema_type
from benchmarks.written_texts import is_whole_answer
from tests.effort import EFFORT
from tests.parsing.checks import read
from tests.parsing.formats.soup import FILE_FORMATS
from tests.processor_time import processor_limit

PARAMETERS = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
CALLS: list[tuple[str, JsonObject]] = [
    ("first_tool", {"text": "one"}),
    ("second_tool", {"text": "alpha beta", "count": 3, "tags": ["x", "y, z"]}),
    ("third_tool", {"text": "three"}),
]
TOOLS = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name, _ in CALLS]
TOOL_NAMES = {name for name, _ in CALLS}
BEFORE, LAST_VALUE = "Before it.", "y, z"

ONE_VALUE = frozenset({
    *("apertus", "gemma3", "glm4_0414", "lfm2", "llama3_json", "minicpm", "minimax_m1", "olmo3", "openpangu"),
    *("pythonic", "xlam"),
})  # fmt: skip
"""Formats that write all calls as one program, or as one list in which a quote without its pair hides the others."""

NOT_CLOSED = frozenset({"deepseek_v3", "functionary", "mistral"})
"""Formats whose next call has no brace after its opening marker."""

WITHOUT_NAMES = frozenset({"inkling", "muse_glimmer", "tool_elements"})
"""Formats that write a name twice, or as a tag."""


def damages(text: str, chance: Random) -> str:
    """Return ``text`` with one fault of a kind that models write."""
    quotes = [at for at, char in enumerate(text) if char in "\"'"]
    at = chance.choice(quotes) if quotes and chance.random() < 0.5 else chance.randrange(len(text))
    match chance.randrange(5):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + text[at] + text[at:]
        case 2:
            return text.replace('"', '\\"')
        case 3:
            return text[:at] + text[at + chance.randint(2, 12) :]
        case _:
            return text[:at] + '"' + text[at:]


def parts_of(name: str) -> tuple[str, str, str]:
    """Return the text of the calls before, in and after the arguments of the second call."""
    text = get_format(name).encode_calls(CALLS)
    start = text.index("second_tool") + len("second_tool")
    end = text.index(LAST_VALUE, start) + len(LAST_VALUE)
    while text[end] in "\"'])}":
        end += 1
    return text[:start], text[start:end], text[end:]


def turn_of(name: str, damaged: str) -> Turn:
    before, _, after = parts_of(name)
    return parse(f"{BEFORE}\n\n{before}{damaged}{after}", TOOLS, name, generation_prompt="")


@pytest.mark.parametrize(
    "name", [*sorted(name for name in {*FORMATS} - WITHOUT_NAMES if not is_whole_answer(name)), *FILE_FORMATS]
)
def test_damaged_call_costs_only_itself(name):
    chance = Random(name)
    for _ in range(25 * EFFORT):
        damaged = damages(parts_of(name)[1], chance)
        turn = turn_of(name, damaged)
        calls = [(call.name, call.arguments) for call in turn.calls]
        assert BEFORE in turn.content, damaged
        if name not in ONE_VALUE:
            assert CALLS[0] in calls, damaged
        if name not in ONE_VALUE | NOT_CLOSED:
            assert CALLS[2] in calls, damaged
        if name not in ("cohere", "glm4_0414", "llama3_json", "xlam"):  # bare JSON that is no call is an answer
            assert (
                len(calls) > 2
                or turn.invalid
                or turn.rejected
                or any(call not in (CALLS[0], CALLS[2]) for call in calls)
            ), damaged


STRUCTURE = re.compile(r"""alpha beta|y, z|\bx\b|(?P<sign>["'{}\[\],:=()])""")
"""Matches the values of the second call, and the signs between them."""


def list_structural_damages(text: str, chance: Random) -> list[str]:
    """Return ``text`` with a sign between values lost, doubled or replaced, a piece repeated, or text added."""
    signs = [match for match in STRUCTURE.finditer(text) if match["sign"]]
    damaged = [text.replace("3", "3 oops", 1), text.replace("3", '3"', 1)]
    for sign in chance.sample(signs, min(len(signs), 6)):
        for other in ("", sign[0] * 2, chance.choice("\"'[]{},:")):
            damaged.append(text[: sign.start()] + other + text[sign.end() :])
    pieces = re.findall(r"""[^\w\s]*count\W.*?3[^\w\s]*\s*""", text, re.DOTALL)
    return damaged + [text.replace(piece, piece + piece.replace("3", "7"), 1) for piece in pieces]


@pytest.mark.parametrize(
    "name", sorted({*FORMATS, *FILE_FORMATS} - WITHOUT_NAMES - {"minimax_m3"})
)  # its tags begin with ]
def test_no_wrong_value_is_passed_on_silently(name):
    """A call has its intended arguments, or a note about its repair, or does not fit the schema, or is an error."""
    for damaged in list_structural_damages(parts_of(name)[1], Random(name)):
        for call in turn_of(name, damaged).calls:
            is_intended = any((call.name, call.arguments) == each for each in CALLS)
            fits = call.name in TOOL_NAMES and has_schema_type(call.arguments, PARAMETERS)
            assert is_intended or call.fixes or not fits, damaged


NESTED: JsonObject = {**CALLS[1][1], "options": {"deep": True, "name": "n"}, "last": "end"}
NESTED_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        **PARAMETERS["properties"],  # type: ignore[dict-item]
        "options": {"type": "object", "properties": {"deep": {"type": "boolean"}, "name": {"type": "string"}}},
        "last": {"type": "string"},
    },
}


def list_sign_faults(text: str) -> list[tuple[str, str]]:
    """Return each text with one sign of JSON too many or too few, and the sign."""
    added = [(text[:at] + sign + text[at:], sign) for at in range(1, len(text)) for sign in "{}[]\"',"]
    return added + [(text[:at] + text[at + 1 :], sign) for at, sign in enumerate(text) if sign in '{}[]",:']


def list_leaves(value: Json, sign: str) -> list[str]:
    """Return the paths and the values of all members that are not containers, without ``sign``, which may be in a name
    that the tool does not know."""
    if isinstance(value, dict):
        return [f"{key.replace(sign, '')}.{leaf}" for key, item in value.items() for leaf in list_leaves(item, sign)]
    if isinstance(value, list):
        return [f"{at}.{leaf}" for at, item in enumerate(value) for leaf in list_leaves(item, sign)]
    return [repr(value).replace(sign, "").strip("\"'")]


@pytest.mark.parametrize("name", ["hermes", "mistral", "harmony", "gemma4", "llama3_json"])
def test_one_sign_too_many_or_too_few(name):
    """The neighbors remain, and values that fit the schema are the intended ones, apart from the sign in a string."""
    encode = get_format(name).encode_calls
    text = encode([CALLS[0], ("second_tool", NESTED), CALLS[2]])
    start = text.index("second_tool") + len("second_tool")
    end = start + re.search(r"end\W*?[}]", text[start:]).end()  # type: ignore[union-attr]
    tools = [{"type": "function", "function": {"name": tool, "parameters": NESTED_PARAMETERS}} for tool in TOOL_NAMES]
    for damaged, sign in list_sign_faults(text[start:end]):
        turn = parse(text[:start] + damaged + text[end:], tools, name, generation_prompt="")
        calls = [(call.name, call.arguments) for call in turn.calls]
        assert CALLS[0] in calls, damaged
        assert CALLS[2] in calls, damaged
        for call in turn.calls:
            if call.name == "second_tool" and has_schema_type(call.arguments, NESTED_PARAMETERS):
                assert list_leaves(call.arguments, sign) == list_leaves(NESTED, sign), damaged


@pytest.mark.parametrize("name", ["hermes", "kimi_k2", "deepseek_v31"])
@pytest.mark.parametrize("damaged", ['"count" 3', '"count"=3', '# note\n"count": 3'])
def test_string_that_contains_another_argument_is_invalid(name, damaged):
    """A fault between two members must not make one string of them, although the quotes are paired."""
    text = get_format(name).encode_calls([CALLS[1]]).replace('"count": 3', damaged)
    turn = parse(text, TOOLS, name, generation_prompt="")
    assert not turn.calls
    assert ["'count'" in invalid.error for invalid in turn.invalid] == [True]


OPENINGS = {
    **dict.fromkeys(("glm47", "telechat4"), "<tool_call>"),
    **dict.fromkeys(("jamba", "granite", "openpangu"), ', {"name"'),
    "deepseek_v4": "<｜DSML｜invoke",
    "solar_open2": "<|tool_call:start|>",
    "mirothinker": "<use_mcp_tool>",
    "minimax_m1": '\n{"name"',
    "minimax_m3": "]<]minimax[>[<invoke",
    "react": "Action:",
    "qwen_agent": "✿FUNCTION✿",
    "bracketed_lines": "<<call",
    "plain_lines": "\n[[use",
    "yaml_arguments": "%%tool",
}
"""The beginning of a call, in formats of each kind."""


@pytest.mark.parametrize("name", OPENINGS)
def test_call_that_breaks_off_does_not_take_the_next_call(name):
    damaged, after = parts_of(name)[1:]
    after = after[after.rindex(OPENINGS[name], 0, after.index("third_tool")) :]
    cut = damaged[: damaged.index("3") + 1]
    turn = parse(f"{parts_of(name)[0]}{cut}{after}\n\n{BEFORE}", TOOLS, name, generation_prompt="")
    calls = [(call.name, call.arguments) for call in turn.calls]
    assert all(call in calls for call in (CALLS[0], CALLS[2]))
    assert BEFORE in turn.content
    assert len(calls) > 2 or turn.invalid


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("llama3_json", '{{"name": "second_tool", "parameters": {"text": "alpha"}}'),
        ("llama3_json", '{"name: "second_tool", "parameters": {"text": "alpha"}}'),
        ("llama3_json", '"name": "second_tool", "parameters": {"text": "alpha"}}'),
        ("xlam", '[{{"name": "second_tool", "arguments": {"text": "alpha"}}]'),
        ("xlam", '["name": "second_tool", "arguments": {"text": "alpha"}}]'),
        ("pythonic", '[second_tool((text="alpha")]'),
    ],
)
@pytest.mark.parametrize("has_expected_format", [True, False], ids=["expected", "detected"])
def test_damaged_call_without_markers_costs_only_itself(name, damaged, has_expected_format):
    """Between two calls, each on a line of its own."""
    before, after = (get_format(name).encode_calls([call]).strip() for call in (CALLS[0], CALLS[2]))
    text = f"{before}\n{damaged}\n{after}"
    turn = parse(text, TOOLS, name if has_expected_format else None, "stop", generation_prompt="")
    calls = [(call.name, call.arguments) for call in turn.calls]
    assert (calls[0], calls[-1], turn.content) == (CALLS[0], CALLS[2], "")
    assert turn.invalid or calls[1:-1]


@pytest.mark.parametrize("name", ["deepseek_v4", "gigachat35", "minimax_m2"])
def test_stray_quote_before_the_first_parameter_is_dropped(name):
    damaged = parts_of(name)[1].replace(">\n", '>\n"', 1)
    assert [(call.name, call.arguments) for call in turn_of(name, damaged).calls] == CALLS


@pytest.mark.parametrize("name", ["deepseek_v4", "minimax_m2"])
def test_value_that_takes_the_next_tags_is_invalid(name):
    """A closing tag in place of an opening one leaves two closing tags and another value."""
    damaged = re.sub(r"<[^<>]*count[^<>]*>", "</tool_call>", parts_of(name)[1])
    turn = turn_of(name, damaged)
    assert [call.name for call in turn.calls] == ["first_tool", "third_tool"]
    assert "may begin or end another" in turn.invalid[0].error


def list_calls(turn: Turn, expected: list[tuple[str, JsonObject]]) -> list[tuple[str, JsonObject]]:
    return [(call.name, call.arguments) for call in turn.calls if (call.name, call.arguments) in expected]


@pytest.mark.parametrize("name", ["apertus", "cohere", "firefunction", "granite", "jamba", "nemotron", "openpangu"])
@pytest.mark.parametrize("damaged", ['"count":: 3', '"count: 3', 'count": 3', '"count" 3', '"count": 3,,, {'])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_damaged_element_of_a_list_costs_only_itself(name, damaged, number):
    calls = [(call_name, {"text": "a", "count": 3, "tags": ["x"]}) for call_name, _ in CALLS]
    parts = get_format(name).encode_calls(calls).split('"count": 3')
    text = "".join(part + (damaged if at == number else '"count": 3') for at, part in enumerate(parts[:-1])) + parts[-1]
    turn = parse(text, TOOLS, name, "stop", generation_prompt="")
    intact = [call for at, call in enumerate(calls) if at != number]
    assert list_calls(turn, intact) == intact
    assert turn.invalid or turn.calls[number].fixes
    parser = Parser(name, TOOLS, generation_prompt="", stream_arguments=True)
    streamed = Turn.from_events([event for piece in [*text] for event in parser.feed(piece)] + parser.close("stop"))
    assert list_calls(streamed, intact) == intact


EARLY_CLOSES = ["}, ", "}}, ", "}\n"]


@pytest.mark.parametrize("name", sorted({"deepseek_v31", "functionary_v2", "glm4_0414", "harmony", "mistral", "react"}))
@pytest.mark.parametrize("close", EARLY_CLOSES)
def test_call_that_is_closed_before_another_argument_is_invalid(name, close):
    text = get_format(name).encode_calls([CALLS[1], CALLS[2]]).replace('", "count"', f'"{close}"count"')
    turn = parse(text, TOOLS, name, "stop", generation_prompt="")
    assert [(call.name, call.arguments) for call in turn.calls] == [CALLS[2]]
    assert "closed before 'count'" in turn.invalid[0].error


@pytest.mark.parametrize("name", ["deepseek_v4", "glm45", "minimax_m2", "qwen3_coder"])
def test_text_for_a_list_or_an_object_names_its_fault(name):
    turn = turn_of(name, parts_of(name)[1].replace('"x"', '"x'))
    assert [(call.name, call.arguments) for call in turn.calls] == [CALLS[0], CALLS[2]]
    assert "'tags' is not valid JSON" in turn.invalid[0].error


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [("\\\\count", "argument-alias"), ("count ", "argument-alias"), ("", "'' is not an argument")],
)
def test_signs_next_to_the_name_of_an_argument(spelling, expected):
    text = get_format("hermes").encode_calls([CALLS[1]]).replace('"count"', f'"{spelling}"')
    turn = parse(text, TOOLS, "hermes", "stop", generation_prompt="")
    if turn.calls:
        assert (turn.calls[0].arguments, turn.calls[0].fixes) == (CALLS[1][1], (expected,))
    else:
        assert expected in turn.invalid[0].error


@pytest.mark.parametrize(
    "damaged",
    [
        '["x, "y, z"]',
        '["x", "y, z]"',
        '[["x", "y, z"]',
        '["x"， "y, z"]',
        '["x"}}, "y, z"]',
        '["x" "], "y, z"]',
    ],
)
@pytest.mark.parametrize("name", ["hermes", "functionary_v31", "glm45", "mistral", "qwen3_coder"])
def test_repair_is_only_accepted_if_its_result_fits(name, damaged):
    text = get_format(name).encode_calls([CALLS[0], ("second_tool", {**CALLS[1][1], "tags": ["TAGS"]}), CALLS[2]])
    text = text.replace('["TAGS"]', damaged)
    turn = parse(text, TOOLS, name, "stop", generation_prompt="")
    assert [call for call in turn.calls if (call.name, call.arguments) not in CALLS] == []
    assert len(turn.calls) + len(turn.invalid) >= 3


@pytest.mark.parametrize("name", ["gigachat3", "granite_20b_fc", "hermes", "longcat"])
def test_arguments_beside_an_object_that_is_closed_too_early_are_added(name):
    text = get_format(name).encode_calls([CALLS[1]]).replace(', "count"', '}, "count"')
    (call,) = parse(text, TOOLS, name, "stop", generation_prompt="").calls
    assert (call.name, call.arguments) == CALLS[1]
    assert "flat-arguments" in call.fixes


@pytest.mark.parametrize("close", ["</parameter]", "</parameter＞", "[/parameter>", "<\\parameter>", "<parameter>", ""])
@pytest.mark.parametrize("name", ["mimo", "minimax_m2", "seed_oss"])
def test_misspelt_end_of_a_value_is_no_part_of_it(name, close):
    text = get_format(name).encode_calls([CALLS[1]]).replace("beta</parameter>", f"beta{close}")
    (call,) = parse(text, TOOLS, name, "stop", generation_prompt="").calls
    assert (call.name, call.arguments) == CALLS[1]
    assert "missing-inner-tag" in call.fixes


@pytest.mark.parametrize("name", ["mimo", "qwen3_coder", "seed_oss"])
def test_doubled_tag_of_a_function_is_one_call(name):
    text = get_format(name).encode_calls([CALLS[1]])
    tag = "<function=second_tool>"
    (call,) = parse(text.replace(tag, tag * 2), TOOLS, name, "stop", generation_prompt="").calls
    assert (call.name, call.arguments) == CALLS[1]


@pytest.mark.parametrize("text", ["<parameter=x>", "a </arg_value>", "<|sep|>", '{"count": 1}', 'say "count" = 3', "["])
@pytest.mark.parametrize("name", ["hermes", "mistral", "phi4_mini_json"])
def test_repair_around_intact_values_does_not_suspect_them(name, text):
    call = ("second_tool", {"text": text})
    written = get_format(name).encode_calls([call]).removesuffix("</tool_call>").removesuffix("}]") + " "
    turn = parse(written, TOOLS, name, "stop", generation_prompt="")
    assert [(each.name, each.arguments) for each in turn.calls] == [call]


@pytest.mark.parametrize("name", ["lfm2", "olmo3"])
def test_text_after_calls_whose_closing_marker_is_cut_is_kept(name):
    text = get_format(name).encode_calls([CALLS[1]])
    turn = parse(f"{text[:-3]}\n\n{BEFORE}", TOOLS, name, "stop", generation_prompt="")
    assert [(call.name, call.arguments) for call in turn.calls] == [CALLS[1]]
    assert BEFORE in turn.content


@pytest.mark.parametrize("tags", ["[)", '["x", "y, z")', '["x", ("y, z"])'])
def test_text_after_a_list_of_calls_with_a_lost_bracket_is_kept(tags):
    text = get_format("pythonic").encode_calls([CALLS[0], ("second_tool", {"text": "TAGS"}), CALLS[2]])
    damaged = text.replace('"TAGS"', tags)
    turn = parse(f"{damaged}\n\n{BEFORE}", TOOLS, "pythonic", "stop")
    assert BEFORE in turn.content
    assert turn.invalid or turn.rejected


@pytest.mark.parametrize("damaged", ["<![CDATA(a\n]]>", "<![CDATA[a\n]]", "<![CDATA[a\n]]>>", "[![CDATA[a\n]]>"])
@pytest.mark.parametrize("name", ["minicpm5", "minimax_m2", "glm45"])
def test_damaged_cdata_section_is_an_error(name, damaged):
    text = get_format(name).encode_calls([CALLS[1]]).replace("alpha beta", damaged)
    turn = parse(text, TOOLS, name, "stop", generation_prompt="")
    assert not turn.calls
    assert "CDATA" in turn.invalid[0].error


@pytest.mark.parametrize("name", ["gemma3", "lfm2", "minicpm", "olmo3"])
def test_python_call_that_is_closed_before_another_argument_is_invalid(name):
    text = get_format(name).encode_calls([CALLS[1], CALLS[2]]).replace(", count", "), count")
    turn = parse(text, TOOLS, name, "stop", generation_prompt="")
    assert [(call.name, call.arguments) for call in turn.calls] == [CALLS[2]]
    assert "closed before 'count'" in turn.invalid[0].error


@pytest.mark.parametrize(
    "damaged",
    [
        '{"text": "a", "count": 1}</function>',
        'Now.{"text": "a", "count": 1}',
        '<|reci second_tool\n{"text": "a"}',
        '<param name="count">1</param>',
        "[second_tool(count:1)]",
        'second_toolsecond_tool\n{"text": "a"}',
    ],
)
def test_call_without_its_name_or_marker_has_a_reason(damaged):
    turn = parse(
        get_format("functionary_v31").encode_calls([CALLS[0]]) + f"\n{damaged}", TOOLS, "functionary_v31", "stop"
    )
    assert [(call.name, call.arguments) for call in turn.calls] == [CALLS[0]]
    assert turn.rejected
    assert not turn.invalid


@pytest.mark.parametrize("name", ["deepseek_v31", "hermes", "mistral"])
def test_arguments_that_begin_again_in_a_string_are_refused(name):
    text = get_format(name).encode_calls([CALLS[1]]).replace("beta", 'beta"{"text": "alpha beta')
    turn = parse(text, TOOLS, name, "stop", generation_prompt="")
    assert not turn.calls
    assert "contains 'text', another argument" in turn.invalid[0].error


def test_damaged_arguments_before_a_closing_tag_are_not_cut_off():
    text = '<function_call name="first_tool">{"text": "a}</function_call>'
    turn = parse(text, TOOLS, None, "stop")
    assert not turn.calls
    assert "ends inside a string" in turn.invalid[0].error


@pytest.mark.parametrize(
    ("name", "closes"),
    [
        ("solar_open2", ["<|tool_arg:ende|>", "<|tool_arg:end>", "<|/tool_arg|>", "<|end|>", "<|tool_arg|>"]),
        ("kimi_k3", ["<|close>argument<|sep|>", "|close|>argument<|sep|>", "<|closed|>argument<|sep|>"]),
    ],
)
def test_damaged_token_at_the_end_of_a_value_is_refused(name, closes):
    text = get_format(name).encode_calls([CALLS[1]])
    close = {"solar_open2": "<|tool_arg:end|>", "kimi_k3": "<|close|>argument<|sep|>"}[name]
    for damaged in closes:
        turn = parse(text.replace(f"beta{close}", f"beta{damaged}"), TOOLS, name, "stop", generation_prompt="")
        assert not turn.calls, damaged
        assert "part of its delimiters" in turn.invalid[0].error


@pytest.mark.parametrize("body", ["Text: one", "text=one\ntext=two", 'first_tool(text="one")'])
@pytest.mark.parametrize("name", ["anthropic", "minimax_m2"])
def test_arguments_without_tags_are_not_the_value_of_the_only_parameter(name, body):
    tools = [{"type": "function", "function": {"name": "first_tool", "parameters": {
        "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}}]  # fmt: skip
    empty = get_format(name).encode_calls([("first_tool", {"text": "@"})])
    turn = parse(re.sub(r"<parameter[^@]*@</parameter>", body, empty), tools, name, "stop", generation_prompt="")
    assert not turn.calls
    assert "not in tags" in turn.invalid[0].error


SPACES = " " * 40_000
M3 = "]<]minimax[>["


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gemma4", f"<|tool_call>call:second_tool{{text{SPACES}b}}<tool_call|>"),
        ("gemma4", f'<|tool_call>call:second_tool{{text:<|"|>x<|"|>{SPACES}y}}<tool_call|>'),
        ("gemma4", f'<|tool_call>call:second_tool{{text:<|"|>x<|"|>}}{3 * SPACES}y<tool_call|>'),
        ("kimi_k2", "<|tool_call_begin|>\n" + '[second_tool(text="a")]' * 8_000),
        ("pythonic", f"[second_tool(count={'1' * 20_000}x)]"),
        ("pythonic", "[second_tool(count=!)," + "\n" * 20_000 + ")]"),
        ("harmony", ("assistantcommentary to=a" + " " * 370 + "x\n") * 30),
        ("minimax_m2", f'[TOOL_CALL]\n{{tool => "second_tool", args => {{{SPACES}!}}}}\n[/TOOL_CALL]'),
        ("anthropic", '<invoke name="second_tool">\n<parameter name="text">' + '<invoke name="f"></invoke> x' * 10_000),
        (
            "qwen3_coder",
            "<tool_call>\n<function=second_tool>\n<parameter=text>\n" + "<function=f></function> x" * 20_000,
        ),
        ("minimax_m3", f'{M3}<tool_call>\n{M3}<invoke name="second_tool">' + f"a{M3}</b>" * 20_000),
        ("qwen3_coder", "<tool_call>\n<function=second_tool>\n<parameter=count>\n3" + "</parameter>" * 20_000),
        (
            "qwen3_coder",
            f"<tool_call>\n<function=second_tool>\n<parameter=text>\n{'<parameter=a>' * 20_000}"
            f'"{"</parameter>" * 20_000}"\n</parameter>\n</function>\n</tool_call>',
        ),
    ],
    ids=[
        *("key", "delimiter", "next", "lists", "digits", "lines", "header", "arrows", "invoke", "function", "elements"),
        *("closes", "quoted"),
    ],
)
def test_damaged_bodies_take_linear_time(name, text):
    """Whitespace and digits were matched in every division, and the end of a value was searched from its start."""
    parser = Parser(name, TOOLS)
    with processor_limit(2):
        parser.feed(text)
        parser.close("stop")


def test_a_channel_after_a_long_gap_does_not_depend_on_the_pieces():
    read("<|channel|>" + " " * 405 + "analysis hello<|message|>x<|end|>", format="harmony")


@pytest.mark.parametrize(
    ("number", "value"), [("1.", 1.0), (".5", 0.5), ("1_000.5e3", 1000500.0), ("1.e5", 1e5), ("0xFF", 255), ("-7", -7)]
)
def test_python_numbers_are_those_of_python(number, value):
    turn = parse(f"[second_tool(count={number})]", (), "pythonic", "stop")
    assert [call.arguments for call in turn.calls] == [{"count": value}]


def test_a_parameter_that_accepts_everything_is_known_after_a_repair():
    """The error said that it is no argument, and listed it among the names."""
    schema = {"type": "object", "properties": {"value": {}}}
    tools = [{"type": "function", "function": {"name": "keep", "parameters": schema}}]
    turn = parse("[keep(value='x' 'y')]", tools, "pythonic", "stop")
    assert [call.arguments for call in turn.calls] == [{"value": "xy"}]


def test_arguments_that_differ_in_a_space_are_no_copy():
    written = r'{"name": "first_tool", "arguments": "{\"text\": \"a b\"}{\"text\": \"ab\"}"}'
    turn = parse(f"<tool_call>\n{written}\n</tool_call>", TOOLS, "hermes", "stop")
    assert not turn.calls
    assert len(turn.invalid) == 1


@pytest.mark.parametrize("name", ["deepseek_v3", "harmony", "hermes", "kimi_k2", "mistral", "react"])
@pytest.mark.parametrize("damage", [('"count"', '"count""'), ('"x"', '"x""'), ('"alpha beta"', '"alpha beta')])
def test_damaged_short_call_streams_no_arguments(name, damage):
    """A client would wait for the end of arguments that never come."""
    call = ("second_tool", {**CALLS[1][1], "text": "alpha beta" * 20})
    text = get_format(name).encode_calls([CALLS[1]]).replace(*damage) + "\n" + get_format(name).encode_calls([call])
    parser = Parser(name, TOOLS, generation_prompt="", stream_arguments=True)
    events = [event for char in text for event in parser.feed(char)] + parser.close("stop")
    calls = {event.id for event in events if isinstance(event, ToolCall)}
    assert {event.id for event in events if isinstance(event, ToolCallDelta)} == calls
