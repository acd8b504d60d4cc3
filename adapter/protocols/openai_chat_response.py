"""A plain-text model's answer as OpenAI's: streamed chunks, or one whole completion, with ``tool_calls``.

What the openai SDK makes of each shape decides the shape (it joins every string that
comes twice): ``role``, a call's ``id`` and ``name`` once, dense ``index`` from 0, one
finish chunk, the same ``id``, ``created`` and ``model`` throughout.
"""

from __future__ import annotations

from collections.abc import Iterable

from adapter.core.events import Json, JsonObject
from adapter.protocols.held_answer import HeldAnswer
from adapter.protocols.openai_choice import ChoiceStream
from adapter.protocols.openai_errors import error_object, error_text
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.usage import parse_usage

DIED = (
    "the model server closed the connection in the middle of its answer; "
    "what came of a tool call is not a call. Ask again, or see its log."
)


class _Completion:
    """The choices of an answer. The first one gets the attempt that began with the request, and the usage."""

    _is_whole = False

    def __init__(self, request: TranslatedRequest) -> None:
        self._request = request
        self._choices: dict[int, ChoiceStream] = {}
        self._first = HeldAnswer(request)

    def next_request(self) -> TranslatedRequest | None:
        """The request that follows an answer that was not the last word; at most once for each answer."""
        for choice in self._choices.values():
            if request := choice.take_next():
                return request
        return None

    def cancel(self, why: str = "") -> None:
        """The client has gone, or has all it wants. ``why``: there was no answer."""
        for choice in self._choices.values():
            choice.cancel()
        if not self._choices:
            self._first.close(why)

    def _close(self) -> None:
        for choice in self._choices.values():
            choice.attempt.close()

    def _count(self, chunk: JsonObject) -> None:
        if (usage := parse_usage(chunk)) is not None:
            self._request.account.count(usage)
            next((choice.attempt for choice in self._choices.values()), self._first).count(usage)

    def _choice(self, index: Json) -> ChoiceStream:
        number = index if isinstance(index, int) else 0
        choice = self._choices.get(number)
        if choice is None:
            attempt = HeldAnswer(self._request) if self._choices else self._first
            choice = self._choices[number] = ChoiceStream(number, attempt, is_whole=self._is_whole)
        return choice

    def _too_many(self, index: Json) -> JsonObject:
        answers = self._request.client.answers
        asked = f"{answers} answers were" if answers > 1 else "one answer was"
        return error_object(
            f"the model server sent answer number {index} (from 0 on), and {asked} asked for", "upstream_error"
        )


