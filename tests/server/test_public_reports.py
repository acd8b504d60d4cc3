"""Public reports of 2025 and 2026 about proxies and local servers, from `fixtures/proxy_reports.toml`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http_requests import send
from tests.scripted_server import CHAT, Reply, ScriptedServer, as_stream, delta
from tests.serving import serving

CASES = tomllib.loads((Path(__file__).parents[2] / "fixtures/proxy_reports.toml").read_text("utf-8"))["case"]
CALL = '<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}</tool_call>'

USER = {"role": "user", "content": "Read a.py"}
NAMES = {"read_file": "path", "bash": "command"}
SCHEMAS: dict[str, Any] = {
    name: {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    for name, argument in NAMES.items()
}
CHATS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()]
FLAT = [{"type": "function", "name": name, "parameters": schema} for name, schema in SCHEMAS.items()]
ANTHROPIC = [{"name": name, "input_schema": schema} for name, schema in SCHEMAS.items()]
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (CHAT, {"messages": [USER], "tools": CHATS}),
    "lmstudio": ("/api/v0/chat/completions", {"messages": [USER], "tools": CHATS}),
    "messages": ("/v1/messages", {"max_tokens": 900, "messages": [USER], "tools": ANTHROPIC}),
    "responses": ("/v1/responses", {"input": "Read a.py", "tools": FLAT}),
    "ollama": ("/api/chat", {"messages": [USER], "tools": CHATS}),
}
GENERATE: dict[str, tuple[str, dict[str, Any]]] = {"generate": ("/api/generate", {"prompt": "Read a.py"})}


@pytest.fixture(scope="module")
def url() -> Iterator[tuple[ScriptedServer, str]]:
    with ScriptedServer() as upstream, serving(upstream.url, "--format", "hermes") as address:
        yield upstream, address.removesuffix("/v1")


def filled(text: str) -> str:
    return text.replace("{CALL2}", CALL.replace("a.py", "b.py")).replace("{CALL}", CALL)


def reply_of(case: dict[str, Any]) -> Reply:
    if "json" in case:
        return Reply(case["status"], case["json"].encode())
    deltas: list[Any]
    if "text" in case:
        text, reason = filled(case["text"]), case.get("finish", "stop")
        deltas = [{"content": text[at : at + 7]} for at in range(0, len(text), 7)]
    else:
        deltas = [json.loads(each.replace("{CALL}", json.dumps(CALL)[1:-1])) for each in case.get("chunks", ())]
        reason = case.get("finish", "stop")
    events = [delta(**each) | json.loads(case.get("extra", "{}")) for each in deltas]
    if "stray" in case:
        return as_stream(*events, case["stray"], done=False)
    if reason == "lost":
        return as_stream(*events, done=False, cut=True)
    before, after = ([json.loads(case[key])] if key in case else [] for key in ("before", "after"))
    return as_stream(*before, *events, delta(finish_reason=reason, **json.loads(case.get("last", "{}"))), *after)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_report(url, case):
    upstream, root = url
    path, body = (REQUESTS | GENERATE)[case["api"]]
    upstream.replies[CHAT].clear()
    upstream.requests.clear()
    upstream.on(CHAT, reply_of(case))
    body = {"model": "m", "stream": True, **body, **json.loads(case.get("request", "{}"))}
    status, _, answer = send(root, path + case.get("query", ""), body)
    assert status == case.get("status", 200), answer
    answer = answer.replace('": ', '":').replace(', "', ',"')
    assert [each for each in case.get("contains", ()) if each not in answer] == [], answer
    assert [each for each in case.get("lacks", ()) if each in answer] == [], answer
    assert [each for each in case.get("once", ()) if answer.count(each) != 1] == [], answer
    if "arguments" in case:
        events = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
        parts = [event["delta"].get("partial_json", "") for event in events if event["type"] == "content_block_delta"]
        assert json.loads("".join(parts)) == json.loads(case["arguments"])
    sent = json.dumps(upstream.bodies()[-1]) if upstream.bodies() else ""
    assert [each for each in case.get("sent", ()) if each not in sent] == []
    assert [each for each in case.get("not_sent", ()) if each in sent] == []
    places = [sent.index(each) for each in case.get("order", ())]
    assert places == sorted(places)
