"""Addresses as people write them, and servers told apart by their answers."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from adapter.backends.endpoint_discovery import MAX_MODELS, Endpoint, api_url, find_endpoint, ollama_url, sees_images
from adapter.backends.prompt_discovery import PromptDiscoverer
from adapter.backends.small_model_check import SmallModelCheck
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
        ("http://127.0.0.1:11434/api", "http://127.0.0.1:11434/v1"),
    ],
)
def test_a_url_is_understood_as_it_is_written(written, meant):
    assert api_url(written) == meant


@pytest.mark.parametrize(
    "written", ["", "http://", "ftp://host", "http://host:99999", "http://host:port", "http://[::1", "no url"]
)
def test_what_is_no_address_is_refused(written):
    with pytest.raises(UsageError, match="is no URL of a server; expected something like http"):
        api_url(written)


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
def test_ollama_host_is_read_as_ollama_reads_it(value, url):
    assert ollama_url(value) == url


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
def test_only_this_machine_is_local(url, local):
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
def test_a_server_is_known_by_what_only_it_answers(scripted, path, reply, kind):
    scripted.on(path, reply)
    assert find_endpoint(scripted.url, environ={}) == Endpoint(f"{scripted.url}/v1", kind)


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OLLAMA_HOST"])
def test_the_environment_may_name_the_server(scripted, variable):
    scripted.on("/api/version", as_json(200, {"version": "0.12.6"}))
    assert find_endpoint(environ={variable: scripted.url}, ports={}).kind == "ollama"


def test_the_argument_comes_before_the_environment(scripted):
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9", "OLLAMA_HOST": "127.0.0.1:9"}
    assert find_endpoint(scripted.url, environ=environ).base_url == f"{scripted.url}/v1"


@pytest.fixture
def free_port():
    """Nobody answers there, and nobody else takes it meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_the_usual_ports_are_asked_in_order(scripted, free_port):
    scripted.on("/props", PROPS)
    ports = {free_port: "nobody", int(scripted.url.rpartition(":")[2]): "llama.cpp"}
    assert find_endpoint(environ={"OLLAMA_HOST": f":{free_port}"}, ports=ports).kind == "llama.cpp"


def test_no_server_at_all_says_which_ports_were_asked(free_port):
    with pytest.raises(TransportError) as caught:
        find_endpoint(environ={}, ports={free_port: "llama.cpp"})
    assert f"{free_port} llama.cpp" in str(caught.value)
    assert "ollama serve" in str(caught.value)


def test_a_dead_address_from_the_environment_is_blamed_on_it(free_port):
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
def test_servers_tell_whether_the_model_sees(scripted, kind, path, body, sees):
    """Each in its own words, about this model; silence is no answer."""
    scripted.on(path, as_json(200, body))
    assert sees_images(Endpoint(api_url(scripted.url), kind), "m") is sees
    if kind == "ollama":
        assert scripted.bodies(path) == [{"model": "m"}]


def test_names_of_models_that_clients_make_up_are_not_kept_for_ever(scripted):
    """Whatever a request calls its model is asked for, and forgotten when there are many."""
    endpoint = Endpoint(api_url(scripted.url), "ollama")
    prompts, guides = PromptDiscoverer(replace(endpoint, kind="openai")), SmallModelCheck(endpoint, "auto")
    for number in range(MAX_MODELS + 10):
        assert prompts.discover(f"made up {number}").own is None
        assert guides.assists_for(f"made up {number}") is None
    assert len(prompts._found) == len(guides._known) == 10
