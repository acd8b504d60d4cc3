"""An agent of Strands, by each of its clients."""

import os
import sys

from strands import Agent, tool

URL, way = os.environ["ADAPTER_URL"], sys.argv[1]


def model():
    if way == "anthropic":
        from strands.models.anthropic import AnthropicModel

        return AnthropicModel(client_args={"base_url": URL, "max_retries": 0}, model_id="m", max_tokens=999)
    if way == "ollama":
        from strands.models.ollama import OllamaModel

        return OllamaModel(host=URL, model_id="m")
    from strands.models.openai import OpenAIModel

    return OpenAIModel(client_args={"base_url": f"{URL}/v1", "max_retries": 0}, model_id="m")


def ask(question, stream):
    calls = []

    @tool
    def get_weather(city: str) -> str:
        """Return the weather of a city."""
        calls.append(("get_weather", {"city": city}))
        return f"weather of {city}"

    agent = Agent(model=model(), tools=[get_weather], callback_handler=None, retry_strategy=None)
    said = agent(question)
    return str(said), calls, said.stop_reason
