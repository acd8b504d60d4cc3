"""Find a model server and detect its kind.

The URL comes from an argument, ``OPENAI_BASE_URL`` or ``OLLAMA_HOST``. It may lack the scheme and ``/v1``. Without a
URL, the default local ports are probed. Each kind of server is detected by a path served by no other kind.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from adapter.core.errors import TransportError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.protocols.sse import read_json_or_none

Kind: TypeAlias = Literal["llama.cpp", "ollama", "lmstudio", "vllm", "sglang", "koboldcpp", "textgen", "openai"]
"""Kind of a server. A server of the kind ``openai`` has only an OpenAI-compatible API."""

LOCAL_PORTS: dict[int, str] = {
    8080: "llama.cpp",
    11434: "Ollama",
    1234: "LM Studio",
    8000: "vLLM",
    30000: "SGLang",
    5001: "KoboldCpp",
    5000: "text-generation-webui",
}
"""Default ports, and the names of the servers that use them."""

START_SERVER = "Start a model server (`llama-server -m MODEL.gguf --port 8080`, or `ollama serve`)"
"""Advice that errors give if no model server answers."""

MAX_MODELS = 256
"""Maximum number of model names in a cache. Clients choose the names, so a full cache is cleared."""
MAX_RESPONSE_BYTES = 8_000_000
"""Maximum size of a response that describes the server or its models."""
DETECTION_TIMEOUT_S = 1.0
"""Maximum time to wait for each answer while the kind of a server is detected, in seconds."""
QUERY_TIMEOUT_S = 2.0
"""Maximum time to wait for an answer that describes the server or its models, in seconds."""


_LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model server. ``base_url`` is the URL of its OpenAI-compatible API, without a trailing slash."""

    base_url: str
    kind: Kind = "openai"

    @property
    def root(self) -> str:
        """The server's address without ``/v1``."""
        return re.sub(r"/v\d+$", "", self.base_url)

    @property
    def display_url(self) -> str:
        """The base URL without its password, for messages."""
        return remove_password(self.base_url)

    @property
    def is_local(self) -> bool:
        """True if the server is on this machine, and reached without a proxy."""
        return is_loopback_host(self._host) or is_unspecified_host(self._host)

    @property
    def _host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    def build_url(self, path: str) -> str:
        """Return the URL of a path such as ``/v1/models`` or ``/props``."""
        return self.base_url + path[3:] if path.startswith("/v1/") else self.root + path


def is_loopback_host(host: str) -> bool:
    """Return whether only this machine can reach ``host``, a name or an IP address in any notation."""
    name, address = host.lower().removesuffix("."), _parse_address(host)
    return name in _LOCAL_NAMES or name.endswith(".localhost") or (address is not None and address.is_loopback)


