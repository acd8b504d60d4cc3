"""`adapter.derive` with a worker process: hostile templates, the cache, and uses of the format."""

from __future__ import annotations

import json

import pytest

import adapter
from adapter.backends import format_derivation
from adapter.backends.format_derivation import detect_format, examine_template
from adapter.backends.template_files import TemplateWorker
from adapter.core.errors import UsageError
from adapter.grammars.call_layout import find_call_prefix, find_key_value_call_layout
from adapter.grammars.gbnf import build_gbnf
from adapter.parsing.formats import get_format
from adapter.prompting.chat_template import ChatTemplate
from adapter.prompting.escaping import escape_control_tokens, unescape_control_tokens
from adapter.prompting.system_prompt import system_prompt
from adapter.tools.tool_set import ToolSet
from tests.prompting.deriving.families import KNOWN_FORMS, OBJECT, YAML, each, family

SOURCE = KNOWN_FORMS["keys and values"]
TOOL = {
    "name": "write_file",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["path"],
    },
}


def test_derive_returns_a_format_for_the_parser(tmp_path):
    """From the template's text or its file, under the same name."""
    format = adapter.derive(SOURCE)
    file = tmp_path / "chat_template.jinja"
    file.write_text(SOURCE)
    assert adapter.derive(file).name == format.name
    turn = adapter.parse(
        "I look.<do>write_file\n<k>path</k>\n<v>a.py</v>\n<k>count</k>\n<v>3</v>\n</do>", [TOOL], format
    )
    assert [(call.name, call.arguments, call.fixes) for call in turn.calls] == [
        ("write_file", {"path": "a.py", "count": 3}, ())
    ]
    assert turn.content == "I look."


def test_derivation_is_cached_by_the_templates_text(monkeypatch):
    """The template is not rendered again."""
    format = adapter.derive(SOURCE)

    def render(*_args, **_kwargs):
        raise AssertionError("filled again")

    monkeypatch.setattr(TemplateWorker, "render", render)
    assert adapter.derive(SOURCE) is format
    assert detect_format(SOURCE).format == format.name


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "takes more than"),
        ("{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}", "output of the template exceeds|writes more than"),
        ("{% for m in messages %", "line 1 of the template"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls itself endlessly|takes more than"),
        ("{{ raise_exception('Not today') }}", "Not today"),
        ("{{ ''.__class__.__mro__ }}", "cannot be rendered"),
        ("no conversation at all", "this is not a chat template"),
        (YAML, "the derived format misreads"),
        (family(each("[" * 8000 + OBJECT)), "no parser supports|takes more than"),
        (family(each('{"a":' * 1900 + OBJECT)), "no parser supports"),
        (family(each("x" * 10_001 + OBJECT)), "rejects every conversation"),
    ],
)
def test_template_without_a_format_raises_with_the_reason(monkeypatch, source, why):
    """Within the time limit."""
    if "takes more than" in why:
        monkeypatch.setattr(format_derivation, "TIME_LIMIT_S", 0.5)
    with pytest.raises(UsageError, match=why):
        adapter.derive(source)


def test_derive_rejects_other_types():
    with pytest.raises(UsageError, match=r"expected the text or the path of a chat template, got .*int"):
        adapter.derive(3)  # type: ignore[arg-type]


def test_grammar_uses_the_derived_format():
    """As for any format, it is built from the encoded calls."""
    format = adapter.derive(SOURCE)
    assert find_call_prefix(format.name) == "<do>"
    pairs = find_key_value_call_layout(format.name)
    assert pairs is not None
    assert (pairs.first, pairs.following, pairs.last) == ("\n<k>", "</v>\n<k>", "</v>\n</do>")
    grammar = build_gbnf(ToolSet([TOOL]), format=format.name)
    assert '"<do>' in grammar


def test_prompt_example_uses_the_derived_format():
    """Also in a text prompt."""
    format = adapter.derive(SOURCE)
    prompt = system_prompt("blade", format.name, "full")
    assert "<do>" in prompt
    assert "<k>path</k>\n<v>" in prompt


def test_markers_of_a_derived_format_are_escaped():
    """As for every known format."""
    format = adapter.derive(SOURCE)
    acting = "<do>write_file\n<k>path</k>\n<v>a.py</v>\n</do><|stop|>"
    told = escape_control_tokens(acting, format)
    assert "<do>" not in told
    assert "<|stop|>" not in told
    assert unescape_control_tokens(told) == acting
    assert adapter.parse(told, [TOOL], format).calls == ()


def test_derived_name_from_another_process_is_explained():
    with pytest.raises(UsageError, match="was derived from a chat template in another process"):
        get_format("template_0123456789")


def test_detect_format_reports_its_basis():
    """A known format that was checked, the template, or a guess."""
    assert detect_format(SOURCE).by == "template"
    told = detect_format(family(""), "qwen3")
    assert (told.format, told.by) == ("hermes", "guess")
    assert "drops past calls" in str(told)
    assert str(detect_format(ChatTemplate(family("")))).startswith("any, ")


def test_template_with_undocumented_variables_is_derived():
    """Some concatenate an undocumented variable with the tools."""
    found = examine_template(ChatTemplate("{{ 'Functions: ' + functions }}" + SOURCE))
    assert found.format is not None, found.why
    assert json.dumps("zqtext") not in found.format.encode_calls([("f", {})])
