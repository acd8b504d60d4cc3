"""The model's own prompt through `adapter serve`, `wrap` and the agent, before servers that really fill templates."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import openai
import pytest

import adapter
from adapter.agent.agent import Agent
from adapter.agent.async_agent import AsyncAgent
from adapter.backends.chat_client import ChatClient
from adapter.backends.endpoint_discovery import Endpoint
from adapter.backends.prompt_discovery import PromptDiscoverer
from adapter.backends.template_files import TemplateWorker
from adapter.prompting.chat_template import ChatTemplate, render_chat_template
from adapter.workspace import Workspace
from tests.serving import serving
from tests.template_server import CHATML, TOOLLESS, TemplateServer

pytest.importorskip("starlette", reason="needs the server: pip install 'toolcall-adapter[server]'")
pytest.importorskip("aiohttp", reason="needs the server: pip install 'toolcall-adapter[server]'")

TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be terse"},
    {"role": "user", "content": "Read a.py twice"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "import os"},
]
KINDS = ("llama.cpp", "ollama", "vllm", "koboldcpp")


def reference() -> str:
    """What the template makes of the conversation as it is."""
    call = {"name": "read_file", "arguments": {"path": "a.py"}}
    messages: list[dict[str, Any]] = [*TALK[:2], {"role": "assistant", "tool_calls": [{"function": call}]}, TALK[3]]
    return render_chat_template(ChatTemplate(CHATML), messages, [TOOL])


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """For servers that fill none."""
    file = tmp_path / "chat_template.jinja"
    file.write_text(CHATML)
    return file


def options_for(kind: str, template: Path) -> list[str]:
    return ["--template", str(template)] if kind == "koboldcpp" else []


def ask(url: str, stream: bool, **fields):
    """The calls and the text of an answer."""
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        return asked(client, stream, **fields)


def asked(client, stream: bool, **fields):
    fields = {"model": "m", "messages": TALK, "tools": [TOOL], **fields}
    if not stream:
        message = client.chat.completions.create(**fields).choices[0].message
        return [json.loads(call.function.arguments) for call in message.tool_calls or ()], message.content or ""
    deltas = [
        chunk.choices[0].delta for chunk in client.chat.completions.create(stream=True, **fields) if chunk.choices
    ]
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    return [json.loads(call.function.arguments) for call in calls], "".join(delta.content or "" for delta in deltas)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_prompt_is_the_templates_and_the_answer_is_read(kind, stream, template):
    """Byte for byte, in each of the ways."""
    with (
        TemplateServer(kind, CHATML, "x", "x", CALL)
        if kind == "vllm"
        else TemplateServer(kind, CHATML, CALL) as server,
        serving(server.url, *options_for(kind, template)) as url,
    ):
        assert ask(url, stream) == ([{"path": "a.py"}], "")
        assert server.prompts[-1] == reference()


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", ["ollama", "llama.cpp"])
def test_ollamas_clients_get_it_too(kind, stream):
    """Before an Ollama what they say besides goes along."""
    call = {"function": {"name": "read_file", "arguments": {"path": "a.py"}}}
    talk = [*TALK[:2], {"role": "assistant", "content": "", "tool_calls": [call]}]
    talk += [{"role": "tool", "tool_name": "read_file", "content": "import os"}]
    body = {"model": "m", "messages": talk, "tools": [TOOL], "stream": stream, "options": {"num_ctx": 999}}
    with TemplateServer(kind, CHATML, CALL) as server, serving(server.url) as url:
        answer = posted(url.removesuffix("/v1") + "/api/chat", body)
        assert '"path":"a.py"' in answer.replace(" ", "")
        assert server.prompts[-1] == reference()
        path, asked = server.bodies[-1]
    if kind == "ollama":
        assert path == "/api/generate"
        assert asked["options"]["num_ctx"] == 999


def posted(url, body):
    """The text of an answer to a POST."""
    sent = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(sent, timeout=60) as answer:
        return answer.read().decode()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_wrapped_client_does_the_same(kind, is_async, template):
    """With no server of ours between."""
    file = template if kind == "koboldcpp" else None
    with TemplateServer(kind, CHATML, CALL) as server:
        if is_async:

            async def run():
                async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
                    wrapped = adapter.wrap(client, template=file)
                    answer = await wrapped.chat.completions.create(model="m", messages=TALK, tools=[TOOL])  # type: ignore[arg-type,list-item]
                    return answer.choices[0].message.tool_calls

            (call,) = asyncio.run(run())
            assert json.loads(call.function.arguments) == {"path": "a.py"}
        else:
            with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
                for stream in (False, True):
                    assert asked(adapter.wrap(client, template=file), stream) == ([{"path": "a.py"}], "")
        assert server.prompts[-1] == reference()


@pytest.mark.parametrize("made", [Agent, AsyncAgent])
@pytest.mark.parametrize("kind", KINDS)
def test_the_agent_does_the_same(kind, made, tmp_path, template):
    """Calls and results are the template's to write; a call that the model wrote in its own way stays as it was."""
    (tmp_path / "a.py").write_text("import os\n")
    dense = '<tool_call>{"name":"read_file","arguments":{"path":"a.py"}}</tool_call>'
    says = ("x", "x", dense, "It imports os.") if kind == "vllm" else (dense, "It imports os.")
    process = TemplateWorker(ChatTemplate(CHATML)) if kind == "koboldcpp" else None
    with TemplateServer(kind, CHATML, *says) as server, Workspace(tmp_path) as workspace:
        endpoint = Endpoint(f"{server.url}/v1", kind)
        with ChatClient(endpoint, "m", template=process) as chat:
            done = made(workspace, chat, prompt="own").run("What does a.py import?")
            done = asyncio.run(done) if made is AsyncAgent else done
        first, second = server.prompts[-2:]
    if process is not None:
        process.close()
    assert done.content == "It imports os."
    assert "<|im_start|>user\nWhat does a.py import?<|im_end|>\n<|im_start|>assistant\n" in first
    assert "<tool_response>" in second
    # What vLLM is asked for is a chat, whose prompt is made there.
    shown = CALL if kind == "vllm" else dense
    assert second.startswith(first + shown)


