"""Formats derived from the templates of made-up families: each reads, writes and streams as a table does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.core.turn import Turn
from adapter.parsing.formats import FORMATS, get_format, register_format
from adapter.parsing.parser import Parser, parse
from adapter.prompting.deriving.detect import match_known_format
from adapter.prompting.deriving.result import derive_format
from tests.prompting.deriving.families import KNOWN_FORMS, LINE, OBJECT, ODD, each, family, fill_of

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
    """What the template makes of an answer, as a model would write it."""
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


def test_each_form_is_derived_and_reads_the_familys_own_calls(source):
    """Values that no trial had, several calls, words before them: whole and in characters."""
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


def test_what_it_writes_is_what_the_template_writes(source):
    """So history in words looks as the model was trained to see it."""
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


def test_a_cut_call_is_no_call(source):
    """Wherever the text ends."""
    format = derived(source)
    text = format.encode_calls([("write_file", {"path": "a.txt", "content": "some text"})])
    last = text.index("some text") + 4
    for end in range(1, last):
        turn = parse(text[:end], TOOLS, format, "length", policy="approved")
        assert turn.calls == (), text[:end]


def test_reasoning_results_and_ends_are_found(source):
    """Beside the calls, which are all that differs between these families."""
    format = derived(source)
    assert format.reasoning["<muse>"] == "</muse>"
    assert "<|stop|>" in format.end_tokens
    assert format.encode_result("f", "42 {name} {}", "id") == "<out>42 {name} {}</out>"
    turn = parse("<muse>Hm.</muse>Hello.<|stop|>", TOOLS, format)
    assert (turn.content, turn.reasoning, turn.calls) == ("Hello.", "Hm.", ())


@pytest.mark.parametrize("name", ODD)
def test_an_odd_form_is_refused_or_right_and_never_misread(name):
    """Without the derived format all formats are recognised: the text may be text, but not another call."""
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
        ("", "leaves past calls out"),
        ("{{ message.tool_calls[0].function.arguments | tojson }}", "leaves past calls out"),
        ("{{ message.tool_calls[0].function.name }}", "no way that has a name"),
        ("{{ raise_exception('no calls here') }}", "refuses every conversation in which a tool was called"),
    ],
)
def test_what_is_missing_is_said(calls, why):
    assert why in derive_format(fill_of(family(calls)), "template_test").why


def test_values_that_nothing_escapes_are_a_limit_that_is_said():
    """A family whose texts stand in quotes as they are: what holds no quote is right, the rest nobody can tell."""
    raw = KNOWN_FORMS["Python"].replace("{{ v | tojson }}", '{{ "\'" + v + "\'" if v is string else v | tojson }}')
    found = derive_format(fill_of(raw), "template_test")
    assert found.format is not None, found.why
    assert found.limits
    assert all(miss.is_limit for miss in found.misses)


def test_a_table_that_reads_the_template_goes_first():
    """Whatever the marks and the name say; where none does, the derived format is taken, and says why."""
    call = f"<tool_call>{LINE}{OBJECT}{LINE}</tool_call>"
    hermes = family(each(call, "\n")).replace("<|stop|>", "<|im_end|>")
    told = match_known_format(derive_format(fill_of(hermes), "template_test"), hermes, None)
    assert (told.format, told.by) == ("hermes", "table")
    unknown = KNOWN_FORMS["keys and values"]
    told = match_known_format(derive_format(fill_of(unknown), "template_test"), unknown, "qwen3")
    assert (told.format, told.by) == ("template_test", "template")
    assert "misreads" in told.why
    none = family("")
    told = match_known_format(derive_format(fill_of(none), "template_test"), none, "qwen3")
    assert (told.format, told.by) == ("hermes", "signs")


def test_a_derived_format_is_known_by_its_name_and_to_nobody_else():
    """`get_format` finds it; what recognises formats does not read by it."""
    format = derived(KNOWN_FORMS["elements"])
    register_format(format)
    assert get_format("template_test") is format
    assert "template_elements" not in FORMATS
    text = format.encode_calls([("get_time", {})])
    assert parse(text, TOOLS).calls == ()
    assert json.dumps([call.name for call in parse(text, TOOLS, "template_test").calls]) == '["get_time"]'
