"""Every answer has the published shape of its API, whatever the model server sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests import answer_shapes
from tests.serving import serving
from tests.template_server import CHATML, TemplateServer

pytestmark = pytest.mark.usefixtures("anthropic")

PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
FUNCTION = {"name": "read_file", "description": "Read a file.", "parameters": PARAMETERS}
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
ANSWERS = {
    "text": ("Hello.", "stop"),
    "reasoned": ("<think>Hm.</think>Hello.", "stop"),
    "call": (CALL, "stop"),
    "all": (f"<think>Hm.</think>I look.\n{CALL}\n{CALL.replace('a.py', 'b.py')}", "stop"),
    "cut text": ("Hel", "length"),
    "cut reasoning": ("<think>Hm", "length"),
    "cut call": (f"I look.\n{CALL[:50]}", "length"),
    "odd reason": ("Hello.", "eos"),
}
UPSTREAMS = {
    "llama.cpp": ("llama.cpp", []),
    "llama.cpp, text prompt": ("llama.cpp", ["--prompt", "words"]),
    "ollama": ("ollama", []),
    "ollama, text prompt": ("ollama", ["--prompt", "words"]),
    "vllm": ("vllm", []),
    "koboldcpp": ("koboldcpp", ["--template", "TEMPLATE"]),
    "unknown": ("koboldcpp", ["--prompt", "words"]),
}


@pytest.fixture(scope="module", params=UPSTREAMS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    with serving_template(*UPSTREAMS[request.param], tmp_path_factory.mktemp("template")) as both:
        yield both


@contextmanager
def serving_template(
    kind: str, options: list[str], folder: Path, template: str = CHATML
) -> Iterator[tuple[TemplateServer, str]]:
    """Yield a model server of ``kind``, and the URL of our server before it. ``TEMPLATE`` in ``options`` is a file."""
    file = folder / "chat.jinja"
    file.write_text(template)
    options = [str(file) if each == "TEMPLATE" else each for each in options]
    with TemplateServer(kind, template) as upstream, serving(f"{upstream.url}/v1", *options) as url:
        yield upstream, url.removesuffix("/v1")


def answers(served: tuple[TemplateServer, str]) -> Iterator[str]:
    """Let the model give each answer in turn. Yields the server's URL."""
    upstream, url = served
    for text, finish in ANSWERS.values():
        upstream.answer_with(text, finish)
        yield url


def send(url: str, body: Any) -> list[Any]:
    """Return the JSON values in an answer: one, the events of a stream, or its lines."""
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request) as response:
        text = response.read().decode()
    if not text.startswith(("event: ", "data: ", ": ")):
        return [json.loads(line) for line in text.splitlines()]
    events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(event) for event in events if event != "[DONE]"]


USER = {"role": "user", "content": "Read a.py"}
TOOL = {"type": "function", "function": FUNCTION}


@pytest.mark.parametrize("usage", [None, True], ids=["no option", "usage"])
def test_chat_stream_has_published_shape(served, usage):
    options = {} if usage is None else {"stream_options": {"include_usage": usage}}
    body = {"model": "m", "messages": [USER], "tools": [TOOL], "stream": True, **options}
    for url in answers(served):
        chunks = send(f"{url}/v1/chat/completions", body)
        is_reported = served[0].bodies[-1][0] != "/v1/completions"  # text completions report none in this test
        answer_shapes.check_chat_stream(chunks, wants_usage=usage is True and is_reported)


def test_chat_has_published_shape(served):
    for url in answers(served):
        (answer,) = send(f"{url}/v1/chat/completions", {"model": "m", "messages": [USER], "tools": [TOOL]})
        answer_shapes.check_chat(answer)


RESPONSES: dict[str, Any] = {
    "plain": {},
    "all fields": {
        "temperature": 0,
        "top_p": 0.5,
        "reasoning": {"effort": "low"},
        "metadata": {"a": "b"},
        "user": "u",
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
        "instructions": "Be brief.",
        "tool_choice": {"type": "function", "name": "read_file"},
        "max_output_tokens": 99,
        "service_tier": "auto",
        "truncation": "auto",
        "store": False,
    },
}


