"""OpenAI clients for tests: of a recording, and of a model whose name is another than the one that is asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from openai import AsyncOpenAI, OpenAI

from adapter.core.events import JsonObject
from adapter.integrations.openai_client.wrap import http_library_of
from adapter.integrations.pytest.replay_matching import NotRecordedError, ReplayModel
from adapter.protocols.exchange import BufferedExchange, StreamedExchange
from adapter.protocols.guarded_exchange import RetryPolicy
from adapter.protocols.openai_choice import ABANDONED, INCOMPLETE
from adapter.protocols.openai_errors import RequestError, refusal
from adapter.protocols.recorded_exchange import RecordedExchange
from adapter.protocols.sse import DONE, encode_event, encode_json
from adapter.protocols.translate import translate_chat_request
from adapter.protocols.translated_request import ParserSettings, TranslatedRequest
from adapter.protocols.translation_options import ConstraintSettings, PromptSettings, TranslationOptions
from adapter.server.response_store import ResponseStore
from adapter.server.responses_request import ResponsesRequest

Client = TypeVar("Client", OpenAI, AsyncOpenAI)

_AS_IT_IS = TranslationOptions(
    prompt=PromptSettings(mode="words"),
    constraints=ConstraintSettings(mode="off"),
    retry_policy=RetryPolicy(on=frozenset()),
)
"""No recorded answer is asked again, and nothing of a prompt matters."""


def replay_client(
    recorded: ReplayModel, kind: type[Client], fail: Callable[[str], Any], *, stream_arguments: bool
) -> Client:
    """A client that asks ``recorded``; ``fail`` is told of what that does not hold, and raises what the test sees.

    The recorded texts are read as they would be today.
    """
    options, store = replace(_AS_IT_IS, stream_arguments=stream_arguments), ResponseStore()
    client = kind(base_url="http://recorded/v1", api_key="none", max_retries=0)
    http = http_library_of(client._client)

    def answered(sent: Any) -> Any:
        path = sent.url.path
        if sent.method != "POST" or not path.endswith(("/chat/completions", "/responses")):
            return fail(f"{sent.method} {path}: a recording answers chat completions and responses")
        body = json.loads(sent.content)
        try:
            response = ResponsesRequest(body, store, len(sent.content)) if path.endswith("/responses") else None
            request = translate_chat_request(response.to_chat_request([]) if response else body, options)
            exchange = recorded.answer(request.client.messages, (tool.to_openai() for tool in request.tools.values()))
        except RequestError as error:
            return http.Response(error.status, json=refusal(error))
        except NotRecordedError as error:
            return fail(str(error))
        request = _as_recorded(request, exchange)
        if request.client.stream:
            content = _streamed(request, exchange, response)
            return http.Response(200, headers={"content-type": "text/event-stream"}, content=content)
        status, answer = _whole(request, exchange)
        return http.Response(status, json=response.answer(answer) if response and status == 200 else answer)

    return client.copy(http_client=_kind_of(client, http)(transport=http.MockTransport(answered)))


def _as_recorded(request: TranslatedRequest, exchange: RecordedExchange) -> TranslatedRequest:
    """``request``, its answer read as that of ``exchange`` was."""
    how = request.parsing
    parsing = replace(
        ParserSettings.from_recording(exchange), is_restricted=how.is_restricted, stream_arguments=how.stream_arguments
    )
    return replace(request, parsing=parsing)


def _said(exchange: RecordedExchange) -> tuple[JsonObject, str | None]:
    reasoning = {"reasoning_content": exchange.reasoning} if exchange.reasoning else {}
    reason = None if exchange.finish_reason in (INCOMPLETE, ABANDONED) else exchange.finish_reason
    return {"role": "assistant", "content": exchange.text} | reasoning, reason


def _head(exchange: RecordedExchange) -> JsonObject:
    return {"id": "chatcmpl-recorded", "created": int(time.time()), "model": exchange.model}


def _whole(request: TranslatedRequest, exchange: RecordedExchange) -> tuple[int, JsonObject]:
    message, reason = _said(exchange)
    choices = [{"index": 0, "message": message, "finish_reason": reason or "length"}]
    answer = BufferedExchange(request).feed(
        encode_json({**_head(exchange), "object": "chat.completion", "choices": choices})
    )
    assert isinstance(answer, tuple)  # nothing is asked again
    return answer


def _streamed(request: TranslatedRequest, exchange: RecordedExchange, response: ResponsesRequest | None) -> bytes:
    delta, reason = _said(exchange)
    streamed = StreamedExchange(request, int(time.time()), None if response is None else response.writer())
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    said = streamed.feed(encode_event({**_head(exchange), "object": "chat.completion.chunk", "choices": choices}))
    return said + (streamed.feed(DONE) if reason else b"") + streamed.close()


def renamed_model_client(client: Client, model: str) -> Client:
    """``client``, whose requests all name ``model``."""
    http, inner = http_library_of(client._client), client._client

    def renamed(sent: Any) -> Any:
        try:
            body = json.loads(sent.content)
        except ValueError:  # there is none
            return sent
        headers = [(name, value) for name, value in sent.headers.multi_items() if name != "content-length"]
        content = encode_json({**body, "model": model})
        return http.Request(sent.method, sent.url, headers=headers, content=content, extensions=sent.extensions)

    transport = http.MockTransport(lambda sent: inner.send(renamed(sent), stream=True))
    return client.copy(http_client=_kind_of(client, http)(transport=transport))


def _kind_of(client: OpenAI | AsyncOpenAI, http: Any) -> Any:
    return http.Client if isinstance(client, OpenAI) else http.AsyncClient
