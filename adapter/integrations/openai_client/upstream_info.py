"""Query the server of a wrapped client: its kind, its profile, the chat template and the context size."""

from __future__ import annotations

import asyncio
import logging
import math
import time
import weakref
from functools import cached_property
from typing import Any

from adapter.backends.model_options import ModelOptions, ServerInfo
from adapter.backends.template_files import TemplateWorker
from adapter.integrations.openai_client.http_exchange import OpenAIExchange, is_chat
from adapter.protocols.sse import read_json_or_none
from adapter.protocols.token_budgets import AUTO
from adapter.protocols.translation_options import TranslationOptions
from adapter.server.response_store import ResponseStore

_log = logging.getLogger("adapter")


class UpstreamInfo:
    """Detects the options for a wrapped client's server. The server is queried before the first request that needs it,
    and once for each model."""

    def __init__(
        self, base_url: str, options: TranslationOptions, profile: str, template: TemplateWorker | None
    ) -> None:
        self._options, self.template = options, template
        self.detected = ModelOptions(base_url, options, profile, template, _log.info)
        is_set = options.constraints.mode == "off" and profile == "none" and not options.prompt.may_use_template
        is_set = is_set and options.budgets.context != AUTO and options.budgets.reasoning is None
        self._info = ServerInfo(None, options) if is_set else None
        self._expires_at = math.inf

    def create_exchange(self, http: Any, http_request: Any, options: TranslationOptions) -> OpenAIExchange:
        splits_reasoning = options.kind in ("llama.cpp", "ollama")
        return OpenAIExchange(http, http_request, options, lambda: self._store, splits_reasoning=splits_reasoning)

    @cached_property
    def _store(self) -> ResponseStore:
        """The store of responses that later requests may refer to, in memory."""
        store = ResponseStore()
        weakref.finalize(self, store.close)
        return store

    def find_options(self, http_request: Any) -> TranslationOptions:
        if not is_chat(http_request):
            return self._options
        info = self._info
        if info is None or time.monotonic() > self._expires_at:
            info = self._info = self.detected.detect(info)
            self._expires_at = time.monotonic() + info.lifetime_s
        return self.detected.complete(info.options, read_json_or_none(http_request.content))

    async def find_options_async(self, http_request: Any) -> TranslationOptions:
        info, body = self._info, read_json_or_none(http_request.content)
        is_valid = info is not None and time.monotonic() <= self._expires_at
        if info is not None and is_valid and self.detected.is_known(info.options, body):
            return self.find_options(http_request)
        return await asyncio.to_thread(self.find_options, http_request)
