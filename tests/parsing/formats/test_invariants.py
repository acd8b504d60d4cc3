"""Invariants of the parser, for generated texts."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.core.errors import UsageError
from adapter.core.events import ToolCall
from adapter.core.turn import Turn
from adapter.parsing.bodies.worded_call import ANY_WORD
from adapter.parsing.echoed_header import HEADERS
from adapter.parsing.formats import FORMATS, get_format
from adapter.parsing.parser import Parser, parse
from adapter.parsing.stream_buffer import NAME_LIMIT
from tests.effort import EFFORT, examples
from tests.parsing.checks import check_calls, read_pieces
from tests.parsing.formats.soup import (
    EVERYTHING,
    FILE_FORMATS,
    FORMAT_NAMES,
    MARKERS,
    TOOLS,
    any_text,
    arguments,
    characters,
    damaged,
    soup,
    values,
)

LIMITS = examples(30)
EACH = examples(10)
"""Examples for each format; `python -m benchmarks.fuzz_parse` runs any number of them."""
TEXTS = st.one_of(soup, any_text, damaged())
FINISH_REASONS = st.sampled_from(["stop", "length", None])
ALL_TOOLS = [*TOOLS, EVERYTHING]


@LIMITS
@given(
    TEXTS,
    st.sampled_from([*FORMAT_NAMES, *FILE_FORMATS]),
    FINISH_REASONS,
    st.sampled_from(["", "<think>\n"]),
    st.randoms(),
)
@example("<tool_call>```json", "hermes", None, "", Random(1))
def test_raw_joins_to_input_for_every_split(text, format, finish_reason, prompt, chance):
    """D18: the events are the same for the complete text, characters and random pieces."""

    def events_of(pieces):
        return read_pieces(
            pieces, format=format, tools=ALL_TOOLS, finish_reason=finish_reason, generation_prompt=prompt
        )

    events = events_of([text])
    assert "".join(event.raw for event in events) == text
    check_calls(events)
    assert events_of(list(text)) == events
    cuts = sorted(chance.randint(0, len(text)) for _ in range(4))
    assert events_of([text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]) == events


@LIMITS
@given(TEXTS, st.sampled_from(FORMAT_NAMES))
def test_arguments_are_encodable_as_utf8_json(text, format):
    for call in parse(text, ALL_TOOLS, format).calls:
        json.dumps([call.name, call.arguments], ensure_ascii=False, allow_nan=False).encode()


def single_call(name: str, given_arguments: dict[str, Any]) -> str:
    return get_format(name).encode_calls([("do_everything", given_arguments)])


@pytest.mark.parametrize(
    "name",
    ["hermes", "llama3_json", "mistral", "xlam", "apertus", "gigachat3", "inkling", "firefunction", "functionary"],
)
@EACH
@given(st.lists(st.dictionaries(st.text(characters, max_size=8), values, max_size=3)))
def test_json_formats_parse_back_any_calls(name, all_arguments):
    """Also without a tool's definition, for any number of calls."""
    calls = [(f"tool_{number}", given_arguments) for number, given_arguments in enumerate(all_arguments)]
    turn = parse(get_format(name).encode_calls(calls), None, name)
    assert [(call.name, call.arguments, call.fixes) for call in turn.calls] == [(*call, ()) for call in calls]


SECTIONED = {
    **dict.fromkeys(("kimi_k2", "kimi_k25"), "<|tool_call_end|>"),
    "kimi_k3": "<|close|>call<|sep|>",
    **dict.fromkeys(("deepseek_v3", "deepseek_v31"), "<｜tool▁call▁end｜>"),
    **dict.fromkeys(("deepseek_v32", "deepseek_v4"), "</｜DSML｜invoke>"),
    "deepseek_v41": "</｜DSML｜ invoke>",
    **dict.fromkeys(("minimax_m2", "anthropic", "dots"), "</invoke>"),
    **dict.fromkeys(("hy_v3", "hy_v4"), "</tool_call:opensource>"),
    "minimax_m3": "]<]minimax[>[</invoke>",
    "muse_glimmer": "</atem:invoke>",
    "gigachat35": "</｜GCML｜invoke>",
    "k2_horizon": "</ifm|tool_call>",
    "seed_oss": "</function>",
    "step3": "</steptml:invoke>",
    "plamo3": "<|plamo:end_tool_arguments:plamo|>",
    "mirothinker": "</arguments>",
}
"""Closing marker of one call, for formats with a section around several: the call is complete before the section."""


