"""Convert the answer of a model that writes text to OpenAI's chat completion with ``tool_calls``, streamed or buffered.

The openai SDK concatenates repeated strings, so a stream contains ``role`` and a call's ``id`` and ``name`` only once.
``index`` counts from 0 without gaps, there is one finish chunk, and ``id``, ``created`` and ``model`` never change. If
the client requested usage, it is sent in a separate chunk at the end.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.protocols.choice_stream import ChoiceStream
from adapter.protocols.openai_errors import build_error_object, convert_to_error_object, get_error_text, is_error
from adapter.protocols.pending_answer import PendingAnswer
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.usage import Usage, get_object, parse_usage

DIED = (
    "the model server closed the connection in the middle of its answer; an unfinished tool call was discarded. "
    "Retry, or check the server's log."
)
"""Error message for a connection that the model server closed too early."""

_OURS = ("id", "object", "created", "model", "choices", "usage")
_CHOICE = ("index", "delta", "message", "text", "finish_reason", "logprobs")
_MESSAGE = ("role", "content", "reasoning", "reasoning_content", "tool_calls", "function_call")
"""Fields of completions, choices and messages written by this module. A server's other fields are passed on."""
_Source: TypeAlias = tuple[JsonObject, JsonObject]
"""A chunk from the server, and the choice in it that is being converted."""
_NONE: _Source = ({}, {})


class _Completion:
    """The choices of a completion. ``created``, in seconds since 1970, is the timestamp if the server sends none."""

    _is_whole = False

    def __init__(self, request: TranslatedRequest, created: int = 0) -> None:
        self._request = request
        self._usage: Usage | None = None
        self._head: JsonObject = {
            "id": f"chatcmpl-{request.turn[:24]}",
            "object": "chat.completion" if self._is_whole else "chat.completion.chunk",
            "created": created,
            "model": str(request.body.get("model") or ""),
        }
        self._choices: dict[int, ChoiceStream] = {}
        self._first = PendingAnswer(request)

    def begin_next_request(self) -> TranslatedRequest | None:
        """Begin the next attempt of an answer, and return its request, or None if no follow-up request is needed."""
        for choice in self._choices.values():
            if request := choice.start_next_attempt():
                return request
        return None

    def cancel(self, why: str = "") -> None:
        """Stop an answer that the client no longer needs. ``why`` is reported to observers if no answer has begun."""
        for choice in self._choices.values():
            choice.cancel()
        if not self._choices:
            self._first.close(why)

    def _close(self) -> None:
        for choice in self._choices.values():
            choice.attempt.close()

    def _take_head(self, answer: JsonObject) -> None:
        self._request.stats.set_response(answer)
        kinds = {"id": str, "created": int, "model": str}
        self._head |= {
            key: value for key, kind in kinds.items() if isinstance(value := answer.get(key), kind) and value
        }

    def _count(self, chunk: JsonObject) -> None:
        if (usage := parse_usage(chunk)) is not None:
            self._usage = usage
            self._request.stats.count(usage)
            next((choice.attempt for choice in self._choices.values()), self._first).count(usage)

    def _build_usage_fields(self) -> JsonObject:
        """Return the usage for the client, or {} if unknown. Tokens of reasoning are estimated if not counted."""
        usage = self._usage
        if usage is None:
            return {}
        reasoned = sum(choice.reasoned for choice in self._choices.values())
        if usage.reasoning is None and reasoned:
            size = max(reasoned, sum(choice.size for choice in self._choices.values()))
            usage = replace(usage, reasoning=math.ceil(usage.written * reasoned / size))
        return {"usage": usage.to_openai()}

    def _get_choice(self, index: Json) -> ChoiceStream:
        number = index if isinstance(index, int) else 0
        choice = self._choices.get(number)
        if choice is None:
            attempt = PendingAnswer(self._request) if self._choices else self._first
            choice = self._choices[number] = ChoiceStream(number, attempt, is_whole=self._is_whole)
        return choice

    def _build_too_many_error(self, index: Json) -> JsonObject:
        answers = self._request.client.answers
        expected = f"{answers} answers" if answers > 1 else "one answer"
        return build_error_object(
            f"the model server sent an answer with the index {index}; expected {expected}", "upstream_error"
        )


