"""A model's format is detected by its name, as servers and files spell it, or by its chat template."""

from __future__ import annotations

import pytest

from adapter.parsing.formats import FORMATS, get_format, guess_format

MODELS = {
    "zai-org/GLM-4.5-Air": "glm45",
    "GLM-4.6-Q4_K_M.gguf": "glm45",
    "zai-org/GLM-4.7-Flash": "glm47",
    "glm-5.3": "glm47",
    "moonshotai/Kimi-K2-Instruct-0905": "kimi_k2",
    "moonshotai/Kimi-K2-Thinking": "kimi_k2",
    "kimi-k2:1t": "kimi_k2",
    "Kimi-K2-0711-preview": "kimi_k2",
    "moonshotai/Kimi-K2.5": "kimi_k25",
    "kimi-k2.6": "kimi_k25",
    "moonshotai/Kimi-K3": "kimi_k3",
    "deepseek-ai/DeepSeek-V3-0324": "deepseek_v3",
    "deepseek-ai/DeepSeek-R1-0528": "deepseek_v3",
    "deepseek-v3.1:671b": "deepseek_v31",
    "deepseek-ai/DeepSeek-V3.1-Terminus": "deepseek_v31",
    "deepseek-ai/DeepSeek-V3.2-Exp": "deepseek_v31",
    "deepseek-ai/DeepSeek-V3.2": "deepseek_v32",
    "deepseek-ai/DeepSeek-V4-Pro": "deepseek_v4",
    "deepseek-ai/DeepSeek-V4.1-Flash": "deepseek_v41",
    "MiniMaxAI/MiniMax-M2.1": "minimax_m2",
    "ByteDance-Seed/Seed-OSS-36B-Instruct": "seed_oss",
    "stepfun-ai/step3": "step3",
    "stepfun-ai/Step-3.5-Flash": "step3p5",
    "meituan-longcat/LongCat-Flash-Chat": "longcat",
    "meituan-longcat/LongCat-Flash-Thinking": "longcat",
    "meituan-longcat/LongCat-2.0-Preview": "longcat2",
    "meituan-longcat/LongCat-Flash-Lite": "longcat2",
    "tencent/Hy3-preview": "hy_v3",
    "tencent/Hy4-preview": "hy_v4",
    "MiniMaxAI/MiniMax-M1-80k": "minimax_m1",
    "MiniMaxAI/MiniMax-M3": "minimax_m3",
    "XiaomiMiMo/MiMo-V2-Flash": "mimo",
    "XiaomiMiMo/MiMo-7B-RL": "hermes",
    "rednote-hilab/dots.llm1.inst": "dots",
    "openbmb/MiniCPM3-4B": "minicpm",
    "openbmb/MiniCPM4-8B": "minicpm",
    "openbmb/MiniCPM5-1B": "minicpm5",
    "poolside/Laguna-XS.2": "poolside_v1",
    "upstage/Solar-Open2-250B": "solar_open2",
    "iflytek/Spark2.5": "spark25",
    "muse-glimmer:8b": "muse_glimmer",
    "arcee-ai/Trinity-Mini": "hermes",
    "Nanbeige/Nanbeige4-3B": "qwen3_coder",
    "tencent/Hunyuan-A13B-Instruct": "hunyuan_a13b",
    "ServiceNow-AI/Apriel-1.5-15b-Thinker": "apriel",
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2": "nemotron",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5": "nemotron",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B": "qwen3_coder",
    "Qwen/Qwen3-32B": "hermes",
    "Qwen3-Coder-30B-A3B-Instruct-GGUF": "qwen3_coder",
    "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf": "llama3_json",
    "baidu/ERNIE-4.5-21B-A3B-Thinking": "ernie45",
    "meetkai/functionary-small-v3.2-GGUF": "functionary",
    "meetkai/functionary-medium-v3.1": "functionary_v31",
    "meetkai/functionary-small-v2.4": "functionary_v2",
    "functionary-small-v2.5.Q4_0.gguf": "functionary",
    "fireworks-ai/llama-3-firefunction-v2": "firefunction",
    "Salesforce/Llama-xLAM-2-8b-fc-r": "xlam",
    "allenai/Olmo-3-7B-Instruct": "olmo3",
    "swiss-ai/Apertus-8B-Instruct-2509": "apertus",
    "ai-sage/GigaChat3-10B-A1.8B": "gigachat3",
    "ai-sage/GigaChat3.1-10B-A1.8B": "gigachat31",
    "ai-sage/GigaChat3.5-432B": "gigachat35",
    "thinkingmachines/Inkling": "inkling",
    "IFM/K2-Horizon-7B": "k2_horizon",
    "inclusionAI/Ling-3-Flash": "ling3",
    "granite3.3:8b": "granite",
    "ibm-granite/granite-4.0-h-small": "granite4",
    "internlm/Intern-S1": "internlm",
    "llm-jp/llm-jp-4.1": "harmony",
    "cogito-2.1:671b": "deepseek_v3",
    "cogito:14b": "hermes",
    "DeepSeek-R1-Distill-Qwen-7B": "deepseek_v3",
    "deepseek-r1-distill-llama-70b": "deepseek_v3",
    "DeepSeek-R1-0528-Qwen3-8B-GGUF": "deepseek_v3",
    "glm-4-9b-chat": "glm4_0414",
    "GLM-4-32B-0414": "glm4_0414",
    "GLM-Z1-9B-0414": "glm4_0414",
    "glm4:9b": "glm4_0414",
    "Spark-3-8B": "spark25",
}

