"""Chat completions by each of litellm's providers, and its responses."""

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the net for prices
import litellm

URL, way = os.environ["ADAPTER_URL"], sys.argv[1]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "Of a city.", "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": FUNCTION}]

if way == "responses":
    flat = [{"type": "function", **TOOLS[0]["function"]}]
    given = {"model": "openai/m", "api_base": f"{URL}/v1", "tools": flat}
    answer = litellm.responses(input="Weather in Bern and Basel?", **given)
    results = [
        {"type": "function_call_output", "call_id": item.call_id,
         "output": "weather of " + json.loads(item.arguments)["city"]}
        for item in answer.output if item.type == "function_call"
    ]  # fmt: skip
    last = litellm.responses(input=results, previous_response_id=answer.id, **given)
    print(next(item.content[0].text for item in last.output if item.type == "message"))
else:
    model, base = {
        "chat": ("openai/m", f"{URL}/v1"), "anthropic": ("anthropic/m", URL), "ollama": ("ollama_chat/m", URL)
    }[way]  # fmt: skip
    messages = [{"role": "user", "content": "Weather in Bern and Basel?"}]
    while True:
        message = litellm.completion(model=model, api_base=base, messages=messages, tools=TOOLS).choices[0].message
        messages.append(message.model_dump())
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            city = json.loads(call.function.arguments)["city"]
            result = {"role": "tool", "tool_call_id": call.id, "name": "get_weather"}
            messages.append({**result, "content": f"weather of {city}"})
    print(message.content)