@pytest.mark.parametrize("expected_format", [True, False])
@pytest.mark.parametrize("name", [*FORMATS, *FILE_FORMATS])
@examples(1)
@given(arguments)
@example({"text": "a <tool_call> b", "items": [{}], "count": 12})
def test_cut_call_is_never_accepted(name, expected_format, given_arguments):
    """No beginning of a call is a call when the server reports length, nor one with other arguments."""
    text = single_call(name, given_arguments)
    format, step = name if expected_format else None, max(1, 6 // EFFORT)
    for end in range(len(text) % step, len(text), step):
        cut = parse(text[:end], [EVERYTHING], format, "length", generation_prompt="")
        is_closed = SECTIONED.get(name, text) in text[:end]
        assert is_closed or cut.calls == ()
        for finish_reason in ("stop", None):
            for call in parse(text[:end], [EVERYTHING], format, finish_reason).calls:
                assert (call.name, call.arguments) == ("do_everything", given_arguments)


WRAPPERS = re.compile(r"(?:<[a-z_][\w.:-]{0,62}>\s*)*(?:<[\w.:-]{0,62})?")
"""Tags of any name, or their beginning, after which a call may follow if they begin a line."""
WORDS = re.compile(rf"(?:[^\w.!?]|_|{ANY_WORD})*[\w.<-]{{0,40}}")
"""Words that announce a call, or their beginning."""


@LIMITS
@given(
    st.lists(
        st.one_of(
            st.sampled_from(["A word", " ", "\n", "\n\n", "é", "3 < 4", "a <b> c", "x = y;", "</p>"]),
            st.sampled_from(MARKERS).flatmap(lambda marker: st.integers(1, len(marker) - 1).map(lambda n: marker[:n])),
        ),
        max_size=12,
    )
)
@example(["<｜", "A word"])
@example(["<l", "A word"])
@example(["<to", " "])
@example([">", "A word"])
def test_only_partial_markers_and_whitespace_are_buffered(pieces):
    openings = ("<function=", "<function ", "<tool_call ", "<tools>", "<parameter", "```")
    text = "".join(pieces)
    if any(opening in text for opening in openings) or any(marker in text for marker in MARKERS):
        return
    markers = [
        *MARKERS,
        *HEADERS,
        "<<<",
        *(
            f"{start}{tool['function']['name']}{end}"
            for tool in TOOLS
            for start, end in (("<", ">"), ("functions.", ":"))
        ),
    ]
    parser = Parser(None, TOOLS)
    shown = 0
    for fed, char in enumerate(text, 1):
        shown += sum(len(event.raw) for event in parser.feed(char))
        held = text[shown:fed].lstrip().lower()
        begins_list = re.match(r"\[[\s\[]*(?:\w|$)", held) is not None and len(held) <= NAME_LIMIT
        begins_line = not text[: fed - len(held)].rpartition("\n")[2].strip()
        begins_tag = begins_line and WRAPPERS.fullmatch(held) is not None
        begins_words = begins_line and len(held) <= NAME_LIMIT and WORDS.fullmatch(held) is not None
        is_partial = any(marker.lower().lstrip().startswith(held) for marker in markers)
        assert not held or begins_list or begins_tag or begins_words or is_partial


PROSE = st.sampled_from(["", "I think of\n", "so:\n\n", "word "])


@LIMITS
@given(st.sampled_from(sorted(FORMATS)), arguments, PROSE, PROSE)
def test_calls_in_closed_reasoning_are_rejected(name, given_arguments, before, after):
    given_arguments.pop("text", None)  # it may hold </think>, and reasoning ends at the first
    draft = single_call(name, {key: value for key, value in given_arguments.items() if key in ("count", "flag")})
    text = f"<think>\n{before}{draft}{after}\n</think>\n\nNo."
    assert parse(text, [EVERYTHING], name).calls == parse(text, [EVERYTHING]).calls == ()


@LIMITS
@given(st.sampled_from(sorted(FORMATS)), st.integers(), st.sampled_from(["", "json", "xml", "text", "python"]))
def test_quoted_examples_are_rejected(name, count, language):
    """A call in a fence before prose, or in inline code, is documentation."""
    example_call = single_call(name, {"count": count})
    fenced = f"The form is:\n```{language}\n{example_call}\n```\nThat is how."
    assert parse(fenced, [EVERYTHING], name).calls == parse(fenced, [EVERYTHING]).calls == ()
    inline = f"Write `{example_call}` to call.".replace("\n", " ")
    turn = parse(inline, [EVERYTHING])
    assert (turn.calls, turn.content) == ((), inline)


CALL, CLOSE = '<tool_call>{"name": "bash", "arguments": ', "</tool_call>"
FILTERS = "<function=search>\n<parameter=filters>\n"
DEEP, LONG, MANY = 1_100 * EFFORT, 4_500 * EFFORT, 40 * EFFORT
"""Past the depth of recursion and the digits of a whole number, for one."""
# fmt: off
HOSTILE = {
    "nothing": "",
    "lone-surrogates": "\ud800<tool_call>\udfff{\ud83d}</tool_call>\ud800",
    "nul": "\x00" * 1000,
    "nested-arrays": "[" * DEEP,
    "nested-arrays-in-a-call": "<tool_call>" + "[" * DEEP + "]" * DEEP + "</tool_call>",
    "nested-objects-in-a-call": CALL + '{"a":' * DEEP + "1" + "}" * (DEEP + 1) + CLOSE,
    "nested-within-recursion": CALL + '{"a": "\\ud83d", "b":' + "[" * 400 + "]" * 400 + "}}" + CLOSE,
    "nested-in-a-value": FILTERS + '{"a":' * DEEP + "1" + "}" * DEEP + "\n</parameter>\n</function>",
    "nested-in-a-string": '{"name": "search", "arguments": "' + "[" * LONG + '"}',
    "digits": '<tool_call>{"name": "bash", "arguments": {"timeout": ' + "9" * LONG + "}}</tool_call>",
    "digits-in-a-string": '<tool_call>{"name": "bash", "arguments": {"timeout": "' + "9" * LONG + '"}}</tool_call>',
    "digits-in-a-value": "<function=bash>\n<parameter=timeout>\n" + "9" * LONG + "\n</parameter>\n</function>",
    "exponent": '<tool_call>{"name": "bash", "arguments": {"timeout": 1e999}}</tool_call>',
    "exponent-in-a-string": '<tool_call>{"name": "bash", "arguments": {"timeout": "1e999"}}</tool_call>',
    "open-tags": "<tool_call>" * MANY,
    "close-tags": "</tool_call>" * MANY,
    "think-and-calls": '<think><tool_call>{"name": "get_time"}</tool_call>' * MANY,
    "headers": "<|channel|>" * MANY,
    "ends-in-a-section": "<|channel|>analysis<|message|>" + "<|end|> " * MANY + "x",
    "named-calls": "[TOOL_CALLS]bash[ARGS]{" * MANY,
    "fences": "```\n" * MANY,
    "backslashes": '<tool_call>{"name": "' + "\\" * LONG,
    "not-a-name": '<tool_call>{"name": 5, "arguments": {}}</tool_call>',
    "empty-name": '<tool_call>{"name": "", "arguments": {}}</tool_call>',
    "infinity": '<tool_call>{"name": "bash", "arguments": {"timeout": Infinity}}</tool_call>',
    "unhashable": '<tool_call>{"name": ["a"], "function": {"name": {}}}</tool_call>',
}
# fmt: on


@pytest.mark.parametrize("format", [*FORMAT_NAMES, *FILE_FORMATS])
def test_hostile_text_never_raises(format):
    """Complete and, for a third of the texts, in pieces; nothing is lost."""
    for number, (name, text) in enumerate(HOSTILE.items(), len(format or "")):
        whole = read_pieces([text], format=format, tools=ALL_TOOLS)
        assert "".join(event.raw for event in whole) == text, name
        check_calls(whole)
        if number % max(1, 3 // EFFORT):
            continue
        pieces = [text[at : at + 997] for at in range(0, len(text), 997)]
        assert read_pieces(pieces, format=format, tools=ALL_TOOLS) == whole, name


def test_feed_after_close_raises_usage_error():
    """Closing twice is harmless."""
    parser = Parser("hermes")
    parser.feed("Hi")
    parser.close()
    assert parser.close() == []
    with pytest.raises(UsageError, match="closed"):
        parser.feed("more")


@given(st.lists(st.sampled_from(["Hi ", "<tool_call>", '{"name": "get_time"}', "</tool_call>", "\n"]), max_size=8))
@LIMITS
def test_progress_events_have_no_raw_and_are_not_in_turn(pieces):
    parser = Parser("hermes", TOOLS)
    events = [event for piece in pieces for event in parser.feed(piece)] + parser.close("stop")
    turn = Turn.from_events(events)
    assert "".join(event.raw for event in events) == "".join(pieces)
    assert turn.calls == tuple(event for event in events if isinstance(event, ToolCall))
