"""`tool_choice` before a model server without constraints, in every API: excluded calls and missing calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.http_requests import send
from tests.scripted_server import CHAT, ScriptedServer, as_json, as_stream, delta
from tests.server.clients import streamed_and_whole
from tests.server.test_public_reports import CALL, REQUESTS
from tests.server.test_wrap import completion
from tests.serving import serving

BASH = CALL.replace("read_file", "bash").replace("path", "command")
NATIVE = [{"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]
NAMED: dict[str, Any] = {
    "chat": {"type": "function", "function": {"name": "read_file"}},
    "messages": {"type": "tool", "name": "read_file"},
    "responses": {"type": "function", "name": "read_file"},
}
NAMED["ollama"] = NAMED["lmstudio"] = NAMED["chat"]
NOT_JSON = '<tool_call>\n{"name": "read_file", "arguments": "a" "b" c}\n</tool_call>'
EXAMPLE = '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```'
CHOICES = {"required": {"type": "any"}, "none": {"type": "none"}}
CALLS = {"chat": '"tool_calls":', "messages": '"tool_use"', "responses": '"function_call"', "ollama": '"tool_calls":'}
CALLS["lmstudio"] = CALLS["chat"]
TEXTS = {"messages": "text", "responses": "text"}
every_api = pytest.mark.parametrize("api", REQUESTS)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[ScriptedServer, str]]:
    with ScriptedServer() as upstream, serving(upstream.url, "--format", "hermes") as address:
        yield upstream, address.removesuffix("/v1")


def ask(
    server: tuple[ScriptedServer, str], api: str, stream: bool, choice: str, *answers: Any, reason: str = "stop"
) -> tuple[Any, ...]:
    """Return the text for the client, whether it has a call, the reasons of retries, and the calls that it did not get.

    ``answers``: the model's texts, or calls that the model server parsed. ``reason``: their finish reason.
    """
    upstream, url = server
    upstream.replies[CHAT].clear()
    for answer in answers:
        message = {"content": answer} if isinstance(answer, str) else {"content": None, "tool_calls": answer}
        whole = completion("")
        whole["choices"][0]["message"] |= message
        whole["choices"][0]["finish_reason"] = reason
        upstream.on(CHAT, as_stream(delta(**message), delta(finish_reason=reason)) if stream else as_json(200, whole))
    path, body = REQUESTS[api]
    value = NAMED[api] if choice == "named" else CHOICES[choice] if api == "messages" else choice
    status, headers, text = send(url, path, {"model": "m", **body, "tool_choice": value, "stream": stream})
    assert status == 200, text
    text = re.split("event: response.(?:completed|incomplete)", text)[-1] if api == "responses" else text
    strings = re.findall(rf'"{TEXTS.get(api, "content")}":("(?:[^"\\]|\\.)*")', text)
    _, _, rest = text.partition('"adapter":')
    notice = json.JSONDecoder().raw_decode(rest)[0] if rest else {}
    dropped = [f"{each['name']}:{each['guardrail']}" for each in notice.get("dropped", ())]
    assert stream or headers.get("x-adapter-dropped", "") == ",".join(dropped)
    return "".join(map(json.loads, strings)), CALLS[api] in text, notice.get("asked_again", []), dropped


@every_api
@streamed_and_whole
def test_excluded_call_is_dropped_and_named(server, api, stream):
    """With `none`, the text around the call stays."""
    answer = ask(server, api, stream, "none", f"Sure.\n{CALL}\nDone.")
    assert answer == ("Sure.\nDone.", False, [], ["read_file:tool_choice"])


@every_api
@streamed_and_whole
@pytest.mark.parametrize(
    ("answer", "reason", "text", "dropped"),
    [
        (f"Sure.\n{NOT_JSON}\nDone.", "stop", "Sure.\nDone.", "read_file"),
        ("Sure.\n<tool_call>\nlook at a.py\n</tool_call>\nDone.", "stop", "Sure.\nDone.", "any"),
        ("Sure.\n" + BASH[:30], "length", "Sure.", "bash"),
        ("Sure.\n" + BASH[:30], "stop", "Sure.", "bash"),
        ([{**NATIVE[0], "function": {"name": "bash", "arguments": '{"command'}}], "length", "", "bash"),
        ([{**NATIVE[0], "function": {"name": "bash", "arguments": '{"command'}}], "stop", "", "bash"),
    ],
    ids=["broken", "nameless", "cut", "unclosed", "cut-parsed", "broken-parsed"],
)
def test_broken_and_cut_calls_are_dropped_under_none(server, api, stream, answer, reason, text, dropped):
    assert ask(server, api, stream, "none", answer, reason=reason) == (text, False, [], [f"{dropped}:tool_choice"])


@every_api
@streamed_and_whole
@pytest.mark.parametrize(
    "example",
    [EXAMPLE, f"For example:\n\n{EXAMPLE}", f"For example:\n\n```\n{CALL}\n```", f"{EXAMPLE}\nThat lists files."],
    ids=["alone", "last", "marked", "followed"],
)
def test_fenced_example_is_content_under_none(server, api, stream, example):
    assert ask(server, api, stream, "none", example) == (example, False, [], [])


@every_api
@streamed_and_whole
@pytest.mark.parametrize("choice", ["required", "named"])
def test_required_call_is_retried(server, api, stream, choice):
    """The text of the rejected answer never reaches the client."""
    answer = ask(server, api, stream, choice, "I will.", f"Now.\n{CALL}")
    assert answer == ("Now.", True, ["missing_call"], [])
    assert "call read_file" in json.dumps(server[0].bodies()[-1]["messages"][-1])


@every_api
@streamed_and_whole
@pytest.mark.parametrize("other", [f"Sure.\n{BASH}", NATIVE], ids=["text", "parsed"])
def test_call_of_another_tool_is_dropped_and_retried(server, api, stream, other):
    answer = ask(server, api, stream, "named", other, CALL)
    assert answer == ("", True, ["missing_call"], ["bash:tool_choice"])


@every_api
@streamed_and_whole
def test_missing_call_is_named_at_the_end(server, api, stream):
    """The client gets the last answer as text."""
    answer = ask(server, api, stream, "named", "I cannot.")
    assert answer == ("I cannot.", False, ["missing_call"] * 2, ["read_file:missing_call"])
    assert ask(server, api, stream, "required", "I cannot.")[3] == ["any:missing_call"]
