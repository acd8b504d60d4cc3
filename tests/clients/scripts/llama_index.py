"""An agent of LlamaIndex."""

import asyncio
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


async def main() -> None:
    url = os.environ["ADAPTER_URL"] + "/v1"
    model = OpenAILike(model="m", api_base=url, api_key="k", is_chat_model=True, is_function_calling_model=True)
    print(await FunctionAgent(tools=[get_weather], llm=model).run("Weather in Bern and Basel?"))


asyncio.run(main())
