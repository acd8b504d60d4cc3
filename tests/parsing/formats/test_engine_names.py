"""Whoever configured an engine's tool call parser can tell us the same name."""

from __future__ import annotations

import pytest

from adapter.parsing.formats import get_format

# vllm/frontend/processing/tool_parsers/__init__.py and, where newer, vllm/tool_parsers/__init__.py (November 2026)
VLLM = """
    apertus cohere_command3 cohere_command4 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4 dots ernie45 functiongemma
    gemma4 gigachat3 glm45 glm47 granite granite-20b-fc granite4 hermes hunyuan_a13b hy_v3 hy_v4 inkling internlm jamba
    kimi_k2 kimi_k3 lfm2 ling3 llama3_json llama4_json llama4_pythonic longcat mimo minicpm5 minimax_m2 minimax_m3
    mistral muse_glimmer olmo3 openai phi4_mini_json poolside_v1 pythonic qwen3_coder qwen3_xml seed_oss solar_open2
    step3 step3p5 xlam
"""
# sglang 0.5, function_call/function_call_parser.py, as packaged in llm-router-utils
SGLANG = """
    apertus2509 cohere_command4 deepseekv3 deepseekv31 deepseekv32 deepseekv4 deepseekv41 dots gemma4 gigachat3
    gigachat35 glm glm45 glm47 gpt-oss hermes hunyuan inkling interns1 iquest_q1 k2_horizon kimi_k2 kimi_k3 lfm2 ling3
    llama3 mimo minicpm5 minimax-m2 minimax-m3 mistral muse nanbeige poolside_v1 pythonic qwen qwen25 qwen3_coder
    spark25 step3 step3p5 trinity
"""
# llama.cpp, the specialised handlers in common/parsers; all other templates are analysed by its autoparser
LLAMA_CPP = """
    cohere2moe deepseek functionary-v3-2 gemma4 gigachat-v3 gpt-oss inkling k2-horizon kimi-k2 kimi-k3 lfm2 ling3
    llm-jp-harmony minicpm5 minimax-m3 ministral3 muse-glimmer qwen3-coder
"""
# ollama, model/parsers/parsers.go; its passthrough reads no calls
OLLAMA = """
    cogito cohere deepseek3 functiongemma gemma4 gemma4-no-thinking glimmer glm-4.7 glm-ocr harmony laguna lfm2
    lfm2-thinking ministral nemotron-3-nano nemotron-3.5-nano olmo3 olmo3-think ornith poolside-v1 qwen3 qwen3-coder
    qwen3-thinking qwen3-vl-instruct qwen3-vl-thinking qwen3.5
"""


@pytest.mark.parametrize("name", sorted({*VLLM.split(), *SGLANG.split(), *LLAMA_CPP.split(), *OLLAMA.split()}))
def test_an_engines_parser_is_known_by_its_name(name):
    """Every parser that these engines register is one of our formats, or an alias of one."""
    assert get_format(name).encode_calls([("read_file", {"path": "a.py"})])