class StreamedCompletion(_Completion):
    """The answer to one request, as it streams. ``created``: seconds since 1970, for servers that do not say.

    `feed` takes the server's chunks, `close` says that no more come; both give the client's.
    Nothing is raised, whatever the server sends. ``is_done``: the client has all that it asked for.
    """

    def __init__(self, request: TranslatedRequest, created: int = 0) -> None:
        super().__init__(request)
        self._head: JsonObject = {
            "id": f"chatcmpl-{request.turn[:24]}",
            "object": "chat.completion.chunk",
            "created": created,
            "model": str(request.body.get("model") or ""),
        }
        self._has_head = False
        self.is_done = False

    def feed(self, chunk: Json) -> list[JsonObject]:
        if self.is_done:
            return []
        if not isinstance(chunk, dict):
            return self._failed(
                error_object(f"the model server sent {str(chunk)[:80]!r}, not a chunk", "upstream_error")
            )
        if chunk.get("error"):
            return self._failed(chunk)
        if not self._has_head:
            self._take_head(chunk)
        self._count(chunk)
        choices = chunk.get("choices")
        if not choices:  # the usage, at the end
            request = self._request
            is_ours = request.observation.counts_tokens and not request.client.wants_usage and "usage" in chunk
            return [] if is_ours else [{**chunk, **self._head, "choices": []}]
        chunks: list[JsonObject] = []
        for given in choices if isinstance(choices, list) else ():
            if not isinstance(given, dict):
                continue
            index = given.get("index")
            if isinstance(index, int) and not 0 <= index < self._request.client.answers:
                return chunks + self._failed(self._too_many(index))
            choice = self._choice(index)
            said = _object(given.get("delta") or given.get("message"))
            deltas = choice.feed(said, given.get("finish_reason"), given.get("logprobs"))
            chunks += self._chunks(choice, deltas, chunk)
            if choice.error:
                return chunks
        if chunk.get("prompt_progress"):  # llama.cpp says it before there is anything else to say
            chunks = chunks or [{**self._head, "choices": []}]
            chunks[0]["prompt_progress"] = chunk["prompt_progress"]
        if chunks and chunk.get("usage"):  # vLLM says it in every chunk when asked to
            chunks[-1]["usage"] = chunk["usage"]
        return chunks

    def feed_text(self, index: int, text: str) -> str | list[JsonObject]:
        """As `feed`, of text alone for a choice that has begun; returns text where the result is text alone."""
        if self.is_done:
            return []
        choice = self._choices[index]
        deltas = choice.feed_text(text)
        return deltas if isinstance(deltas, str) else self._chunks(choice, deltas, {})

    def text_chunk(self, index: int, text: str) -> JsonObject:
        """The client's chunk with nothing but text."""
        return self._chunk(self._choices[index], {"content": text}, {})

    @property
    def awaits_more(self) -> bool:
        """Whether a follow-up is due: the rest of the server's answer is of no use."""
        for choice in self._choices.values():  # noqa: SIM110  # each chunk asks: a generator takes three times as long
            if choice.follow_up:
                return True
        return False

    def use_previous(self) -> list[JsonObject] | None:
        """The client's chunks where the server refuses the follow-up: the rejected answer counts then."""
        chunks: list[JsonObject] = []
        for choice in self._choices.values():
            if (deltas := choice.use_previous()) is None:
                return None
            chunks += [self._chunk(choice, delta, {}) for delta in deltas]
        return chunks or None

    def close(self, *, has_ended: bool = False) -> list[JsonObject]:
        """The last chunks: an error where the server stopped in the middle, which a client must not take for an end.

        ``has_ended``: the server said that this is the end, if not why.
        """
        chunks = [] if self.is_done else self._rest(has_ended)
        self._close()
        return chunks

    def _rest(self, has_ended: bool) -> list[JsonObject]:
        chunks = self.use_previous() or []  # no follow-up was sent
        unfinished = [choice for choice in self._choices.values() if not choice.finish_reason]
        for choice in unfinished:
            deltas = choice.feed({}, "stop") if has_ended else choice.on_upstream_lost()
            chunks += [self._chunk(choice, delta, {}) for delta in deltas]
        if (unfinished and not has_ended) or not self._choices:
            return chunks + self._failed(error_object(DIED, "upstream_error"))
        self.is_done = True
        return chunks

    def _failed(self, error: JsonObject) -> list[JsonObject]:
        self._request.account.fail(error)
        self.is_done = True
        if not self._choices:
            self._first.close(error_text(error))
        return [error]

    def _take_head(self, chunk: JsonObject) -> None:
        self._has_head = True
        self._request.account.answered(chunk)
        self._head |= {key: chunk[key] for key in ("id", "created", "model") if chunk.get(key)}

    def _chunks(self, choice: ChoiceStream, deltas: list[JsonObject | str], rest: JsonObject) -> list[JsonObject]:
        chunks = [self._chunk(choice, delta, rest) for delta in deltas]
        if choice.error:
            return chunks + self._failed(choice.error)
        if not self._request.client.parallel and not self._request.client.wants_usage and not self.awaits_more:
            self.is_done = all(choice.finish_reason for choice in self._choices.values())
        return chunks

    def _chunk(self, choice: ChoiceStream, delta: JsonObject | str, rest: JsonObject) -> JsonObject:
        """``delta``: what is added, or the finish reason, whose chunk has the server's further fields (timings)."""
        if isinstance(delta, str):
            further = {key: value for key, value in rest.items() if key != "usage"} | choice.retry_notice
            return {**further, **self._head, "choices": [{"index": choice.index, "delta": {}, "finish_reason": delta}]}
        made: JsonObject = {"index": choice.index, "delta": delta, "finish_reason": None}
        if "logprobs" in delta:
            made["logprobs"] = {"content": delta.pop("logprobs"), "refusal": None}
        return {**self._head, "choices": [made]}


