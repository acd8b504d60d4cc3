"""An agent of OpenAI's framework."""

import asyncio
import os
import sys

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)
kind = OpenAIResponsesModel if sys.argv[1] == "responses" else OpenAIChatCompletionsModel


def ask(question, stream):
    calls = []

    @function_tool
    def get_weather(city: str) -> str:
        """Return the weather of a city."""
        calls.append(("get_weather", {"city": city}))
        return f"weather of {city}"

    async def run():
        client = AsyncOpenAI(base_url=os.environ["ADAPTER_URL"] + "/v1", max_retries=0)
        agent = Agent(name="a", tools=[get_weather], model=kind(model="m", openai_client=client))
        if not stream:
            return (await Runner.run(agent, question)).final_output
        running = Runner.run_streamed(agent, question)
        async for _ in running.stream_events():
            pass
        return running.final_output

    try:
        return asyncio.run(run()) or "", calls, None
    except Exception as error:
        error.calls = calls
        raise
