"""An agent of Microsoft's Agent Framework, by chats and by responses, streamed."""

import asyncio
import os
import sys

from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


async def main() -> None:
    kind = OpenAIChatClient if sys.argv[1] == "responses" else OpenAIChatCompletionClient
    model = kind(model="m", base_url=os.environ["ADAPTER_URL"] + "/v1", api_key="k")
    said = Agent(model, "Be brief.", tools=[get_weather]).run("Weather in Bern and Basel?", stream=True)
    print("".join([piece.text async for piece in said]))


asyncio.run(main())
