"""The prompt of a turn begins with the previous turn's, so that the prompt cache of the model server holds.

100 conversations, half of them with tools: every API, streamed and whole, before four kinds of model servers, and
with a shortlist of the tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.server.test_answer_shapes import send, serving_template
from tests.template_server import CHATML, TemplateServer

PARAMETERS = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
    "required": ["path"],
}
FUNCTIONS = [
    {"name": name, "description": f"To {name.replace('_', ' ')}.", "parameters": PARAMETERS}
    for name in ("read_file", "list_files", "search")
]


def written(*calls: str) -> str:
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)


TURNS = [
    "I look.\n" + written('{"name": "read_file", "arguments": {"path": "a.py"}}'),
    written('{"name":"read_file","arguments":{"lines":3,"path":"\\u00e4.py"}}', '{"name": "search", "arguments": {}}'),
    "<think>\nIt is there.\n</think>\n\nFound: *x* = 1.",
    "<think>Again.</think>" + written('{"arguments": {"path": "b c"}, "name": "list_files"}'),
    "Done,  with two spaces. \n",
    "Bye.",
]
"""The model's answers: calls in spellings that no encoder produces, reasoning, and whitespace."""
SYSTEM = "You are a coding agent."


class Chat:
    """A client of chat completions that keeps the whole conversation."""

    path = "/v1/chat/completions"

    def __init__(self) -> None:
        self.messages: list[Any] = [{"role": "system", "content": SYSTEM}]

    def body(self) -> Any:
        tools = [{"type": "function", "function": each} for each in FUNCTIONS]
        return {"model": "m", "messages": self.messages, "tools": tools}

    def ask(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def take(self, answers: list[Any]) -> list[str]:
        """Keep the answer, and return the ids of its calls."""
        content, calls = "", {}
        for choice in (choice for each in answers for choice in each["choices"]):
            delta = choice.get("delta") or choice.get("message") or {}
            content += delta.get("content") or ""
            for index, call in enumerate(delta.get("tool_calls") or ()):
                calls[call.get("index", index)] = {key: call[key] for key in ("id", "type", "function")}
        made = list(calls.values())
        self.messages.append({"role": "assistant", "content": content, **({"tool_calls": made} if made else {})})
        return [call["id"] for call in made]

    def give(self, results: dict[str, str]) -> None:
        self.messages += [{"role": "tool", "tool_call_id": key, "content": text} for key, text in results.items()]


class Ollama(Chat):
    path = "/api/chat"

    def take(self, answers: list[Any]) -> list[str]:
        calls = [call for each in answers for call in each["message"].get("tool_calls") or ()]
        content = "".join(each["message"]["content"] for each in answers)
        self.messages.append({"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})})
        return [call["function"]["name"] for call in calls]

    def give(self, results: dict[str, str]) -> None:
        self.messages += [{"role": "tool", "tool_name": key, "content": text} for key, text in results.items()]


class Messages:
    path = "/v1/messages"

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def body(self) -> Any:
        tools = [{"name": each["name"], "description": each["description"], "input_schema": PARAMETERS}
                 for each in FUNCTIONS]  # fmt: skip
        # as Claude Code writes it
        system = f"x-anthropic-billing-header: cch={len(self.messages)};\n{SYSTEM}"
        return {"model": "m", "max_tokens": 99, "system": system, "messages": self.messages, "tools": tools}

    def ask(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def take(self, answers: list[Any]) -> list[str]:
        blocks: list[Any] = answers[0].get("content") or []
        for event in answers:
            if event["type"] == "content_block_start":
                blocks.append({**event["content_block"], "json": ""})
            elif event["type"] == "content_block_delta":
                delta = event["delta"]
                key = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "json"}.get(
                    delta["type"]
                )
                if key:
                    blocks[-1][key] += delta["partial_json" if key == "json" else key]
        for block in blocks:
            text = block.pop("json", "")
            if text:
                block["input"] = json.loads(text)
        self.messages.append({"role": "assistant", "content": blocks})
        return [block["id"] for block in blocks if block["type"] == "tool_use"]

    def give(self, results: dict[str, str]) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": key, "content": text} for key, text in results.items()]
        self.messages.append({"role": "user", "content": blocks})


class Responses:
    path = "/v1/responses"

    def __init__(self) -> None:
        self.items: list[Any] = []

    def body(self) -> Any:
        tools = [{"type": "function", **each} for each in FUNCTIONS]
        return {"model": "m", "instructions": SYSTEM, "input": self.items, "tools": tools, "store": False}

    def ask(self, text: str) -> None:
        self.items.append({"role": "user", "content": text})

    def take(self, answers: list[Any]) -> list[str]:
        output = answers[-1].get("response", answers[-1])["output"]
        self.items += output
        return [item["call_id"] for item in output if item["type"] == "function_call"]

    def give(self, results: dict[str, str]) -> None:
        for key, text in results.items():
            self.items.append({"type": "function_call_output", "call_id": key, "output": text})


class Stored(Responses):
    """A client that sends only new messages."""

    def __init__(self) -> None:
        super().__init__()
        self.last: str | None = None

    def body(self) -> Any:
        return {**super().body(), "store": True, "previous_response_id": self.last}

    def take(self, answers: list[Any]) -> list[str]:
        calls = super().take(answers)
        self.last, self.items = answers[-1].get("response", answers[-1])["id"], []
        return calls


CLIENTS: dict[str, Callable[[], Any]] = {
    "chat": Chat, "ollama": Ollama, "messages": Messages, "responses": Responses, "stored": Stored
}  # fmt: skip
SERVERS: dict[str, tuple[str, list[str]]] = {
    "llama.cpp": ("llama.cpp", []),
    "ollama": ("ollama", []),
    "koboldcpp": ("koboldcpp", ["--template", "TEMPLATE"]),
    "text prompt": ("koboldcpp", ["--prompt", "words"]),
    "shortlist": ("llama.cpp", ["--max-tools", "2"]),
}


THINKING = CHATML.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
"""It opens reasoning in the prompt, and shows none of earlier turns."""


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    with serving_template(*SERVERS[request.param], tmp_path_factory.mktemp("template")) as both:
        yield both


@pytest.mark.parametrize("with_tools", [True, False], ids=["tools", "no tools"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", CLIENTS)
def test_each_prompt_begins_with_the_one_before(served, api, stream, with_tools):
    upstream, url = served
    upstream.prompts.clear()
    upstream.bodies.clear()
    converse(CLIENTS[api](), upstream, url, {"stream": stream, **({} if with_tools else {"tools": []})})
    # requests that pass through to Ollama have messages
    prompts = upstream.prompts or [json.dumps(body["messages"])[:-1] for _, body in upstream.bodies]
    assert len(prompts) == len(TURNS)
    for before, after in pairwise(prompts):
        assert after[: len(before)] == before


@pytest.mark.parametrize("api", CLIENTS)
def test_only_the_beginning_of_reasoning_is_read_again(tmp_path, api):
    """Templates such as Qwen's end with ``<think>``, which they leave out of earlier answers."""
    with serving_template("llama.cpp", [], tmp_path, THINKING) as (upstream, url):
        turns = [f"Hm.\n</think>\n\n{text.rpartition('</think>')[2].lstrip()}" for text in TURNS]
        converse(CLIENTS[api](), upstream, url, {"stream": True}, turns)
        assert len(upstream.prompts) == len(TURNS)
        for before, after in pairwise(upstream.prompts):
            assert before.endswith("<think>\n")
            assert after.startswith(before.removesuffix("<think>\n"))


def converse(client: Any, upstream: TemplateServer, url: str, fields: dict[str, Any], turns: list[str] = TURNS) -> None:
    calls: list[str] = []
    for number, text in enumerate(turns):
        if calls:
            client.give({key: f"result of {key}" if client.path == "/api/chat" else "1: x = 1" for key in calls})
        else:
            client.ask(f"Question {number}?")
        upstream.answer_with(text)
        calls = client.take(send(url + client.path, {**client.body(), **fields}))


@pytest.mark.parametrize("server", ["llama.cpp", "koboldcpp", "text prompt"])
def test_what_the_model_wrote_stays_after_results_were_shortened(server, tmp_path):
    """Forty calls in a spelling that no encoder produces: each is repeated byte for byte, also after a cut."""
    kind, options = SERVERS[server]
    client, written_texts, cuts = Chat(), [], []
    with serving_template(kind, [*options, "--context-budget", "8000"], tmp_path) as (upstream, url):
        client.ask("Read every file.")
        for number in range(40):
            text = "I look.\n" + written(f'{{"arguments":{{"path":"\\u00e4{number}.py"}},"name":"read_file"}}')
            upstream.answer_with(text)
            written_texts.append(text)
            with urlopen(Request(url + client.path, json.dumps(client.body()).encode())) as response:
                cuts.append(response.headers["adapter-shortened"])
                calls = client.take([json.loads(response.read())])
            client.give(dict.fromkeys(calls, "1: x = 1\n" * 100))
    prompts = upstream.prompts
    assert cuts[0] is None
    assert cuts[-1].startswith("results=")
    for number, (before, after) in enumerate(pairwise(prompts)):
        assert written_texts[number] in after
        if cuts[number] == cuts[number + 1]:
            assert after.startswith(before + written_texts[number])