@pytest.mark.parametrize(
    ("kind", "source", "hides", "why"),
    [
        ("llama.cpp", TOOLLESS, False, "no place for tools"),
        ("llama.cpp", CHATML, True, "fills no templates"),
        ("ollama", TOOLLESS, False, "no place for tools"),
        ("ollama", CHATML, True, "does not show its prompts"),
        ("vllm", CHATML, True, "leaves tools out"),
        ("vllm", TOOLLESS, False, "leaves tools out"),
        ("koboldcpp", CHATML, False, "name one with --template"),
    ],
)
def test_where_it_is_not_possible_the_tools_go_in_words(kind, source, hides, why):
    """And it is said why."""
    with TemplateServer(kind, source, "x", "x", CALL, hides=hides) as server:
        found = PromptDiscoverer(Endpoint(f"{server.url}/v1", kind)).discover("m")
        assert found.own is None
        assert found.explanation.startswith("in words: ")
        assert why in found.explanation


def test_words_where_words_are_asked_for():
    """``--prompt words``, and a style, which only words have."""
    for words in (["--prompt", "words"], ["--style", "compact"]):
        with TemplateServer("llama.cpp", CHATML, CALL) as server, serving(server.url, *words) as url:
            assert ask(url, False) == ([{"path": "a.py"}], "")
            assert not any(path == "/apply-template" and "tools" in body for path, body in server.bodies)


REFUSES = CHATML.replace("{{ message.content }}", "{{ raise_exception('too cold') if 'cold' in message.content }}x")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_what_a_template_refuses_goes_in_words(stream):
    """Where nothing evens it out; with ``--prompt own`` the client hears the template's words."""
    talk = [*TALK[:3], {**TALK[3], "content": "cold"}]
    source = REFUSES.replace("x\n</tool_response>", "{{ message.content }}\n</tool_response>")
    with TemplateServer("llama.cpp", source, CALL) as server:
        with serving(server.url) as url:
            assert ask(url, stream, messages=talk) == ([{"path": "a.py"}], "")
        with serving(server.url, "--prompt", "own") as url, pytest.raises(openai.BadRequestError, match="too cold"):
            ask(url, stream, messages=talk)


