"""Formats learned from response templates, the descriptions of answers that some models ship."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter import UsageError, derive, parse
from adapter.backends.format_derivation import detect_format, examine_template
from adapter.backends.template_files import load_chat_template
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.prompting.deriving.known_call_locations import CannotLearnError
from adapter.prompting.deriving.learn_from_response_template import learn_response_template
from tests.command_line import adapter

WHOLE = {"type": "function", "function": "{content}"}
NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
THINK = {"open": "<think>", "close": "</think>", "content": "text"}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    }
]


def template(thinking: Any = THINK, answer: Any = None, **calls: Any) -> dict[str, Any]:
    """Return a template whose calls are ``calls``, with the rest as in most models."""
    fields = {"tool_calls": {"repeats": True, "content": "json", **calls}, "content": answer or {"close": "<|end|>"}}
    return {"start_anchor": "<|assistant|>", "fields": fields | ({"thinking": thinking} if thinking else {})}


ONE = [("get_weather", {"city": "Oslo"})]
TWO = [*ONE, ("get_weather", {"city": "Rome", "days": 3})]
LEARNED: dict[str, tuple[dict[str, Any], str, Any, str, str]] = {
    "objects": (
        template(open="<call>", close="</call>", transform=WHOLE),
        '<think>Hm.</think>I look.\n<call>\n{"name": "get_weather", "arguments": {"city": "Oslo",}}\n</call><|end|>',
        (ONE, "I look.", "Hm."),
        "",
        "trailing-comma",
    ),
    "a name in the opening marker": (
        template(open_pattern=r"<call:(?P<name>\w+)>", close="</call>", transform=NAMED),
        'I look.<call:get_weather>{"city": "Oslo"}</call><call:get_weather>{"city": "Rome", "days": 3}</call>',
        (TWO, "I look.", ""),
        "",
        "",
    ),
    "a list, and tags around the answer": (
        template(
            open=["<|ACT|>", "<|DO|>"],
            close="<|/ACT|>",
            transform={"function": {"name": "{tool}", "arguments": "{params}"}},
            transform_each=True,
            repeats=False,
            thinking={"open": "<|T|>", "close": "<|/T|>"},
            answer={"open": "<|R|>", "close": "<|/R|>"},
        ),
        '<|T|>Hm.<|/T|><|R|>I look.<|/R|><|ACT|>[\n  {"tool": "get_weather", "params": {"city": "Oslo"}},\n'
        '  {"tool": "get_weather", "params": {"city": "Rome", "days": 3}}\n]<|/ACT|>',
        (TWO, "I look.", "Hm."),
        "",
        "",
    ),
    "paths in the content": (
        template(
            open_pattern=r"(?:<\|m\|>)?[^<]*<\|tool\|>",
            close="<|done|>",
            transform={"function": {"name": "{content.call.n}", "arguments": "{content.call.a}"}},
        ),
        '<|tool|>{"call": {"n": "get_weather", "a": {"city": "Oslo"}}}<|done|>',
        (ONE, "", ""),
        "",
        "",
    ),
    "bare keys and quotes of its own": (
        template(
            open_pattern=r"<\|call>call:(?P<name>\w+)",
            close="<call|>",
            transform=NAMED,
            content_args={"unquoted_keys": True, "string_delims": [["<|q|>", "<|q|>"]]},
        ),
        "<|call>call:get_weather{city:<|q|>Oslo<|q|>}<call|>",
        (ONE, "", ""),
        "",
        "",
    ),
    "an element to each argument": (
        template(
            open_pattern=r"<do>\s*<fn=(?P<name>\w+)>",
            close="</do>",
            content="xml-inline",
            content_args={"tag_pattern": r"<arg=(?P<key>\w+)>\s*(?P<value>.*?)\s*</arg>"},
            transform=NAMED,
        ),
        "<do>\n<fn=get_weather>\n<arg=city>Rome</arg>\n<arg=days>3</arg>\n</do>",
        (TWO[1:], "", ""),
        "",
        "",
    ),
    "what Hermes writes": (
        template(open="<tool_call>", close="</tool_call>", transform=WHOLE),
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        (ONE, "", ""),
        "hermes",
        "",
    ),
    "what Qwen3-Coder writes": (
        template(
            open_pattern=r"<tool_call>\s*<function=(?P<name>\w+)>",
            close="</tool_call>",
            content="xml-inline",
            content_args={"tag_pattern": r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>"},
            transform=NAMED,
        ),
        "<tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n</tool_call>",
        (ONE, "", ""),
        "qwen3_coder",
        "",
    ),
}


@pytest.mark.parametrize("name", LEARNED)
def test_a_models_answer_is_read(name):
    """With the schema's types and the repairs of all formats."""
    described, text, expected, known, repair = LEARNED[name]
    learned = learn_response_template(described, "learned")
    assert learned.spec is not None, learned.refusals
    assert (learned.known or "") == known
    turn = parse(text, TOOLS, compile_format(learned.spec))
    assert ([(call.name, call.arguments) for call in turn.calls], turn.content, turn.reasoning) == expected
    assert [fix for call in turn.calls for fix in call.fixes] == ([repair] if repair else [])


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({}, "fields of the response template is not an object"),
        ({"fields": {}}, "fields.tool_calls of the response template is not an object"),
        (template(open="<c>", close="</c>", content="text", transform=WHOLE), "content 'text' of tool_calls"),
        (template(open_pattern="<c>(", close="</c>", transform=WHOLE), "cannot be parsed"),
        (template(open_pattern="(?P<a><c>)(?P=a)", close="</c>", transform=WHOLE), "which is not supported"),
        (template(open_pattern=r"<c>[^\d\D]", close="</c>", transform=WHOLE), "matches no character"),
        (
            template(open_pattern="(" * 400 + "c" + ")" * 400, close="</c>", transform=WHOLE),
            "too deeply|cannot be parsed",
        ),
        (template(open="<c>", content_args={"string_delims": [1]}, transform=WHOLE), "must be pairs of strings"),
        (template(open="<c>", content_args={"string_delims": ["ab"]}, transform=WHOLE), "must be pairs of strings"),
        (
            template(open="<c>", transform={"function": {"name": "{content.a}", "arguments": "{content.a.b}"}}),
            "both as a name and as arguments",
        ),
        (
            template(open="<c>", transform={"function": {"name": "{content.a.b}", "arguments": "{content.a}"}}),
            "both as a name and as arguments",
        ),
        (template(open_pattern="a{9999999}", close="</c>", transform=WHOLE), "repeats more than 2000 times"),
        (template(open_pattern="(?:a{1500}){1500}", close="</c>", transform=WHOLE), "no text shorter than"),
        (template(open_pattern="x" * 2_000, close="</c>", transform=WHOLE), "more than 1000 characters"),
        (template(open="<c>", close="</c>", transform={"function": {"name": "f"}}), "expected a placeholder"),
        (
            template(open_pattern=r"<c (?P<name>\w+)>", close="</c>", content="xml-inline", transform=NAMED),
            "tag_pattern",
        ),
    ],
)
def test_unusable_response_template_is_explained(described, words):
    with pytest.raises(CannotLearnError, match=words.replace("(", r"\(").replace("[", r"\[")):
        learn_response_template(described, "learned")


