"""Large or malicious requests do not affect others."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.request_body_parsing import MAX_TEXT
from adapter.protocols.tool_definitions import MAX_TOOLS
from adapter.protocols.translation_options import TranslationOptions
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json
from tests.server.test_serve_faults import post
from tests.server.test_wrap import TOOLS, completion
from tests.serving import serving


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ScriptedServer() as upstream, serving(upstream.url) as url:
        upstream.on(CHAT, as_json(200, completion("Done."))).on(MODELS, as_json(200, {"data": []}))
        yield url


def tool(number: int) -> dict[str, Any]:
    text = {"type": "string", "description": "which <i>one</i> of {them}"}
    parameters = {"type": "object", "properties": {"a": text, "b": {"type": "integer"}}, "required": ["a"]}
    return {"type": "function", "function": {"name": f"t_{number}", "description": "x <b>", "parameters": parameters}}


def asking(tools: int = 1, result: str = "") -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "t_0", "arguments": "{}"}}
    messages = [{"role": "user", "content": "Go on."}, {"role": "assistant", "tool_calls": [call]}]
    messages += [{"role": "tool", "tool_call_id": "c", "content": result}] if result else []
    return {"model": "m", "messages": messages, "tools": [tool(number) for number in range(tools)]}


def steps(body: dict[str, Any], options: TranslationOptions | None = None) -> int:
    """Return the number of function calls, including functions in C, of a translation."""
    count = 0

    def counting(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        translate_chat_request(body, options or TranslationOptions())
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "of_size",
    [
        lambda size: asking(size),
        lambda size: asking(result="<" * 50 * size),
        lambda size: asking(result="[f(" * 20 * size),
        lambda size: asking(result='{"name":' * 10 * size),
        lambda size: asking(result="<t_0>" * 10 * size),
    ],
    ids=["tools", "brackets", "calls", "objects", "tags"],
)
def test_translation_time_is_linear(of_size):
    translate_chat_request(of_size(3), TranslationOptions())  # what is made once
    assert steps(of_size(400)) < 4.6 * steps(of_size(100))


def test_tool_references_are_resolved_once():
    """A schema that expands to thousands through references under many names."""

    def body(names: int) -> dict[str, Any]:
        grows = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(12)}
        properties = {f"p{n}": {"$ref": "#/$defs/d0"} for n in range(names)}
        function = {"name": "f", "parameters": {"type": "object", "properties": properties, "$defs": grows}}
        return {**asking(), "tools": [{"type": "function", "function": function}]}

    translate_chat_request(body(2), TranslationOptions())
    assert steps(body(40)) < 3 * steps(body(10))


def test_too_many_tools_are_rejected(url):
    status, answer = post(url.removesuffix("/v1"), json.dumps(asking(MAX_TOOLS + 1)).encode())
    assert status == 400
    assert answer["error"]["message"] == "'tools' has 4,097 tools, and the maximum is 4,096; send fewer"
    assert answer["error"]["param"] == "tools"


def test_too_much_text_is_rejected_but_images_are_not_counted(url):
    much, image = "a" * (MAX_TEXT // 2), f"data:image/png;base64,{'A' * MAX_TEXT}"
    for route, fields in ((CHAT, {}), ("/v1/messages", {"max_tokens": 9}), ("/api/chat", {"stream": False})):
        said = [{"role": "user", "content": much}, {"role": "user", "content": much}]
        tools = TOOLS if route != "/v1/messages" else [{"name": "f", "input_schema": {"type": "object"}}]
        body = {"model": "m", "messages": said, "tools": tools, **fields}
        status, answer = post(url.removesuffix("/v1"), json.dumps(body).encode(), path=route)
        assert status == 400
        assert "the maximum is 4,000,000; shorten its messages or tools" in json.dumps(answer)
    seen = [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": image}}]
    body = {"model": "m", "messages": [{"role": "user", "content": seen}], "tools": TOOLS}
    assert post(url.removesuffix("/v1"), json.dumps(body).encode())[0] == 200


def test_large_request_does_not_block_others(url):
    """Its answer comes after theirs."""
    order: list[str] = []
    address = urlsplit(url).netloc

    def explode() -> None:
        body = json.dumps(asking(result="<|" * (MAX_TEXT // 6))).encode()
        assert post(f"http://{address}", body)[0] == 200
        order.append("bomb")

    def ask(method: str, path: str, body: str | None = None) -> None:
        connection = http.client.HTTPConnection(address, timeout=100)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        order.append("other")
        connection.close()

    bomb = threading.Thread(target=explode)
    bomb.start()
    time.sleep(0.3)  # the bomb's body is there, most likely; the order below holds in any case
    ask("GET", "/health")
    ask("POST", CHAT, json.dumps(asking(40)))
    bomb.join()
    assert order == ["other"] * 2 + ["bomb"]
