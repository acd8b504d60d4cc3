"""Run llama.cpp inside this process, so that the user need not install or start a server.

The package ``xllamacpp`` (100 MB), which the ``embedded`` extra installs, is llama.cpp's HTTP server as a Python wheel.
It listens on a free port of 127.0.0.1, and clients use it like any server. `adapter.backends.builtin_model` provides
the default weights.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import TracebackType
from typing import Self

from adapter.backends.endpoint_discovery import Endpoint, get_json
from adapter.core.errors import TransportError, UsageError
from adapter.core.install_advice import build_install_command

INSTALL = build_install_command("embedded")

_HUGGING_FACE = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+?)(?::(?P<quant>[\w.-]+))?")


def is_available() -> bool:
    """Return whether the embedded engine is installed, without importing it."""
    return importlib.util.find_spec("xllamacpp") is not None


def is_gguf(name: str) -> bool:
    """Return whether ``name`` names a GGUF file for the embedded engine, rather than a model on a server."""
    return name.lower().endswith(".gguf")


class EmbeddedServer:
    """A llama.cpp server for one GGUF file, running inside the ``with`` block.

    ``context_size`` and ``max_tokens``, the maximum length of an answer (None for no limit), are numbers of tokens. On
    a busy machine, ``threads=1`` is fastest, because several threads wait for each other. ``chat_template`` is a Jinja
    template that replaces the model's template. Entering the block raises UsageError if the file is missing or not a
    GGUF file, and TransportError if llama.cpp is missing or cannot load it.
    """

    def __init__(
        self,
        weights: Path | str,
        *,
        context_size: int = 4096,
        max_tokens: int | None = None,
        threads: int = 1,
        chat_template: str | None = None,
    ) -> None:
        self.weights = weights
        self._context_size = context_size
        self._max_tokens = max_tokens
        self._threads = threads
        self._chat_template = chat_template
        self._server: object | None = None
        self._endpoint: Endpoint | None = None

    @property
    def endpoint(self) -> Endpoint:
        if self._endpoint is None:
            raise UsageError(
                "the embedded server is not running; start it with `with EmbeddedServer(weights) as server:`"
            )
        return self._endpoint

    def __enter__(self) -> Self:
        path = find_gguf(self.weights)
        if not is_available():
            raise TransportError(f"the embedded engine is not installed. Install it with: {INSTALL}")
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(path)
        parameters.model_alias = {path.stem}
        parameters.hostnames = ["127.0.0.1"]
        parameters.port = 0
        parameters.n_ctx = self._context_size
        if self._max_tokens is not None:
            parameters.n_predict = self._max_tokens
        parameters.n_parallel = 1
        parameters.cpuparams.n_threads = self._threads
        parameters.cpuparams_batch.n_threads = self._threads
        parameters.cache_ram_mib = 0
        parameters.offline = True
        if self._chat_template is not None:
            parameters.chat_template = self._chat_template
        parameters.ui = False
        parameters.verbosity = -1  # llama.cpp would log to the user's terminal
        try:
            server = xllamacpp.Server(parameters)
        except RuntimeError as error:
            raise TransportError(
                f"llama.cpp cannot load {path} (damaged file, unknown architecture or too little memory): {error} "
                f"For details run: llama-server -m {path}"
            ) from error
        # If llama.cpp is stopped before its main loop begins, it misses the signal and hangs. Wait for the loop, which
        # is the only part that answers /slots.
        get_json(f"{server.listening_address}/slots", timeout_s=10)
        self._server = server
        self._endpoint = Endpoint(f"{server.listening_address}/v1", "llama.cpp")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The server has no close(): it stops when the last reference to it is dropped.
        self._server = None
        self._endpoint = None


def find_gguf(reference: Path | str) -> Path:
    """Return the path of a GGUF file. Raises UsageError if it is missing or not a GGUF file."""
    path = Path(reference).expanduser()
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(4)
        if start != b"GGUF":
            raise UsageError(f"{path} is not a GGUF file: it starts with {start!r}, expected b'GGUF'")
        return path
    if isinstance(reference, str) and not is_gguf(reference) and (match := _HUGGING_FACE.fullmatch(reference)):
        # The wheel does not contain llama.cpp's downloader ("params.model.path is required").
        raise UsageError(
            f"no such file: {reference!r}. For a model on Hugging Face, let llama.cpp download and serve it: "
            f"`llama-server -hf {match[0]} --port 8080`, then pass --base-url http://127.0.0.1:8080"
        )
    present = sorted(each.name for each in path.parent.glob("*.gguf")) if path.parent.is_dir() else []
    hint = f"; the folder contains: {', '.join(present[:10])}" if present else ""
    raise UsageError(f"no such file: {path}{hint}")
