"""Requests as home and workflow automation send them: Home Assistant's Ollama integration, and n8n's chat model.

The shapes come from homeassistant/components/ollama/entity.py (home-assistant/core) and of LangChain's ChatOpenAI,
which n8n's OpenAI Chat Model node uses.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.server.clients import streamed_and_whole
from tests.serving import serving
from tests.template_server import CHATML, TemplateServer

ollama = pytest.importorskip("ollama", reason="Ollama's client is a development dependency")

ARGUMENTS = {"name": "kitchen", "brightness": 40}
TURN_ON = f"<tool_call>\n{json.dumps({'name': 'HassLightSet', 'arguments': ARGUMENTS})}\n</tool_call>"
LIGHT: dict[str, Any] = {
    "name": "HassLightSet",
    "description": "Sets the brightness of a light",
    "parameters": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "brightness": {"type": "integer", "minimum": 0, "maximum": 100},
            "domain": {"type": "array", "items": {"type": "string", "enum": ["light"]}},
        },
        "required": [],
    },
}
SAID = "The kitchen is at 40 %."


def test_home_assistant_sets_a_light():
    """Its loop: list the models, stream an answer, run its calls, and send results that name neither tool nor call."""

    async def converse(url: str, model: str) -> tuple[list[Any], str]:
        async with ollama.AsyncClient(host=url) as client:
            return await answer_with(client, model)

    async def answer_with(client: Any, model: str) -> tuple[list[Any], str]:
        assert [each.model for each in (await client.list()).models] == [model]
        messages = [
            ollama.Message(role="system", content="You are a voice assistant for Home Assistant."),
            ollama.Message(role="user", content="Dim the kitchen to 40 percent"),
        ]
        calls: list[Any] = []
        for _ in range(10):
            stream = await client.chat(
                model=model,
                messages=messages,
                tools=[{"type": "function", "function": LIGHT}],
                stream=True,
                keep_alive=-1,
                options={"num_ctx": 8192},
                think=False,
                format=None,
            )
            text, found = "", list[Any]()
            async for part in stream:
                text += part["message"].get("content") or ""
                found += part["message"].get("tool_calls") or []
            messages.append(ollama.Message(role="assistant", content=text, thinking=None, tool_calls=found or None))
            if not found:
                return calls, text
            calls += found
            result = json.dumps({"data": {"success": True}, "error": None})
            messages += [ollama.Message(role="tool", content=result) for _ in found]
        raise AssertionError("the model never answered")

    with TemplateServer("llama.cpp", CHATML, TURN_ON, SAID) as engine, serving(engine.url) as url:
        model = httpx.get(f"{url}/models").json()["data"][0]["id"]
        calls, text = asyncio.run(converse(url.removesuffix("/v1"), model))
    assert [(call.function.name, call.function.arguments) for call in calls] == [("HassLightSet", ARGUMENTS)]
    assert text == SAID
    assert "success" in engine.prompts[-1]


@streamed_and_whole
def test_n8n_agent_uses_a_tool(stream):
    """With the fields that LangChain sets whether they are used or not, and a schema made by zod."""
    schema = {
        **LIGHT["parameters"],
        "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#",
    }
    body: dict[str, Any] = {
        "model": "m",
        "temperature": 0.7,
        "top_p": 1,
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "n": 1,
        "stream": stream,
        "tools": [{"type": "function", "function": {**LIGHT, "parameters": schema}}],
        "messages": [
            {"role": "system", "content": "You are a helpful assistant"},
            {"role": "user", "content": "Dim the kitchen to 40 percent"},
        ],
    }
    if stream:
        body["stream_options"] = {"include_usage": True}
    with TemplateServer("llama.cpp", CHATML, TURN_ON, SAID) as engine, serving(engine.url) as url:
        first = _ask(url, body)
        assert [call["function"]["name"] for call in first["tool_calls"]] == ["HassLightSet"]
        assert json.loads(first["tool_calls"][0]["function"]["arguments"]) == ARGUMENTS
        result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "name": "HassLightSet", "content": "[]"}
        body["messages"] += [{"role": "assistant", "content": "", "tool_calls": first["tool_calls"]}, result]
        assert _ask(url, body)["content"] == SAID


def _ask(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the message of the answer, joined from its chunks if it is streamed."""
    answer = httpx.post(f"{url}/chat/completions", json=body, headers={"Authorization": "Bearer none"}, timeout=60)
    assert answer.status_code == 200, answer.text
    if not body["stream"]:
        message: dict[str, Any] = answer.json()["choices"][0]["message"]
        return message
    joined: dict[str, Any] = {"content": "", "tool_calls": []}
    for line in answer.text.splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line.removeprefix("data: "))["choices"]:
            joined["content"] += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls") or []:
                if len(joined["tool_calls"]) <= piece["index"]:
                    joined["tool_calls"].append({"id": piece["id"], "type": "function", "function": {"arguments": ""}})
                function = joined["tool_calls"][piece["index"]]["function"]
                function["name"] = function.get("name") or piece["function"].get("name")
                function["arguments"] += piece["function"].get("arguments") or ""
    return joined
