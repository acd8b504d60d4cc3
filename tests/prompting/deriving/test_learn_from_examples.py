"""Formats learned from three examples: the rest of the family is read, streamed, cut off, or refused with the piece."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapter.core.turn import Turn
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.format_file import parse_format_file, write_format_file
from adapter.parsing.parser import Parser, parse
from adapter.prompting.deriving.known_call_locations import Call
from adapter.prompting.deriving.learn_from_examples import LearningExample, build_tools, learn_format
from adapter.tools.tool_set import ToolSet
from benchmarks.learned_formats import CASES, measure

WEATHER: Call = ("get_weather", {"city": "Oslo", "days": 3})
TIME: Call = ("get_time", {})
READ: Call = ("read_file", {"path": "src/app.py"})
SEARCH: Call = ("search", {"query": "two words"})


@dataclass(frozen=True)
class Family:
    """A made-up family: examples to learn from, and another text with its calls."""

    body: str
    examples: list[tuple[str, list[Call]]]
    other: str
    calls: list[Call]
    content: str


def as_calls(rows: list[list[Any]]) -> list[Call]:
    return [(name, arguments) for name, arguments in rows]


FAMILIES = {
    name: Family(
        family["body"],
        [(example["text"], as_calls(example["calls"])) for example in family["examples"]],
        family["other"],
        as_calls(family["calls"]),
        family["content"],
    )
    for name, family in tomllib.loads(
        (Path(__file__).parents[3] / "fixtures" / "learned_formats.toml").read_text(encoding="utf-8")
    ).items()
}


def examples(pairs):
    return [LearningExample(text, calls) for text, calls in pairs]


@pytest.fixture(params=FAMILIES)
def family(request):
    return FAMILIES[request.param]


@pytest.fixture
def tools(family):
    return build_tools(examples([*family.examples, (family.other, family.calls), ("", [TIME])]))


@pytest.fixture
def format(family):
    return compile_format(learn(family))


def learn(family):
    spec = learn_format(examples(family.examples), "made_up").spec
    assert spec is not None
    return spec


def read(text, tools, format, finish_reason="stop", *, size=None):
    parser = Parser(format, tools, policy="strict")
    pieces = [text] if size is None else [text[at : at + size] for at in range(0, len(text), size)]
    return Turn.from_events(
        [*(event for piece in pieces for event in parser.feed(piece)), *parser.close(finish_reason)]
    )


def calls_in(turn):
    return [(call.name, call.arguments) for call in turn.calls]


def test_another_text_of_the_family_is_read(family, tools, format):
    turn = read(family.other, tools, format)
    assert (calls_in(turn), turn.content, turn.invalid) == (family.calls, family.content, ())


@pytest.mark.parametrize("size", [1, 2, 7])
def test_streaming_gives_the_same_as_the_whole_text(family, tools, format, size):
    whole, streamed = read(family.other, tools, format), read(family.other, tools, format, size=size)
    assert (calls_in(streamed), streamed.content) == (calls_in(whole), whole.content)


def test_a_call_that_was_cut_off_is_never_a_call(family, tools, format):
    for end in range(len(family.other)):
        assert calls_in(read(family.other[:end], tools, format, "length")) in (
            [], family.calls[:1], family.calls,
        ), family.other[:end]  # fmt: skip


def test_the_written_file_gives_the_same_format(family):
    spec = learn(family)
    assert spec.body == family.body
    assert parse_format_file(write_format_file(spec)) == spec


def test_the_prompts_own_calls_are_read_back(family, tools):
    spec = learn(family)
    for calls in ([WEATHER], [READ, SEARCH], [TIME], [TIME, ("search", {"query": 'say "hi"'})]):
        assert calls_in(read(spec.encode_calls(calls), tools, compile_format(spec))) == calls


def test_each_example_is_left_out_once():
    learned = learn_format(examples(FAMILIES["lines"].examples), "made_up")
    assert learned.left_out == ((0, "no example has a call with two arguments; add one"),)


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45", "kimi_k2", "gemma4", "dots", "lfm2"])
def test_a_known_family_is_learned_from_three_of_its_cases(name):
    learned, built_in, _, note = measure(name, ToolSet(json.loads((CASES / "tools.json").read_text())))
    assert note.startswith("[")
    assert learned >= built_in - 1


@pytest.mark.parametrize(
    ("pairs", "piece"),
    [
        ([("I want get_weather in Oslo", [("get_weather", {"city": "Oslo"})])] * 3, "'get_weather' is not followed"),
        (
            [('{"args": {"city": "Oslo"}, "fn": "get_weather"}', [("get_weather", {"city": "Oslo"})])] * 3,
            "not one JSON object after the name: '{\"args\": {\"city\": \"Oslo\"}, \"fn\"",
        ),
        (
            [
                ("<a>f: {\"x\": 1}</a>", [("f", {"x": 1})]),
                ("<a>f = {\"x\": 2}</a>", [("f", {"x": 2})]),
                ("<a>f; {\"x\": 3}</a>", [("f", {"x": 3})]),
            ],
            "the text between name and arguments differs: ': ' and ' = '",
        ),
        (
            [("CALL f\nx: 1\ny: 2", [("f", {"x": 1, "y": 2})])] * 3,
            "nothing marks the end of the YAML",
        ),
    ],
)  # fmt: skip
def test_a_layout_that_cannot_be_learned_is_refused_with_the_piece_that_does_not_fit(pairs, piece):
    learned = learn_format(examples(pairs), "made_up")
    assert learned.spec is None
    assert piece in json.dumps([*learned.refusals.values()]).replace('\\"', '"')


def test_a_built_in_format_that_reads_all_examples_is_named():
    text = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
    assert learn_format(examples([(text, [TIME])] * 3), "made_up").known == "hermes"


def test_damaged_texts_never_raise(family, tools, format):
    for at in range(0, len(family.other), 3):
        parse(family.other[:at] + family.other[at + 2 :], tools, format)
