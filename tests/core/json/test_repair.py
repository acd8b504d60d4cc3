"""JSON repairs, their names, and text that is left alone."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.errors import FormatError
from adapter.core.json.decode import decode_json, decode_values
from adapter.core.json.encode import dump_json
from adapter.core.json.strict import (
    MAX_DEPTH,
    MAX_DIGITS,
    UnterminatedError,
    decode_strict,
    is_encodable,
    replace_surrogates,
    to_plain_numbers,
)
from adapter.tools.coercion import coerce_to_schema
from tests.effort import examples
from tests.parsing.formats.soup import any_text, soup, strings, values

LIMITS = examples(60)

MENDED = {
    # fix: (text, value)
    "trailing-comma": ('{"a": [1, 2,],}', {"a": [1, 2]}),
    "missing-comma": ('{"a": 1 "b": "c" "d": []}', {"a": 1, "b": "c", "d": []}),
    "missing-bracket": ('{"a": {"b": [1', {"a": {"b": [1]}}),
    "single-quotes": ("{'a': 'it is \"so\"'}", {"a": 'it is "so"'}),
    "curly-quotes": ("{“a”: “b”}", {"a": "b"}),
    "backtick-string": ('{"a": `x "y"`}', {"a": 'x "y"'}),
    "triple-quotes": ('{"a": """x "y"\n"""}', {"a": 'x "y"\n'}),
    "unquoted-string": (
        '{"a": Oslo, "b": [2024-05-01, 12:30], "c": 1.2.3, "d": 10.0.0.1, "e": 30s, "f": 2024-05-01T10:00:00Z}',
        {
            "a": "Oslo",
            "b": ["2024-05-01", "12:30"],
            "c": "1.2.3",
            "d": "10.0.0.1",
            "e": "30s",
            "f": "2024-05-01T10:00:00Z",
        },
    ),
    "unquoted-key": ('{a: 1, b_2: "c"}', {"a": 1, "b_2": "c"}),
    "python-literal": ('{"a": True, "b": None, "c": FALSE}', {"a": True, "b": None, "c": False}),
    "comment": ('{"a": 1, // one\n "b": 2 /* two */, # three\n "c": 3}', {"a": 1, "b": 2, "c": 3}),
    "raw-control-character": ('{"a": "x\n\ty\x00"}', {"a": "x\n\ty\x00"}),
    "escaped-newline": ('{\\n"a": \\n1\\n}', {"a": 1}),
    "unescaped-quote": ('{"a": "say "hi" now"}', {"a": 'say "hi" now'}),
    "invalid-escape": (r'{"a": "\d+ \'x\' C:\W"}', {"a": r"\d+ 'x' C:\W"}),
    "escaped-quotes": (r'{"a": 1, \"b\": [\"c\"], "d": \"e f\"}', {"a": 1, "b": ["c"], "d": "e f"}),
    "key-without-value": ('{"a": 1, "b"}', {"a": 1}),
    "number-spelling": (
        '{"a": +1, "b": .5, "c": 0x1f, "d": 1_000, "e": 07}',
        {"a": 1, "b": 0.5, "c": 31, "d": 1000, "e": 7},
    ),
    "lone-surrogate": ('{"a": "x \\ud83d y"}', {"a": "x \ufffd y"}),
    "joined-strings": ('{"a": "x" + "y"\n + "z", "b": ["x" + " y"]}', {"a": "xyz", "b": ["x y"]}),
    "doubled-braces": ('{{"a": {{"b": 1}}, "c": {"d": {}}}}', {"a": {"b": 1}, "c": {"d": {}}}),
}


@pytest.mark.parametrize("fix", MENDED)
def test_fault_is_mended_and_named(fix):
    """Each fault is repaired as intended, and only its name is reported."""
    text, value = MENDED[fix]
    decoded = decode_json(text)
    assert (decoded.value, decoded.fixes) == (value, (fix,))
    assert text[decoded.end :] == ""


LITERAL = {
    r'"\alpha + \frac{1}{2}"': r"\alpha + \frac{1}{2}",
    r'"\bfoo\w+\("': r"\bfoo\w+\(",
    r'"E = \nabla \cdot x"': r"E = \nabla \cdot x",
    r'"\underbrace{x} \to y"': r"\underbrace{x} \to y",
    r'"C:\Users\nina\test"': r"C:\Users\nina\test",
    r'"\d+ \"x\" a\/b"': r'\d+ "x" a/b',
    # escapes of JSON that no model means next to a word
    r'"\frac{1}{2}"': r"\frac{1}{2}",
    r'"\beta + \nabla \rho"': r"\beta + \nabla \rho",
    r'"grep \b(foo|bar)\b"': r"grep \b(foo|bar)\b",
    r'"[a-z]\b \\bx"': r"[a-z]\b \bx",
    r'"C:\bin\tools\new"': r"C:\bin\tools\new",
}


@pytest.mark.parametrize("text", LITERAL)
def test_string_with_unknown_escape_is_literal(text):
    """All backslashes in the string are literal, even the ones that would begin an escape."""
    assert decode_json(f'{{"a": {text}}}').value == {"a": LITERAL[text]}


REFUSED = {
    '{"a": ["x", ': "an item or a closing bracket",
    '{"a": ["x", }': "an item or a closing bracket",
    '{"a": [': "an item or a closing bracket",
    r'{"a": "import re\nre.match(\"\d\")\n"}': "both escapes",
    r'{"a": "x = 1\nre.match(\"\bfoo\")"}': "both escapes",
    '{"a": "x = 1, "b: "y"}': "expected a key",
    '{"{"a": "b"}': "expected a",
    '{"a": "b}': "ends inside a string that begins with",
    '{"a": "x, "b": 1, "c": "y"}': "quotes are not balanced in a string",
    '{"a": "x"", "b": 1}': "quotes are not balanced in a string",
    '{"a": [""x", "y"]}': "quotes are not balanced in a string",
    '{"a": """x""" # "y"}\n': "the closing brackets before the comment",
    '{"a": "x" + y}': "quotes are not balanced in a string",
    '{"a": ["x, "y"]}': "quotes are not balanced in a string",
}


@pytest.mark.parametrize("text", REFUSED)
def test_ambiguous_text_is_refused_with_its_cause(text):
    with pytest.raises(FormatError, match=REFUSED[text]):
        decode_json(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"a": "say \\"yes\\" now"}', 'say "yes" now'),
        (r'{"a": "\\"x\\""}', '"x"'),
        (r'{"a": "say \\"yes, no"}', r"say \"yes, no"),
        (r'{"a": "say "yes" and \\"no\\" now"}', r'say "yes" and \"no\" now'),
        (r'{"a": "echo \"a\" \\"b\\" c"}', r'echo "a" \"b\" c'),
        (r'{"a": "say \\\\"yes\\\\" now"}', r'say \\"yes\\" now'),
    ],
)
def test_backslash_before_each_quote_is_dropped(text, value):
    """Other backslashes belong to the value."""
    decoded = decode_json(text)
    assert (decoded.value, "doubled-backslash" in decoded.fixes) == ({"a": value}, "\\" not in value)


def test_odd_quote_inside_a_string_is_text():
    """It neither begins nor ends a string."""
    assert decode_json('{"a": "a 5" screen", "b": 1}').value == {"a": 'a 5" screen', "b": 1}


SPELT = ["3.10", "1e3", "-0.50", "1E+2", "12345678901234567890.10"]


@pytest.mark.parametrize("spelling", SPELT)
def test_number_keeps_its_spelling_for_text(spelling):
    """Valid or repaired JSON: a number becomes the text that the model wrote, and otherwise a plain number."""
    for text in (f'{{"a": {spelling}}}', f"{{'a': {spelling},}}"):
        value = decode_json(text).value["a"]
        assert coerce_to_schema(value, {"type": "string"}) == (spelling, ("coerced-type",))
        assert type(to_plain_numbers(value)) is float


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "{"b": "c", "d": ["e", "f"]}", "g": 1}', {"a": '{"b": "c", "d": ["e", "f"]}', "g": 1}),
        ('{"a": "x = "b" + "c"", "d": 1}', {"a": 'x = "b" + "c"', "d": 1}),
        ('{"a": ["x" "y" "z w"]}', {"a": ["x", "y", "z w"]}),
    ],
)
def test_quotes_inside_a_string_are_paired(text, value):
    """A string does not end between two quotes of its own text."""
    assert decode_json(text).value == value


UNTOUCHED = {
    # what a careless repair of this fault would damage
    "trailing-comma": '{"a": ",]", "b": ",}"}',
    "missing-comma": '{"a": "1 2 \\"b\\" \\"c\\""}',
    "missing-bracket": '{"a": "[{("}',
    "single-quotes": '{"a": "it\'s \'so\'"}',
    "curly-quotes": '{"a": "“so”"}',
    "backtick-string": '{"a": "`ls`"}',
    "triple-quotes": '{"a": "\'\'\'x\'\'\'", "b": ""}',
    "unquoted-string": '{"a": 2024, "b": [1.5e3, -1], "c": "5%"}',
    "unquoted-key": '{"a": "{b: 1}"}',
    "python-literal": '{"a": "None or True"}',
    "comment": '{"a": "http://x /* y */ # z"}',
    "raw-control-character": '{"a": "x\\n\\ty"}',
    "escaped-newline": '{"a": "\\\\n"}',
    "unescaped-quote": '{"a": "say \\"hi\\", now"}',
    "escaped-quotes": r'{"a": "\"b\": \"c\""}',
    "invalid-escape": '{"a": "\\\\d+ \\u0041 \\\\bx\\\\f", "keys": "\\b\\b", "c": "a\\n\\f\\nB"}',
    "key-without-value": '{"a": "\\"b\\"", "c": ""}',
    "number-spelling": '{"a": -1.5e3, "b": 0, "c": 12345678901234567890123}',
    "lone-surrogate": '{"a": "\\ud83d\\ude00 \ufffd"}',
    "joined-strings": '{"a": "\\"x\\" + \\"y\\"", "b": "+"}',
    "doubled-braces": '{"a": "{{b}}", "c": {"d": {"e": {}}}}',
}


@pytest.mark.parametrize("fix", UNTOUCHED)
def test_valid_json_is_never_touched(fix):
    """Valid JSON that resembles the fault is parsed according to the standard, alone and next to a real fault."""
    text = UNTOUCHED[fix]
    assert decode_json(text).value == json.loads(text)
    assert decode_json(text).fixes == ()
    beside = decode_json(f'{{"value": {text},}}')
    assert (beside.value, beside.fixes) == ({"value": json.loads(text)}, ("trailing-comma",))


def test_every_fault_has_both_tests():
    """A repair needs a text that it must leave alone."""
    assert MENDED.keys() == UNTOUCHED.keys()


@LIMITS
@given(values)
def test_strict_reading_is_the_standards(value):
    """Encoded values are decoded without a repair."""
    for text in (dump_json(value), dump_json(value, indent=1)):
        decoded = decode_json(text)
        assert (decoded.value, decoded.end, decoded.fixes) == (value, len(text), ())


KEYS = st.sampled_from(["a", "path", "old_text", "x-1", "$ref", "Ärger", "with space", ""])
MEMBERS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), strings, st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)


@LIMITS
@given(st.dictionaries(KEYS, MEMBERS, max_size=3))
def test_a_trailing_comma_changes_nothing_else(value):
    """The tolerant parser gives the same members as the strict one, whatever the strings contain."""
    text = dump_json(value)
    if value:
        assert decode_json(f"{text[:-1]},}}").value == value
    assert decode_json(text[:-1]).value == value


@LIMITS
@given(st.one_of(soup, any_text), st.booleans())
def test_only_format_errors_are_raised(text, closed):
    """Any text is decoded or rejected with a message, and decoded values can be encoded as JSON."""
    with contextlib.suppress(FormatError):
        json.dumps(decode_json(text, closed=closed).value, allow_nan=False)
    with contextlib.suppress(FormatError):
        found, _ = decode_values(text, closed=closed)
        json.dumps([item.value for item in found], allow_nan=False)


@pytest.mark.parametrize("text", ['{"a": "b', '{"a": "b\\', "{'a': 'b", '{"a": """b', '{"a": `b', '{"a": "b\\u00'])
def test_a_string_that_does_not_end_is_never_completed(text):
    """Half a file must not become a file."""
    with pytest.raises(UnterminatedError):
        decode_json(text, closed=True)


@pytest.mark.parametrize("text", ['{"a": 1', '{"a": [1, 2', '{"a": 1,', "[1"])
def test_brackets_are_added_only_where_the_end_is_known(text):
    """Without a closing marker, the text after a missing bracket may not have arrived."""
    assert decode_json(text, closed=True).fixes == ("missing-bracket",)
    with pytest.raises(UnterminatedError):
        decode_json(text, closed=False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1 + 2}', "expressions are not JSON"),
        ('{"a": 60*60}', "expressions are not JSON"),
        ('{"a": 10/2}', "expressions are not JSON"),
        ('{"a": 2024-5}', "expressions are not JSON"),
        ('{"a": ...}', "placeholder"),
        ('{"a": hello(1)}', "double quotes"),
        ('{"a": string}', "double quotes"),
        ('{"a" 1}', "a colon after the key 'a'"),
        ('{"a": 1e999}', "1e999"),
        ('{"a": Infinity}', "a JSON value"),
        ('{"a": NaN}', "a JSON value"),
        ('{"a": ' + "9" * (MAX_DIGITS + 1) + "}", f"the maximum is {MAX_DIGITS}"),
        ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), "levels deep"),
        ("[" * 100_000, "levels deep"),
        ("", "the text ends"),
    ],
)
def test_decode_json_rejects_ambiguous_text(text, reason):
    """The message gives the position and the reason."""
    with pytest.raises(FormatError, match="(?s)" + reason.replace("(", r"\(").replace("*", r"\*")):
        decode_json(text)


def test_depth_does_not_depend_on_the_reader():
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert decode_strict(deep) is not None
    assert decode_json(deep[:-1] + ",]").fixes == ("trailing-comma",)
    deeper = "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2)
    assert decode_strict(deeper) is None


def test_shallow_json_with_many_brackets_is_strict():
    """The bound is on depth, not on the number of brackets."""
    text = json.dumps([{"a": [number]} for number in range(200)])
    decoded = decode_strict(text)
    assert decoded is not None
    assert decoded.value == json.loads(text)


def test_decoding_starts_at_the_position_and_returns_the_end():
    """The end is directly after the value, so several values can follow each other."""
    text = 'x {"a": 1} {"b": 2,} y'
    first = decode_json(text, 2)
    assert text[first.end :] == ' {"b": 2,} y'
    assert decode_json(text, first.end).value == {"b": 2}


@pytest.mark.parametrize(
    ("text", "found", "fixes"),
    [
        ('{"a": 1}\n{"b": 2}', [{"a": 1}, {"b": 2}], ()),
        ('{"a": 1}; {"b": 2}', [{"a": 1}, {"b": 2}], ()),
        ('```json\n{"a": 1}\n```', [{"a": 1}], ("code-fence",)),
        ('{"a": 1}}', [{"a": 1}], ("extra-bracket",)),
        ('\ufeff{"a": 1}\u200b', [{"a": 1}], ()),
    ],
)
def test_values_one_after_the_other(text, found, fixes):
    """Text between and around values is skipped, and named if it is wrong."""
    values, between = decode_values(text)
    assert ([value.value for value in values], between) == (found, fixes)


@pytest.mark.parametrize("text", ["", "  ", "hello", '{"a": 1} hello', '"a"', "1"])
def test_anything_but_objects_and_lists_is_refused(text):
    """A body consists of JSON objects or lists, not prose."""
    with pytest.raises(FormatError, match="expected a JSON object"):
        decode_values(text)


def test_surrogates():
    """The two halves of a pair are joined, and a single half is replaced, also in keys."""
    assert not is_encodable("\ud83d")
    assert replace_surrogates({"\ud83d\ude00": ["a\ud83d", 1, None]}) == {"😀": ["a\ufffd", 1, None]}
