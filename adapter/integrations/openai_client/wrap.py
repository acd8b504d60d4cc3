"""Add tool calls to an OpenAI client by replacing its transport, without a server in between.

The client keeps the SDK's own class; only its transport is replaced. Chat requests with tools, and all requests for a
new response of the Responses API, which few model servers support, are translated on the way out and back. Everything
else passes through, so that streams, helpers, raw responses and retries work as before.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from adapter.backends.probe_profiles import validate_profile_name
from adapter.backends.template_files import TemplateWorker, load_chat_template, run_render_step
from adapter.conversation.guardrails.guardrails import MAX_CALLS, RETRIES
from adapter.core.argument_checks import NONE, PATH, check_types, format_value
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.core.text.redaction import Redactor
from adapter.grammars.constraint_mode import Constraint
from adapter.integrations.openai_client.http_exchange import OpenAIExchange
from adapter.integrations.openai_client.upstream_info import UpstreamInfo
from adapter.protocols.answer_translation import StreamedExchange
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.grounding_constraint import Ground
from adapter.protocols.openai_errors import relay_error
from adapter.protocols.sse import read_json_or_none
from adapter.protocols.template_prompt import RenderTemplate, TemplatePromptError, iter_prompt_steps
from adapter.protocols.token_budgets import ContextBudget
from adapter.protocols.translation_options import TranslationOptions, build_options
from adapter.recording.exchange_log import ExchangeLog

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

    Client = TypeVar("Client", OpenAI, AsyncOpenAI)
else:
    Client = TypeVar("Client")


V1_CHAT = "/v1/chat/completions"


def wrap(
    client: Client,
    *,
    format: str | None = None,
    style: str | None = None,
    policy: str = "safe",
    stream_arguments: bool = False,
    constraint: Constraint | None = None,
    grounded: bool = False,
    ground: Ground | None = None,
    profile: str = "none",
    record: str | Path | None = None,
    prompt: str = "auto",
    template: str | Path | None = None,
    guide: str = "auto",
    max_tools: int | None = None,
    guardrails: str = "on",
    retries: int = RETRIES,
    max_calls: int = MAX_CALLS,
    context_budget: ContextBudget = None,
    reasoning_budget: int | None = None,
) -> Client:
    """Return a copy of an ``OpenAI`` or ``AsyncOpenAI`` client whose chat completions and responses support tools,
    regardless of the server's capabilities.

    The copy shares the connections of ``client``, which stays unchanged.

    Args:
        format: The format of calls. None: detected from the chat template if the server provides it, and from the model
            name in each request. ``"from-template"``: always inferred from the template.
        style: Style of the tool descriptions in the prompt (see `system_prompt`); None: depends on the constraint.
        policy: Rules for text that may become a call (see `Parser`).
        prompt: Description of the tools: the chat template (``"own"``), a generated prompt (``"words"``, implied by
            ``style``), or the template if the server allows it (``"auto"``).
        template: A template file for servers that do not apply a template (see `adapter.backends.template_files`).
        stream_arguments: Whether to stream a call's arguments as they are generated, instead of sending each call when
            it is complete.
        constraint: Constrained decoding of calls (see `adapter.grammars.constraint_mode`).
        grounded: Whether to limit the arguments of a constrained call to values from the conversation, if their names
            indicate the kind of value.
        ground: Additional candidate values (see `adapter.protocols.grounding_constraint`).
        guide: Guided tool choice for very small models: ``"auto"`` (if the server reports that the model is small),
            ``"on"`` or ``"off"`` (see `adapter.prompting.intent.guided_choice`).
        max_tools: Maximum number of tools that the prompt describes. If a request has more, the prompt describes only
            the best matches, and a tool that finds further tools.
        guardrails: Faults that trigger a retry before you see the answer: ``"on"``, ``"off"`` or names (see
            docs/reliability.md).
        retries: Maximum number of retries per request.
        max_calls: Maximum number of calls in one answer.
        context_budget: Number of tokens beyond which a conversation is shortened, or ``"auto"`` for the context size of
            the server (see `adapter.conversation.client_conversation_trimming`).
        reasoning_budget: Maximum number of tokens of reasoning in an answer (see `adapter.protocols.reasoning_budget`).
        profile: Settings found by `adapter probe`, which apply to arguments that are not set: ``"auto"`` for the
            profile of the requested model, or the name or file of a profile.
        record: A file to which each exchange is appended, without credentials (see
            `adapter.protocols.recorded_exchange`).

    Raises UsageError for an unknown format, style, policy or profile, for a ``record`` file that cannot be written, and
    for any other kind of client.
    """
    from openai import AsyncOpenAI, OpenAI

    if not isinstance(client, OpenAI | AsyncOpenAI):
        raise UsageError(
            f"wrap() expects an OpenAI or AsyncOpenAI client, got {format_value(client)}. For any other client, run "
            "`adapter serve` and set its base URL"
        )
    check_types(
        "wrap",
        profile=(profile, str),
        record=(record, *PATH, NONE),
        template=(template, *PATH, NONE),
        guardrails=(guardrails, str),
        max_tools=(max_tools, int, NONE),
    )
    options = build_options(
        format=format, style=style, prompt=prompt, max_tools=max_tools, constraint=constraint, grounded=grounded,
        ground=ground, context_budget=context_budget, reasoning_budget=reasoning_budget, guide=guide, policy=policy,
        stream_arguments=stream_arguments, guardrails=guardrails, retries=retries,
        limits=RetryPolicy(clock=time.monotonic, max_calls=max_calls),
        observe=ExchangeLog(Path(record), Redactor(os.environ, [client.api_key])) if record is not None else None,
    )  # fmt: skip
    validate_profile_name(profile)
    worker = TemplateWorker(load_chat_template(Path(template))) if template is not None else None
    server = UpstreamInfo(str(client.base_url).rstrip("/"), options, profile, worker)
    http = find_http_library(client._client)
    if isinstance(client, AsyncOpenAI):
        return client.copy(http_client=http.AsyncClient(transport=_AsyncTransport(http, client._client, server)))
    return client.copy(http_client=http.Client(transport=_Transport(http, client._client, server)))


def find_http_library(client: object) -> Any:
    """Return httpx2 or httpx, whichever the client uses. The default of openai 3 is httpx2."""
    names = (kind.__module__.partition(".")[0] for kind in type(client).__mro__)
    return sys.modules[next(name for name in names if name in ("httpx2", "httpx"))]


_Steps: TypeAlias = Generator[Any, Any, Any]
"""A generator that contains the logic of both transports. It yields the result of each I/O call, or an awaitable for
it, and receives the awaited result."""


def _run(steps: _Steps) -> Any:
    result = None
    try:
        while True:
            result = steps.send(result)
    except StopIteration as stop:
        return stop.value


async def _run_async(steps: _Steps) -> Any:
    try:
        awaitable = steps.send(None)
        while True:
            try:
                result = await awaitable
            except Exception as error:  # noqa: BLE001  # the steps decide
                awaitable = steps.throw(error)
            else:
                awaitable = steps.send(result)
    except StopIteration as stop:
        return stop.value


class _BaseTransport:
    """Sends requests through the user's own HTTP client, with its proxies, certificates and connections."""

    _read: Callable[[Any], Any]
    _close: Callable[[Any], Any]
    _raw_chunks: Callable[[Any], Any]
    _render: Callable[[RenderTemplate], Any]
    _translate_chunks: Callable[[Any, OpenAIExchange, StreamedExchange], Any]

    def __init__(self, http: Any, client: Any, server: UpstreamInfo) -> None:
        self._http, self._client, self._server = http, client, server

    def _respond(self, http_request: Any, options: TranslationOptions) -> _Steps:
        exchange = self._server.create_exchange(self._http, http_request, options)
        if exchange.error_response:
            return exchange.error_response
        response = yield from self._send_first(exchange)
        if exchange.error_response:
            return exchange.error_response
        if exchange.answer is None:
            return exchange.pass_through(response, self._raw_chunks(response))
        if isinstance(exchange.answer, StreamedExchange):
            return exchange.stream(response, self._translate_chunks(response, exchange, exchange.answer))
        while True:
            body = exchange.feed_body(response, (yield self._read(response)))
            if not isinstance(body, dict):
                return body
            retried = yield from self._retry(exchange, body)
            if retried.status_code != 200:
                return exchange.choose_abandoned_response(response) or exchange.pass_through(
                    retried, self._raw_chunks(retried)
                )
            response = retried

    def _send_first(self, exchange: OpenAIExchange) -> _Steps:
        """Send the first request. If a part of it is rejected, send it again without that part."""
        if exchange.answer is None:
            return (yield self._client.send(exchange.http_request, stream=True))
        body: JsonObject | None = exchange.answer.request.body
        while body is not None:
            try:
                response = yield from self._send(exchange, body)
            except TemplatePromptError as error:
                rejected, body = body, exchange.answer.switch_to_text()
                if body is None:
                    exchange.error_response = exchange.build_refusal(error)
                else:
                    self._server.detected.log_prompt_fallback(error, rejected)
                continue
            if response.status_code == 200:
                return response
            content = yield self._read(response)
            body = self._server.detected.find_alternative(exchange.answer, response.status_code, content)
            if body is None:
                exchange.error_response = exchange.build_error(response, content)

    def _retry(self, exchange: OpenAIExchange, body: JsonObject) -> _Steps:
        """Send a retry. Returns an error response if the chat template cannot be used."""
        try:
            return (yield from self._send(exchange, body))
        except TemplatePromptError as error:
            return exchange.build_refusal(error)

    def _finish(self, streamed: StreamedExchange, response: Any, exchange: OpenAIExchange) -> _Steps:
        """End the current answer of a stream. Return the response to a follow-up request and b"" or, if there is none,
        None and the last bytes for the client."""
        body = streamed.build_next_body()
        if body is None:
            return None, streamed.close()
        yield self._close(response)
        response = yield from self._retry(exchange, body)
        if response.status_code == 200:
            return response, b""
        abandoned = streamed.give_up()
        if abandoned is None:
            return None, streamed.fail(relay_error(response.status_code, (yield self._read(response))))
        return None, abandoned + streamed.close()

    def _send(self, exchange: OpenAIExchange, body: JsonObject) -> _Steps:
        steps = iter_prompt_steps(V1_CHAT, body)
        try:
            step = next(steps)
            while True:
                if isinstance(step, RenderTemplate):
                    step = steps.send((yield self._render(step)))
                else:
                    response = yield self._client.send(exchange.build_request(step))
                    step = steps.send(read_json_or_none(response.content))
        except StopIteration as stop:
            final = stop.value
        return (yield self._client.send(exchange.build_request(final), stream=True))


