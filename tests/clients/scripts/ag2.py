"""An agent of AG2, by chats and by responses, streamed."""

import asyncio
import os
import sys

from ag2 import Agent
from ag2.config import OpenAIConfig, OpenAIResponsesConfig


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


async def main() -> None:
    kind = OpenAIResponsesConfig if sys.argv[1] == "responses" else OpenAIConfig
    model = kind(model="m", base_url=os.environ["ADAPTER_URL"] + "/v1", api_key="k", streaming=True)
    print((await Agent("a", config=model, tools=[get_weather]).ask("Weather in Bern and Basel?")).body)


asyncio.run(main())
