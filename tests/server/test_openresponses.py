"""The kinds of requests of openresponses' compliance suite, except those for searches that OpenAI's servers run.

Source: https://github.com/openresponses/openresponses, ``src/lib/compliance-tests.ts``. There, each answer must also be
valid by the published schema; here `tests.answer_shapes` checks its fields. Some versions of that schema call
the events of streamed reasoning ``response.reasoning.delta``, as OpenAI did until July 2025; OpenAI's SDKs know only
``response.reasoning_text.delta``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import answer_shapes
from tests.server.test_answer_shapes import UPSTREAMS, send, serving_template
from tests.workspace.files.test_read_file import make_pdf

pytest.importorskip("pypdf", reason="needs the reader of PDFs: pip install 'toolcall-adapter[pdf]'")

PARAMETERS = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
TOOLS = [{"type": "function", "name": "get_weather", "description": "The weather now.", "parameters": PARAMETERS}]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"place": "Bern"}}\n</tool_call>'
RESULT = "12 degrees"
PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64," + base64.b64encode(make_pdf("The Title")).decode()


def message(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


TEXTS: dict[str, list[Any]] = {
    "text": [message("user", "Hello.")],
    "system prompt": [message("system", "Rhyme."), message("user", "Hello.")],
    "image": [message("user", [{"type": "input_text", "text": "See?"}, {"type": "input_image", "image_url": PNG}])],
    "file": [message("user", [{"type": "input_file", "filename": "a.pdf", "file_data": PDF}])],
    "turns": [message("user", "I am Ann."), message("assistant", "Hello Ann."), message("user", "Who am I?")],
}
"""Inputs of requests that get a text."""


@pytest.fixture(scope="module", params=UPSTREAMS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    with serving_template(*UPSTREAMS[request.param], tmp_path_factory.mktemp("template")) as (upstream, url):
        yield upstream, f"{url}/v1/responses"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("given", TEXTS.values(), ids=TEXTS)
def test_text_is_answered(served, given, stream):
    upstream, url = served
    upstream.answer_with("Hello.")
    response = ask(url, stream, input=given)
    assert (response["status"], [item["type"] for item in response["output"]]) == ("completed", ["message"])


def ask(url: str, stream: bool, **fields: Any) -> Any:
    answers = send(url, {"model": "m", "stream": stream, **fields})
    if stream:
        return answer_shapes.check_response_stream(answers)
    (answer,) = answers
    answer_shapes.check_response(answer)
    return answer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("choice", ["auto", {"type": "function", "name": "get_weather"}], ids=["auto", "forced"])
def test_call_goes_round(served, choice, stream):
    """The result is sent with the id of the response that called."""
    upstream, url = served
    upstream.answer_with(CALL)
    first = ask(url, stream, input="Weather in Bern?", tools=TOOLS, tool_choice=choice)
    (call,) = first["output"]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == (
        "function_call", "get_weather", {"place": "Bern"}
    )  # fmt: skip
    upstream.answer_with("Mild.")
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": RESULT}
    last = ask(url, stream, previous_response_id=first["id"], input=[result])
    assert (last["status"], last["output"][0]["content"][0]["text"]) == ("completed", "Mild.")
    assert RESULT in json.dumps(upstream.bodies[-1])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_previous_response_is_remembered(served, stream):
    upstream, url = served
    upstream.answer_with("Ok.")
    first = ask(url, stream, input="The word is plum.")
    last = ask(url, stream, previous_response_id=first["id"], input="Which word?")
    assert last["status"] == "completed"
    assert "plum" in json.dumps(upstream.bodies[-1])
