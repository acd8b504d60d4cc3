"""An agent of smolagents that calls tools; it ends with a call of ``final_answer``."""

import os

from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city.

    Args:
        city: Its name.
    """
    return f"weather of {city}"


model = OpenAIServerModel(model_id="m", api_base=os.environ["ADAPTER_URL"] + "/v1", api_key="k")
print(ToolCallingAgent(tools=[get_weather], model=model).run("Weather in Bern and Basel?"))
