"""`guess_format` by model name and chat template; `get_format` by name."""

from __future__ import annotations

import pytest

from adapter.core.errors import UsageError
from adapter.parsing.formats import FORMATS, get_format, guess_format


@pytest.mark.parametrize(
    ("model", "format"),
    [
        ("qwen2.5-coder:7b", "hermes"),
        ("Qwen/Qwen2.5-7B-Instruct", "hermes"),
        ("qwen2.5:0.5b", "hermes"),
        ("qwen3:4b", "hermes"),
        ("Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL.gguf", "hermes"),
        ("unsloth/Qwen3-4B-Thinking-2507", "hermes"),
        ("QwQ-32B", "hermes"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
        ("hermes3:8b", "hermes"),
        ("qwen3-coder:30b", "qwen3_coder"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3_coder"),
        ("Qwen3-Coder-Next-Q4_K_M.gguf", "qwen3_coder"),
        ("qwen3.5:9b", "qwen3_coder"),
        ("Qwen/Qwen3.6-27B", "qwen3_coder"),
        ("Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "llama3_json"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3_json"),
        ("llama3.2:3b", "llama3_json"),
        ("llama3:8b", "llama3_json"),
        ("speakleash/Bielik-11B-v3.0-Instruct", "hermes"),
        ("LGAI-EXAONE/EXAONE-4.0.1-32B", "hermes"),
        ("naver-hyperclovax/HyperCLOVAX-SEED-Think-14B", "hyperclovax"),
        ("naver-hyperclovax/HyperCLOVAX-SEED-Think-32B", "glm45"),
        ("North-Mini-Code-1.0-Q4_K_M.gguf", "cohere"),
        ("my-model", None),
        ("gpt-oss:20b", "harmony"),
        ("mistral-small", "mistral"),
        ("llama2:7b", None),
        ("", None),
        (None, None),
    ],
)
def test_guess_format_by_model_name(model, format):
    """An unknown name gives None."""
    assert guess_format(model) == format


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
