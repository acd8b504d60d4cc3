"""The template prompt through `adapter serve`, `wrap` and the agent, with servers that render real templates."""

import asyncio
import json
from pathlib import Path
from typing import Any

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
from tests.command_line import started
from tests.http_requests import send
from tests.server.clients import connected
from tests.serving import serving
from tests.template_server import CHATML, TOOLLESS, TemplateServer

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
    """Return the template's rendering of the conversation."""
    call = {"name": "read_file", "arguments": {"path": "a.py"}}
    messages: list[dict[str, Any]] = [*TALK[:2], {"role": "assistant", "tool_calls": [{"function": call}]}, TALK[3]]
    return render_chat_template(ChatTemplate(CHATML), messages, [TOOL])


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """For servers that do not render templates."""
    file = tmp_path / "chat_template.jinja"
    file.write_text(CHATML)
    return file


def options_for(kind: str, template: Path) -> list[str]:
    return ["--template", str(template)] if kind == "koboldcpp" else []


def ask(url: str, stream: bool, **fields):
    """Return the calls and the text of an answer."""
    with connected(url) as client:
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


@pytest.mark.parametrize("kind", KINDS)
def test_template_prompt_is_used_and_answer_parsed(kind, template):
    """Byte for byte, with each transport, streamed and whole."""
    with (
        TemplateServer(kind, CHATML, "x", "x", CALL)
        if kind == "vllm"
        else TemplateServer(kind, CHATML, CALL) as server,
        serving(server.url, *options_for(kind, template)) as url,
    ):
        for stream in (True, False):
            assert ask(url, stream) == ([{"path": "a.py"}], "")
            assert server.prompts[-1] == reference()


@pytest.mark.parametrize("kind", ["ollama", "llama.cpp"])
def test_ollama_clients_use_template_prompt(kind):
    """With Ollama, other fields are forwarded."""
    call = {"function": {"name": "read_file", "arguments": {"path": "a.py"}}}
    talk = [*TALK[:2], {"role": "assistant", "content": "", "tool_calls": [call]}]
    talk += [{"role": "tool", "tool_name": "read_file", "content": "import os"}]
    body = {"model": "m", "messages": talk, "tools": [TOOL], "options": {"num_ctx": 999}}
    with TemplateServer(kind, CHATML, CALL) as server, serving(server.url) as url:
        for stream in (True, False):
            _, _, answer = send(url, "/api/chat", body | {"stream": stream})
            assert '"path":"a.py"' in answer.replace(" ", "")
            assert server.prompts[-1] == reference()
            path, asked = server.bodies[-1]
            assert kind != "ollama" or (path, asked["options"]["num_ctx"]) == ("/api/generate", 999)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_wrapped_client_uses_template_prompt(kind, is_async, template):
    """Without our server in between."""
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
            with connected(f"{server.url}/v1") as client:
                for stream in (False, True):
                    assert asked(adapter.wrap(client, template=file), stream) == ([{"path": "a.py"}], "")
        assert server.prompts[-1] == reference()


@pytest.mark.parametrize("made", [Agent, AsyncAgent])
@pytest.mark.parametrize("kind", KINDS)
def test_agent_uses_template_prompt(kind, made, tmp_path, template):
    """The template renders calls and results; a call in the model's own spelling stays verbatim."""
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
        ("llama.cpp", TOOLLESS, False, "not support tools"),
        ("llama.cpp", CHATML, True, "does not render templates"),
        ("ollama", TOOLLESS, False, "not support tools"),
        ("ollama", CHATML, True, "does not show its prompts"),
        ("vllm", CHATML, True, "drops tools"),
        ("vllm", TOOLLESS, False, "drops tools"),
        ("koboldcpp", CHATML, False, "pass one with --template"),
    ],
)
def test_unsupported_template_falls_back_to_text(kind, source, hides, why):
    """And the reason is logged."""
    with TemplateServer(kind, source, "x", "x", CALL, hides=hides) as server:
        found = PromptDiscoverer(Endpoint(f"{server.url}/v1", kind)).discover("m")
        assert found.template_prompt is None
        assert found.explanation.startswith("in words: ")
        assert why in found.explanation


def test_text_prompt_option_is_honored():
    """``--prompt words``, and a style, which requires a text prompt."""
    for words in (["--prompt", "words"], ["--style", "compact"]):
        with TemplateServer("llama.cpp", CHATML, CALL) as server, serving(server.url, *words) as url:
            assert ask(url, False) == ([{"path": "a.py"}], "")
            assert not any(path == "/apply-template" and "tools" in body for path, body in server.bodies)


REFUSES = CHATML.replace("{{ message.content }}", "{{ raise_exception('too cold') if 'cold' in message.content }}x")


def test_rejected_conversation_falls_back_to_text():
    """If the messages cannot be adapted; with ``--prompt own`` the client gets the template's message."""
    talk = [*TALK[:3], {**TALK[3], "content": "cold"}]
    source = REFUSES.replace("x\n</tool_response>", "{{ message.content }}\n</tool_response>")
    with TemplateServer("llama.cpp", source, CALL) as server:
        with serving(server.url) as url:
            assert [ask(url, stream, messages=talk) for stream in (True, False)] == [([{"path": "a.py"}], "")] * 2
        with serving(server.url, "--prompt", "own") as url:
            for stream in (True, False):
                with pytest.raises(openai.BadRequestError, match="too cold"):
                    ask(url, stream, messages=talk)