def test_no_client_can_say_how_it_is_sent():
    """The marks of ours in a translated request are ours alone."""
    marks = {"way": "llama.cpp", "written": {"Read": "<|im_end|>"}, "bos": "", "server": ""}
    with TemplateServer("llama.cpp", CHATML, CALL) as server, serving(server.url) as url:
        ask(url, False, extra_body={"own_prompt": marks})
        assert server.prompts[-1] == reference()
    with TemplateServer("llama.cpp", TOOLLESS, CALL) as server, serving(server.url) as url:
        ask(url, False, extra_body={"own_prompt": marks})
        assert server.bodies[-1][0] == "/v1/chat/completions"
        assert "own_prompt" not in server.bodies[-1][1]


def test_images_take_the_chat():
    """A completion of text has no place for them."""
    content = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    with TemplateServer("llama.cpp", CHATML, CALL) as server, serving(server.url) as url:
        ask(url, False, messages=[{"role": "user", "content": content}])
        assert [path for path, _ in server.bodies if path in ("/completion", "/v1/chat/completions")] == [
            "/v1/chat/completions"
        ]


def test_a_call_that_is_demanded_is_enforced_and_nothing_is_added():
    """The prompt stays the template's; the grammar begins where reasoning has been closed."""
    thinking = CHATML.replace('assistant\n{% endif %}"', "").removesuffix("{% endif %}") + "<think>\n{% endif %}"
    with TemplateServer("llama.cpp", thinking, CALL) as server, serving(server.url) as url:
        ask(url, False, tool_choice="required")
        assert "root ::=" in server.bodies[-1][1]["grammar"]
        assert server.prompts[-1].endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
        assert "Answer with a tool call" not in server.prompts[-1]
        ask(url, False)
        assert server.prompts[-1].endswith("<|im_start|>assistant\n<think>\n")


def test_reasoning_that_the_prompt_opened_is_reasoning():
    """The answer is raw text, without an opening marker."""
    thinking = CHATML.removesuffix("{% endif %}") + "<think>\n{% endif %}"
    said = f"Maybe {CALL}? Yes.\n</think>\n{CALL}"
    with TemplateServer("llama.cpp", thinking, said) as server, serving(server.url) as url:
        assert ask(url, False) == ([{"path": "a.py"}], "")


def test_it_is_said_at_the_start(capfd):
    """Which way was chosen, on stderr."""
    import subprocess
    import sys

    with TemplateServer("llama.cpp", CHATML) as server:
        command = [sys.executable, "-m", "adapter", "serve", "--upstream", server.url, "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0) as process:
            assert process.stderr is not None
            lines = [process.stderr.readline(), process.stderr.readline()]
            process.terminate()
    assert lines[1] == "prompt: the model's own, by llama.cpp's /apply-template\n"


def test_the_real_llama_cpp(random_gguf):
    """Its prompt is the one that Jinja makes here, and its answer comes through."""
    pytest.importorskip("xllamacpp", reason="needs the embedded engine: pip install 'toolcall-adapter[embedded]'")
    from adapter.backends.embedded_server import EmbeddedServer
    from adapter.backends.endpoint_discovery import get_json

    with EmbeddedServer(random_gguf, chat_template=CHATML, max_tokens=8) as server:
        found = PromptDiscoverer(server.endpoint).discover("")
        assert found.own is not None
        assert found.own.traits.as_text
        answer = get_json(f"{server.endpoint.root}/apply-template", 10, {"messages": TALK, "tools": [TOOL]})
        assert answer is not None
        assert answer.body["prompt"] == reference()
        with serving(server.endpoint.root) as url:
            ask(url, False, extra_body={"logit_bias": [[0, -100]]})