def test_tokenizer_config_without_a_chat_template(tmp_path):
    """`derive` takes the response template of the file, on the command line and in Python."""
    path = tmp_path / "tokenizer_config.json"
    described, text, expected, _, _ = LEARNED["objects"]
    path.write_text(json.dumps({"response_template": described, "eos_token": "<|end|>"}))
    turn = parse(text, TOOLS, derive(path))
    assert [(call.name, call.arguments) for call in turn.calls] == expected[0]
    shown = adapter("derive", path)
    assert shown.returncode == 0, shown.stderr
    assert "learned from the response template" in shown.stdout


def test_a_chat_template_that_writes_calls_comes_first(tmp_path):
    """It shows past calls exactly; the response template only defines the parsing of new ones."""
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "[CALL]{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}[/CALL]{% endfor %}"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({"chat_template": source, "response_template": LEARNED["objects"][0]}))
    assert "[CALL]" in derive(path).encode_calls(ONE)


def test_known_format_is_preferred(tmp_path):
    """It repairs the errors of its models."""
    path = tmp_path / "response_template.json"
    path.write_text(json.dumps(LEARNED["what Hermes writes"][0]))
    assert detect_format(load_chat_template(path)).format == "hermes"


def test_template_that_cannot_be_used_is_an_error_with_the_reason(tmp_path):
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({"response_template": template(open="<c>", close="</c>", content="int")}))
    with pytest.raises(UsageError, match="content 'int' of tool_calls is not supported"):
        derive(path)
    assert examine_template(load_chat_template(path)).format is None
