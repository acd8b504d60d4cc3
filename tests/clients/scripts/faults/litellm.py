"""Chat completions by each of litellm's providers, and its responses."""

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the net for prices
import litellm

URL, way = os.environ["ADAPTER_URL"], sys.argv[1]
litellm.suppress_debug_info = True
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "Of a city.", "parameters": PARAMETERS}


def ask(question, stream):
    if way == "responses":
        given = {"model": "openai/m", "api_base": f"{URL}/v1", "tools": [{"type": "function", **FUNCTION}]}
        said = litellm.responses(input=question, stream=stream, num_retries=0, max_retries=0, **given)
        if stream:
            *_, last = said
            said = last.response
        calls = [(item.name, json.loads(item.arguments)) for item in said.output if item.type == "function_call"]
        texts = [part.text for item in said.output if item.type == "message" for part in item.content]
        return "".join(texts), calls, said.status
    model, base = {
        "chat": ("openai/m", f"{URL}/v1"), "anthropic": ("anthropic/m", URL), "ollama": ("ollama_chat/m", URL)
    }[way]  # fmt: skip
    messages = [{"role": "user", "content": question}]
    given = {
        "model": model,
        "api_base": base,
        "messages": messages,
        "tools": [{"type": "function", "function": FUNCTION}],
    }
    said = litellm.completion(**given, stream=stream, num_retries=0, max_retries=0)
    choice = (litellm.stream_chunk_builder(list(said)) if stream else said).choices[0]
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or ()]
    return choice.message.content or "", calls, choice.finish_reason