class BufferedCompletion(_Completion):
    """The answer to one request, from completions that come in one piece: the last with the calls as ``tool_calls``."""

    _is_whole = True

    def __init__(self, request: TranslatedRequest) -> None:
        super().__init__(request)
        self._deltas: dict[int, list[JsonObject | str]] = {}
        self._last: JsonObject = {}

    def feed(self, completion: JsonObject) -> JsonObject | TranslatedRequest:
        """The completion for the client, or the next request for the server."""
        self._last = completion
        self._request.account.answered(completion)
        given = [each for each in completion.get("choices") or () if isinstance(each, dict)]
        if len(given) > self._request.client.answers:
            return self._too_many(len(given) - 1)
        self._count(completion)
        choices = []
        for each in given:
            choice = self._choice(each.get("index"))
            # A server that does not say why it ended has answered all the same.
            deltas = choice.feed(
                _object(each.get("message")), each.get("finish_reason") or "stop", each.get("logprobs")
            )
            choices.append(self._shown(each, choice, deltas))
        if error := next((choice.error for choice in self._choices.values() if choice.error), None):
            self._request.account.fail(error)
            return error
        if request := self.next_request():
            return request
        self._close()
        notices = [choice.retry_notice for choice in self._choices.values()]
        return {**completion, **{key: value for each in notices for key, value in each.items()}, "choices": choices}

    def use_previous(self) -> JsonObject | None:
        """The completion for the client where the server refuses the follow-up; None: there was none."""
        choices = []
        for choice, given in zip(self._choices.values(), self._last.get("choices") or (), strict=False):
            if (deltas := choice.use_previous()) is None:
                return None
            choices.append(self._shown(given, choice, deltas))
            choice.attempt.close()
        return {**self._last, "choices": choices} if choices else None

    def _shown(self, given: JsonObject, choice: ChoiceStream, new: list[JsonObject | str]) -> JsonObject:
        """``given``, with all deltas of ``choice`` as its message. ``new``: those of this completion."""
        deltas = self._deltas.setdefault(choice.index, [])
        deltas += new
        message = _object(given.get("message"))
        kept = {key: value for key, value in message.items() if key not in ("reasoning", "reasoning_content")}
        return {
            **given,
            **({"logprobs": _tokens(deltas, choice)} if given.get("logprobs") else {}),
            "message": {**kept, **_folded(deltas, choice)},
            "finish_reason": choice.finish_reason,
        }


def _folded(deltas: Iterable[JsonObject | str], choice: ChoiceStream) -> JsonObject:
    """The deltas as one message, once it is known which content is reasoning and the other way round."""
    content, reasoning = "", ""
    calls: list[JsonObject] = []
    legacy: Json = None
    for delta in deltas:
        if isinstance(delta, str):
            continue
        content += delta.get("content") or ""
        reasoning += delta.get("reasoning_content") or ""
        calls += [{key: call[key] for key in call if key != "index"} for call in delta.get("tool_calls") or ()]
        legacy = delta.get("function_call") or legacy
    content, reasoning = content[choice.was_reasoning :], content[: choice.was_reasoning] + reasoning
    message: JsonObject = {"role": "assistant", "content": content if content or not (calls or legacy) else None}
    if reasoning and not choice.was_content:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    if legacy:
        message["function_call"] = legacy
    return message


def _tokens(deltas: Iterable[JsonObject | str], choice: ChoiceStream) -> JsonObject | None:
    """The log probabilities of the content's tokens; None where that turned out to be something else."""
    tokens = [token for delta in deltas if isinstance(delta, dict) for token in delta.get("logprobs") or ()]
    return None if choice.was_reasoning or choice.was_content else {"content": tokens, "refusal": None}


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
