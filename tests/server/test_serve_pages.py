"""Access control, and the parts of a request that are forwarded to the model server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPMessage
from typing import Any

import pytest

from tests.http_requests import send
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json
from tests.server.test_wrap import ASK, TOOLS, completion
from tests.serving import serving

PAGE = "http://localhost:3000"


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as script:
        script.on(MODELS, as_json(200, {"object": "list", "data": []})).on(CHAT, as_json(200, completion("Done.")))
        yield script


@pytest.fixture(scope="module")
def url(upstream: ScriptedServer) -> Iterator[str]:
    with serving(upstream.url, "--allow-origin", "https://allowed.example") as url:
        yield url


@pytest.fixture(scope="module")
def open_url(upstream: ScriptedServer) -> Iterator[str]:
    with serving(upstream.url, "--pass-admin") as url:
        yield url


@pytest.fixture(scope="module")
def keyed_url(upstream: ScriptedServer) -> Iterator[str]:
    with serving(upstream.url, "--api-key", "k") as url:
        yield url


def ask(
    url: str, path: str, headers: dict[str, str] | None = None, method: str = "GET", body: Any = None
) -> tuple[int, HTTPMessage, str]:
    return send(url, path, body, headers, method)


def seen(upstream: ScriptedServer, mark: str) -> list[tuple[str, dict[str, str], Any]]:
    """Return the requests with a mark, without the requests of server detection."""
    return [each for each in upstream.requests if each[1].get("x-mark") == mark]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "127.0.0.1:1"}, 200),
        ({"Host": "LOCALHOST"}, 200),
        ({"Host": "[::1]:8090"}, 200),
        ({"Host": "[::1"}, 421),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.localhost"}, 421),
        ({"Host": "evil.com@127.0.0.1"}, 421),
        ({"Host": "127.0.0.1.evil.com"}, 421),
        ({"Host": "127.0.0.1:1/x"}, 421),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
        ({"Origin": PAGE}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.localhost"}, 403),
        ({"Origin": "https://allowed.example"}, 200),
        ({"Origin": "https://allowed.example.evil"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://allowed.example"}, 200),
    ],
)
def test_pages_are_rejected_unless_allowed(url, headers, status):
    """A page can neither send requests nor rebind its name to this machine."""
    for method, path, body in (("GET", MODELS, None), ("POST", CHAT, {"model": "m", "messages": ASK, "tools": TOOLS})):
        assert ask(url, path, headers, method, body)[0] == status


@pytest.mark.parametrize("text", ["", 'trusted-host = "llm.example"', 'trusted-host = ["llm.example"]'])
def test_trusted_host_is_served(upstream, tmp_path, text):
    """With and without a port, in any case; other names are still rejected."""
    file = tmp_path / "serve.toml"
    file.write_text(text)
    with serving(
        f"{upstream.url}/v1", *(("--config", str(file)) if text else ("--trusted-host", "llm.example"))
    ) as url:
        found = [ask(url, MODELS, {"Host": host})[0] for host in ("LLM.example", "llm.example:443", "x.llm.example")]
    assert found == [200, 200, 421]


def test_rejected_page_gets_allow_origin_advice(url):
    assert f"--allow-origin {PAGE}" in ask(url, MODELS, {"Origin": PAGE})[2]


def test_only_allowed_page_gets_cors_headers(url):
    """Its browser sends a preflight without a key, and gets the permission."""
    page = {"Origin": "https://allowed.example"}
    first = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    status, headers, _ = ask(url, CHAT, {**page, **first}, "OPTIONS")
    assert (status, headers["access-control-allow-headers"]) == (204, "authorization,content-type")
    status, headers, _ = ask(url, MODELS, page)
    assert (headers["access-control-allow-origin"], headers["vary"]) == ("https://allowed.example", "Origin")
    assert "access-control-allow-origin" not in ask(url, MODELS)[1]
    assert ask(url, CHAT, {"Origin": PAGE, **first}, "OPTIONS")[0] == 403


@pytest.mark.parametrize(
    "header",
    [
        "Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "X-Auth-Token", "X-Amz-Security-Token",
        "Ocp-Apim-Subscription-Key", "apikey", "X-Secret", "Proxy-Authorization", "X_API_KEY",
    ],
)  # fmt: skip
def test_client_keys_are_not_forwarded(upstream, url, header):
    """Other headers and query fields are forwarded."""
    sent = {header: "sk-secret", "X-Mark": f"key in {header}", "OpenAI-Organization": "o"}
    ask(url, f"{MODELS}?key=sk-secret&api_key=sk-secret&limit=3", sent)
    ask(url, CHAT, sent, "POST", {"model": "m", "messages": ASK})
    (path, listed, _), (_, asked, _) = seen(upstream, f"key in {header}")
    assert path == f"{MODELS}?limit=3"
    for headers in (listed, asked):
        assert "sk-secret" not in str(headers)
        assert headers["openai-organization"] == "o"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models/org/m:7b", 404),
        ("GET", "/props", 404),
        ("GET", "/version", 404),
        ("POST", "/v1/embeddings", 404),
        ("POST", "/tokenize", 404),
        ("POST", "/v1/completions", 404),
        ("POST", "/api/pull", 403),
        ("DELETE", "/api/delete", 403),
        ("POST", "/api/create", 403),
        ("POST", "/props", 403),
        ("POST", "/slots/0?action=save", 403),
        ("POST", "/lora-adapters", 403),
        ("PUT", "/v1/models", 405),
        ("POST", "/v1/files", 404),
        ("POST", "/v1/v1/chat/completions", 404),
        ("DELETE", "/v1/models/m", 403),
        ("GET", "/slots", 403),
        ("GET", "/v1/models/..%2F..%2Fslots", 400),
        ("GET", "/v1/models/../../slots", 400),
        ("GET", "/v1/models/%2e%2e/slots", 400),
        ("GET", "/v1/models/..\\slots", 400),
        ("GET", "/v1/models/%252e%252e/slots", 404),
    ],
)
def test_admin_requests_are_not_passed_on(upstream, url, open_url, method, path, status):
    """By default only requests to models pass; --pass-admin passes all well-formed paths."""
    is_passed = path in ("/v1/models/org/m:7b", "/props", "/version", "/v1/embeddings", "/tokenize", "/v1/completions")
    is_passed = is_passed and status == 404
    body, mark = None if method == "GET" else {"model": "m"}, f"{method} {path}"
    answered, _, said = ask(url, path, {"X-Mark": mark}, method, body)
    assert answered == status, said
    assert ("not passed on" in said) == (not is_passed and status in (403, 404))
    assert ("Did you mean /v1/chat/completions?" in said) == ("/v1/v1" in path)
    assert len(seen(upstream, mark)) == is_passed
    if method in ("GET", "POST"):
        ask(open_url, path, {"X-Mark": f"{mark}, open"}, method, body)
        assert len(seen(upstream, f"{mark}, open")) == (status != 400)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        *((path, "POST") for path in (CHAT, "/v1/messages", "/v1/responses", "/api/chat", "/v1/embeddings")),
        ("/api/tags", "GET, HEAD"), (MODELS, "GET, HEAD"), ("/v1/responses/resp_1", "DELETE, GET, HEAD"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("end", ["", "/"])
def test_wrong_method_returns_405_with_allow(url, method, path, allowed, end):
    """For example when opened in a browser, or requested by a gateway that looks for the methods."""
    if method in allowed:
        return
    status, headers, said = ask(url, path + end, {}, method, None)
    assert (status, headers["allow"]) == (405, allowed)
    assert f"{path} only accepts {allowed.replace(', HEAD', '').replace(', ', ' and ')}, got {method}" in said
    assert isinstance(json.loads(said)["error"], str) == path.startswith("/api/")


@pytest.mark.parametrize("base", ["/", "//", "/v1/", "/v1//"])
def test_slashes_of_base_urls_change_nothing(upstream, keyed_url, base):
    """Neither the route, nor the format of errors, nor the need for a key."""
    root = base.rstrip("/")
    for path, body in (("models/", None), ("chat/completions/", {"model": "m", "messages": ASK})):
        target, key = f"{base}{path}" if root else f"{base}v1/{path}", {"X-Mark": f"{base}{path}"}
        status, headers, _ = ask(keyed_url, target, key, "GET" if body is None else "POST", body)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert ask(keyed_url, target, {**key, "X-Api-Key": "k"}, "GET" if body is None else "POST", body)[0] == 200
        assert [path for path, _, _ in seen(upstream, key["X-Mark"])] == [MODELS if body is None else CHAT]
    said = ask(keyed_url, f"{base if root else '/v1//'}messages/", {"X-Api-Key": "k"}, "POST", {"messages": 7})[2]
    assert json.loads(said)["type"] == "error"


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/v1/messages", "anthropic"), ("/api/chat", "ollama"), ("/api/pull", "ollama"), (CHAT, "openai")],
)
@pytest.mark.parametrize("key", ["k", "wrong"])
def test_rejection_uses_api_error_format(keyed_url, path, kind, key):
    """Even before routing: without the key, and for requests that are not passed on."""
    status, _, said = ask(keyed_url, path, {"X-Api-Key": key}, "PUT", {"model": "m"})
    assert status == (401 if key == "wrong" else 403 if path == "/api/pull" else 405)
    error = json.loads(said)["error"]
    assert isinstance(error, str) == (kind == "ollama")
    assert (json.loads(said).get("type") == "error") == (kind == "anthropic")
