"""Where a model server listens and what kind it is.

A URL is taken as people write it (with or without scheme and ``/v1``), from the
argument, from ``OPENAI_BASE_URL`` or from ``OLLAMA_HOST``; else the usual local
ports are asked. The kind is told by the few addresses that only that server has.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from adapter.core.errors import TransportError, UsageError
from adapter.core.events import Json
from adapter.protocols.sse import read_json

Kind: TypeAlias = Literal["llama.cpp", "ollama", "lmstudio", "vllm", "sglang", "koboldcpp", "textgen", "openai"]
"""``openai`` is any server that has nothing but the OpenAI-compatible interface."""

LOCAL_PORTS: dict[int, str] = {
    8080: "llama.cpp",
    11434: "Ollama",
    1234: "LM Studio",
    8000: "vLLM",
    30000: "SGLang",
    5001: "KoboldCpp",
    5000: "text-generation-webui",
}
"""The ports on which these servers listen unless told otherwise."""

START_ONE = "Start one (`llama-server -m MODEL.gguf --port 8080`, or `ollama serve`)"

MAX_MODELS = 256
"""Names of models of which something is kept: clients choose them. With one more all are forgotten, and asked again."""
MAX_SAID_BYTES = 8_000_000
"""Of what a server says about itself and its models."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """``base_url`` is that of the OpenAI-compatible interface, without a final slash."""

    base_url: str
    kind: Kind = "openai"

    @property
    def root(self) -> str:
        """The server's own address: what stands before ``/v1``."""
        return re.sub(r"/v\d+$", "", self.base_url)

    @property
    def display_url(self) -> str:
        """The base URL for messages: without a password in it."""
        return without_password(self.base_url)

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine, reached without any proxy."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")


