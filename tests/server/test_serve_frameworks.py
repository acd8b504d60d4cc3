"""LangChain and pydantic-ai, unmodified, with `adapter serve` and a text-only model."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from tests.scripted_server import CHAT, Reply, as_json, as_stream, delta
from tests.server.clients import streamed_and_whole
from tests.server.test_wrap import completion

# They keep connections and event loops until they are collected, which here is at the end of each test.
pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bern", "days": 2}}\n</tool_call>'
SECOND = CALL.replace("Bern", "Basel")
FORECAST = '<tool_call>\n{"name": "final_result", "arguments": {"city": "Bern", "rain": true}}\n</tool_call>'


def get_weather(city: str, days: int = 1) -> str:
    """Forecast for a city.

    Args:
        city: Its name.
        days: How many days.
    """
    return f"{city}: rain for {days} days"


class Forecast(BaseModel):
    """Return the weather forecast."""

    city: str
    rain: bool


def whole(text: str) -> Reply:
    return as_json(200, completion(text))


def streamed(text: str) -> Reply:
    usage = {**delta(), "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}
    return as_stream(delta(role="assistant"), *map(delta, text), delta(finish_reason="stop"), usage)


# --------------------------------------------------------------------------- LangChain


@pytest.fixture
def chat_openai(url: str) -> Any:
    module = pytest.importorskip("langchain_openai", reason="needs LangChain: pip install -e '.[clients]'")
    return module.ChatOpenAI(base_url=url, api_key="k", model="qwen3", max_retries=0)


@pytest.fixture
def chat_ollama(url: str) -> Any:
    module = pytest.importorskip("langchain_ollama", reason="needs LangChain: pip install -e '.[clients]'")
    return module.ChatOllama(base_url=url.removesuffix("/v1"), model="qwen3")


WEATHER = {"name": "get_weather", "args": {"city": "Bern", "days": 2}}


@pytest.mark.parametrize("client", ["chat_openai", "chat_ollama"])
@streamed_and_whole
def test_langchain_binds_tools(request, upstream, client, stream):
    """Both of its clients, for OpenAI's and Ollama's APIs."""
    model = request.getfixturevalue(client).bind_tools([get_weather])
    streams = stream or client == "chat_ollama"  # which always streams
    upstream.on(CHAT, (streamed if streams else whole)(f"I look.\n{CALL}\n{SECOND}"))
    if stream:
        parts = list(model.stream("Weather in Bern?"))
        message = parts[0]
        for part in parts[1:]:
            message += part
    else:
        message = model.invoke("Weather in Bern?")
    assert [{key: call[key] for key in ("name", "args")} for call in message.tool_calls] == [
        WEATHER,
        {"name": "get_weather", "args": {"city": "Basel", "days": 2}},
    ]
    assert message.invalid_tool_calls == []
    assert len({call["id"] for call in message.tool_calls}) == 2
    assert message.content.strip() == "I look."
    assert "tools" not in upstream.bodies()[0]


def test_langchain_continues_with_results(upstream, chat_openai):
    """Its own messages, sent back with the result."""
    from langchain_core.messages import HumanMessage, ToolMessage

    upstream.on(CHAT, whole(CALL), whole("It rains."))
    model = chat_openai.bind_tools([get_weather])
    asked = HumanMessage("Weather in Bern?")
    called = model.invoke([asked])
    (call,) = called.tool_calls
    answer = model.invoke([asked, called, ToolMessage(get_weather(**call["args"]), tool_call_id=call["id"])])
    assert answer.content == "It rains."
    said = [message["content"] for message in upstream.bodies()[1]["messages"]]
    assert said[-2:] == [CALL, "<tool_response>\nBern: rain for 2 days\n</tool_response>"]


def test_langchain_gets_structured_output(upstream, chat_openai):
    """By a call of a tool named in tool_choice."""
    upstream.on(
        CHAT, whole('<tool_call>\n{"name": "Forecast", "arguments": {"city": "Bern", "rain": true}}\n</tool_call>')
    )
    model = chat_openai.with_structured_output(Forecast, method="function_calling")
    assert model.invoke("Weather in Bern?") == Forecast(city="Bern", rain=True)
    assert "Answer with a call to one of the tools." in upstream.bodies()[0]["messages"][-1]["content"]


def test_langchain_streams_without_blocking(upstream, chat_openai):
    """The asynchronous API."""
    upstream.on(CHAT, streamed(CALL))

    async def ask() -> Any:
        message: Any = None
        async for part in chat_openai.bind_tools([get_weather]).astream("Weather in Bern?"):
            message = part if message is None else message + part
        return message

    assert [call["args"] for call in asyncio.run(ask()).tool_calls] == [{"city": "Bern", "days": 2}]


# ------------------------------------------------------------------------- pydantic-ai


@pytest.fixture
def agent_of(url: str) -> Any:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install -e '.[clients]'")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def make(**options: Any) -> Any:
        model = OpenAIChatModel("qwen3", provider=OpenAIProvider(base_url=url, api_key="k"))
        return pydantic_ai.Agent(model, **options)

    return make


def test_pydantic_ai_runs_tools(upstream, agent_of):
    """The whole loop: call, result, answer."""
    upstream.on(CHAT, whole(f"{CALL}\n{SECOND}"), whole("It rains."))
    done = agent_of(tools=[get_weather]).run_sync("Weather in Bern and Basel?")
    assert done.output == "It rains."
    assert "Bern: rain for 2 days" in upstream.bodies()[1]["messages"][-1]["content"]
    assert "Basel: rain for 2 days" in upstream.bodies()[1]["messages"][-1]["content"]


def test_pydantic_ai_gets_structured_output(upstream, agent_of):
    """By a required call; invalid arguments go back to the model."""
    upstream.on(CHAT, whole(FORECAST.replace("true", '"perhaps"')), whole(FORECAST))
    done = agent_of(output_type=Forecast).run_sync("Weather in Bern?")
    assert done.output == Forecast(city="Bern", rain=True)
    first, second = upstream.bodies()
    assert first["messages"][-1]["content"].endswith("Answer with a call to one of the tools.")
    assert "Input should be a valid boolean" in second["messages"][-1]["content"]


def test_pydantic_ai_streams(upstream, agent_of):
    """Text arrives as it is written, after a tool call."""
    upstream.on(CHAT, streamed(CALL), streamed("It rains in Bern."))

    async def ask() -> list[str]:
        async with agent_of(tools=[get_weather]).run_stream("Weather in Bern?") as answer:
            return [text async for text in answer.stream_text(delta=True, debounce_by=None)]

    pieces = asyncio.run(ask())
    assert "".join(pieces) == "It rains in Bern."
    assert len(pieces) > 1
