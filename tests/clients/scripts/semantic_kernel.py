"""An agent of Microsoft's Semantic Kernel, which calls its functions automatically."""

import asyncio
import os

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function


class Outside:
    @kernel_function(name="get_weather", description="Of a city.")
    def get_weather(self, city: str) -> str:
        return f"weather of {city}"


async def main() -> None:
    client = AsyncOpenAI(base_url=os.environ["ADAPTER_URL"] + "/v1")
    service = OpenAIChatCompletion(ai_model_id="m", async_client=client)
    agent = ChatCompletionAgent(service=service, name="a", plugins=[Outside()])
    print(await agent.get_response("Weather in Bern and Basel?"))


asyncio.run(main())
