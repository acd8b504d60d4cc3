"""An agent of agno."""

import os
import sys

from agno.agent import Agent
from agno.models.openai import OpenAIChat, OpenAIResponses

kind = OpenAIResponses if sys.argv[1] == "responses" else OpenAIChat


def ask(question, stream):
    calls = []

    def get_weather(city: str) -> str:
        """Return the weather of a city."""
        calls.append(("get_weather", {"city": city}))
        return f"weather of {city}"

    model = kind(id="m", base_url=os.environ["ADAPTER_URL"] + "/v1", api_key="k", max_retries=0)
    agent = Agent(model=model, tools=[get_weather], telemetry=False)
    if stream:
        events = list(agent.run(question, stream=True))
        text = "".join(event.content for event in events if isinstance(getattr(event, "content", None), str))
        failed = [event for event in events if "Error" in str(getattr(event, "event", ""))]
        if failed:
            raise RuntimeError(f"agno says {failed[0].content}")
        return text, calls, None
    said = agent.run(question)
    if "ERROR" in str(said.status).upper():
        raise RuntimeError(f"agno says {said.content}")
    return said.content or "", calls, None
