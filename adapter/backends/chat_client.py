"""Talking to a model server: plain text in, plain text out, chunk by chunk.

Nothing here knows about tools: ``tools`` are sent only for the model's own template to describe them, and
what comes back is text (`adapter.protocols.template_prompt`); for half of all servers drop them silently and the others
turn text into calls by rules of their own. What may help is what `adapter.backends.constraint_fields` gives, the grammar
that the server enforces while the model writes.

Retries are decided by what failed (`adapter.protocols.upstream_failures`), never after the first chunk
has been handed on. Every failure becomes a TransportError that says what was
tried, what answered and what to do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from adapter.backends.constraint_fields import constraint_fields
from adapter.backends.context_size import ContextSize, query_context_size
from adapter.backends.control_token_discovery import discover_control_tokens
from adapter.backends.endpoint_discovery import START_ONE, Endpoint, Kind, find_endpoint, sees_images
from adapter.backends.prompt_discovery import PromptDiscoverer, PromptDiscovery
from adapter.backends.retries import retry_policy
from adapter.backends.sdk_errors import is_dropped, is_silent, is_unreached, reason_of, sdk_errors, status_of
from adapter.backends.stream_chunks import INCOMPLETE, Chunk, parse_chunk
from adapter.backends.template_files import TemplateWorker
from adapter.core.arguments import NONE, check_types
from adapter.core.errors import TransportError
from adapter.core.events import Json, JsonObject
from adapter.core.text.redaction import Redactor
from adapter.prompting.chat_template import ChatTemplateError
from adapter.protocols.template_prompt import HttpPost, RenderTemplate, TemplatePromptError, prompt_steps, streams_lines
from adapter.protocols.upstream_failures import UNKNOWN, UpstreamFailure, classify_failure
from adapter.protocols.usage import Usage

if TYPE_CHECKING:
    from openai import OpenAI, Stream
    from openai.types.chat import ChatCompletionChunk
    from tenacity import RetryCallState

__all__ = ["ChatClient", "Chunk", "Endpoint", "Kind", "Usage", "constraint_fields", "find_endpoint"]

Message: TypeAlias = Mapping[str, Json]
_Events: TypeAlias = "Stream[ChatCompletionChunk] | _ResponseLines"
_CHAT = "/v1/chat/completions"
_T = TypeVar("_T")


REFUSED_PATIENCE_S = 3.0
"""How long a refused connection is tried again: a server may be just starting, but mostly there is none."""


class ChatClient:
    """A connection to one model on one server.

    ``model``: None takes the server's first that is no embedding model.
    ``api_key``: None takes ``OPENAI_API_KEY``, except for a local server, which never sees it.
    ``timeout_s``: how long a server may stay silent; reading a long prompt takes a slow machine minutes.
    ``patience_s``: how long a server that is still loading, or busy, is asked again.
    ``template``: fills the user's chat template, where the server fills none.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        patience_s: float = 120.0,
        template: TemplateWorker | None = None,
    ) -> None:
        check_types(
            "ChatClient",
            endpoint=(endpoint, Endpoint),
            model=(model, str, NONE),
            api_key=(api_key, str, NONE),
            timeout_s=(timeout_s, float),
            patience_s=(patience_s, float),
        )
        self.endpoint = endpoint
        self.template = template
        self._own = PromptDiscoverer(endpoint, template)
        self._model = model
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._opened: OpenAI | None = None
        self._control_tokens: tuple[str, ...] | None = None

    @property
    def model(self) -> str:
        """The name that is sent. Asks the server once if none was given."""
        if self._model is None:
            names = self.models()
            if not names:
                raise TransportError(
                    f"{self.endpoint.display_url} serves no model. Load one there (for Ollama: `ollama pull qwen3:4b`), "
                    "or name one."
                )
            self._model = next((name for name in names if "embed" not in name.lower()), names[0])
        return self._model

    def models(self) -> list[str]:
        """The names of the models that the server has."""
        return self._patiently(lambda: [model.id for model in self._client().models.list()])

    def context(self) -> ContextSize:
        """How much of a conversation the server holds. Has Ollama load the model, which else tells nothing."""
        return query_context_size(self.endpoint, self.model, load=True)

    def own_prompt(self) -> PromptDiscovery:
        """How the model gets the prompt that its own template makes. Asks the server, the first time."""
        return self._own.discover(self.model)

    def control_tokens(self) -> tuple[str, ...]:
        """What the server tells of the model's control tokens. Asks it, the first time."""
        if self._control_tokens is None:
            self._control_tokens = discover_control_tokens(self.endpoint, self.template)
        return self._control_tokens

    def sees_images(self) -> bool | None:
        """Whether the model takes images; None where the server does not tell."""
        return sees_images(self.endpoint, self.model)

    def stream(
        self,
        messages: Sequence[Message],
        *,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        extra: Mapping[str, Json] | None = None,
    ) -> Generator[Chunk, None, None]:
        """The answer, as it is written. Closing the generator closes the connection, which stops the server.

        ``extra``: further fields of the request, such as `constraint_fields`.
        Raises TransportError, at the first ``next`` or later.
        """
        check_types(
            "ChatClient.stream",
            messages=(messages, Iterable),
            stop=(stop, Iterable),
            max_tokens=(max_tokens, int, NONE),
            temperature=(temperature, float, NONE),
            seed=(seed, int, NONE),
            extra=(extra, Mapping, NONE),
        )
        for message in messages:
            check_types("ChatClient.stream", message=(message, Mapping))
        for text in stop:
            check_types("ChatClient.stream", stop=(text, str))
        given = {"stop": list(stop) or None, "max_tokens": max_tokens, "temperature": temperature, "seed": seed}
        fields = {name: value for name, value in given.items() if value is not None} | dict(extra or {})
        body = self.body(messages, fields)
        response, first = self._patiently(lambda: self._open(body))
        try:
            yield from self._chunks(response, first)
        finally:
            response.close()

    def body(self, messages: Sequence[Message], fields: JsonObject) -> JsonObject:
        """What is asked for. Asks the server for its model once if none was given."""
        return {
            "model": self.model,
            "messages": [dict(message) for message in messages],
            "stream_options": {"include_usage": True},
            **({"return_progress": True} if self.endpoint.kind == "llama.cpp" else {}),
            **fields,
        }

    def request(self, body: JsonObject) -> tuple[str, JsonObject]:
        """The address and the body of a request that streams. May ask what the model's template makes of it."""
        steps = prompt_steps(_CHAT, body)
        try:
            step = next(steps)
            while True:
                step = steps.send(self._performed(step))
        except StopIteration as stop:
            last: HttpPost = stop.value
        except TemplatePromptError as fault:
            raise TransportError(
                f"the model's chat template does not take this conversation: {fault}. "
                "Set prompt to words, which leaves it out."
            ) from fault
        path = last.path
        address = self.endpoint.base_url + path[3:] if path.startswith("/v1/") else self.endpoint.root + path
        return address, {**last.body, "stream": True}

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -------------------------------------------------------------- one request

    def _client(self) -> OpenAI:
        from openai import DefaultHttpxClient, OpenAI

        if self._opened is None:
            # HTTP_PROXY is not meant for this machine.
            http = DefaultHttpxClient(trust_env=not self.endpoint.is_local)
            self._opened = OpenAI(**self.sdk_settings(), http_client=http)
        return self._opened

    def sdk_settings(self) -> dict[str, Any]:
        """What a client of the SDK is made with, but its HTTP client."""
        from openai import Timeout

        # The SDK insists on a key; a local server needs none and must not learn the user's.
        key = self._api_key or ("none" if self.endpoint.is_local else os.environ.get("OPENAI_API_KEY", "none"))
        timeout = Timeout(self._timeout_s, connect=5.0)
        return {"base_url": self.endpoint.base_url, "api_key": key, "max_retries": 0, "timeout": timeout}

    def _open(self, body: JsonObject) -> tuple[_Events, Json]:
        """A stream and its first event (None if it has none), so that all that fails until then may be tried again."""
        from openai import Stream
        from openai.types.chat import ChatCompletionChunk

        url, sent = self.request(body)
        kind = Stream[ChatCompletionChunk]  # also of events that are none of a chat, which `read` takes for such
        stream = self._client().post(url, body=sent, cast_to=ChatCompletionChunk, stream=True, stream_cls=kind)
        response: _Events = _ResponseLines(stream) if streams_lines(body) else stream
        try:
            return response, next(response, None)
        except BaseException:
            response.close()
            raise

    def _performed(self, step: HttpPost | RenderTemplate) -> Json:
        """What a step on the way to an answer gives; what a server refuses, as it says it."""
        if isinstance(step, RenderTemplate):
            if self.template is None:
                raise TemplatePromptError("no template was named")
            try:
                return self.template.render(step.messages, step.tools, step.variables)
            except ChatTemplateError as fault:
                raise TemplatePromptError(str(fault)) from fault
        try:
            return self._client().post(self.endpoint.root + step.path, body=step.body, cast_to=object)
        except sdk_errors() as error:
            if status_of(error) is None:
                raise
            return {"error": reason_of(error)}

    def _chunks(self, response: _Events, first: Json) -> Iterator[Chunk]:
        self.check_first(first, response.response.headers)
        is_finished, event = False, first
        while event is not None:
            chunk = parse_chunk(event)
            is_finished = is_finished or chunk.finish_reason is not None
            yield chunk
            event = self._next_event(response)
        if not is_finished:
            yield Chunk("", finish_reason=INCOMPLETE)

    def check_first(self, first: Json, headers: Mapping[str, str]) -> None:
        """Raises TransportError when what came is no stream. ``first``: the first event, None without any."""
        sent_as = headers.get("content-type", "")
        if first is None and "event-stream" not in sent_as and "ndjson" not in sent_as:
            raise TransportError(f"{self.endpoint.display_url} answered {sent_as or 'nothing'}. {UNKNOWN.advice}")

    def _next_event(self, response: _Events) -> Json:
        """None at the end, also where the connection was dropped: what came so far is still of use."""
        try:
            return next(response, None)
        except sdk_errors() as error:
            if is_dropped(error):
                return None
            raise self.explained(error) from error

    # ---------------------------------------------------------------- failures

    def _patiently(self, attempt: Callable[[], _T]) -> _T:
        """What ``attempt`` gives, asked again while that may help."""
        from tenacity import Retrying

        try:
            return Retrying(**self.patience())(attempt)
        except sdk_errors() as error:
            raise self.explained(error) from error

    def patience(self) -> dict[str, Any]:
        """Settings for tenacity: retry while that may help."""
        from tenacity import retry_if_exception

        is_temporary = retry_if_exception(lambda error: self._failure(error).retry != "never")
        return retry_policy(is_temporary, self._retry_limit_s) | {"reraise": True}

    def _retry_limit_s(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        is_brief = error is not None and self._failure(error).retry == "briefly"
        return min(self._patience_s, REFUSED_PATIENCE_S) if is_brief else self._patience_s

    def _failure(self, error: BaseException) -> UpstreamFailure:
        if isinstance(error, sdk_errors()):
            if is_silent(error):
                return UpstreamFailure("never", "Give it more time (timeout_s), or a shorter prompt.")
            if is_dropped(error):
                return UpstreamFailure("briefly", f"{START_ONE}, or give another URL.")
            if (status := status_of(error)) is not None:
                return classify_failure(status, str(error))
        return UNKNOWN

    def explained(self, error: BaseException) -> TransportError:
        """In the server's own words, which may repeat the key that it was sent. May ask it which models it has."""
        return TransportError(Redactor(os.environ, [self._api_key]).redact(self._explanation(error)))

    def _explanation(self, error: BaseException) -> str:
        failure, url = self._failure(error), self.endpoint.display_url
        if is_silent(error):
            return f"{url} said nothing for {self._timeout_s:g} s. {failure.advice}"
        if is_dropped(error) and not is_unreached(error):
            return f"{url} took the request and gave no answer ({reason_of(error)}). Ask again, or see its log."
        if is_dropped(error):
            return f"Nothing answers at {url} ({reason_of(error)}). {failure.advice}"
        advice = self._models_advice() if failure.missing_model else failure.advice
        status = status_of(error)
        return f"{url} answered {status or 'nonsense'}: {reason_of(error)}. {advice}"

    def _models_advice(self) -> str:
        try:
            names = [model.id for model in self._client().models.list()]
        except sdk_errors():
            return "Which models it has, it does not tell."
        nearest = get_close_matches(self._model or "", names, n=1, cutoff=0.4)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        return f"It has: {', '.join(names[:20]) or 'none'}.{hint}"


class _ResponseLines:
    """The events of a stream that are lines of JSON, as Ollama's own interface has them."""

    def __init__(self, stream: Stream[ChatCompletionChunk]) -> None:
        self.response = stream.response
        self._lines = stream.response.iter_lines()

    def __next__(self) -> Json:
        while True:
            if line := next(self._lines).strip():
                return json.loads(line)

    def close(self) -> None:
        self.response.close()
