"""The function behind the playground, and the server of its page."""

from __future__ import annotations

import json
import threading
import tomllib
import urllib.error
import urllib.request
from typing import Any

import pytest

from adapter.recording.view.page_server import MAX_REQUEST, PageServer
from adapter.recording.view.playground_page import TOOLS, render_playground_page
from adapter.recording.view.playground_parser import MAX_TEXT, read_for_page
from tests.parsing.checks import read

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
EXAMPLES = dict(
    json.loads(
        render_playground_page().partition('<script id="data" type="application/json">')[2].partition("</script>")[0]
    )["examples"]
)


def asked(text: str, **values: Any) -> Any:
    return read_for_page(json.dumps({"text": text, "tools": json.dumps(TOOLS), **values}))


def kinds(answer: Any) -> list[str]:
    return [span["kind"] for span in answer["spans"]]


def test_text_gives_spans_calls_and_format():
    answer = asked(f"I look. {CALL}")
    assert (answer["format"], answer["badges"], answer["held"]) == ("hermes", ["calls"], "")
    assert kinds(answer)[0::2] == ["content", "call"]
    assert json.loads(answer["calls"]) == [{"name": "get_weather", "arguments": {"city": "Oslo"}, "fixes": []}]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_shows_something(name):
    """Calls of both tools in six formats, and four malformed answers."""
    answer = asked(EXAMPLES[name])
    names = [call["name"] for call in json.loads(answer["calls"])]
    expected = {
        "a missing bracket and a trailing comma": ["get_weather"],
        "reasoning that drafts a call": [],
        "a call in a code block": ["write_file"],
        "one broken call between two good ones": ["get_weather", "get_weather"],
    }
    assert names == expected.get(name, ["get_weather", "write_file"])
    assert set(answer["badges"]) & {"fixes", "rejected", "invalid call"} or name not in expected


def test_received_part_matches_a_clients_state():
    """Text that may be part of a marker or a call is held. With the last character, the text ends."""
    text = f"I look. {CALL}"
    parts = [asked(text, received=count) for count in range(len(text) + 1)]
    assert (kinds(parts[4]), parts[4]["held"]) == (["content"], "")
    assert parts[20]["held"] == text[8:20] or parts[20]["held"] == text[7:20]
    assert [part["calls"] for part in parts[:-1]].count("[]") == len(text)
    assert parts[-1] == asked(text)


def test_case_is_a_case():
    """It passes the test of all cases."""
    text = f"<think>Which? </think>I look.\n{CALL}"
    case = tomllib.loads(asked(text, finish_reason="tool_calls")["case"])
    assert (case["text"], case["finish_reason"]) == (text, "tool_calls")
    read(text, case["events"], tools=TOOLS, finish_reason="tool_calls")


def test_format_comes_from_a_template():
    template = (
        "{% for message in messages %}{% for call in message.tool_calls or [] %}"
        "<do>{{ call.function.name }}|{{ call.function.arguments | tojson }}</do>{% endfor %}{{ message.content }}"
        "{% endfor %}"
    )
    text = '<do>get_weather|{"city": "Oslo"}</do>'
    assert asked(text)["calls"] == "[]"
    answer = asked(text, format="from-template", template=template)
    assert "get_weather" in answer["calls"], answer


@pytest.mark.parametrize(
    ("body", "piece"),
    [
        ("{", "Expecting"),
        ("[]", ""),
        ('{"text": 1}', "text must be a string"),
        ('{"text": "a", "tools": "[1]"}', "tool"),
        ('{"text": "a", "tools": "{"}', "Expecting"),
        ('{"text": "a", "format": "/etc/passwd.toml"}', "unknown format"),
        ('{"text": "a", "format": "from-template"}', "template"),
        ('{"text": "a", "policy": "lax"}', "policy"),
        ('{"text": "a", "received": "x"}', ""),
        (json.dumps({"text": "a" * (MAX_TEXT + 1)}), "at most"),
    ],
)
def test_wrong_request_is_answered_with_an_error(body, piece):
    answer = read_for_page(body)
    assert piece in answer.get("error", "")
    assert ("error" in answer) == bool(piece)


def test_server_answers_only_its_own_page():
    with PageServer(render_playground_page(), read_for_page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with urllib.request.urlopen(server.address, timeout=100) as page:
            assert b"Playground" in page.read()
        request = json.dumps({"text": CALL}).encode()
        with urllib.request.urlopen(f"{server.address}read", request, timeout=100) as answer:
            assert json.loads(answer.read())["format"] == "hermes"
        root = f"http://127.0.0.1:{server.server_port}/"
        for address in (f"{root}read", f"{root}x/read", server.address):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(address, request, timeout=100)
        too_long = urllib.request.Request(f"{server.address}read", b"", {"Content-Length": str(MAX_REQUEST + 1)})
        with pytest.raises(urllib.error.HTTPError, match="413"):
            urllib.request.urlopen(too_long, timeout=100)
        server.shutdown()


def test_page_without_a_reader_takes_no_requests():
    with PageServer("page") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{server.address}read", b"{}", timeout=100)
        server.shutdown()