def is_unspecified_host(host: str) -> bool:
    """Return whether ``host`` is ``0.0.0.0`` or ``::``.

    For a client, this address means its own machine. A server that listens on it can be reached from everywhere.
    """
    address = _parse_address(host)
    return address is not None and address.is_unspecified


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that ``host`` spells in any notation, or None if ``host`` is a name."""
    host = host.removesuffix(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            address = ipaddress.ip_address(socket.inet_aton(host))  # such as 127.1 and 2130706433
        except OSError:
            return None
    return getattr(address, "ipv4_mapped", None) or address


def find_api_key(endpoint: Endpoint) -> str | None:
    """Return ``OPENAI_API_KEY``, or None for a server on this machine, which must never get the user's key."""
    return None if endpoint.is_local else os.environ.get("OPENAI_API_KEY") or None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A server's answer. ``server`` is the header ``Server``, and ``body`` the decoded JSON, or None if the answer is
    not JSON."""

    status: int
    server: str
    body: Json


def find_endpoint(
    base_url: str | None = None, *, environ: Mapping[str, str] = os.environ, ports: Mapping[int, str] = LOCAL_PORTS
) -> Endpoint:
    """Return the server at ``base_url``. If it is None, return the server at the URL in the environment, or else the
    first server on a default local port.

    Raises UsageError for an invalid URL, and TransportError if no server answers.
    """
    requested = base_url or environ.get("OPENAI_BASE_URL")
    if requested:
        url = build_api_url(requested)
        if kind := detect_server_kind(url):
            return Endpoint(url, kind)
        source = "" if base_url else " (from OPENAI_BASE_URL)"
        name = requested.strip()
        if re.fullmatch(r"[\w-]+", name) and name != "localhost":  # may be a host name
            raise UsageError(
                f"{name!r}{source} is not a URL, and no server answers at {url}; expected a URL like "
                "http://127.0.0.1:8080/v1"
            )
        raise TransportError(f"nothing answers at {remove_password(url)}{source}. {START_SERVER}, or pass another URL.")
    # OLLAMA_HOST is often set only for the server, so it is tried but not required.
    hosts = [f"http://127.0.0.1:{port}" for port in ports]
    if "OLLAMA_HOST" in environ:
        hosts.insert(0, parse_ollama_host(environ["OLLAMA_HOST"]))
    for host in hosts:
        url = build_api_url(host)
        if kind := detect_server_kind(url):
            return Endpoint(url, kind)
    tried = ", ".join(f"{port} {name}" for port, name in ports.items())
    raise TransportError(
        f"no model server found on this machine (tried ports: {tried}). {START_SERVER}, or pass its URL."
    )


_HOST = re.compile(r"[\w.:%-]+")
"""A host name, in any alphabet, or an IP address."""


def build_api_url(url: str) -> str:
    """Normalize a URL entered by a user to the base URL of the OpenAI-compatible API."""
    url = url.strip().strip("\"'")
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        is_host = bool(_HOST.fullmatch(parts.hostname or ""))
        is_address = parts.scheme in ("http", "https") and is_host and parts.port != 0
    except ValueError:  # an unclosed bracket, an invalid port
        is_address = False
    if not is_address:
        raise UsageError(f"invalid server URL {remove_password(url)!r}; expected a URL like http://127.0.0.1:8080/v1")
    # Accept the URL of a request, and the URLs of Ollama's and LM Studio's own APIs.
    path = re.sub(
        r"/(chat/completions|completions|responses|messages|models|embeddings|api(/(chat|generate|tags|v0))?)$",
        "",
        parts.path.rstrip("/"),
    )
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def remove_password(url: str) -> str:
    """Return ``url`` without user name and password."""
    return re.sub(r"://[^/@\s]*@", "://", url)


def parse_ollama_host(host: str) -> str:
    """Parse ``OLLAMA_HOST`` as Ollama's envconfig does, and return the server's address.

    ``host`` is a host, a port (``:11434``), both, an IPv6 address without brackets, or a URL. A URL without a port has
    the default port of its scheme. ``0.0.0.0``, on which a server may listen, becomes 127.0.0.1.
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


# ----------------------------------------------------------------- detection

_Test: TypeAlias = Callable[[HttpAnswer], bool]


def _has(key: str) -> _Test:
    return lambda answer: isinstance(answer.body, dict) and key in answer.body


# Probed in this order. KoboldCpp comes before Ollama, whose API it imitates.
_SIGNS: tuple[tuple[Kind, str, _Test], ...] = (
    ("llama.cpp", "/props", lambda answer: answer.server == "llama.cpp" or _has("default_generation_settings")(answer)),
    ("koboldcpp", "/api/extra/version", _has("result")),
    ("ollama", "/api/version", _has("version")),
    ("lmstudio", "/api/v0/models", _has("data")),
    ("sglang", "/get_model_info", _has("model_path")),
    ("vllm", "/version", _has("version")),
    ("textgen", "/v1/internal/model/info", _has("model_name")),
)


def detect_server_kind(base_url: str, timeout_s: float = DETECTION_TIMEOUT_S) -> Kind | None:
    """Return the kind of the server, or None if no HTTP server answers the requests within ``timeout_s`` each."""
    root = Endpoint(base_url).root
    for kind, path, is_sign in _SIGNS:
        answer = get_json(root + path, timeout_s=timeout_s)
        if answer is None:
            return None
        # llama.cpp answers 503 while it loads.
        if (answer.status == 200 or answer.server == "llama.cpp") and is_sign(answer):
            return kind
    return "openai"


