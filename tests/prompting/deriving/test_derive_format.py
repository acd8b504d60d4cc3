"""Formats derived from templates of invented families parse, write and stream like known ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.core.turn import Turn
from adapter.parsing.formats import FORMATS, get_format, register_format
from adapter.parsing.parser import Parser, parse
from adapter.prompting.deriving.derive_format import derive_format
from adapter.prompting.deriving.format_detection import match_known_format
from tests.prompting.deriving.families import KNOWN_FORMS, LINE, OBJECT, ODD, ONE_VALUE_A_LINE, each, family, fill_of

TOOLS = [
    {
        "name": "write_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}, "mode": {"type": "integer"}},
            "required": ["path"],
        },
    },
    {"name": "get_time", "parameters": {"type": "object", "properties": {}}},
]
HOSTILE = 'a "b" \\n \'c\'\n\n<do> {"name": "x"} [DO] Tool: ünï 🙂 </tool_call> 12'


@pytest.fixture(params=KNOWN_FORMS)
def source(request):
    return KNOWN_FORMS[request.param]


def derived(source):
    """The format, which must be there."""
    found = derive_format(fill_of(source), "template_test")
    assert found.format is not None, found.why
    return found.format


def written_by(source, calls, content=""):
    """Return the answer as the template renders it."""
    answer = {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {"id": f"abcdefgh{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(calls)
        ],
    }
    prompt = fill_of(source)([{"role": "user", "content": "Go"}, answer], [], False)
    return prompt.rpartition("<|assistant|>")[2].rstrip()


def calls_of(turn):
    assert turn.invalid == ()
    return [(call.name, call.arguments) for call in turn.calls]


def test_derived_format_parses_the_familys_calls(source):
    """New values, several calls and text before them, whole and in characters."""
    found = derive_format(fill_of(source), "template_test")
    assert found.format is not None, found.why
    calls = [("write_file", {"path": "a.txt", "content": HOSTILE, "mode": 3}), ("write_file", {"path": "b"})]
    for content in ("", "I look."):
        text = written_by(source, calls, content)
        parser = Parser(found.format, TOOLS, policy="approved")
        events = [event for char in text for event in parser.feed(char)]
        streamed = Turn.from_events([*events, *parser.close("stop")])
        whole = parse(text, TOOLS, found.format, policy="approved")
        assert calls_of(whole) == calls_of(streamed) == calls
        assert whole.content.strip() == streamed.content.strip() == content
        assert [call.fixes for call in whole.calls] == [(), ()]


def test_derived_format_writes_like_the_template(source):
    """So the history looks like the training data."""
    format = derived(source)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": "a.txt", "mode": 3}),
        ("get_time", {"path": "b"}),
    ]
    written = written_by(source, calls).removesuffix("<|stop|>").strip()
    assert (
        format.encode_calls(calls).replace("call00000", "abcdefgh0").replace("call00001", "abcdefgh1").strip()
        == written
    )


def test_truncated_call_is_invalid(source):
    """For every length."""
    format = derived(source)
    text = format.encode_calls([("write_file", {"path": "a.txt", "content": "some text"})])
    last = text.index("some text") + 4
    for end in range(1, last):
        turn = parse(text[:end], TOOLS, format, "length", policy="approved")
        assert turn.calls == (), text[:end]


def test_derive_finds_reasoning_results_and_ends(source):
    """The families differ only in their calls."""
    format = derived(source)
    assert format.reasoning["<muse>"] == "</muse>"
    assert "<|stop|>" in format.end_tokens
    assert format.encode_result("f", "42 {name} {}", "id") == "<out>42 {name} {}</out>"
    turn = parse("<muse>Hm.</muse>Hello.<|stop|>", TOOLS, format)
    assert (turn.content, turn.reasoning, turn.calls) == ("Hello.", "Hm.", ())


@pytest.mark.parametrize("name", ODD)
def test_unusual_notation_is_rejected_or_right(name):
    """Without the derived format the text may be text, but not another call."""
    found = derive_format(fill_of(ODD[name]), "template_test")
    if found.format is None:
        assert len(found.why) > 20
    for calls in (
        [("write_file", {"path": "a.txt"})],
        [("write_file", {"path": 'a]] b" c: d', "content": "x\ny"}), ("get_time", {})],
    ):
        turn = parse(written_by(ODD[name], calls), TOOLS, found.format)
        assert [(call.name, call.arguments) for call in turn.calls] in ([], calls)


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ("", "drops past calls"),
        ("{{ message.tool_calls[0].function.arguments | tojson }}", "drops past calls"),
        ("{{ message.tool_calls[0].function.name }}", "without a name, a key or a value"),
        ("{{ raise_exception('no calls here') }}", "rejects every conversation with a tool call"),
    ],
)
def test_failed_derivation_gives_the_reason(calls, why):
    assert why in derive_format(fill_of(family(calls)), "template_test").why


def test_last_line_break_of_a_value_that_ends_its_line_is_reported_as_a_limit():
    found = derive_format(fill_of(ONE_VALUE_A_LINE), "template_test")
    assert found.format is not None, found.why
    assert {miss.sample for miss in found.misses} == {"a last line break", "three calls"}
    assert all(miss.is_ambiguous for miss in found.misses)


def test_unescaped_values_are_reported_as_limits():
    """In a family with unescaped quoted strings, only strings without quotes are unambiguous."""
    raw = KNOWN_FORMS["Python"].replace("{{ v | tojson }}", '{{ "\'" + v + "\'" if v is string else v | tojson }}')
    found = derive_format(fill_of(raw), "template_test")
    assert found.format is not None, found.why
    assert found.misses
    assert all(miss.is_ambiguous for miss in found.misses)


def test_known_format_has_priority_over_the_derived_one():
    """Regardless of markers and name; if none fits, the derived format is used, with the reason."""
    call = f"<tool_call>{LINE}{OBJECT}{LINE}</tool_call>"
    hermes = family(each(call, "\n")).replace("<|stop|>", "<|im_end|>")
    told = match_known_format(derive_format(fill_of(hermes), "template_test"), hermes, None)
    assert (told.format, told.by) == ("hermes", "known")
    unknown = KNOWN_FORMS["keys and values"]
    told = match_known_format(derive_format(fill_of(unknown), "template_test"), unknown, "qwen3")
    assert (told.format, told.by) == ("template_test", "template")
    assert "misreads" in told.why
    none = family("")
    told = match_known_format(derive_format(fill_of(none), "template_test"), none, "qwen3")
    assert (told.format, told.by) == ("hermes", "guess")


def test_derived_format_is_registered_by_name_only():
    """`get_format` finds it, but it is never detected."""
    format = derived(KNOWN_FORMS["elements"])
    register_format(format)
    assert get_format("template_test") is format
    assert "template_elements" not in FORMATS
    text = format.encode_calls([("get_time", {})])
    assert parse(text, TOOLS).calls == ()
    assert json.dumps([call.name for call in parse(text, TOOLS, "template_test").calls]) == '["get_time"]'