TEMPLATES = {
    "<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>\n<arg_value>{arg-value-1}</arg_value>": "glm45",
    "<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key><arg_value>{arg-value-1}</arg_value>": "glm47",
    "<|tool_calls_section_begin|>": "kimi_k2",
    "{{- '<|open|>' + tag -}}": "kimi_k3",
    "'<｜tool▁call▁begin｜>'+ tool['function']['name'] + '<｜tool▁sep｜>' + tool": "deepseek_v31",
    "'<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool": "deepseek_v3",
    "<{{ dsml_token }}function_calls>": "deepseek_v32",
    "<minimax:tool_call>\n<invoke name=": "minimax_m2",
    "<seed:tool_call>\n<function=NAME>\n<parameter=KEY>": "seed_oss",
    "<tool_call>\n<function=NAME>\n<parameter=KEY>": "qwen3_coder",
    "<TOOLCALL>[": "nemotron",
    "<longcat_tool_call>{function-name}\n<longcat_arg_key>": "longcat2",
    "<tool_calls>\n<tool_call>NAME<tool_sep>": "hy_v3",
    "]<]minimax[>[<tool_call>": "minimax_m3",
    "<dots_function_call>\n<invoke name=": "dots",
    "<atem:function_calls>\n<atem:invoke name=": "muse_glimmer",
    "<|tool_call:start|>": "solar_open2",
    "<|thought_start|> <|tool_call_start|>": "minicpm",
    '<function name="f"><param name="k">': "minicpm5",
    "<|start_of_role|>assistant<|end_of_role|><|tool_call|>": "granite",
    "<|start_of_role|>: within <tool_call></tool_call> XML tags": "granite4",
    "<|im_start|>system\\n<global_setting> <tool_call></tool_call> XML tags": "ernie45",
    "For each function call, within <tool_call></tool_call> XML tags": "hermes",
    "prefix function calls with functools marker, as functools[": "firefunction",
    "'\\n<|from|>assistant\\n<|recipient|>'": "functionary_v2",
    "<{start_tag}={function_name}> and an example, <function=NAME>, or <|python_tag|>": "functionary_v31",
    ">>>${recipient}": "functionary",
    "role_sep=\"<|role_sep|>\\n\" and 'function call'": "gigachat3",
    "<|role_sep|> and <|function_call|>": "gigachat31",
    "<|role_sep|> and '<｜GCML｜tool_calls>\\n'": "gigachat35",
    "output any function calls within <function_calls></function_calls> XML tags": "olmo3",
    "<function_calls>\n<invoke name=": "anthropic",
    "{%- set tool_calls_token = '<|tools_prefix|>' -%}": "apertus",
}


@pytest.mark.parametrize("model", MODELS)
def test_model_name_detects_format(model):
    assert guess_format(model=model) == MODELS[model]


@pytest.mark.parametrize("template", TEMPLATES)
def test_template_detects_format(template):
    assert guess_format(model="llama3", template=template) == TEMPLATES[template]


def test_every_alias_finds_its_format():
    for entry in FORMATS.values():
        for name in (entry.name, *entry.aliases):
            assert get_format(name) is entry, name
