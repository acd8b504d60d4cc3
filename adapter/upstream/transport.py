"""Talking to a model server: plain text in, plain text out, chunk by chunk.

Nothing here knows about tools: no ``tools`` are ever sent, for half of all
servers drop them silently and the others turn text into calls by rules of
their own. What may help is `constraint_fields`, the grammar that the server
enforces while the model writes.

Retries are decided by what failed (`adapter.wire.failures`), never after the first chunk
has been handed on. Every failure becomes a TransportError that says what was
tried, what answered and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from adapter.constraints.frames import opening_of
from adapter.constraints.grammar import gbnf, json_schema
from adapter.constraints.shapes import Choices
from adapter.errors import TransportError, UsageError
from adapter.events import Json, JsonObject
from adapter.text.secrets import Secrets
from adapter.tools import Tool, ToolSet
from adapter.upstream.context import Context, context_of
from adapter.upstream.endpoints import BUILT_IN, START_ONE, Endpoint, Kind, find_endpoint, sees_images
from adapter.upstream.sdk_errors import is_dropped, is_silent, reason_of, sdk_errors, status_of
from adapter.wire.failures import UNKNOWN, Failure, failure_of
from adapter.wire.llama_cpp import as_chat, completion_request, is_lazy, lazy_fields, template_request, without_grammar

if TYPE_CHECKING:
    from openai import OpenAI, Stream
    from openai.types.chat import ChatCompletionChunk
    from tenacity import RetryCallState

__all__ = ["ChatClient", "Chunk", "Endpoint", "Kind", "constraint_fields", "find_endpoint"]

Message: TypeAlias = Mapping[str, Json]
_T = TypeVar("_T")

INCOMPLETE = "incomplete"
"""The finish reason of a stream that just stopped: a call in it must be taken as cut off."""


REFUSED_PATIENCE_S = 3.0
"""How long a refused connection is tried again: a server may be just starting, but mostly there is none."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the server counted, in tokens. ``reused``: of the prompt, those that it had read before; None: unsaid."""

    prompt: int
    written: int = 0
    reused: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an answer. The last ones have the ``finish_reason`` and, where the server counts, the ``usage``.
    ``raw`` is the server's own event."""

    text: str
    reasoning: str = ""
    finish_reason: str | None = None
    raw: JsonObject | None = None
    usage: Usage | None = None


