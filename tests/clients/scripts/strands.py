"""An agent of Strands, by each of its clients; all of them stream."""

import os
import sys

from strands import Agent, tool

URL, way = os.environ["ADAPTER_URL"], sys.argv[1]


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


if way == "anthropic":
    from strands.models.anthropic import AnthropicModel

    model = AnthropicModel(client_args={"base_url": URL}, model_id="m", max_tokens=999)
elif way == "ollama":
    from strands.models.ollama import OllamaModel

    model = OllamaModel(URL, model_id="m")
else:
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client_args={"base_url": f"{URL}/v1"}, model_id="m")
print("\n", Agent(model=model, tools=[get_weather], callback_handler=None)("Weather in Bern and Basel?"), sep="")
