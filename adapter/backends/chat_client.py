"""A client for model servers: it sends text, and receives text in streamed chunks.

This module does not handle tool calls, because half of all servers silently drop the tools in a request, and some parse
calls by their own rules. It sends ``tools`` only to render the model's chat template
(`adapter.protocols.template_prompt`); the answer is text even then. `adapter.backends.constraint_fields` can enforce a
grammar.

Failures before the first chunk are retried, depending on their cause (`adapter.protocols.upstream_failures`). Every
failure becomes a TransportError that states the request, the answer and the next step.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from adapter.backends.constraint_fields import build_constraint_fields
from adapter.backends.context_size import ContextSize, query_context_size
from adapter.backends.control_token_discovery import discover_control_tokens
from adapter.backends.endpoint_discovery import START_SERVER, Endpoint, Kind, find_endpoint, sees_images
from adapter.backends.openai_sdk_errors import (
    find_reason,
    find_status,
    is_connect_error,
    is_connection_error,
    is_timeout,
    list_sdk_errors,
)
from adapter.backends.prompt_discovery import PromptDiscoverer, PromptDiscovery
from adapter.backends.stream_chunks import Chunk, ChunkReader
from adapter.backends.template_files import TemplateWorker, run_render_step
from adapter.core.argument_checks import NONE, check_types
from adapter.core.errors import TransportError
from adapter.core.events import Json, JsonObject
from adapter.core.text.redaction import Redactor
from adapter.protocols.template_prompt import (
    HttpPost,
    RenderTemplate,
    TemplatePromptError,
    iter_prompt_steps,
    streams_lines,
)
from adapter.protocols.upstream_failures import UNKNOWN, UpstreamFailure, classify_failure
from adapter.protocols.usage import Usage

if TYPE_CHECKING:
    from openai import OpenAI, Stream
    from tenacity import RetryCallState

__all__ = ["ChatClient", "Chunk", "Endpoint", "Kind", "Usage", "build_constraint_fields", "find_endpoint"]

Message: TypeAlias = Mapping[str, Json]
_Events: TypeAlias = "Stream[object] | _ResponseLines"
_CHAT = "/v1/chat/completions"
_T = TypeVar("_T")


_log = logging.getLogger("adapter")

REFUSED_PATIENCE_S = 3.0
"""Maximum time, in seconds, to retry while the connection is refused, usually because no server is running."""
MAX_PAUSE_S = 5.0
"""Maximum pause between retries, in seconds."""


class ChatClient:
    """A connection to one model on one server.

    ``endpoint`` may be the server's URL. Without ``model``, the server's first model that is not an embedding model is
    used. ``api_key`` defaults to ``OPENAI_API_KEY``, which is never sent to a local server. ``timeout_s`` is the
    maximum time without data, in seconds; a slow machine needs minutes for a long prompt. ``patience_s`` is the maximum
    time, in seconds, to retry a request while the server is loading or busy. ``template`` renders the user's chat
    template, if the server cannot render one.

    Raises UsageError for an invalid URL, and TransportError if no server answers at it.
    """

    def __init__(
        self,
        endpoint: Endpoint | str,
        model: str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        patience_s: float = 120.0,
        template: TemplateWorker | None = None,
    ) -> None:
        check_types(
            "ChatClient",
            endpoint=(endpoint, Endpoint, str),
            model=(model, str, NONE),
            api_key=(api_key, str, NONE),
            timeout_s=(timeout_s, float),
            patience_s=(patience_s, float),
        )
        self.endpoint = find_endpoint(endpoint) if isinstance(endpoint, str) else endpoint
        self.template = template
        self._own = PromptDiscoverer(self.endpoint, template)
        self._model = model
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._open_client: OpenAI | None = None
        self._control_tokens: tuple[str, ...] | None = None

    @property
    def model(self) -> str:
        """The model's name in requests. Queries the server once if no name was given."""
        if self._model is None:
            names = self.models()
            if not names:
                raise TransportError(
                    f"{self.endpoint.display_url} serves no model. Load one (for Ollama: `ollama pull qwen3:4b`), "
                    "or name one."
                )
            self._model = next((name for name in names if "embed" not in name.lower()), names[0])
        return self._model

    def models(self) -> list[str]:
        """Return the names of the server's models."""
        return self._with_retries(lambda: [model.id for model in self._create_sdk_client().models.list()])

    def context(self) -> ContextSize:
        """Return the size of the server's context. Ollama loads the model first; otherwise, it reports no size."""
        return query_context_size(self.endpoint, self.model, load=True)

    def discover_own_prompt(self) -> PromptDiscovery:
        """Return whether and how the model's own chat template can be used. Queries the server on the first call."""
        return self._own.discover(self.model)

    def control_tokens(self) -> tuple[str, ...]:
        """Return the model's control tokens. Queries the server on the first call."""
        if self._control_tokens is None:
            self._control_tokens = discover_control_tokens(self.endpoint, self.template)
        return self._control_tokens

    def sees_images(self) -> bool | None:
        """Return whether the model accepts images, or None if the server does not report it."""
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
        """Stream the answer. Closing the generator closes the connection, which stops the server.

        ``extra`` has additional fields of the request, such as the result of `build_constraint_fields`. Iterating over
        the stream raises TransportError if the server cannot be reached or sends an error.
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
        options = {"stop": list(stop) or None, "max_tokens": max_tokens, "temperature": temperature, "seed": seed}
        fields = {name: value for name, value in options.items() if value is not None} | dict(extra or {})
        body = self.build_body(messages, fields)
        response, first = self._with_retries(lambda: self._open(body))
        try:
            yield from self._read_chunks(response, first)
        finally:
            response.close()

    def build_body(self, messages: Sequence[Message], fields: JsonObject) -> JsonObject:
        """Return the body of a request. Without a model name, the first call queries the server for its models."""
        return {
            "model": self.model,
            "messages": [dict(message) for message in messages],
            "stream_options": {"include_usage": True},
            **({"return_progress": True} if self.endpoint.kind == "llama.cpp" else {}),
            **fields,
        }

    def build_request(self, body: JsonObject) -> tuple[str, JsonObject]:
        """Return the URL and body of a streaming request. The server may be queried to render the template."""
        steps = iter_prompt_steps(_CHAT, body)
        try:
            step = next(steps)
            while True:
                step = steps.send(self._perform(step))
        except StopIteration as stop:
            last: HttpPost = stop.value
        except TemplatePromptError as fault:
            raise TransportError(
                f"the model's chat template rejects this conversation: {fault}. "
                "With prompt='words' (--prompt words), a generated prompt describes the tools instead."
            ) from fault
        return self.endpoint.build_url(last.path), {**last.body, "stream": True}

    def close(self) -> None:
        if self._open_client is not None:
            self._open_client.close()
            self._open_client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -------------------------------------------------------------- one request

    def _create_sdk_client(self) -> OpenAI:
        import ssl

        from openai import DefaultHttpxClient, OpenAI

        if self._open_client is None:
            # HTTP_PROXY does not apply to servers on this machine. Without TLS, no certificates are loaded for them,
            # which would take longer than all else here. Other servers may redirect to TLS.
            is_local = self.endpoint.is_local
            needs_certificates = not is_local or self.endpoint.base_url.startswith("https:")
            verify = needs_certificates or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            http = DefaultHttpxClient(trust_env=not is_local, verify=verify)
            self._open_client = OpenAI(**self.build_sdk_settings(), http_client=http)
        return self._open_client

    def build_sdk_settings(self) -> dict[str, Any]:
        """Return the arguments for a client of the openai SDK, except its HTTP client."""
        from openai import Timeout

        # The SDK requires a key; a local server needs none and must not learn the user's.
        key = self._api_key or ("none" if self.endpoint.is_local else os.environ.get("OPENAI_API_KEY", "none"))
        timeout = Timeout(self._timeout_s, connect=5.0)
        return {"base_url": self.endpoint.base_url, "api_key": key, "max_retries": 0, "timeout": timeout}

    own_prompt, body, request, sdk_settings = discover_own_prompt, build_body, build_request, build_sdk_settings
    """Former names of these methods."""

    def _open(self, body: JsonObject) -> tuple[_Events, Json]:
        """Return a stream and its first event (None if it has none). Failures before that event can be retried."""
        from openai import Stream

        url, sent = self.build_request(body)
        # Events stay JSON: a model object for each would take most of the time, and servers also send other fields.
        sdk_client = self._create_sdk_client()
        stream = sdk_client.post(url, body=sent, cast_to=object, stream=True, stream_cls=Stream[object])
        response: _Events = _ResponseLines(stream) if streams_lines(body) else stream
        try:
            return response, next(response, None)
        except BaseException:
            response.close()
            raise

    def _perform(self, step: HttpPost | RenderTemplate) -> Json:
        """Run a step that builds the prompt, and return its result, or an object with ``error`` if it is refused."""
        if isinstance(step, RenderTemplate):
            return run_render_step(step, self.template)
        try:
            return self._create_sdk_client().post(self.endpoint.root + step.path, body=step.body, cast_to=object)
        except list_sdk_errors() as error:
            if find_status(error) is None:
                raise
            return {"error": find_reason(error)}

    def _read_chunks(self, response: _Events, first: Json) -> Iterator[Chunk]:
        self.check_first_event(first, response.response.headers)
        event, reader = first, ChunkReader()
        while event is not None:
            yield reader.parse(event)
            event = self._read_event(response)
        yield from reader.list_missing()

    def check_first_event(self, first: Json, headers: Mapping[str, str]) -> None:
        """Raise TransportError if the answer is not a stream. ``first`` is the first event or None."""
        sent_as = headers.get("content-type", "")
        if first is None and "event-stream" not in sent_as and "ndjson" not in sent_as:
            raise TransportError(f"{self.endpoint.display_url} sent {sent_as or 'nothing'}. {UNKNOWN.advice}")

    def _read_event(self, response: _Events) -> Json:
        """Return the next event, or None at the end of the stream. A dropped connection also counts as the end, because
        the partial answer is still useful."""
        try:
            return next(response, None)
        except list_sdk_errors() as error:
            if is_connection_error(error):
                return None
            raise self.to_transport_error(error) from error

    # ---------------------------------------------------------------- failures

    def _with_retries(self, attempt: Callable[[], _T]) -> _T:
        from tenacity import Retrying

        try:
            return Retrying(**self.build_retry_settings())(attempt)
        except list_sdk_errors() as error:
            raise self.to_transport_error(error) from error

    def build_retry_settings(self) -> dict[str, Any]:
        """Return tenacity settings that retry temporary failures."""
        from tenacity import retry_if_exception, wait_random_exponential

        is_temporary = retry_if_exception(lambda error: self._describe_failure(error).retry != "never")
        wait = wait_random_exponential(multiplier=0.25, max=MAX_PAUSE_S)
        stop, note = self._has_waited_enough, self._note_second_wait
        return {"retry": is_temporary, "wait": wait, "stop": stop, "before_sleep": note, "reraise": True}

    def _note_second_wait(self, state: RetryCallState) -> None:
        """Log why a request takes long, at its second retry. The server's own message is left out, because it could
        contain terminal codes."""
        error = state.outcome.exception() if state.outcome else None
        if error is None or state.attempt_number != 2:
            return
        failure = self._describe_failure(error)
        if failure.retry == "patiently":
            url, status, limit_s = self.endpoint.display_url, find_status(error), self._patience_s
            _log.warning("%s answered %s; retrying for up to %g s. %s", url, status, limit_s, failure.advice)

    def _has_waited_enough(self, state: RetryCallState) -> bool:
        return (state.seconds_since_start or 0.0) + state.upcoming_sleep > self._get_retry_limit_s(state)

    def _get_retry_limit_s(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        is_brief = error is not None and self._describe_failure(error).retry == "briefly"
        return min(self._patience_s, REFUSED_PATIENCE_S) if is_brief else self._patience_s

    def _describe_failure(self, error: BaseException) -> UpstreamFailure:
        if isinstance(error, list_sdk_errors()):
            if is_timeout(error):
                return UpstreamFailure("never", "Increase timeout_s, or shorten the prompt.")
            if is_connection_error(error):
                return UpstreamFailure("briefly", f"{START_SERVER}, or pass another URL.")
            if (status := find_status(error)) is not None:
                return classify_failure(status, str(error))
        return UNKNOWN

    def to_transport_error(self, error: BaseException) -> TransportError:
        """Convert an SDK error to a TransportError without keys in its message. May query the server for its models."""
        return TransportError(Redactor(os.environ, [self._api_key]).redact(self._explain(error)))

    def _explain(self, error: BaseException) -> str:
        failure, url = self._describe_failure(error), self.endpoint.display_url
        if is_timeout(error):
            return f"{url} sent nothing for {self._timeout_s:g} s. {failure.advice}"
        if is_connection_error(error) and not is_connect_error(error):
            reason = find_reason(error)
            return f"{url} accepted the request but did not answer ({reason}). Retry, or check the server's log."
        if is_connection_error(error):
            return f"nothing answers at {url} ({find_reason(error)}). {failure.advice}"
        advice = self._describe_models() if failure.missing_model else failure.advice
        return f"{url} answered {find_status(error) or 'unreadable data'}: {find_reason(error)}. {advice}"

    def _describe_models(self) -> str:
        try:
            names = [model.id for model in self._create_sdk_client().models.list()]
        except list_sdk_errors():
            return "The server does not list its models."
        nearest = get_close_matches(self._model or "", names, n=1, cutoff=0.4)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        return f"The server's models are: {', '.join(names[:20]) or 'none'}{more}.{hint}"


class _ResponseLines:
    """An iterator of the events in a stream of JSON lines, as in Ollama's own API."""

    def __init__(self, stream: Stream[object]) -> None:
        self.response = stream.response
        self._lines = stream.response.iter_lines()

    def __next__(self) -> Json:
        while True:
            if line := next(self._lines).strip():
                return json.loads(line)

    def close(self) -> None:
        self.response.close()
