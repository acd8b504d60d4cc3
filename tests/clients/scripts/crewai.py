"""An agent of CrewAI, with its own client for chat completions."""

import os

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
from crewai import LLM, Agent
from crewai.tools import tool


@tool("get_weather")
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


model = LLM(model="m", provider="openai", base_url=os.environ["ADAPTER_URL"] + "/v1", api_key="k")
agent = Agent(role="Guide", goal="Knows the weather.", backstory="Lives outside.", tools=[get_weather], llm=model)
print(agent.kickoff("Weather in Bern and Basel?").raw)
