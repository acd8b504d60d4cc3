"""An agent of agno, by chats and by responses."""

import os
import sys

from agno.agent import Agent
from agno.models.openai import OpenAIResponses
from agno.models.openai.like import OpenAILike


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


kind = OpenAIResponses if sys.argv[1] == "responses" else OpenAILike
model = kind(id="m", base_url=os.environ["ADAPTER_URL"] + "/v1", api_key="k")
print(Agent(model=model, tools=[get_weather], telemetry=False).run("Weather in Bern and Basel?").content)