class ChatClient:
    """One model on one server.

    ``model``: None takes the server's first that is no embedding model.
    ``api_key``: None takes ``OPENAI_API_KEY``, except for a local server, which never sees it.
    ``timeout_s``: how long a server may stay silent; reading a long prompt takes a slow machine minutes.
    ``patience_s``: how long a server that is still loading, or busy, is asked again.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        patience_s: float = 120.0,
    ) -> None:
        self.endpoint = endpoint
        self._model = model
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._opened: OpenAI | None = None

    @property
    def model(self) -> str:
        """The name that is sent. Asks the server once if none was given."""
        if self._model is None:
            names = self.models()
            if not names:
                raise TransportError(
                    f"{self.endpoint.shown} serves no model. Load one there (for Ollama: `ollama pull qwen3:4b`), "
                    "or name one with --model."
                )
            self._model = next((name for name in names if "embed" not in name.lower()), names[0])
        return self._model

    def models(self) -> list[str]:
        """The names of the models that the server has."""
        return self._patiently(lambda: [model.id for model in self._client().models.list()])

    def context(self) -> Context:
        """How much of a conversation the server holds. Has Ollama load the model, which else tells nothing."""
        return context_of(self.endpoint, self.model, load=True)

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
        given = {"stop": list(stop) or None, "max_tokens": max_tokens, "temperature": temperature, "seed": seed}
        body: JsonObject = {
            "model": self.model,
            "messages": [dict(message) for message in messages],
            "stream_options": {"include_usage": True},
        }
        body |= {name: value for name, value in given.items() if value is not None} | dict(extra or {})
        response, first = self._patiently(lambda: self._open(body))
        try:
            yield from self._chunks(response, first)
        finally:
            response.close()

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
        from openai import DefaultHttpxClient, OpenAI, Timeout

        if self._opened is None:
            local = self.endpoint.is_local
            self._opened = OpenAI(
                base_url=self.endpoint.base_url,
                # The SDK insists on a key; a local server needs none and must not learn the user's.
                api_key=self._api_key or ("none" if local else os.environ.get("OPENAI_API_KEY", "none")),
                max_retries=0,
                timeout=Timeout(self._timeout_s, connect=5.0),
                # HTTP_PROXY is not meant for this machine.
                http_client=DefaultHttpxClient(trust_env=not local),
            )
        return self._opened

    def _open(self, body: JsonObject) -> tuple[Stream[ChatCompletionChunk], Json]:
        """A stream and its first event (None if it has none), so that all that fails until then may be tried again."""
        client = self._client()
        prompt = self._prompt(body) if is_lazy(body) else None
        if prompt is not None:
            response = self._completion(completion_request({**body, "stream": True}, prompt))
        else:
            body = without_grammar(body) if is_lazy(body) else body
            response = client.chat.completions.create(model="", messages=[], stream=True, extra_body=body)
        try:
            return response, next(response, None)
        except BaseException:
            response.close()
            raise

    def _prompt(self, body: JsonObject) -> str | None:
        """What llama.cpp's template makes of the messages; None where it cannot say."""
        try:
            answer = self._client().post(
                f"{self.endpoint.root}/apply-template", body=template_request(body), cast_to=object
            )
        except sdk_errors() as error:
            if status_of(error) is None:
                raise
            return None
        prompt = answer.get("prompt") if isinstance(answer, dict) else None
        return prompt if isinstance(prompt, str) else None

    def _completion(self, body: JsonObject) -> Stream[ChatCompletionChunk]:
        """Of llama.cpp's own kind, whose events `_read` takes for those of a chat."""
        from openai import Stream
        from openai.types.chat import ChatCompletionChunk

        url, kind = f"{self.endpoint.root}/completion", Stream[ChatCompletionChunk]
        return self._client().post(url, body=body, cast_to=ChatCompletionChunk, stream=True, stream_cls=kind)

    def _chunks(self, response: Stream[ChatCompletionChunk], first: Json) -> Iterator[Chunk]:
        sent_as = response.response.headers.get("content-type", "")
        if first is None and "event-stream" not in sent_as:
            raise TransportError(f"{self.endpoint.shown} answered {sent_as or 'nothing'}. {UNKNOWN.advice}")
        is_finished, event = False, first
        while event is not None:
            chunk = _read(event)
            is_finished = is_finished or chunk.finish_reason is not None
            yield chunk
            event = self._next_event(response)
        if not is_finished:
            yield Chunk("", finish_reason=INCOMPLETE)

    def _next_event(self, response: Stream[ChatCompletionChunk]) -> Json:
        """None at the end, also where the connection was dropped: what came so far is still of use."""
        try:
            return next(response, None)
        except sdk_errors() as error:
            if is_dropped(error):
                return None
            raise self._explained(error) from error

    # ---------------------------------------------------------------- failures

    def _patiently(self, attempt: Callable[[], _T]) -> _T:
        """What ``attempt`` gives, asked again with growing, random pauses while that may help."""
        from tenacity import Retrying, retry_if_exception, wait_random_exponential

        retrying = Retrying(
            retry=retry_if_exception(lambda error: self._failure(error).retry != "never"),
            wait=wait_random_exponential(multiplier=0.25, max=5),
            stop=self._is_out_of_patience,
            reraise=True,
        )
        try:
            return retrying(attempt)
        except sdk_errors() as error:
            raise self._explained(error) from error

    def _is_out_of_patience(self, state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        limit_s = self._patience_s
        if error is not None and self._failure(error).retry == "briefly":
            limit_s = min(limit_s, REFUSED_PATIENCE_S)
        return (state.seconds_since_start or 0.0) + state.upcoming_sleep > limit_s

    def _failure(self, error: BaseException) -> Failure:
        if isinstance(error, sdk_errors()):
            if is_silent(error):
                return Failure("never", "Give it more time (timeout_s), or a shorter prompt.")
            if is_dropped(error):
                return Failure("briefly", f"{START_ONE}; or {BUILT_IN}.")
            if (status := status_of(error)) is not None:
                return failure_of(status, str(error))
        return UNKNOWN

    def _explained(self, error: BaseException) -> TransportError:
        """In the server's own words, which may repeat the key that it was sent."""
        return TransportError(Secrets(os.environ, [self._api_key]).redact(self._explanation(error)))

    def _explanation(self, error: BaseException) -> str:
        failure, url = self._failure(error), self.endpoint.shown
        if is_silent(error):
            return f"{url} said nothing for {self._timeout_s:g} s. {failure.advice}"
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


def _read(event: ChatCompletionChunk) -> Chunk:
    """One server event, in whatever dialect of the OpenAI interface it is."""
    raw: JsonObject = event.model_dump(exclude_unset=True, warnings=False) if hasattr(event, "model_dump") else {}
    raw = as_chat(raw)
    choices = raw.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else {}
    # llama.cpp, vLLM, SGLang and DeepSeek say reasoning_content; OpenRouter and newer vLLM reasoning.
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    return Chunk(_text(delta.get("content")), _text(reasoning), choice.get("finish_reason"), raw, _usage(raw))


def _usage(raw: JsonObject) -> Usage | None:
    usage, timings = raw.get("usage"), raw.get("timings")  # llama.cpp says timings without being asked
    if isinstance(timings, dict) and isinstance(read := timings.get("prompt_n"), int):
        reused = timings.get("cache_n")
        reused = reused if isinstance(reused, int) else None
        return Usage(read + (reused or 0), _count(timings.get("predicted_n")), reused)
    if isinstance(usage, dict) and isinstance(prompt := usage.get("prompt_tokens"), int):
        details = usage.get("prompt_tokens_details")
        reused = details.get("cached_tokens") if isinstance(details, dict) else None
        return Usage(prompt, _count(usage.get("completion_tokens")), reused if isinstance(reused, int) else None)
    return None


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


# ------------------------------------------------------------------ constraints

_TAKES_GBNF: dict[Kind, str] = {"llama.cpp": "grammar", "koboldcpp": "grammar", "textgen": "grammar_string"}
_TAKES_JSON_SCHEMA: frozenset[Kind] = frozenset({"ollama", "lmstudio", "vllm", "sglang"})


MAX_VALUE = 200
"""Characters of a string that is no text of any length. A small model that writes more has lost its way."""


def constraint_fields(
    kind: Kind,
    tools: ToolSet,
    choices: Choices | None = None,
    *,
    format: str = "hermes",
    reply: Tool | None = None,
    several: bool = False,
    max_string: int | None = MAX_VALUE,
    max_text: int | None = None,
) -> JsonObject:
    """The request fields that make this kind of server write nothing but a call of one of the tools.

    Empty for a server that is not known to enforce any. The options are those of `gbnf` and `json_schema`.
    With GBNF the call is written as in ``format``; with a JSON Schema it is bare and one, its arguments under
    ``parameters``.
    """
    if kind in _TAKES_GBNF:
        grammar = gbnf(
            tools,
            format=format,
            choices=choices,
            reply=reply,
            several=several,
            max_string=max_string,
            max_text=max_text,
        )
        return {_TAKES_GBNF[kind]: grammar}
    if kind in _TAKES_JSON_SCHEMA:
        schema = json_schema(tools, choices=choices, reply=reply, max_string=max_string, max_text=max_text)
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "tool_call", "schema": schema}}}
    return {}


def waiting_fields(kind: Kind, tools: ToolSet, *, format: str = "hermes") -> JsonObject:
    """The fields that leave the model free until it begins a call, which must then be a valid one.

    Empty for a server that cannot wait, and where no grammar can be made.
    """
    opening = opening_of(format) if kind == "llama.cpp" else None
    try:
        return lazy_fields(gbnf(tools, format=format, max_string=MAX_VALUE, max_text=None), opening) if opening else {}
    except UsageError:  # too large, or nothing left to choose
        return {}
