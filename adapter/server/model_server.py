"""Connect to the model server, and detect the prompt, format and constraints for each of its models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from adapter.backends.context_size import query_context_size
from adapter.backends.endpoint_discovery import Endpoint
from adapter.backends.model_options import ModelOptions, ServerInfo
from adapter.backends.template_files import TemplateWorker
from adapter.core.events import Json, JsonObject
from adapter.protocols.chat_request_translation import adapt_limit, needs_parsing, translate_chat_request
from adapter.protocols.conversation_cache import Conversation
from adapter.protocols.model_descriptions import ModelDescription, describe_models
from adapter.protocols.sse import encode_json
from adapter.protocols.token_budgets import AUTO
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import TranslationOptions
from adapter.server.concurrency_limit import ConcurrencyLimit
from adapter.server.dropped_fields_report import DroppedFieldsReport
from adapter.server.pdf_documents import PdfReader
from adapter.server.response_store import ResponseStore
from adapter.server.telemetry.logs import log_message
from adapter.server.translation_threads import TranslationThreads
from adapter.server.upstream_connection import RETRY_S, SILENCE_S, UpstreamConnection


class ModelServer(UpstreamConnection):
    """A model server and the settings for its models. `UpstreamConnection` explains parameters not named here.

    ``options`` are the user's options. ``profile`` selects measured model setups, as for `build_setup_lookup`.
    ``limit`` limits concurrent requests that use a model. ``store`` stores responses, by default in memory.
    """

    def __init__(
        self,
        base_url: str,
        options: TranslationOptions,
        patience_s: float = SILENCE_S,
        profile: str = "none",
        limit: ConcurrencyLimit | None = None,
        template: TemplateWorker | None = None,
        retry_s: float = RETRY_S,
        store: ResponseStore | None = None,
    ) -> None:
        super().__init__(base_url, patience_s, template, retry_s)
        self.store = store or ResponseStore()
        self.dropped = DroppedFieldsReport()
        self.limit = limit or ConcurrencyLimit()
        self.work = TranslationThreads()
        self.pdfs = PdfReader()
        self.options = options
        self.detected = ModelOptions(base_url, options, profile, template, log_message)
        self._server_info: ServerInfo | None = None
        self._expires_at = 0.0
        self._detecting = asyncio.Lock()

    async def close(self) -> None:
        await super().close()
        self.work.close()
        self.store.close()

    async def find_options(self, body: Json) -> TranslationOptions:
        """Return the options for a request: the user's options, completed with the settings detected for its model."""
        options = (await self.find_server_info()).options
        if self.detected.is_known(options, body):
            return self.detected.complete(options, body)
        return await asyncio.to_thread(self.detected.complete, options, body)

    async def translate(self, chat: JsonObject, options: TranslationOptions, size: int) -> TranslatedRequest:
        """Translate ``chat``, which may be modified. Its JSON has at most ``size`` bytes."""
        conversation = options.memory.conversations.continue_longest(Conversation(chat.get("messages")))
        # most of a conversation was translated before
        new_bytes = len(conversation.encode_new()) if conversation.known else size
        return await self.work.run(new_bytes, partial(translate_chat_request, chat, options, size, conversation))

    async def convert_and_translate(self, size: int, convert: Callable[[], JsonObject]) -> TranslatedRequest:
        """Translate the chat request that ``convert`` builds from a request of ``size`` bytes in another API."""
        chat = await self.work.run(size, convert)
        return await self.translate(chat, await self.find_options(chat), size)

    async def fit(self, content: bytes, body: JsonObject) -> tuple[bytes, str]:
        """Adapt a passed-through request to the server and to its context budget. Return its content, and the value of
        the header that counts the cuts ("" if nothing was cut)."""
        budgets = self.options.get_budgets(body)
        if budgets.context == AUTO:
            budgets = (await self.find_server_info()).options.get_budgets(body)
        if body.get("max_completion_tokens") is not None:
            body = adapt_limit(given := body, (await self.find_server_info()).kind)
            content = content if body is given else encode_json(body)
        if budgets.context is None:
            return content, ""
        fitted, shortened = await self.work.run(len(content), partial(budgets.fit_body, body))
        return (encode_json(fitted), shortened) if shortened else (content, "")

    async def leaves_markup(self, body: JsonObject) -> bool:
        """Return whether the answer to a request without tools must be parsed for reasoning; see `needs_parsing`."""
        if not needs_parsing(body, self.options, splits=False):
            return False
        splits = (await self.find_server_info()).kind in ("llama.cpp", "ollama")
        return needs_parsing(body, self.options, splits=splits)

    async def find_server_info(self) -> ServerInfo:
        """Return the kind of server and the settings for its model. They are detected again when the cache expires."""
        async with self._detecting:
            now = asyncio.get_running_loop().time()
            if self._server_info is None or now > self._expires_at:
                self._server_info = await asyncio.to_thread(self.detected.detect, self._server_info)
                self._expires_at = now + self._server_info.lifetime_s
            return self._server_info

    async def list_models(self) -> list[ModelDescription]:
        """Describe the server's models. Raises UpstreamError if it does not list them."""
        info = await self.find_server_info()
        answer = await self.request_json("GET", "/v1/models")
        endpoint = Endpoint(self.endpoint.base_url, info.kind or "openai")
        size = await asyncio.to_thread(query_context_size, endpoint)
        template = info.options.prompt.template or ""
        return describe_models(
            answer, size.tokens or 0, has_images=info.has_images, has_reasoning="<think>" in template
        )
