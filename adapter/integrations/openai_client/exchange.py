"""One HTTP request of an OpenAI client on its way out, and its answer on the way back: translated, or untouched."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from adapter.core.events import JsonObject
from adapter.protocols.dropped_fields import HEADER, as_header
from adapter.protocols.exchange import BufferedExchange, StreamedExchange
from adapter.protocols.guarded_exchange import asked_again_header
from adapter.protocols.openai_errors import RequestError, refusal
from adapter.protocols.sse import encode_json
from adapter.protocols.template_prompt import HttpPost, TemplatePromptError
from adapter.protocols.translate import needs_reading, needs_translation, passthrough_request, translate_chat_request
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import TranslationOptions
from adapter.server.response_store import ResponseStore
from adapter.server.responses_request import ResponsesRequest

_log = logging.getLogger("adapter")

CHAT, RESPONSES = "/chat/completions", "/responses"


def is_chat(sent: Any) -> bool:
    return bool(sent.method == "POST" and sent.url.path.endswith((CHAT, RESPONSES)))


class OpenAIExchange:
    """One HTTP request on its way out and back: ``request`` is None where nothing is translated. ``splits``: the server
    takes reasoning out of answers by itself."""

    def __init__(
        self, http: Any, sent: Any, options: TranslationOptions, store: Callable[[], ResponseStore], *, splits: bool
    ) -> None:
        self.request: TranslatedRequest | None = None
        self.refused: Any = None
        self.sent = sent
        self._http = http
        self._response: ResponsesRequest | None = None
        self._dropped: list[str] = []
        self._streamed: StreamedExchange | None = None
        if not is_chat(sent):
            return
        url = sent.url
        try:
            body = json.loads(sent.content)
            if url.path.endswith(RESPONSES):
                self._response = ResponsesRequest(body, store(), len(sent.content))
                self.request = translate_chat_request(self._response.to_chat_request(self._dropped), options)
                url = url.copy_with(path=url.path.removesuffix(RESPONSES) + CHAT)
            elif needs_translation(body):
                self.request = translate_chat_request(body, options)
            elif needs_reading(body, options, splits=splits):
                self.request = passthrough_request(body, options)
        except RequestError as error:
            self.refused = http.Response(error.status, json=refusal(error), request=sent)
        if self.request is not None:
            self._completed = BufferedExchange(self.request)
            self.sent = self._asking(url, self.request.body)

    def fall_back_to_words(self, fault: TemplatePromptError) -> JsonObject | None:
        """What is asked where the model's own prompt cannot be had; where that is nothing the client hears why."""
        assert self.request is not None
        if self.request.as_text is None:
            self.refused = self.refusal(fault)
            return None
        _log.info("a prompt of the model's own was refused, so it went in words: %s", fault)
        self.request = self.request.as_text()
        self._completed = BufferedExchange(self.request)
        return self.request.body

    def refusal(self, fault: TemplatePromptError) -> Any:
        """The client's response where the model's own prompt cannot be had."""
        error = RequestError(f"the model's chat template does not take this conversation: {fault}", "messages")
        return self._http.Response(error.status, json=refusal(error), request=self.sent)

    def abandoned_response(self, response: Any) -> Any:
        """The client's response where the server took nothing more after ``response``; None where that was none."""
        completion = self._completed.give_up()
        return None if completion is None else self._shown(response, 200, completion)

    def streamed(self) -> StreamedExchange:
        assert self.request is not None
        writer = None if self._response is None else self._response.writer()
        self._streamed = StreamedExchange(self.request, int(time.time()), writer)
        return self._streamed

    def build_request(self, post: HttpPost) -> Any:
        """One request of ours, at the server that the client has."""
        url = self.sent.url
        base = url.path.removesuffix(CHAT)
        path = base + post.path[3:] if post.path.startswith("/v1/") else base.removesuffix("/v1") + post.path
        return self._asking(url.copy_with(path=path), post.body)

    def _asking(self, url: Any, body: JsonObject) -> Any:
        """The HTTP request as it came, with another body, at another address."""
        sent = self.sent
        headers = [(name, value) for name, value in sent.headers.multi_items() if name != "content-length"]
        return self._http.Request(
            sent.method, url, headers=headers, content=encode_json(body), extensions=sent.extensions
        )

    def untouched(self, response: Any, pieces: Iterator[bytes] | AsyncIterator[bytes]) -> Any:
        return self._answered(response, response.headers, pieces)

    def stream(self, response: Any, pieces: Iterator[bytes] | AsyncIterator[bytes]) -> Any:
        return self._answered(response, self._own_headers(response), pieces)

    def whole(self, response: Any, body: bytes) -> Any:
        """The client's response, or the body of one more request to the server."""
        answer = self._completed.feed(body)
        if not isinstance(answer, tuple):
            return answer
        return self._shown(response, *answer)

    def _shown(self, response: Any, status: int, completion: JsonObject) -> Any:
        headers = self._own_headers(response) | asked_again_header(completion)
        if self._response is not None and status == 200:
            completion = self._response.answer(completion)
        return self._http.Response(status, headers=headers, json=completion, request=self.sent)

    def _answered(self, response: Any, headers: Any, pieces: Any) -> Any:
        return self._http.Response(
            response.status_code,
            headers=headers,
            stream=_byte_stream(self._http, response, pieces, self._leave),
            extensions={key: value for key, value in response.extensions.items() if key != "network_stream"},
        )

    def _own_headers(self, response: Any) -> dict[str, str]:
        """Those that still hold for a translated body, and what was left out of the request."""
        gone = ("content-length", "content-encoding", "transfer-encoding")
        kept = {name: value for name, value in response.headers.items() if name not in gone}
        return kept | ({HEADER: as_header(self._dropped)} if self._dropped else {})

    def _leave(self) -> None:
        if self._streamed is not None:
            self._streamed.cancel()


def _byte_stream(http: Any, response: Any, pieces: Any, leave: Callable[[], None]) -> Any:
    """``pieces`` as the HTTP library wants them; closing it closes ``response``, which stops the model."""
    if isinstance(pieces, AsyncIterator):

        async def aclose(_: object) -> None:
            leave()
            await response.aclose()

        members: dict[str, Any] = {"__aiter__": lambda _: pieces, "aclose": aclose}
        return type("_AsyncStream", (http.AsyncByteStream,), members)()

    def close(_: object) -> None:
        leave()
        response.close()

    return type("_Stream", (http.SyncByteStream,), {"__iter__": lambda _: pieces, "close": close})()
