"""Hugging Face's client of models; its agents must end with a call of ``final_answer``, never made here."""

import json
import os
import sys

sys.path.pop(0)  # this folder has a file of the package's name
from smolagents import OpenAIServerModel, tool
from smolagents.models import ChatMessage


@tool
def get_weather(city: str) -> str:
    """Of a city.

    Args:
        city: Its name.
    """
    return f"weather of {city}"


model = OpenAIServerModel(model_id="m", api_base=os.environ["ADAPTER_URL"] + "/v1", api_key="k")
messages = [ChatMessage(role="user", content=[{"type": "text", "text": "Weather in Bern and Basel?"}])]
first = model.generate(messages, tools_to_call_from=[get_weather])
for call in first.tool_calls:
    given = call.function.arguments
    told = get_weather(**given if isinstance(given, dict) else json.loads(given))
    messages.append(ChatMessage(role="user", content=[{"type": "text", "text": told}]))
print(model.generate(messages).content)
