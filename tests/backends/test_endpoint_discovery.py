"""URLs as people write them, and the detection of servers."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from adapter.backends.endpoint_discovery import (
    MAX_MODELS,
    Endpoint,
    build_api_url,
    find_api_key,
    find_endpoint,
    is_loopback_host,
    parse_ollama_host,
    sees_images,
)
from adapter.backends.prompt_discovery import PromptDiscoverer
from adapter.backends.small_model_detection import SmallModelCheck
from adapter.core.errors import TransportError, UsageError
from tests.scripted_server import as_json

PROPS = as_json(200, {"default_generation_settings": {"n_ctx": 4096}}, server="llama.cpp")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1"),
        (" localhost:8080 ", "http://localhost:8080/v1"),
        ("box", "http://box/v1"),
        ("[::1]:8080", "http://[::1]:8080/v1"),
        ("https://api.example.com/openai/v1", "https://api.example.com/openai/v1"),
        ("https://example.com/v1beta/openai", "https://example.com/v1beta/openai"),
        ("http://127.0.0.1:8080/v1/chat/completions", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:11434/api/chat", "http://127.0.0.1:11434/v1"),
        ("http://127.0.0.1:11434/api/generate", "http://127.0.0.1:11434/v1"),
        ("http://127.0.0.1:1234/api/v0", "http://127.0.0.1:1234/v1"),
        ("http://127.0.0.1:8000/v1/responses", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/messages/", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:11434/api", "http://127.0.0.1:11434/v1"),
    ],
)
def test_api_url_normalizes_urls(written, meant):
    assert build_api_url(written) == meant


@pytest.mark.parametrize(
    "written", ["", "http://", "ftp://host", "http://host:99999", "http://host:port", "http://[::1", "no url"]
)
def test_api_url_rejects_invalid_urls(written):
    with pytest.raises(UsageError, match=r"invalid server URL .*; expected a URL like http"):
        build_api_url(written)


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000"),
        (":1234", "http://127.0.0.1:1234"),
        ("box", "http://box:11434"),
        (' "box:99" ', "http://box:99"),
        ("http://box", "http://box:80"),
        ("https://box/some/path", "https://box:443"),
        ("[::]:11434", "http://[::1]:11434"),
        ("::1", "http://[::1]:11434"),
        ("box:70000", "http://box:11434"),
    ],
)
def test_ollama_host_is_parsed_like_ollama(value, url):
    assert parse_ollama_host(value) == url


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://192.168.1.5/v1", False),
        ("https://localhost.example.com/v1", False),
    ],
)
def test_is_local_only_for_this_machine(url, local):
    assert Endpoint(url).is_local is local


@pytest.mark.parametrize(
    ("path", "reply", "kind"),
    [
        ("/props", PROPS, "llama.cpp"),
        ("/props", as_json(503, {"error": {"message": "Loading model"}}, server="llama.cpp"), "llama.cpp"),
        ("/api/version", as_json(200, {"version": "0.12.6"}), "ollama"),
        ("/api/extra/version", as_json(200, {"result": "KoboldCpp", "version": "1.99"}), "koboldcpp"),
        ("/api/v0/models", as_json(200, {"data": []}), "lmstudio"),
        ("/get_model_info", as_json(200, {"model_path": "x"}), "sglang"),
        ("/version", as_json(200, {"version": "0.11.0"}), "vllm"),
        ("/v1/internal/model/info", as_json(200, {"model_name": "x"}), "textgen"),
        ("/v1/models", as_json(200, {"data": []}), "openai"),
    ],
)
def test_server_kind_is_detected_by_its_own_path(scripted, path, reply, kind):
    scripted.on(path, reply)
    assert find_endpoint(scripted.url, environ={}) == Endpoint(f"{scripted.url}/v1", kind)


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OLLAMA_HOST"])
def test_environment_variable_selects_the_server(scripted, variable):
    scripted.on("/api/version", as_json(200, {"version": "0.12.6"}))
    assert find_endpoint(environ={variable: scripted.url}, ports={}).kind == "ollama"


def test_argument_overrides_the_environment(scripted):
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9", "OLLAMA_HOST": "127.0.0.1:9"}
    assert find_endpoint(scripted.url, environ=environ).base_url == f"{scripted.url}/v1"


@pytest.fixture
def free_port():
    """A port that is not in use, and stays reserved."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_default_ports_are_probed_in_order(scripted, free_port):
    scripted.on("/props", PROPS)
    ports = {free_port: "nobody", int(scripted.url.rpartition(":")[2]): "llama.cpp"}
    assert find_endpoint(environ={"OLLAMA_HOST": f":{free_port}"}, ports=ports).kind == "llama.cpp"


