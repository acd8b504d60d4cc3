"""Create OpenAI clients for tests: one that replays a recording, and one that replaces the requested model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from openai import AsyncOpenAI, OpenAI

from adapter.core.events import JsonObject
from adapter.integrations.openai_client.wrap import find_http_library
from adapter.integrations.pytest.replay_matching import NotRecordedError, ReplayModel
from adapter.protocols.answer_translation import BufferedExchange, StreamedExchange
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.choice_stream import ABANDONED, INCOMPLETE
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.recorded_exchange import RecordedExchange
from adapter.protocols.request_errors import RequestError, build_error_body
from adapter.protocols.sse import DONE, encode_event, encode_json
from adapter.protocols.translated_request import ParserSettings, TranslatedRequest
from adapter.protocols.translation_options import ConstraintSettings, PromptSettings, TranslationOptions
from adapter.server.response_store import ResponseStore
from adapter.server.responses_request import ResponsesRequest

Client = TypeVar("Client", OpenAI, AsyncOpenAI)

_REPLAY_OPTIONS = TranslationOptions(
    prompt=PromptSettings(mode="words"),
    constraints=ConstraintSettings(mode="off"),
    retry_policy=RetryPolicy(on=frozenset()),
)
"""Options that turn off retries and prompt features, because the responses are already recorded."""


def create_replay_client(
    recorded: ReplayModel, kind: type[Client], fail: Callable[[str], Any], *, stream_arguments: bool
) -> Client:
    """Create a client that replays ``recorded``. The recorded text is parsed again by the installed version.

    ``fail`` is called with a message if there is no answer to a request. It must raise an exception.
    """
    options, store = replace(_REPLAY_OPTIONS, stream_arguments=stream_arguments), ResponseStore()
    client = kind(base_url="http://recorded/v1", api_key="none", max_retries=0)
    http = find_http_library(client._client)

    def answer_request(http_request: Any) -> Any:
        path = http_request.url.path
        if http_request.method != "POST" or not path.endswith(("/chat/completions", "/responses")):
            return fail(f"{http_request.method} {path}: a recording only answers chat completions and responses")
        body = json.loads(http_request.content)
        try:
            response = ResponsesRequest(body, store, len(http_request.content)) if path.endswith("/responses") else None
            request = translate_chat_request(response.to_chat_request([]) if response else body, options)
            tools = [tool.to_openai() for tool in request.tools.values()]
            answers = [recorded.find_answer(request.client.messages, tools) for _ in range(request.client.answers)]
        except RequestError as error:
            return http.Response(error.status, json=build_error_body(error))
        except NotRecordedError as error:
            return fail(str(error))
        request = _with_recorded_parsing(request, answers[0])
        if request.client.stream:
            content = _build_streamed_response(request, answers, response)
            return http.Response(200, headers={"content-type": "text/event-stream"}, content=content)
        status, answer = _build_complete_response(request, answers)
        return http.Response(
            status, json=response.create_writer().build_response(answer) if response and status == 200 else answer
        )

    return client.copy(http_client=_find_http_client_class(client, http)(transport=http.MockTransport(answer_request)))


def _with_recorded_parsing(request: TranslatedRequest, exchange: RecordedExchange) -> TranslatedRequest:
    """Return ``request`` with the parser settings of ``exchange``."""
    settings = request.parsing
    parsing = replace(
        ParserSettings.from_recording(exchange),
        is_restricted=settings.is_restricted,
        stream_arguments=settings.stream_arguments,
    )
    return replace(request, parsing=parsing)


def _build_message_fields(exchange: RecordedExchange) -> tuple[JsonObject, str | None]:
    reasoning = {"reasoning_content": exchange.reasoning} if exchange.reasoning else {}
    reason = None if exchange.finish_reason in (INCOMPLETE, ABANDONED) else exchange.finish_reason
    return {"role": "assistant", "content": exchange.text} | reasoning, reason


def _build_common_fields(exchange: RecordedExchange) -> JsonObject:
    return {"id": "chatcmpl-recorded", "created": int(time.time()), "model": exchange.model}


def _build_complete_response(request: TranslatedRequest, answers: Sequence[RecordedExchange]) -> tuple[int, JsonObject]:
    choices: list[JsonObject] = []
    for index, exchange in enumerate(answers):
        message, reason = _build_message_fields(exchange)
        choices.append({"index": index, "message": message, "finish_reason": reason or "length"})
    answer = BufferedExchange(request).feed(
        encode_json({**_build_common_fields(answers[0]), "object": "chat.completion", "choices": choices})
    )
    assert isinstance(answer, tuple)  # no retries
    return answer


def _build_streamed_response(
    request: TranslatedRequest, answers: Sequence[RecordedExchange], response: ResponsesRequest | None
) -> bytes:
    streamed = StreamedExchange(request, int(time.time()), None if response is None else response.create_writer())
    events, is_complete = b"", True
    for index, exchange in enumerate(answers):
        delta, reason = _build_message_fields(exchange)
        choices = [{"index": index, "delta": delta, "finish_reason": reason}]
        chunk = {**_build_common_fields(exchange), "object": "chat.completion.chunk", "choices": choices}
        events += streamed.feed(encode_event(chunk))
        is_complete = is_complete and reason is not None
    return events + (streamed.feed(DONE) if is_complete else b"") + streamed.close()


def create_renamed_client(client: Client, model: str) -> Client:
    """Return a copy of ``client`` whose requests all use ``model``."""
    http, inner = find_http_library(client._client), client._client

    def rename_model(http_request: Any) -> Any:
        try:
            body = json.loads(http_request.content)
        except ValueError:  # no JSON body
            return http_request
        headers = [(name, value) for name, value in http_request.headers.multi_items() if name != "content-length"]
        content = encode_json({**body, "model": model})
        return http.Request(
            http_request.method, http_request.url, headers=headers, content=content, extensions=http_request.extensions
        )

    transport = http.MockTransport(lambda http_request: inner.send(rename_model(http_request), stream=True))
    return client.copy(http_client=_find_http_client_class(client, http)(transport=transport))


def _find_http_client_class(client: OpenAI | AsyncOpenAI, http: Any) -> Any:
    return http.Client if isinstance(client, OpenAI) else http.AsyncClient
