"""Anthropic's own SDK."""

import os

import anthropic

client = anthropic.Anthropic(base_url=os.environ["ADAPTER_URL"], api_key="k", max_retries=0)
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "get_weather", "description": "Of a city.", "input_schema": PARAMETERS}]


def ask(question, stream):
    messages = [{"role": "user", "content": question}]
    given = {"model": "m", "max_tokens": 99, "tools": TOOLS, "messages": messages}
    if stream:
        with client.messages.stream(**given) as events:
            said = events.get_final_message()
    else:
        said = client.messages.create(**given)
    text = "".join(block.text for block in said.content if block.type == "text")
    return text, [(block.name, block.input) for block in said.content if block.type == "tool_use"], said.stop_reason