class _Transport(_BaseTransport):
    _read, _close, _raw_chunks = methodcaller("read"), methodcaller("close"), methodcaller("iter_raw")

    def handle_request(self, http_request: Any) -> Any:
        return _run(self._respond(http_request, self._server.find_options(http_request)))

    def _render(self, step: RenderTemplate) -> str:
        return run_render_step(step, self._server.template)

    def _translate_chunks(self, response: Any, exchange: OpenAIExchange, streamed: StreamedExchange) -> Iterator[bytes]:
        while response is not None:
            try:
                for chunk in response.iter_bytes():
                    yield streamed.feed(chunk)
                    if streamed.is_done:
                        break
            except (self._http.NetworkError, self._http.RemoteProtocolError):
                pass  # _finish() handles an incomplete stream
            response, text = _run(self._finish(streamed, response, exchange))
            if text:
                yield text

    def __enter__(self) -> _Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing, because the original client owns the connections."""


class _AsyncTransport(_BaseTransport):
    _read, _close, _raw_chunks = methodcaller("aread"), methodcaller("aclose"), methodcaller("aiter_raw")

    async def handle_async_request(self, http_request: Any) -> Any:
        return await _run_async(self._respond(http_request, await self._server.find_options_async(http_request)))

    def _render(self, step: RenderTemplate) -> Any:
        return asyncio.to_thread(run_render_step, step, self._server.template)

    async def _translate_chunks(
        self, response: Any, exchange: OpenAIExchange, streamed: StreamedExchange
    ) -> AsyncIterator[bytes]:
        while response is not None:
            try:
                async for chunk in response.aiter_bytes():
                    yield streamed.feed(chunk)
                    if streamed.is_done:
                        break
            except (self._http.NetworkError, self._http.RemoteProtocolError):
                pass  # _finish() handles an incomplete stream
            response, text = await _run_async(self._finish(streamed, response, exchange))
            if text:
                yield text

    async def __aenter__(self) -> _AsyncTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Do nothing, because the original client owns the connections."""
