"""An agent of OpenAI's framework; with responses, it sends only new items, with previous_response_id."""

import os
import sys

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)
client = AsyncOpenAI(base_url=os.environ["ADAPTER_URL"] + "/v1")


@function_tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


kind = OpenAIResponsesModel if sys.argv[1] == "responses" else OpenAIChatCompletionsModel
agent = Agent(name="a", instructions="Be brief.", tools=[get_weather], model=kind(model="m", openai_client=client))
more = {"auto_previous_response_id": True} if sys.argv[1] == "responses" else {}
print(Runner.run_sync(agent, "Weather in Bern and Basel?", **more).final_output)
