"""Ollama's own SDK."""

import os

import ollama

client = ollama.Client(host=os.environ["ADAPTER_URL"])
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Of a city.", "parameters": PARAMETERS}}
]


def ask(question, stream):
    given = {"model": "m", "messages": [{"role": "user", "content": question}], "tools": TOOLS, "stream": stream}
    parts = list(client.chat(**given)) if stream else [client.chat(**given)]
    calls = [call.function for part in parts for call in part.message.tool_calls or ()]
    if not parts[-1].done:
        raise RuntimeError("ended without done")
    text = "".join(part.message.content or "" for part in parts)
    return text, [(call.name, dict(call.arguments)) for call in calls], parts[-1].done_reason
