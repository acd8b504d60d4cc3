"""Formats from files: capital letters in markers, braces in values, and files that cannot be used."""

from __future__ import annotations

import pytest

from adapter.core.errors import UsageError
from adapter.parsing.bodies.compiled_format import UnsupportedLayoutError
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.format_file import parse_format_file, read_format_file
from adapter.parsing.parser import parse
from tests.parsing.formats.test_wild import definition_of

TOOLS = [definition_of("bash(command: string, count?: integer)")]
GEMMA = 'name = "mine"\nbody = "gemma"\nhead = "<CALL>"\ntail = "</CALL>"\nquote = "<Q>"\n'
PAIRS = """\
name = "mine"
body = "pairs"
head = "<CALL>"
[pairs]
first = "<KEY>"
following = "</VALUE><KEY>"
last = "</VALUE></CALL>"
none = "</CALL>"
openings = {string = "</KEY><VALUE>"}
"""
ELEMENTS = """\
name = "mine"
body = "elements"
head = '<Call name="'
[pairs]
first = '"><Value key="'
following = '</Value><Value key="'
last = "</Value></Call>"
none = '"></Call>'
openings = {string = '">'}
"""
LINES = """\
name = "mine"
body = "lines"
head = "[[USE "
[pairs]
first = "]]\\n"
following = "\\n"
last = "\\n[[END {name}]]"
none = "]]\\n[[END {name}]]"
openings = {string = " = "}
"""


@pytest.mark.parametrize("text", [GEMMA, PAIRS, ELEMENTS, LINES], ids=["gemma", "pairs", "elements", "lines"])
@pytest.mark.parametrize("command", ["ls", "echo {name} {key} {number}", "A <x> </Y>"])
def test_calls_are_parsed_back_without_repairs(text, command):
    """Capital letters in a marker, and placeholders in a value, stay as they are."""
    format = compile_format(parse_format_file(text))
    calls = [("bash", {"command": command, "count": 2}), ("bash", {"command": "x"})]
    turn = parse(format.encode_calls(calls), TOOLS, format)
    assert [(call.name, call.arguments, call.fixes) for call in turn.calls] == [(*call, ()) for call in calls]
    assert "[[END bash]]" in format.encode_calls(calls) or text is not LINES


@pytest.mark.parametrize("quote", ["", '"'])
def test_gemma_notation_needs_a_quote_that_is_no_json(quote):
    with pytest.raises(UnsupportedLayoutError, match="quote of at least two characters"):
        compile_format(parse_format_file(GEMMA.replace("<Q>", quote.replace('"', '\\"'))))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PAIRS.replace('"<KEY>"', '" "'), "text before the first key"),
        (GEMMA.replace("<CALL>", "<\u0130>"), "lower case has another length"),
        (GEMMA + 'ends = [""]\n', "marker is empty"),
        ('name = "mine"\nbody = "labels"\nhead = "Action:"\n', "are not labels"),
    ],
)
def test_layout_that_no_parser_supports_has_a_reason(text, words):
    with pytest.raises(UnsupportedLayoutError, match=words):
        compile_format(parse_format_file(text))


def test_value_may_begin_on_the_line_below_its_key():
    text = LINES.replace(' = "}', '\\n"}').replace('following = "', 'following = ";').replace('last = "', 'last = ";')
    format = compile_format(parse_format_file(text))
    calls = [("bash", {"command": "ls", "count": 2})]
    turn = parse(format.encode_calls(calls), TOOLS, format)
    assert [(call.name, call.arguments) for call in turn.calls] == calls


def test_path_with_a_nul_is_a_usage_error():
    with pytest.raises(UsageError, match="cannot read the format file"):
        read_format_file("a\0b.toml")
