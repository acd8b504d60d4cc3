"""An assistant of AutoGen that reflects on its tools' results."""

import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


async def main() -> None:
    can = ("function_calling", "json_output", "structured_output")
    info = {"vision": False, "family": "unknown", **dict.fromkeys(can, True)}
    client = OpenAIChatCompletionClient(model="m", base_url=os.environ["ADAPTER_URL"] + "/v1", model_info=info)
    agent = AssistantAgent("a", client, tools=[get_weather], reflect_on_tool_use=True)
    print((await agent.run(task="Weather in Bern and Basel?")).messages[-1].content)


asyncio.run(main())
