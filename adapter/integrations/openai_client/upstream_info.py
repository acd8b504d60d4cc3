"""Query the server of a wrapped client: its kind, its profile, the chat template and the context size."""

from __future__ import annotations

import asyncio
import logging
import weakref
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from adapter.backends.chat_client import build_constraint_fields
from adapter.backends.context_size import query_context_size
from adapter.backends.control_token_discovery import discover_control_tokens
from adapter.backends.endpoint_discovery import Endpoint, detect_server_kind
from adapter.backends.profiles import build_setup_lookup
from adapter.backends.prompt_discovery import PromptDiscoverer
from adapter.backends.small_model_check import SmallModelCheck
from adapter.backends.template_files import TemplateWorker
from adapter.integrations.openai_client.exchange import OpenAIExchange, is_chat
from adapter.protocols.budgets import AUTO
from adapter.protocols.sse import read_json_or_none
from adapter.protocols.translation_options import (
    TranslationOptions,
)
from adapter.server.response_store import ResponseStore

_log = logging.getLogger("adapter")


class UpstreamInfo:
    """Information about the server, queried before the first request that needs it, and once for each model."""

    def __init__(
        self, base_url: str, options: TranslationOptions, profile: str, template: TemplateWorker | None
    ) -> None:
        self._base_url, self._options, self._profile = base_url, options, profile
        self.template = template
        self._prompts: PromptDiscoverer | None = None
        self._small_models: SmallModelCheck | None = None
        self._splits_reasoning = False  # the server separates reasoning from content
        is_set = options.constraints.mode == "off" and profile == "none" and not options.prompt.may_be_own
        self._is_known = is_set and options.budgets.context != AUTO

    def create_exchange(self, http: Any, http_request: Any, options: TranslationOptions) -> OpenAIExchange:
        return OpenAIExchange(http, http_request, options, lambda: self._store, splits_reasoning=self._splits_reasoning)

    @cached_property
    def _store(self) -> ResponseStore:
        """Stores responses in memory that later requests may refer to."""
        store = ResponseStore()
        weakref.finalize(self, store.close)
        return store

    def find_options(self, http_request: Any) -> TranslationOptions:
        if not is_chat(http_request):
            return self._options
        if not self._is_known:
            if kind := detect_server_kind(self._base_url):
                endpoint = Endpoint(self._base_url, kind)
                self._options = replace(self._options, kind=kind)
                self._splits_reasoning = kind in ("llama.cpp", "ollama")
                if self._options.constraints.mode != "off":
                    self._options = self._options.with_constraints(enforce=partial(build_constraint_fields, kind))
                setup_of, notes = build_setup_lookup(self._profile, endpoint)
                tokens = discover_control_tokens(endpoint, self.template)
                self._options = replace(self._options.with_prompt(control_tokens=tokens), setup_of=setup_of)
                if self._options.budgets.context == AUTO:
                    budgets = self._options.budgets.with_context_size(query_context_size(endpoint).tokens)
                    self._options = replace(self._options, budgets=budgets)
                self._prompts = PromptDiscoverer(endpoint, self.template) if self._options.prompt.may_be_own else None
                self._small_models = SmallModelCheck(endpoint, self._options.guide)
                for note in notes:
                    _log.info(note)
            self._is_known = True
        if self._prompts is None:
            return self._options
        model = _find_model(http_request)
        found = self._prompts.discover(model)
        small = self._small_models.find_assist(model) if self._small_models and found.own is None else None
        detected = found.recognized
        if detected is not None and self._options.prompt.from_template:
            detected = detected.from_template()
        if detected is not None and (detected.by == "template" or self._options.prompt.from_template):
            _log.info("format: %s", detected)
        recognized = detected.certain if detected is not None else None
        options = self._options.with_prompt(own=found.own, template=found.template, recognized=recognized)
        return replace(options, assists=small)

    async def find_options_async(self, http_request: Any) -> TranslationOptions:
        is_ready = self._is_known and self._prompts is None
        return self._options if is_ready else await asyncio.to_thread(self.find_options, http_request)


def _find_model(http_request: Any) -> str:
    body = read_json_or_none(http_request.content)
    return str(body.get("model") or "") if isinstance(body, dict) else ""
