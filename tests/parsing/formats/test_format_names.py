"""A format is detected by a model's name or chat template, and has the parser names of engines as aliases.

The names are in fixtures/format_names.toml.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from adapter.core.errors import UsageError
from adapter.parsing.formats import FORMATS, get_format, guess_format

NAMES = tomllib.loads((Path(__file__).parents[3] / "fixtures" / "format_names.toml").read_text(encoding="utf-8"))
ENGINE_NAMES = sorted({name for names in NAMES["engines"].values() for name in names.split()})


@pytest.mark.parametrize("name", ENGINE_NAMES)
def test_engine_parser_name_is_a_format_or_alias(name):
    assert get_format(name).encode_calls([("read_file", {"path": "a.py"})])


@pytest.mark.parametrize("model", NAMES["models"])
def test_model_name_detects_format(model):
    assert guess_format(model) == (NAMES["models"][model] or None)


def test_missing_model_name_detects_no_format():
    assert guess_format("") is guess_format(None) is None


@pytest.mark.parametrize("template", NAMES["templates"])
def test_template_detects_format_despite_the_model_name(template):
    assert guess_format(model="llama3", template=template) == NAMES["templates"][template]


HERMES = """{{- "You are provided with function signatures within <tools></tools> XML tags:\\n<tools>" }}
return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\\n</tool_call>"""
CODER = """If you choose to call a function reply in this form:\\n\\n<tool_call>\\n<function=example_function_name>\\n
<parameter=example_parameter_1>\\nvalue_1\\n</parameter>\\n</function>\\n</tool_call>"""
LLAMA = """{{- "Environment: ipython\\n" }}
{{- 'Respond in the format {"name": function name, "parameters": dictionary' }}"""


@pytest.mark.parametrize(
    ("template", "format"),
    [(HERMES, "hermes"), (CODER, "qwen3_coder"), (LLAMA, "llama3_json"), ("{{ messages }}", None), ("", None)],
)
def test_guess_format_by_template(template, format):
    assert guess_format(template=template) == format


def test_guess_format_prefers_template_to_name():
    """A fine-tune keeps its base's name but not its format."""
    assert guess_format("qwen2.5-coder:7b", CODER) == "qwen3_coder"
    assert guess_format("qwen3-coder:30b", "{{ messages }}") == "qwen3_coder"


@pytest.mark.parametrize("name", FORMATS)
def test_get_format_accepts_aliases_in_any_spelling(name):
    """In any case, with dashes or dots."""
    entry = FORMATS[name]
    for alias in (name, name.upper(), name.replace("_", "-"), *entry.aliases):
        assert get_format(alias) is entry


def test_get_format_suggests_nearest_name():
    with pytest.raises(UsageError, match="did you mean 'hermes'"):
        get_format("hermess")


def test_alias_belongs_to_one_format():
    names = [alias for entry in FORMATS.values() for alias in {entry.name, *entry.aliases}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", FORMATS)
def test_encoders_keep_results_and_several_calls(name):
    entry = FORMATS[name]
    assert "42 degrees" in entry.encode_result("get_weather", "42 degrees", "call_1")
    text = entry.encode_calls([("get_weather", {"city": "Oslo"}), ("get_time", {})])
    assert text.index("get_weather") < text.index("get_time")
