"""Dropped request fields are logged once and counted."""

from __future__ import annotations

import httpx

from adapter.server import dropped_fields_report
from adapter.server.dropped_fields_report import DroppedFieldsReport
from tests.scripted_server import CHAT, ScriptedServer, as_json
from tests.server.test_wrap import completion
from tests.serving import serving_here


def test_dropped_field_is_logged_once_and_counted(capfd):
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": False, "keep_alive": 9}
    asked["options"] = {"num_ctx": 4096, "temperature": 0}
    with ScriptedServer() as upstream, serving_here(upstream.url) as url:
        upstream.on(CHAT, as_json(200, completion("Hi."))).on("/v1/models", as_json(200, {"data": []}))
        answers = [httpx.post(f"{url}/api/chat", json=asked) for _ in range(2)]
        counted = httpx.get(f"{url}/health").json()["left_out"]
    assert [answer.headers["adapter-left-out"] for answer in answers] == ["keep_alive, options.num_ctx"] * 2
    assert counted == {"chat: keep_alive": 2, "chat: options.num_ctx": 2}
    assert capfd.readouterr().err.count("dropped from a request to chat: keep_alive\n") == 1


def test_counted_names_are_bounded(monkeypatch, capsys):
    monkeypatch.setattr(dropped_fields_report, "MAX_NAMES", 3)
    dropped = DroppedFieldsReport()
    for number in range(10):
        dropped.with_header(lambda *_: None, "chat", [f"tool {number}"])  # type: ignore[arg-type]
    assert len(dropped.counts) == 3
    assert len(capsys.readouterr().err.splitlines()) == 3
