"""Translate one HTTP request from an OpenAI client and its response, or pass them through."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from adapter.core.events import JsonObject
from adapter.protocols.answer_translation import BufferedExchange, StreamedExchange
from adapter.protocols.chat_request_translation import (
    adapt_limit,
    build_passthrough_request,
    needs_parsing,
    needs_translation,
    remove_empty_tools,
    translate_chat_request,
)
from adapter.protocols.dropped_fields import HEADER, to_header
from adapter.protocols.exchange_guardrails import build_guard_headers
from adapter.protocols.openai_errors import relay_error
from adapter.protocols.request_errors import RequestError, build_error_body
from adapter.protocols.request_list_cache import load_request
from adapter.protocols.sse import encode_json
from adapter.protocols.template_prompt import HttpPost, TemplatePromptError
from adapter.protocols.token_budgets import build_shortened_header
from adapter.protocols.translation_options import TranslationOptions
from adapter.server.response_store import ResponseStore
from adapter.server.responses_request import ResponsesRequest

CHAT, RESPONSES = "/chat/completions", "/responses"


def is_chat(http_request: Any) -> bool:
    """Return whether a request creates a chat completion or a response of the Responses API."""
    return bool(http_request.method == "POST" and http_request.url.path.endswith((CHAT, RESPONSES)))


class OpenAIExchange:
    """An HTTP request of the client and its response. ``answer`` is None if neither is translated.

    ``http`` is the client's HTTP library, httpx or httpx2. ``store`` returns the store of responses that the request
    may refer to. ``splits_reasoning`` is True if the server separates reasoning from content.
    """

    def __init__(
        self,
        http: Any,
        http_request: Any,
        options: TranslationOptions,
        store: Callable[[], ResponseStore],
        *,
        splits_reasoning: bool,
    ) -> None:
        self.answer: StreamedExchange | BufferedExchange | None = None
        self.error_response: Any = None
        self.http_request = http_request
        self._http = http
        self._response: ResponsesRequest | None = None
        self._dropped_fields: list[str] = []
        self._shortened = ""
        if not is_chat(http_request):
            return
        url, request = http_request.url, None
        try:
            given = load_request(http_request.content)
            body = remove_empty_tools(given)
            if url.path.endswith(RESPONSES):
                self._response = ResponsesRequest(body, store(), len(http_request.content))
                request = translate_chat_request(self._response.to_chat_request(self._dropped_fields), options)
                url = url.copy_with(path=url.path.removesuffix(RESPONSES) + CHAT)
            elif needs_translation(body, options):
                request = translate_chat_request(body, options)
            elif needs_parsing(body, options, splits=splits_reasoning):
                request = build_passthrough_request(body, options)
            else:
                adapted = adapt_limit(body, options.kind)
                fitted, self._shortened = options.get_budgets(adapted).fit_body(adapted)
                if fitted is not given:
                    self.http_request = self._copy_request(url, fitted)
        except RequestError as error:
            self.error_response = http.Response(error.status, json=build_error_body(error), request=http_request)
        if request is not None:
            writer = None if self._response is None else self._response.create_writer()
            created = int(time.time())
            self.answer = (
                StreamedExchange(request, created, writer)
                if request.client.stream
                else BufferedExchange(request, created)
            )
            self.http_request = self._copy_request(url, request.body)

    def build_refusal(self, error: TemplatePromptError) -> Any:
        """Build the error response for a chat template that cannot be used."""
        message = f"the model's chat template rejects this conversation: {error}; pass prompt='words' to wrap()"
        error_response = RequestError(message, "messages")
        return self._http.Response(
            error_response.status, json=build_error_body(error_response), request=self.http_request
        )

    def choose_abandoned_response(self, response: Any) -> Any:
        """After a failed retry, return the answer that preceded it as the client's response, or None if it is
        unusable."""
        assert isinstance(self.answer, BufferedExchange)
        completion = self.answer.give_up()
        return None if completion is None else self._build_response(response, 200, completion)

    def build_request(self, post: HttpPost) -> Any:
        """Build the HTTP request for ``post``, which goes to the same server as the client's request."""
        url = self.http_request.url
        base = url.path.removesuffix(CHAT)
        path = base + post.path[3:] if post.path.startswith("/v1/") else base.removesuffix("/v1") + post.path
        return self._copy_request(url.copy_with(path=path), post.body)

    def _copy_request(self, url: Any, body: JsonObject) -> Any:
        """Return a copy of the HTTP request with a different URL and body."""
        http_request = self.http_request
        headers = [(name, value) for name, value in http_request.headers.multi_items() if name != "content-length"]
        return self._http.Request(
            http_request.method, url, headers=headers, content=encode_json(body), extensions=http_request.extensions
        )

    def pass_through(self, response: Any, chunks: Iterator[bytes] | AsyncIterator[bytes]) -> Any:
        headers = [*response.headers.multi_items(), *build_shortened_header(self._shortened).items()]
        return self._build_streaming_response(response, headers, chunks)

    def stream(self, response: Any, chunks: Iterator[bytes] | AsyncIterator[bytes]) -> Any:
        return self._build_streaming_response(response, self._build_response_headers(response), chunks)

    def feed_body(self, response: Any, body: bytes) -> Any:
        """Translate the server's complete answer. Return the client's response, or the body of a request to retry."""
        assert isinstance(self.answer, BufferedExchange)
        answer = self.answer.feed(body)
        if not isinstance(answer, tuple):
            return answer
        return self._build_response(response, *answer)

    def build_error(self, response: Any, body: bytes) -> Any:
        """Return the server's error in OpenAI's format. The body of the error must have been read."""
        status = response.status_code if response.status_code >= 400 else 502  # a 204 would hide the error
        headers = self._build_response_headers(response) | {"content-type": "application/json"}
        error = relay_error(response.status_code, body)
        return self._http.Response(status, headers=headers, json=error, request=self.http_request)

    def _build_response(self, response: Any, status: int, completion: JsonObject) -> Any:
        headers = self._build_response_headers(response) | build_guard_headers(completion)
        if self._response is not None and status == 200:
            completion = self._response.create_writer().build_response(completion)
        return self._http.Response(status, headers=headers, json=completion, request=self.http_request)

    def _build_streaming_response(self, response: Any, headers: Any, chunks: Any) -> Any:
        return self._http.Response(
            response.status_code,
            headers=headers,
            stream=_wrap_byte_stream(self._http, response, chunks, self._on_close),
            extensions={key: value for key, value in response.extensions.items() if key != "network_stream"},
        )

    def _build_response_headers(self, response: Any) -> dict[str, str]:
        """Return the headers that are valid for a translated body, and a header that lists dropped request fields."""
        removed = ("content-length", "content-encoding", "transfer-encoding")
        headers = {name: value for name, value in response.headers.items() if name not in removed}
        headers |= build_shortened_header(self._shortened) if self.answer is None else self.answer.request.headers
        return headers | ({HEADER: to_header(self._dropped_fields)} if self._dropped_fields else {})

    def _on_close(self) -> None:
        if self.answer is not None:
            self.answer.cancel()


def _wrap_byte_stream(http: Any, response: Any, chunks: Any, on_close: Callable[[], None]) -> Any:
    """Wrap chunks in the HTTP library's stream class. Closing the stream closes ``response``, which stops the model."""
    if isinstance(chunks, AsyncIterator):

        async def aclose(_: object) -> None:
            on_close()
            await response.aclose()

        members: dict[str, Any] = {"__aiter__": lambda _: chunks, "aclose": aclose}
        return type("_AsyncStream", (http.AsyncByteStream,), members)()

    def close(_: object) -> None:
        on_close()
        response.close()

    return type("_Stream", (http.SyncByteStream,), {"__iter__": lambda _: chunks, "close": close})()