class StreamedCompletion(_Completion):
    """The streamed answer to a request.

    `feed` takes the server's chunks and `close` ends the stream. Both return chunks for the client, and raise no
    exceptions. ``is_done`` is True once the client's answer is complete.
    """

    def __init__(self, request: TranslatedRequest, created: int = 0) -> None:
        super().__init__(request, created)
        self._has_head = False
        self.is_done = False
        self.early_error: JsonObject | None = None
        """The error that ended the answer before the model wrote anything."""

    def feed(self, chunk: Json) -> list[JsonObject]:
        if self.is_done:
            return []
        if not isinstance(chunk, dict):
            return self._fail(
                build_error_object(f"the model server sent {str(chunk)[:80]!r}, not a chunk", "upstream_error")
            )
        if is_error(chunk):
            return [*self._end_early(), *self._fail(convert_to_error_object(chunk))]
        choices = chunk.get("choices")
        if not self._has_head:  # Azure's first event has no choices, and an empty id
            self._has_head = bool(choices)
            self._take_head(chunk)
        self._count(chunk)
        chunks: list[JsonObject] = []
        for given_choice in choices if isinstance(choices, list) else ():
            if not isinstance(given_choice, dict):
                continue
            index = given_choice.get("index")
            if isinstance(index, int) and not 0 <= index < self._request.client.answers:
                return chunks + self._fail(self._build_too_many_error(index))
            choice = self._get_choice(index)
            delta = get_object(given_choice.get("delta") or given_choice.get("message"))
            deltas = choice.feed(delta, given_choice.get("finish_reason"), given_choice.get("logprobs"))
            chunks += self._build_chunks(choice, deltas, (chunk, given_choice))
            if choice.error:
                return chunks
        if chunk.get("prompt_progress"):  # from llama.cpp while it reads the prompt
            chunks = chunks or [{**self._head, "choices": []}]
            chunks[0]["prompt_progress"] = chunk["prompt_progress"]
        return chunks

    def feed_text(self, index: int, text: str) -> str | list[JsonObject]:
        """Feed text to a choice that has begun. Return the client's text if its chunk has only text, otherwise the
        chunks."""
        if self.is_done:
            return []
        choice = self._choices[index]
        deltas = choice.feed_text(text)
        return deltas if isinstance(deltas, str) else self._build_chunks(choice, deltas)

    def build_text_chunk(self, index: int, text: str) -> JsonObject:
        """Return a chunk that contains only text."""
        return self._build_chunk(self._choices[index], {"content": text})

    @property
    def awaits_more(self) -> bool:
        """True if a follow-up request comes next, so the rest of this answer is ignored."""
        for choice in self._choices.values():  # noqa: SIM110  # called per chunk: a generator is three times slower
            if choice.follow_up:
                return True
        return False

    def use_previous(self) -> list[JsonObject] | None:
        """Return the rest of the answer that preceded a follow-up request, after the server rejected that request.
        Return None if there was no follow-up request."""
        chunks: list[JsonObject] = []
        for choice in self._choices.values():
            if (deltas := choice.use_previous()) is None:
                return None
            chunks += [self._build_chunk(choice, delta) for delta in deltas]
        return chunks or None

    def close(self, *, has_ended: bool = False) -> list[JsonObject]:
        """Return the last chunks. If the server stopped early, they include an error, because the answer is incomplete.

        ``has_ended`` is True if the server sent the end of the stream, even without a finish reason.
        """
        chunks = [] if self.is_done else self._take_rest(has_ended)
        self._close()
        return chunks

    def _take_rest(self, has_ended: bool) -> list[JsonObject]:
        chunks = self.use_previous() or []  # no follow-up was sent
        unfinished = [choice for choice in self._choices.values() if not choice.finish_reason]
        if (unfinished and not has_ended) or not self._choices:
            return [*chunks, *self._end_early(), *self._fail(build_error_object(DIED, "upstream_error"))]
        for choice in unfinished:
            deltas = [*choice.feed({}, "stop"), *(choice.use_previous() or ())]  # it is too late for a follow-up
            chunks += [self._build_chunk(choice, delta) for delta in deltas]
        self.is_done = True
        if self._request.client.wants_usage and (usage := self._build_usage_fields()):
            chunks.append({**self._head, "choices": [], **usage})
        return chunks

    def _end_early(self) -> list[JsonObject]:
        """Return the chunks for the text that was held back in unfinished choices."""
        unfinished = [choice for choice in self._choices.values() if not choice.finish_reason]
        return [self._build_chunk(each, delta) for each in unfinished for delta in each.on_upstream_lost()]

    def _fail(self, error: JsonObject) -> list[JsonObject]:
        self._request.stats.fail(error)
        self.is_done = True
        self.early_error = error if all(choice.is_empty for choice in self._choices.values()) else None
        if not self._choices:
            self._first.close(get_error_text(error))
        return [error]

    def _build_chunks(
        self, choice: ChoiceStream, deltas: list[JsonObject | str], source: _Source = _NONE
    ) -> list[JsonObject]:
        chunks = [self._build_chunk(choice, delta, source) for delta in deltas]
        if choice.error:
            return chunks + self._fail(choice.error)
        client = self._request.client
        if (choice.is_flooded or not (client.parallel or client.wants_usage)) and not self.awaits_more:
            finished = [each for each in self._choices.values() if each.finish_reason]
            self.is_done = len(finished) == client.answers
        return chunks

    def _build_chunk(self, choice: ChoiceStream, delta: JsonObject | str, source: _Source = _NONE) -> JsonObject:
        """Build a chunk. ``delta`` is a delta, or a finish reason (a string). The finish chunk also gets the other
        fields of ``source``, such as timings and stop strings."""
        if isinstance(delta, str):
            further = _select_other_fields(source[0], _OURS) | choice.notice
            ending = {"index": choice.index, "delta": {}, "finish_reason": delta}
            return {**further, **self._head, "choices": [_select_other_fields(source[1], _CHOICE) | ending]}
        choice_chunk: JsonObject = {"index": choice.index, "delta": delta, "finish_reason": None}
        if "logprobs" in delta:
            choice_chunk["logprobs"] = {"content": delta.pop("logprobs"), "refusal": None}
        return {**self._head, "choices": [choice_chunk]}


