"""Run the usual tool loop with a wrapped openai client.

-> get_weather {"city": "Bern"}
It rains in Bern.
"""

import json
from typing import Any

from openai import OpenAI

import adapter

TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
messages: list[Any] = [{"role": "user", "content": "What is the weather in Bern?"}]

client = adapter.wrap(OpenAI(base_url="http://127.0.0.1:8080/v1", api_key="none"))
while True:
    answer = client.chat.completions.create(model="qwen3", messages=messages, tools=TOOLS).choices[0].message
    if not answer.tool_calls:
        break
    messages.append(answer.model_dump(exclude_none=True))
    for call in answer.tool_calls:
        if call.type == "function":
            print("->", call.function.name, call.function.arguments)
            city = json.loads(call.function.arguments)["city"]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": f"rain in {city}"})
print(answer.content)