def api_key_for(endpoint: Endpoint) -> str | None:
    """``OPENAI_API_KEY``; a server on this machine never sees it."""
    return None if endpoint.is_local else os.environ.get("OPENAI_API_KEY") or None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server said to one GET. ``body`` is None where it is not JSON."""

    status: int
    server: str
    body: Json


def find_endpoint(
    base_url: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    ports: Mapping[int, str] = LOCAL_PORTS,
    timeout_s: float = 1.0,
) -> Endpoint:
    """The server at ``base_url``, else at the environment's URL, else the first on a usual local port.

    Raises UsageError for a URL that is none, TransportError where nothing answers.
    """
    stated = base_url or environ.get("OPENAI_BASE_URL")
    if stated:
        url = api_url(stated)
        if kind := detect_server_kind(url, timeout_s):
            return Endpoint(url, kind)
        source = "" if base_url else " (from OPENAI_BASE_URL)"
        if re.fullmatch(r"[\w-]+", stated.strip()) and stated.strip() != "localhost":  # perhaps a machine's name
            raise UsageError(
                f"{stated.strip()!r}{source} is no URL, and no server answers at {url}; expected something like "
                "http://127.0.0.1:8080/v1"
            )
        raise TransportError(f"Nothing answers at {without_password(url)}{source}. {START_ONE}, or give another URL.")
    # OLLAMA_HOST is often set for the server's sake only: a hint, not an order.
    hosts = [f"http://127.0.0.1:{port}" for port in ports]
    if "OLLAMA_HOST" in environ:
        hosts.insert(0, ollama_url(environ["OLLAMA_HOST"]))
    for host in hosts:
        url = api_url(host)
        if kind := detect_server_kind(url, timeout_s):
            return Endpoint(url, kind)
    tried = ", ".join(f"{port} {name}" for port, name in ports.items())
    raise TransportError(f"No model server found on this machine (asked ports: {tried}). {START_ONE}, or give its URL.")


_HOST = re.compile(r"[\w.:%-]+")
"""A name, in any alphabet, or an IP address."""


def api_url(url: str) -> str:
    """The base URL of the OpenAI-compatible interface, from a URL as people write it."""
    url = url.strip().strip("\"'")
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        is_host = bool(_HOST.fullmatch(parts.hostname or ""))
        is_address = parts.scheme in ("http", "https") and is_host and parts.port != 0
    except ValueError:  # an unclosed bracket, a port that is none
        is_address = False
    if not is_address:
        raise UsageError(
            f"{without_password(url)!r} is no URL of a server; expected something like http://127.0.0.1:8080/v1"
        )
    # A pasted request address, and Ollama's own interface, stand for the server they belong to.
    path = re.sub(r"/(chat/completions|completions|models|api(/chat)?)$", "", parts.path.rstrip("/"))
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def without_password(url: str) -> str:
    return re.sub(r"://[^/@\s]*@", "://", url)


def ollama_url(host: str) -> str:
    """The server's address from ``OLLAMA_HOST``, read as Ollama's envconfig does.

    It may be a host, a port (``:11434``), both, a bare IPv6 address, or a URL,
    whose default port is then the scheme's; ``0.0.0.0`` is where the server
    listens and 127.0.0.1 where it is reached.
    """
    scheme, separator, rest = host.strip(" \"'").rpartition("://")
    scheme = scheme if separator else "http"
    rest = rest.partition("/")[0]
    default_port = {"http": "80", "https": "443"}[scheme] if separator and scheme in ("http", "https") else "11434"
    match = re.fullmatch(r"(\[[^\]]*\]|[^:]*):(\d*)", rest)
    name, port = (match[1], match[2]) if match else (rest, "")
    name = name.strip("[]") or "127.0.0.1"
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port if port and int(port) < 65536 else default_port}"


# ----------------------------------------------------------------- recognition

_Test: TypeAlias = Callable[[HttpAnswer], bool]


def _has(key: str) -> _Test:
    return lambda answer: isinstance(answer.body, dict) and key in answer.body


# Asked in this order. KoboldCpp comes before Ollama, whose interface it imitates.
_SIGNS: tuple[tuple[Kind, str, _Test], ...] = (
    ("llama.cpp", "/props", lambda answer: answer.server == "llama.cpp" or _has("default_generation_settings")(answer)),
    ("koboldcpp", "/api/extra/version", _has("result")),
    ("ollama", "/api/version", _has("version")),
    ("lmstudio", "/api/v0/models", _has("data")),
    ("sglang", "/get_model_info", _has("model_path")),
    ("vllm", "/version", _has("version")),
    ("textgen", "/v1/internal/model/info", _has("model_name")),
)


def detect_server_kind(base_url: str, timeout_s: float = 1.0) -> Kind | None:
    """Which server this is; None if nothing that speaks HTTP answers. A few GETs, each within ``timeout_s``."""
    root = Endpoint(base_url).root
    for kind, path, is_sign in _SIGNS:
        answer = get_json(root + path, timeout_s)
        if answer is None:
            return None
        # llama.cpp says 503 while it loads, and is llama.cpp all the same.
        if (answer.status == 200 or answer.server == "llama.cpp") and is_sign(answer):
            return kind
    return "openai"


def get_json(url: str, timeout_s: float, body: Json = None) -> HttpAnswer | None:
    """One GET, or POST of ``body``, without proxies or redirects; None if no answer came within ``timeout_s``.

    A server that is not on this machine is shown the user's key, as it is with every request.
    """
    parts, key = urlsplit(url), api_key_for(Endpoint(url))
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        method, sent = ("GET", None) if body is None else ("POST", json.dumps(body))
        connection.request(method, parts.path or "/", sent, headers)
        response = connection.getresponse()
        text = response.read(MAX_SAID_BYTES)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    try:
        content = read_json(text)
    except ValueError:
        content = None
    return HttpAnswer(response.status, response.getheader("Server", ""), content)


def first_model(endpoint: Endpoint, timeout_s: float = 2.0) -> str:
    """The name of the first model that a server lists; "" where it lists none."""
    answer = get_json(f"{endpoint.base_url}/models", timeout_s)
    listed = answer.body.get("data") if answer is not None and isinstance(answer.body, dict) else None
    names = [str(each["id"]) for each in listed or () if isinstance(each, dict) and each.get("id")]
    return next(iter(names), "")


def count_tokens(text: str, endpoint: Endpoint) -> int:
    """The exact count, by the tokenizer of the model that a llama.cpp server at ``endpoint`` has loaded."""
    with closing(http.client.HTTPConnection(urlsplit(endpoint.base_url).netloc, timeout=60)) as connection:
        connection.request("POST", "/tokenize", json.dumps({"content": text}), {"Content-Type": "application/json"})
        return len(json.load(connection.getresponse())["tokens"])


# -------------------------------------------------------------------- images


_SEES: dict[Kind, tuple[str, Callable[[Json, str], Json]]] = {
    "llama.cpp": ("/props", lambda body, _model: body["modalities"]["vision"]),
    "ollama": ("/api/show", lambda body, _model: "vision" in body["capabilities"]),
    "lmstudio": (
        "/api/v0/models",
        lambda body, model: next(entry["type"] == "vlm" for entry in body["data"] if entry["id"] == model),
    ),
}


def sees_images(endpoint: Endpoint, model: str, timeout_s: float = 2.0) -> bool | None:
    """Whether the model takes images; None where the server does not tell."""
    if endpoint.kind not in _SEES:
        return None
    path, read = _SEES[endpoint.kind]
    asked = {"model": model} if endpoint.kind == "ollama" else None
    answer = get_json(endpoint.root + path, timeout_s, asked)
    try:
        sees = read(answer.body, model) if answer else None
    except (KeyError, TypeError, AttributeError, StopIteration):
        return None
    return sees if isinstance(sees, bool) else None
