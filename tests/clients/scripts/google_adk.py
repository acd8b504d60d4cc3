"""An agent of Google's ADK, with litellm as its interface to other models."""

import asyncio
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the net for prices
from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


async def main() -> None:
    model = LiteLlm(model="openai/m", api_base=os.environ["ADAPTER_URL"] + "/v1", api_key="k")
    runner = InMemoryRunner(LlmAgent(name="a", model=model, tools=[get_weather]), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    question = types.Content(role="user", parts=[types.Part(text="Weather in Bern and Basel?")])
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=question):
        if event.is_final_response():
            print("".join(part.text or "" for part in event.content.parts))


asyncio.run(main())
