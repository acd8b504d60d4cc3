"""An agent of pydantic-ai, by each of its clients."""

import os
import sys

from pydantic_ai import Agent

URL, way = os.environ["ADAPTER_URL"], sys.argv[1]
if way == "anthropic":
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    model = AnthropicModel("m", provider=AnthropicProvider(anthropic_client=AsyncAnthropic(base_url=URL)))
else:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = OpenAIResponsesModel if way == "responses" else OpenAIChatModel
    model = kind("m", provider=OpenAIProvider(base_url=f"{URL}/v1"))
agent = Agent(model, system_prompt="Be brief.")


@agent.tool_plain
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


print(agent.run_sync("Weather in Bern and Basel?").output)