@pytest.mark.parametrize("fields", RESPONSES.values(), ids=RESPONSES)
def test_response_has_published_shape(served, fields):
    body = {"model": "m", "input": "Read a.py", "tools": [{"type": "function", **FUNCTION}], **fields}
    for url in answers(served):
        (answer,) = send(f"{url}/v1/responses", body)
        answer_shapes.check_response(answer)
        streamed = answer_shapes.check_response_stream(send(f"{url}/v1/responses", {**body, "stream": True}))
        assert [item["type"] for item in streamed["output"]] == [item["type"] for item in answer["output"]]


def test_message_has_published_shape(served):
    tool = {"name": "read_file", "description": "Read a file.", "input_schema": PARAMETERS}
    body = {"model": "m", "max_tokens": 99, "messages": [USER], "tools": [tool]}
    for url in answers(served):
        (answer,) = send(f"{url}/v1/messages", body)
        answer_shapes.check_message(answer)
        answer_shapes.check_message_stream(send(f"{url}/v1/messages", {**body, "stream": True}))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("path", "fields"), [("/api/chat", {"messages": [USER], "tools": [TOOL]}), ("/api/generate", {"prompt": "Hi"})]
)
def test_ollama_answer_has_published_shape(served, path, fields, stream):
    if path == "/api/generate" and served[0].kind == "ollama":
        return  # passed through
    for url in answers(served):
        answer_shapes.check_ollama(path, send(url + path, {"model": "m", "stream": stream, **fields}))


def test_cached_tokens_are_counted_in_each_api():
    """llama.cpp reports them as ``timings.cache_n``; Anthropic counts them apart from other input."""
    with TemplateServer("llama.cpp", CHATML, "<think>Hm.</think>Hello.") as upstream, serving(upstream.url) as v1:
        asked = {"model": "m", "messages": [USER], "tools": [TOOL]}
        (chat,) = send(f"{v1}/chat/completions", asked)
        *_, delta, _ = send(f"{v1}/messages", {"max_tokens": 9, "messages": [USER], "tools": [], "stream": True})
        (response,) = send(
            f"{v1}/responses", {"model": "m", "input": "Hi", "tools": [{"type": "function", **FUNCTION}]}
        )
    assert chat["usage"]["prompt_tokens"] == 9
    assert chat["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
    assert chat["usage"]["completion_tokens_details"] == {"reasoning_tokens": 1}
    assert (delta["usage"]["input_tokens"], delta["usage"]["cache_read_input_tokens"]) == (5, 4)
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 4


@pytest.mark.parametrize("prompt", ["own", "words"])
def test_answers_from_a_real_llama_cpp_have_published_shapes(random_gguf, prompt):
    """With random weights, because the shape does not depend on the text."""
    pytest.importorskip("xllamacpp", reason="needs the embedded engine: pip install 'toolcall-adapter[embedded]'")
    from adapter.backends.in_process_llama_cpp import EmbeddedServer

    chat = {"model": "m", "messages": [USER], "tools": [TOOL], "max_tokens": 24}
    tool = {"name": "read_file", "description": "Read a file.", "input_schema": PARAMETERS}
    message = {"model": "m", "max_tokens": 24, "messages": [USER], "tools": [tool]}
    response = {
        "model": "m",
        "input": "Read a.py",
        "tools": [{"type": "function", **FUNCTION}],
        "max_output_tokens": 24,
    }
    ollama = {"model": "m", "messages": [USER], "tools": [TOOL], "options": {"num_predict": 24}}
    with (
        EmbeddedServer(random_gguf, chat_template=CHATML) as engine,
        serving(engine.endpoint.root, "--prompt", prompt) as v1,
    ):
        (whole,) = send(f"{v1}/chat/completions", chat)
        answer_shapes.check_chat(whole)
        chunks = send(f"{v1}/chat/completions", chat | {"stream": True, "stream_options": {"include_usage": True}})
        answer_shapes.check_chat_stream(chunks, wants_usage=True)
        (whole,) = send(f"{v1}/messages", message)
        answer_shapes.check_message(whole)
        answer_shapes.check_message_stream(send(f"{v1}/messages", message | {"stream": True}))
        (whole,) = send(f"{v1}/responses", response)
        answer_shapes.check_response(whole)
        answer_shapes.check_response_stream(send(f"{v1}/responses", response | {"stream": True}))
        for stream in (False, True):
            lines = send(f"{v1.removesuffix('/v1')}/api/chat", ollama | {"stream": stream})
            answer_shapes.check_ollama("/api/chat", lines)
