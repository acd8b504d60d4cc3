"""LangChain's agent with each of its clients; with responses, the server keeps the conversation."""

import os
import sys

from langchain.agents import create_agent

URL, way = os.environ["ADAPTER_URL"], sys.argv[1]


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


if way == "anthropic":
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model="m", base_url=URL, max_tokens=999)
elif way == "ollama":
    from langchain_ollama import ChatOllama

    model = ChatOllama(model="m", base_url=URL)
else:
    from langchain_openai import ChatOpenAI

    more = {"use_responses_api": True, "use_previous_response_id": True} if way == "responses" else {}
    model = ChatOpenAI(model="m", base_url=f"{URL}/v1", **more)
agent = create_agent(model, [get_weather], system_prompt="Be brief.")
last = agent.invoke({"messages": [{"role": "user", "content": "Weather in Bern and Basel?"}]})["messages"][-1]
print(last.text if isinstance(last.text, str) else last.text())
