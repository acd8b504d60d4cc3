"""An OpenAI client whose model gains tool calls: the same calls, the same types, no server between.

The client stays the SDK's own class. Only its transport is ours: a chat request with
tools is translated on its way out, the answer on its way back, as is every request
for a response, which few model servers know; everything else passes untouched. So
streams, helpers, raw responses and retries work as ever.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from adapter.backends.chat_client import constraint_fields
from adapter.backends.control_token_discovery import discover_control_tokens
from adapter.backends.endpoint_discovery import Endpoint, detect_server_kind
from adapter.backends.profiles import setup_lookup, validate_profile_name
from adapter.backends.prompt_discovery import PromptDiscoverer
from adapter.backends.small_model_check import SmallModelCheck
from adapter.backends.template_files import TemplateWorker, load_chat_template
from adapter.conversation.guardrails.engine import RETRIES
from adapter.conversation.guardrails.registry import parse_guardrails
from adapter.core.arguments import NONE, PATH, check_types, shown
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.redaction import Redactor
from adapter.grammars.constraint_mode import Constraint
from adapter.integrations.openai_client.exchange import OpenAIExchange, is_chat
from adapter.prompting.chat_template import ChatTemplateError
from adapter.prompting.intent.grounding import Ground
from adapter.protocols.guarded_exchange import RetryPolicy
from adapter.protocols.openai_errors import relay_error
from adapter.protocols.recorded_exchange import Observation
from adapter.protocols.template_prompt import RenderTemplate, TemplatePromptError, prompt_steps
from adapter.protocols.translation_options import (
    ConstraintSettings,
    PromptSettings,
    TranslationOptions,
    validate_options,
)
from adapter.recording.exchange_log import ExchangeLog
from adapter.server.response_store import ResponseStore

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

    Client = TypeVar("Client", OpenAI, AsyncOpenAI)
else:
    Client = TypeVar("Client")

_log = logging.getLogger("adapter")


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
) -> Client:
    """Return a copy of an ``OpenAI`` or ``AsyncOpenAI`` client that supports tools with any server.

    ``format``: how the model writes calls; None goes by its template where the server tells that, and by the model's
    name in each request; ``"from-template"`` takes what is derived from the template in any case. ``style``: how the
    prompt describes the tools (see `system_prompt`); None goes by the constraint. ``policy``: which text may become a
    call (see `Parser`).
    ``prompt``: who describes the tools to the model: its own template (``"own"``), we (``"words"``, as a ``style``
    means, too), or ``"auto"``, its template where the server allows that. ``template``: a file that holds it, for
    servers that fill none (see `adapter.backends.template_files`).
    ``stream_arguments``: hand on a call's arguments while they are written; else each call comes whole when it is
    closed. ``constraint``: how far the model is held to valid calls (see `adapter.grammars.constraint_mode`). ``grounded``: an
    enforced call has only values that the conversation mentions, where an argument's name tells what it is;
    ``ground``: values that you know (see `adapter.prompting.intent.grounding`).
    ``guide``: whether words decide what a model calls that is too small for it: ``"auto"`` (where its server says that
    it is small), ``"on"`` or ``"off"`` (see `adapter.prompting.intent.assist`).
    ``max_tools``: of a request with more tools only so many are described, those most like it, and one that finds the
    others. ``guardrails``: for which faults an answer is asked again before you see it, ``"on"``, ``"off"``, ``"all"``
    or names (see docs/reliability.md); ``retries``: at most how often for one request.
    ``profile``: what `adapter probe` found to be best, where the others say nothing: ``"auto"`` for that of the model
    that a request names, or a profile's name or file. ``record``: a file to which each exchange is added (see
    `adapter.protocols.recorded_exchange`), without credentials.
    The copy shares the connections of ``client``, which stays as it is.
    Raises UsageError for an unknown format, style, policy or profile, for a record that cannot be written, and for
    what is no such client.
    """
    from openai import AsyncOpenAI, OpenAI

    if not isinstance(client, OpenAI | AsyncOpenAI):
        raise UsageError(f"wrap() takes an OpenAI or AsyncOpenAI client, got {shown(client)}")
    check_types(
        "wrap",
        profile=(profile, str),
        record=(record, *PATH, NONE),
        template=(template, *PATH, NONE),
        guardrails=(guardrails, str),
        max_tools=(max_tools, int, NONE),
    )
    options = TranslationOptions(
        prompt=PromptSettings(format=format, style=style, mode=prompt, max_tools=max_tools),
        constraints=ConstraintSettings(mode=constraint, grounded=grounded, ground=ground),
        observation=Observation(
            observe=ExchangeLog(Path(record), Redactor(os.environ, [client.api_key])) if record is not None else None
        ),
        guide=guide,
        policy=policy,
        stream_arguments=stream_arguments,
        retry_policy=RetryPolicy(parse_guardrails(guardrails), retries, clock=time.monotonic),
    )
    options = validate_options(options)
    validate_profile_name(profile)
    process = TemplateWorker(load_chat_template(Path(template))) if template is not None else None
    server = _UpstreamInfo(str(client.base_url).rstrip("/"), options, profile, process)
    if isinstance(client, AsyncOpenAI):
        http = http_library_of(client._client)
        return client.copy(http_client=http.AsyncClient(transport=_AsyncTransport(http, client._client, server)))
    http = http_library_of(client._client)
    return client.copy(http_client=http.Client(transport=_Transport(http, client._client, server)))


def http_library_of(client: object) -> Any:
    """httpx2 with openai 3, httpx with openai 2 or where the user brought such a client."""
    names = (kind.__module__.partition(".")[0] for kind in type(client).__mro__)
    return sys.modules[next(name for name in names if name in ("httpx2", "httpx"))]


class _UpstreamInfo:
    """What is behind the client. Asked before the first request that may need to know, and once for each model."""

    def __init__(
        self, base_url: str, options: TranslationOptions, profile: str, template: TemplateWorker | None
    ) -> None:
        self._base_url, self._options, self._profile = base_url, options, profile
        self.template = template
        self._own: PromptDiscoverer | None = None
        self._guides: SmallModelCheck | None = None
        self._splits = False  # reasoning off answers, by itself
        self._is_known = options.constraints.mode == "off" and profile == "none" and not options.prompt.may_be_own

    def passage(self, http: Any, sent: Any, options: TranslationOptions) -> OpenAIExchange:
        return OpenAIExchange(http, sent, options, lambda: self._store, splits=self._splits)

    @cached_property
    def _store(self) -> ResponseStore:
        """Of the answers that the client comes back to, in memory."""
        store = ResponseStore()
        weakref.finalize(self, store.close)
        return store

    def options(self, sent: Any) -> TranslationOptions:
        if not is_chat(sent):
            return self._options
        if not self._is_known:
            if kind := detect_server_kind(self._base_url):
                endpoint = Endpoint(self._base_url, kind)
                self._splits = kind in ("llama.cpp", "ollama")
                if self._options.constraints.mode != "off":
                    self._options = self._options.with_constraints(enforce=partial(constraint_fields, kind))
                setup_of, notes = setup_lookup(self._profile, endpoint)
                tokens = discover_control_tokens(endpoint, self.template)
                self._options = replace(self._options.with_prompt(control_tokens=tokens), setup_of=setup_of)
                self._own = PromptDiscoverer(endpoint, self.template) if self._options.prompt.may_be_own else None
                self._guides = SmallModelCheck(endpoint, self._options.guide)
                for note in notes:
                    _log.info(note)
            self._is_known = True
        if self._own is None:
            return self._options
        model = _model_of(sent)
        found = self._own.discover(model)
        small = self._guides.assists_for(model) if self._guides is not None and found.own is None else None
        told = found.recognised
        if told is not None and self._options.prompt.from_template:
            told = told.from_template()
        if told is not None and (told.by == "template" or self._options.prompt.from_template):
            _log.info("format: %s", told)
        recognised = told.certain if told is not None else None
        options = self._options.with_prompt(own=found.own, template=found.template, recognised=recognised)
        return replace(options, assists=small)

    async def options_soon(self, sent: Any) -> TranslationOptions:
        is_ready = self._is_known and self._own is None
        return self._options if is_ready else await asyncio.to_thread(self.options, sent)

    def rendered(self, step: RenderTemplate) -> str:
        if self.template is None:
            raise TemplatePromptError("no template was named")
        try:
            return self.template.render(step.messages, step.tools, step.variables)
        except ChatTemplateError as fault:
            raise TemplatePromptError(str(fault)) from fault


def _model_of(sent: Any) -> str:
    try:
        body = json.loads(sent.content)
    except ValueError:
        return ""
    return str(body.get("model") or "") if isinstance(body, dict) else ""


class _Transport:
    """Sends through the user's own HTTP client, with its proxies, certificates and connections."""

    def __init__(self, http: Any, client: Any, server: _UpstreamInfo) -> None:
        self._http, self._client, self._server = http, client, server

    def handle_request(self, sent: Any) -> Any:
        passage = self._server.passage(self._http, sent, self._server.options(sent))
        if passage.refused:
            return passage.refused
        response = self._sent(passage)
        if passage.refused:
            return passage.refused
        if passage.request is None or response.status_code != 200:
            return passage.untouched(response, response.iter_raw())
        if passage.request.client.stream:
            return passage.stream(response, self._pieces(response, passage))
        while True:
            body = passage.whole(response, response.read())
            if not isinstance(body, dict):
                return body
            again = self._again(passage, body)
            if again.status_code != 200:
                return passage.abandoned_response(response) or passage.untouched(again, again.iter_raw())
            response = again

    def _sent(self, passage: OpenAIExchange) -> Any:
        """The answer to the first request; to one in words where the model's own prompt cannot be had."""
        if passage.request is None:
            return self._client.send(passage.sent, stream=True)
        try:
            return self._asked(passage, passage.request.body)
        except TemplatePromptError as fault:
            body = passage.fall_back_to_words(fault)
            return None if body is None else self._asked(passage, body)

    def _again(self, passage: OpenAIExchange, body: JsonObject) -> Any:
        """The answer to a further request; a refusal where the model's own prompt cannot be had for that."""
        try:
            return self._asked(passage, body)
        except TemplatePromptError as fault:
            return passage.refusal(fault)

    def _asked(self, passage: OpenAIExchange, body: JsonObject) -> Any:
        steps = prompt_steps(V1_CHAT, body)
        try:
            step = next(steps)
            while True:
                if isinstance(step, RenderTemplate):
                    step = steps.send(self._server.rendered(step))
                else:
                    step = steps.send(_json(self._client.send(passage.build_request(step)).content))
        except StopIteration as stop:
            return self._client.send(passage.build_request(stop.value), stream=True)

    def _pieces(self, response: Any, passage: OpenAIExchange) -> Iterator[bytes]:
        streamed = passage.streamed()
        while True:
            try:
                for piece in response.iter_bytes():
                    yield streamed.feed(piece)
                    if streamed.is_done:
                        break
            except (self._http.NetworkError, self._http.RemoteProtocolError):
                pass  # the end of the stream says what that means
            body = streamed.next_body()
            if body is None:
                break
            response.close()
            response = self._again(passage, body)
            if response.status_code != 200:
                before = streamed.give_up()
                if before is None:
                    yield streamed.fail(relay_error(response.status_code, response.read()))
                    return
                yield before
                break
        yield streamed.close()

    def __enter__(self) -> _Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The connections are those of the client that was wrapped: it closes them."""


class _AsyncTransport:
    """As `_Transport`."""

    def __init__(self, http: Any, client: Any, server: _UpstreamInfo) -> None:
        self._http, self._client, self._server = http, client, server

    async def handle_async_request(self, sent: Any) -> Any:
        passage = self._server.passage(self._http, sent, await self._server.options_soon(sent))
        if passage.refused:
            return passage.refused
        response = await self._sent(passage)
        if passage.refused:
            return passage.refused
        if passage.request is None or response.status_code != 200:
            return passage.untouched(response, response.aiter_raw())
        if passage.request.client.stream:
            return passage.stream(response, self._pieces(response, passage))
        while True:
            body = passage.whole(response, await response.aread())
            if not isinstance(body, dict):
                return body
            again = await self._again(passage, body)
            if again.status_code != 200:
                return passage.abandoned_response(response) or passage.untouched(again, again.aiter_raw())
            response = again

    async def _sent(self, passage: OpenAIExchange) -> Any:
        if passage.request is None:
            return await self._client.send(passage.sent, stream=True)
        try:
            return await self._asked(passage, passage.request.body)
        except TemplatePromptError as fault:
            body = passage.fall_back_to_words(fault)
            return None if body is None else await self._asked(passage, body)

    async def _again(self, passage: OpenAIExchange, body: JsonObject) -> Any:
        try:
            return await self._asked(passage, body)
        except TemplatePromptError as fault:
            return passage.refusal(fault)

    async def _asked(self, passage: OpenAIExchange, body: JsonObject) -> Any:
        steps = prompt_steps(V1_CHAT, body)
        try:
            step = next(steps)
            while True:
                if isinstance(step, RenderTemplate):
                    step = steps.send(await asyncio.to_thread(self._server.rendered, step))
                else:
                    step = steps.send(_json((await self._client.send(passage.build_request(step))).content))
        except StopIteration as stop:
            return await self._client.send(passage.build_request(stop.value), stream=True)

    async def _pieces(self, response: Any, passage: OpenAIExchange) -> AsyncIterator[bytes]:
        streamed = passage.streamed()
        while True:
            try:
                async for piece in response.aiter_bytes():
                    yield streamed.feed(piece)
                    if streamed.is_done:
                        break
            except (self._http.NetworkError, self._http.RemoteProtocolError):
                pass  # the end of the stream says what that means
            body = streamed.next_body()
            if body is None:
                break
            await response.aclose()
            response = await self._again(passage, body)
            if response.status_code != 200:
                before = streamed.give_up()
                if before is None:
                    yield streamed.fail(relay_error(response.status_code, await response.aread()))
                    return
                yield before
                break
        yield streamed.close()

    async def __aenter__(self) -> _AsyncTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """The connections are those of the client that was wrapped: it closes them."""


def _json(content: bytes) -> Json:
    try:
        return json.loads(content)
    except ValueError:
        return None
