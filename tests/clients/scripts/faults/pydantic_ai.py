"""An agent of pydantic-ai, by each of its clients."""

import asyncio
import os
import sys

from pydantic_ai import Agent

URL, way = os.environ["ADAPTER_URL"], sys.argv[1]
if way == "anthropic":
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    def model():
        client = AsyncAnthropic(base_url=URL, max_retries=0)
        return AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client))
else:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def model():
        client = AsyncOpenAI(base_url=f"{URL}/v1", max_retries=0)
        kind = OpenAIResponsesModel if way == "responses" else OpenAIChatModel
        return kind("m", provider=OpenAIProvider(openai_client=client))


def ask(question, stream):
    calls = []

    async def read(_, events):
        async for _event in events:
            pass

    async def run():
        agent = Agent(model())

        @agent.tool_plain
        def get_weather(city: str) -> str:
            """Return the weather of a city."""
            calls.append(("get_weather", {"city": city}))
            return f"weather of {city}"

        return await agent.run(question, event_stream_handler=read if stream else None)

    try:
        return asyncio.run(run()).output, calls, None
    except Exception as error:
        error.calls = calls
        raise
