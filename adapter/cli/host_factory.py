"""Build the host capabilities for a run from the user's configuration: search, docs, skills and sub-agents."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from adapter.agent.subagents import SubagentRunner
from adapter.backends.chat_client import ChatClient, Chunk, find_endpoint
from adapter.cli.config import Config, ModelTable
from adapter.cli.run_outcome import CallTally
from adapter.conversation.message_rendering import Message
from adapter.conversation.session_steps import SessionLimits
from adapter.parsing.formats import guess_format
from adapter.workspace.capabilities.host import Host
from adapter.workspace.capabilities.http_providers import HttpDocs, HttpSearch


def build_host(config: Config) -> Host:
    """Build the capabilities that the configuration defines. Raises UsageError for an invalid URL."""
    search, docs = config.search, config.docs
    return Host(
        search=search.build_provider() if search else None,
        docs=HttpDocs(docs.find_url, docs.read_url, key_variable=docs.key_variable) if docs else "embedded",
        skill_folders=tuple(config.skills.folders),
    )


def list_api_keys(host: Host) -> Iterator[str | None]:
    """Yield the API keys of the user's services, for redaction."""
    for service in (host.search, host.docs):
        if isinstance(service, HttpSearch | HttpDocs) and service.key_variable:
            yield os.environ.get(service.key_variable)


def build_subagent_runner(
    chat: ChatClient,
    format: str,
    config: Config,
    stack: ExitStack,
    limits: SessionLimits,
    tally: CallTally,
    *,
    is_own: bool,
) -> SubagentRunner:
    """Return a runner for sub-agents. They use ``chat`` or a configured model; each of these is connected on first use.

    ``is_own``: whether the session uses the model's chat template.
    """
    models = {name: stack.enter_context(_LazyChat(one, chat)) for name, one in config.models.items()}
    formats = {name: one.format or guess_format(one.model or "") or format for name, one in config.models.items()}
    return SubagentRunner(
        chat,
        format=format,
        prompt="auto" if is_own else "words",
        models=models,
        formats=formats,
        limits=limits,
        observe=lambda _task, event: tally(event),
    )


class _LazyChat:
    """A configured model that is connected on first use. If its server is down, only the sub-agents that use the model
    fail."""

    def __init__(self, model: ModelTable, session: ChatClient) -> None:
        self._model, self._session = model, session
        self._lock = threading.Lock()
        self._chat: ChatClient | None = None

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:
        with self._lock:
            if self._chat is None:
                url = self._model.base_url
                endpoint = find_endpoint(url) if url else self._session.endpoint
                self._chat = ChatClient(endpoint, self._model.model)
        return self._chat.stream(messages, stop=stop)

    def __enter__(self) -> _LazyChat:
        return self

    def __exit__(self, *_: object) -> None:
        if self._chat is not None:
            self._chat.close()
