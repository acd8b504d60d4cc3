"""An agent of Haystack."""

import os
from typing import Annotated

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool


@tool
def get_weather(city: Annotated[str, "Its name."]) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


model = OpenAIChatGenerator(model="m", api_base_url=os.environ["ADAPTER_URL"] + "/v1")
said = Agent(chat_generator=model, tools=[get_weather]).run([ChatMessage.from_user("Weather in Bern and Basel?")])
print(said["messages"][-1].text)
