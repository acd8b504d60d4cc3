"""LangChain's models, by each of its clients."""

import os
import sys

URL, way = os.environ["ADAPTER_URL"], sys.argv[1]


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"weather of {city}"


if way == "anthropic":
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model="m", base_url=URL, max_tokens=999, max_retries=0)
elif way == "ollama":
    from langchain_ollama import ChatOllama

    model = ChatOllama(model="m", base_url=URL)
else:
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="m", base_url=f"{URL}/v1", max_retries=0, use_responses_api=way == "responses")
bound = model.bind_tools([get_weather])


def ask(question, stream):
    if stream:
        said = None
        for chunk in bound.stream(question):
            said = chunk if said is None else said + chunk
    else:
        said = bound.invoke(question)
    calls = [(call["name"], call["args"]) for call in said.tool_calls]
    calls += [(call["name"], call["args"]) for call in said.invalid_tool_calls]
    return said.text if isinstance(said.text, str) else said.text(), calls, None