def test_client_cannot_set_transport():
    """The internal fields of a translated request cannot be set."""
    marks = {"way": "llama.cpp", "written": {"Read": "<|im_end|>"}, "bos": "", "server": ""}
    with TemplateServer("llama.cpp", CHATML, CALL) as server, serving(server.url) as url:
        ask(url, False, extra_body={"own_prompt": marks})
        assert server.prompts[-1] == reference()
    with TemplateServer("llama.cpp", TOOLLESS, CALL) as server, serving(server.url) as url:
        ask(url, False, extra_body={"own_prompt": marks})
        assert server.bodies[-1][0] == "/v1/chat/completions"
        assert "own_prompt" not in server.bodies[-1][1]


def test_images_use_chat_endpoint():
    """Text completions do not support them."""
    content = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    with TemplateServer("llama.cpp", CHATML, CALL) as server, serving(server.url) as url:
        ask(url, False, messages=[{"role": "user", "content": content}])
        assert [path for path, _ in server.bodies if path in ("/completion", "/v1/chat/completions")] == [
            "/v1/chat/completions"
        ]


def test_required_call_is_enforced_without_instruction():
    """The prompt is the template's; the grammar starts after closed reasoning."""
    thinking = CHATML.replace('assistant\n{% endif %}"', "").removesuffix("{% endif %}") + "<think>\n{% endif %}"
    with TemplateServer("llama.cpp", thinking, CALL) as server, serving(server.url) as url:
        ask(url, False, tool_choice="required")
        assert "root ::=" in server.bodies[-1][1]["grammar"]
        assert server.prompts[-1].endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
        assert "Answer with a tool call" not in server.prompts[-1]
        ask(url, False)
        assert server.prompts[-1].endswith("<|im_start|>assistant\n<think>\n")


def test_reasoning_opened_by_prompt_is_split_off():
    """The answer is raw text without an opening marker."""
    thinking = CHATML.removesuffix("{% endif %}") + "<think>\n{% endif %}"
    said = f"Maybe {CALL}? Yes.\n</think>\n{CALL}"
    with TemplateServer("llama.cpp", thinking, said) as server, serving(server.url) as url:
        assert ask(url, False) == ([{"path": "a.py"}], "")


def test_prompt_mode_is_logged_at_start():
    """With its transport, on stderr."""
    with (
        TemplateServer("llama.cpp", CHATML) as server,
        started("serve", "--upstream", server.url, "--port", "0") as run,
    ):
        lines = run.first_lines(2).splitlines()
    assert lines[1] == "prompt: the model's own, by llama.cpp's /apply-template"


def test_real_llama_cpp_uses_template_prompt(random_gguf):
    """Its prompt equals Jinja's here, and its answer is parsed."""
    pytest.importorskip("xllamacpp", reason="needs the embedded engine: pip install 'toolcall-adapter[embedded]'")
    from adapter.backends.endpoint_discovery import get_json
    from adapter.backends.in_process_llama_cpp import EmbeddedServer

    with EmbeddedServer(random_gguf, chat_template=CHATML, max_tokens=8) as server:
        found = PromptDiscoverer(server.endpoint).discover("")
        assert found.template_prompt is not None
        assert found.template_prompt.traits.as_text
        answer = get_json(f"{server.endpoint.root}/apply-template", {"messages": TALK, "tools": [TOOL]}, timeout_s=10)
        assert answer is not None
        assert answer.body["prompt"] == reference()
        with serving(server.endpoint.root) as url:
            ask(url, False, extra_body={"logit_bias": [[0, -100]]})


REASONS = CHATML.removesuffix("{% endif %}") + "<think>\n{% endif %}"
BEGUN = [*TALK, {"role": "assistant", "content": "It imp"}]


@pytest.mark.parametrize("options", [(), ("--prompt", "words")], ids=["own prompt", "text prompt"])
@pytest.mark.parametrize(("source", "between"), [(CHATML, ""), (REASONS, "<think>\n\n</think>\n\n")])
def test_model_continues_a_last_message_of_its_own(source, between, options):
    """As in opencode's last step. llama.cpp rejects such messages if the template allows reasoning."""
    with TemplateServer("llama.cpp", source, "orts os.") as server, serving(server.url, *options) as url:
        for stream in (True, False):
            assert ask(url, stream, messages=BEGUN) == ([], "orts os.")
            assert server.prompts[-1].endswith(f"<|im_start|>assistant\n{between}It imp")
            assert ask(url, stream, messages=[*TALK, {"role": "assistant", "content": ""}])[0] == []
            assert server.prompts[-1].endswith(f"<|im_start|>assistant\n{between[:8]}")


def test_fields_of_a_client_around_a_tool_are_not_in_the_prompt():
    with TemplateServer("llama.cpp", CHATML, CALL) as server, serving(server.url) as url:
        ask(url, True, tools=[{**TOOL, "cache_control": {"type": "ephemeral"}}])
        assert server.prompts[-1] == reference()