class BufferedCompletion(_Completion):
    """The buffered answer to a request. If answers are retried, it is the last of several completions."""

    _is_whole = True

    def __init__(self, request: TranslatedRequest, created: int = 0) -> None:
        super().__init__(request, created)
        self._deltas: dict[int, list[JsonObject | str]] = {}
        self._last: JsonObject = {}

    def feed(self, completion: JsonObject) -> JsonObject | TranslatedRequest:
        """Return the completion for the client, or a follow-up request if the answer must be retried."""
        self._last = completion
        self._take_head(completion)
        given_choices = [each for each in completion.get("choices") or () if isinstance(each, dict)]
        if len(given_choices) > self._request.client.answers:
            return self._build_too_many_error(len(given_choices) - 1)
        if not given_choices:
            return build_error_object("the model server sent a completion without choices", "upstream_error")
        self._count(completion)
        choices = []
        for each in given_choices:
            choice = self._get_choice(each.get("index"))
            # A missing finish reason does not make the answer incomplete.
            deltas = choice.feed(
                get_object(each.get("message")), each.get("finish_reason") or "stop", each.get("logprobs")
            )
            choices.append(self._merge(each, choice, deltas))
        if error := next((choice.error for choice in self._choices.values() if choice.error), None):
            self._request.stats.fail(error)
            return error
        if request := self.begin_next_request():
            return request
        self._close()
        return self._build_completion(choices)

    def use_previous(self) -> JsonObject | None:
        """Return the completion that preceded a follow-up request, after the server rejected that request. Return None
        if there was no follow-up request."""
        choices = []
        for choice, given in zip(self._choices.values(), self._last.get("choices") or (), strict=False):
            if (deltas := choice.use_previous()) is None:
                return None
            choices.append(self._merge(given, choice, deltas))
            choice.attempt.close()
        return self._build_completion(choices) if choices else None

    def _build_completion(self, choices: list[JsonObject]) -> JsonObject:
        notices = {key: value for choice in self._choices.values() for key, value in choice.notice.items()}
        return {
            **_select_other_fields(self._last, _OURS),
            **notices,
            **self._head,
            "choices": choices,
            **self._build_usage_fields(),
        }

    def _merge(self, given: JsonObject, choice: ChoiceStream, new: list[JsonObject | str]) -> JsonObject:
        """Return the server's choice ``given`` with a message built from all deltas of ``choice``, including the
        ``new`` ones."""
        deltas = self._deltas.setdefault(choice.index, [])
        deltas += new
        others = _select_other_fields(get_object(given.get("message")), _MESSAGE)
        return {
            **_select_other_fields(given, _CHOICE),
            "index": choice.index,
            "message": {"refusal": None, **others, **_fold_deltas(deltas, choice)},
            "logprobs": _join_content_logprobs(deltas, choice) if given.get("logprobs") else None,
            "finish_reason": choice.finish_reason,
        }


def _fold_deltas(deltas: Iterable[JsonObject | str], choice: ChoiceStream) -> JsonObject:
    """Combine the deltas into one message, and move reclassified text between content and reasoning."""
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
    content, reasoning = content[choice.reasoning_length :], content[: choice.reasoning_length] + reasoning
    message: JsonObject = {"role": "assistant", "content": content if content or not (calls or legacy) else None}
    if reasoning and not choice.was_content:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    if legacy:
        message["function_call"] = legacy
    return message


def _join_content_logprobs(deltas: Iterable[JsonObject | str], choice: ChoiceStream) -> JsonObject | None:
    """Return the logprobs of the content's tokens, or None if text was moved between content and reasoning."""
    tokens = [token for delta in deltas if isinstance(delta, dict) for token in delta.get("logprobs") or ()]
    return None if choice.reasoning_length or choice.was_content else {"content": tokens, "refusal": None}


def _select_other_fields(answer: JsonObject, ours: Collection[str]) -> JsonObject:
    """Return the fields of a server's answer that have a value and are not in ``ours``, the fields written here."""
    return {key: value for key, value in answer.items() if value is not None and key not in ours}
