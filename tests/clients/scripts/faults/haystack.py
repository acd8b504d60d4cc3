"""Haystack's generator."""

import os

from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack.utils import Secret

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = Tool(name="get_weather", description="Of a city.", parameters=PARAMETERS, function=print)


def ask(question, stream):
    generator = OpenAIChatGenerator(
        api_key=Secret.from_token("k"), model="m", api_base_url=os.environ["ADAPTER_URL"] + "/v1", tools=[TOOL],
        streaming_callback=(lambda _: None) if stream else None, max_retries=0,
    )  # fmt: skip
    said = generator.run([ChatMessage.from_user(question)])["replies"][0]
    return said.text or "", [(call.tool_name, call.arguments) for call in said.tool_calls], said.meta["finish_reason"]
