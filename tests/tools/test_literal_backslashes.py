"""Backslashes of LaTeX and of Windows paths are restored, and line breaks and tabs remain."""

from __future__ import annotations

import json

import pytest

from adapter.core.events import ToolCall, ToolCallDelta
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import Parser, parse
from adapter.tools.literal_backslashes import restore_backslashes
from benchmarks.written_texts import is_whole_answer
from tests.parsing.formats.test_wild import definition_of
from tests.processor_time import processor_limit

TOOLS = [definition_of("search(query, more?: string[])")]

LITERAL = [
    r"\theta + \beta",
    r"\theta",
    r"E = \nabla f",
    r"\rho + \tau",
    r"x \times y",
    r"\text{a} \to b",
    r"x \neq y",
    r"x\theta\nu",
    r"x\theta\nabla\alpha",
    r"foo.*\b",
    r"C:\temp\new",
    r"cd C:\temp\new && dir",
    r"type C:\new\readme.txt",
    r"cd C:\temp\repo && dir \new",
    r"src\tests\new.py",
    r"..\tests\run.bat",
    r"%USERPROFILE%\repos\tools",
]
"""Texts whose escapes are valid JSON, although none is meant."""

DECODED = [
    r"a\tb",
    r"if x:\n\treturn y\n",
    r"if a:\n\texts = 3\n\ttimes = 4\n\ttext = 2",
    r"A:\nyes\nno",
    r"Q:\nWhat is new\nA:\nThis",
    r"a\tau revoir\n",
    r"gt\nlt\neq\nne",
    r"id\temp\tdept",
    r"for k: \ni = 0\nu = 1",
    r"name:\tvalue\nx:\t1",
    r"cd C:\\temp\nls",
    r"C:\\temp\r\nD:\\new\r\n",
    r"\\theta\n\\nabla",
]
"""Texts with line breaks and tabs that are meant."""


def written(format: str, text: str) -> str:
    return FORMATS[format].encode_calls([("search", {"query": "@", "more": ["@"]})]).replace("@", text)


ESCAPING = [name for name in FORMATS if r"p\nq" in FORMATS[name].encode_calls([("search", {"query": "p\nq"})])]


@pytest.mark.parametrize("format", [name for name in ESCAPING if not is_whole_answer(name)])
@pytest.mark.parametrize("text", [LITERAL[0], LITERAL[10], DECODED[1]])
def test_escapes_are_literal_by_the_evidence_of_the_string(format, text):
    value = json.loads(f'"{text}"') if text in DECODED else text
    (call,) = parse(written(format, text), TOOLS, format, "stop", generation_prompt="").calls
    assert call.arguments == {"query": value, "more": [value]}


@pytest.mark.parametrize("text", LITERAL)
def test_latex_and_paths_keep_their_backslashes(text):
    (call,) = parse(written("hermes", text), TOOLS, "hermes", "stop").calls
    assert call.arguments["query"] == text
    assert call.fixes


@pytest.mark.parametrize("text", DECODED)
def test_line_breaks_and_tabs_remain(text):
    (call,) = parse(written("hermes", text), TOOLS, "hermes", "stop").calls
    assert (call.arguments["query"], call.fixes) == (json.loads(f'"{text}"'), ())


def test_both_kinds_in_one_string():
    """Line breaks next to a literal backslash remain."""
    assert restore_backslashes("query", "Let \theta be\n\nan angle") == (
        "Let \\theta be\n\nan angle",
        ("invalid-escape",),
    )
    assert restore_backslashes("query", {"a": ["cd C:\temp\nls"]})[0] == {"a": ["cd C:\\temp\nls"]}


@pytest.mark.parametrize("text", [LITERAL[0], LITERAL[10]])
@pytest.mark.parametrize("size", [1, 3])
def test_streamed_arguments_equal_the_final_ones(text, size):
    text = "a long text before it " * 20 + text
    parser, answer = Parser("hermes", TOOLS, stream_arguments=True), written("hermes", text)
    events = [each for at in range(0, len(answer), size) for each in parser.feed(answer[at : at + size])]
    events += parser.close("stop")
    streamed = "".join(event.arguments for event in events if isinstance(event, ToolCallDelta))
    assert json.loads(streamed) == {"query": text, "more": [text]}
    assert [event.arguments for event in events if isinstance(event, ToolCall)] == [json.loads(streamed)]


@pytest.mark.parametrize(
    "text", [r"\\a" * 3_000, "a:\t" * 3_000, "a.\t" * 3_000, "C:\n" + "x" * 9_000, "..\ta" * 2_000]
)
def test_long_strings_take_linear_time(text):
    with processor_limit(1):
        restore_backslashes("query", text + "\t")