def test_missing_server_error_lists_the_ports(free_port):
    with pytest.raises(TransportError) as caught:
        find_endpoint(environ={}, ports={free_port: "llama.cpp"})
    assert f"{free_port} llama.cpp" in str(caught.value)
    assert "ollama serve" in str(caught.value)


def test_unreachable_url_error_names_the_environment_variable(free_port):
    with pytest.raises(TransportError, match=r"\(from OPENAI_BASE_URL\)"):
        find_endpoint(environ={"OPENAI_BASE_URL": f"127.0.0.1:{free_port}"})


@pytest.mark.parametrize(
    ("kind", "path", "body", "sees"),
    [
        ("llama.cpp", "/props", {"modalities": {"vision": True, "audio": False}}, True),
        ("llama.cpp", "/props", {"modalities": {"vision": False, "audio": True}}, False),
        ("llama.cpp", "/props", {}, None),
        ("ollama", "/api/show", {"capabilities": ["completion", "vision"]}, True),
        ("ollama", "/api/show", {"capabilities": ["completion", "tools"]}, False),
        ("ollama", "/api/show", {"error": "model 'm' not found"}, None),
        ("lmstudio", "/api/v0/models", {"data": [{"id": "n", "type": "llm"}, {"id": "m", "type": "vlm"}]}, True),
        ("lmstudio", "/api/v0/models", {"data": [{"id": "n", "type": "vlm"}, {"id": "m", "type": "llm"}]}, False),
        ("lmstudio", "/api/v0/models", {"data": [{"id": "n", "type": "vlm"}]}, None),
        ("vllm", "/version", {"version": "0.11.0"}, None),
    ],
)
def test_sees_images_is_read_from_the_server(scripted, kind, path, body, sees):
    """Each kind of server has its own field; a missing one gives None."""
    scripted.on(path, as_json(200, body))
    assert sees_images(Endpoint(build_api_url(scripted.url), kind), "m") is sees
    if kind == "ollama":
        assert scripted.bodies(path) == [{"model": "m"}]


def test_caches_of_model_names_are_bounded(scripted):
    """Clients can invent any number of names."""
    endpoint = Endpoint(build_api_url(scripted.url), "ollama")
    prompts, guides = PromptDiscoverer(replace(endpoint, kind="openai")), SmallModelCheck(endpoint, "auto")
    for number in range(MAX_MODELS + 10):
        assert prompts.discover(f"made up {number}").template_prompt is None
        assert guides.find_guided_choice(f"made up {number}") is None
    assert len(prompts._found) == len(guides._known) == 10


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        *((name, True) for name in ("127.0.0.1", "localhost", "LOCALHOST", "localhost.", "x.localhost", "127.8.8.8")),
        *((name, True) for name in ("[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "127.1", "2130706433", "0x7f.1")),
        *((name, False) for name in ("api.example.com", "192.168.1.5", "localhost.example.com", "127.0.0.1.nip.io")),
        *((name, False) for name in ("10.0.0.1", "[2606:4700::1111]", "128.0.0.1", "mylocalhost")),
    ],
)
def test_servers_on_this_machine_never_get_the_key(monkeypatch, host, is_local):
    """In every spelling, such as the 0.0.0.0 that vLLM prints."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert find_api_key(Endpoint(f"http://{host}:8000/v1")) == (None if is_local else "key")


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "localhost", "::1", "127.1", "::ffff:127.0.0.1")),
        *((host, False) for host in ("0.0.0.0", "::", "0", "::ffff:0.0.0.0", "", "192.168.1.5", "example.com")),
    ],
)
def test_server_that_listens_on_all_addresses_is_public(host, is_loopback):
    """A client reaches this machine at 0.0.0.0, but others reach a server that listens on it."""
    assert is_loopback_host(host) == is_loopback