def get_json(url: str, body: Json = None, *, timeout_s: float = QUERY_TIMEOUT_S) -> HttpAnswer | None:
    """Send a GET request, or a POST request if there is a ``body``. Return the answer, or None if no HTTP answer
    arrives in time.

    Proxies and redirects are ignored. The user's key is sent, unless the server is on this machine.
    """
    parts, key = urlsplit(url), find_api_key(Endpoint(url))
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        method, sent = ("GET", None) if body is None else ("POST", json.dumps(body))
        connection.request(method, parts.path or "/", sent, headers)
        response = connection.getresponse()
        text = response.read(MAX_RESPONSE_BYTES)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return HttpAnswer(response.status, response.getheader("Server", ""), read_json_or_none(text))


def parse_json_object(answer: HttpAnswer | None) -> JsonObject:
    """Return the JSON object of a successful answer, or an empty object."""
    return answer.body if answer is not None and answer.status == 200 and isinstance(answer.body, dict) else {}


def get_object(url: str, body: Json = None, *, timeout_s: float = QUERY_TIMEOUT_S) -> JsonObject:
    """Send a request like `get_json`. Return the JSON object of an answer with status 200, or an empty object."""
    return parse_json_object(get_json(url, body, timeout_s=timeout_s))


def list_model_ids(endpoint: Endpoint) -> list[str]:
    """Return the names of the models listed by a server."""
    entries = get_object(f"{endpoint.base_url}/models").get("data")
    return [
        str(each["id"])
        for each in (entries if isinstance(entries, list) else ())
        if isinstance(each, dict) and each.get("id")
    ]


def find_first_model(endpoint: Endpoint) -> str:
    """Return the name of the first model listed by a server, or ""."""
    return next(iter(list_model_ids(endpoint)), "")


def count_tokens(text: str, endpoint: Endpoint) -> int:
    """Count the tokens of ``text`` with the tokenizer of the model that llama.cpp has loaded at ``endpoint``."""
    with closing(http.client.HTTPConnection(urlsplit(endpoint.base_url).netloc, timeout=60)) as connection:
        connection.request("POST", "/tokenize", json.dumps({"content": text}), {"Content-Type": "application/json"})
        return len(json.load(connection.getresponse())["tokens"])


# ---------------------------------------------------------------- properties

OF_MODEL = "id="
"""A key for `query_property` that selects the model's entry in a list of models."""
_IMAGES: dict[Kind, tuple[str | int, ...]] = {
    "llama.cpp": ("/props", "modalities", "vision"),
    "ollama": ("/api/show", "capabilities"),
    "lmstudio": ("/api/v0/models", "data", OF_MODEL, "type"),
}


def query_property(endpoint: Endpoint, where: Mapping[Kind, tuple[str | int, ...]], model: str | None = None) -> Json:
    """Query a property of the server or ``model``. Return None if the server does not report it.

    For each kind of server, ``where`` has the path of the request and the keys that lead to the property in the JSON
    answer. A key is a field's name, a list index, or `OF_MODEL`.
    """
    if endpoint.kind not in where:
        return None
    path, *keys = where[endpoint.kind]
    value: Json = get_object(f"{endpoint.root}{path}", {"model": model} if path == "/api/show" else None)
    for key in keys:
        match value:
            case dict():
                value = value.get(key)
            case list() if key == OF_MODEL:
                value = next((each for each in value if isinstance(each, dict) and each.get("id") == model), None)
            case list() if isinstance(key, int) and key < len(value):
                value = value[key]
            case _:
                return None
    return value


def sees_images(endpoint: Endpoint, model: str) -> bool | None:
    """Return whether the model accepts images, or None if the server does not report it."""
    match query_property(endpoint, _IMAGES, model):
        case bool(sees):
            return sees
        case list(capabilities):
            return "vision" in capabilities
        case str(kind):
            return kind == "vlm"
    return None
