"""OpenAI's own SDK."""

import json
import os
import sys

import openai

client = openai.OpenAI(base_url=os.environ["ADAPTER_URL"] + "/v1", api_key="k", max_retries=0)
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ABOUT = {"name": "get_weather", "description": "Of a city.", "parameters": PARAMETERS}


def ask(question, stream):
    if sys.argv[1] == "responses":
        given = {"model": "m", "input": question, "tools": [{"type": "function", **ABOUT, "strict": False}]}
        said = client.responses.create(**given, stream=stream)
        if stream:
            *_, last = said
            said = last.response  # the SDK's stream() knows no response.incomplete
        calls = [(item.name, json.loads(item.arguments)) for item in said.output if item.type == "function_call"]
        return said.output_text, calls, said.incomplete_details and said.incomplete_details.reason
    given = {"model": "m", "messages": [{"role": "user", "content": question}]}
    given["tools"] = [{"type": "function", "function": ABOUT}]
    if stream:
        with client.chat.completions.stream(**given) as events:
            choice = events.get_final_completion().choices[0]
    else:
        choice = client.chat.completions.create(**given).choices[0]
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or ()]
    return choice.message.content or "", calls, choice.finish_reason
