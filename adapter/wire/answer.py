"""A plain-text model's answer as OpenAI's: streamed chunks, or one whole completion, with ``tool_calls``.

What the openai SDK makes of each shape decides the shape (it joins every string that
comes twice): ``role``, a call's ``id`` and ``name`` once, dense ``index`` from 0, one
finish chunk, the same ``id``, ``created`` and ``model`` throughout.
"""

from __future__ import annotations

from collections.abc import Iterable

from adapter.values.events import Json, JsonObject
from adapter.wire.choice import Choice
from adapter.wire.errors import error_object, words
from adapter.wire.heard import Heard
from adapter.wire.translated import Request
from adapter.wire.usage import usage_of

DIED = (
    "the model server closed the connection in the middle of its answer; "
    "what came of a tool call is not a call. Ask again, or see its log."
)


class Answer:
    """The answer to one request, as it streams. ``created``: seconds since 1970, for servers that do not say.

    `feed` takes the server's chunks, `close` says that no more come; both give the client's.
    Nothing is raised, whatever the server sends. ``is_done``: the client has all that it asked for.
    """

    def __init__(self, request: Request, created: int = 0) -> None:
        self._request = request
        self._head: JsonObject = {
            "id": f"chatcmpl-{request.turn[:24]}",
            "object": "chat.completion.chunk",
            "created": created,
            "model": str(request.body.get("model") or ""),
        }
        self._has_head = False
        self._choices: dict[int, Choice] = {}
        self._heard = Heard(request)  # until there is a choice, whose it is then
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
        if (usage := usage_of(chunk)) is not None:
            self._request.account.count(usage)
            _heard_of(self._choices.values(), self._heard).count(usage)
        choices = chunk.get("choices")
        if not choices:  # the usage, at the end
            is_ours = self._request.counts_tokens and not self._request.wants_usage and "usage" in chunk
            return [] if is_ours else [{**chunk, **self._head, "choices": []}]
        chunks: list[JsonObject] = []
        for given in choices if isinstance(choices, list) else ():
            if not isinstance(given, dict):
                continue
            choice = self._choice(given.get("index"))
            if choice is None:
                return chunks + self._failed(_too_many(given.get("index"), self._request.answers))
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
        """As `feed`, of a chunk with nothing but ``text`` for a choice that has had some: the client's chunks, or their
        text where they are the same."""
        if self.is_done:
            return []
        choice = self._choices[index]
        deltas = choice.feed_text(text)
        return deltas if isinstance(deltas, str) else self._chunks(choice, deltas, {})

    def text_chunk(self, index: int, text: str) -> JsonObject:
        """The client's chunk with nothing but text."""
        return self._chunk(self._choices[index], {"content": text}, {})

    def next_request(self) -> Request | None:
        """What to ask the server next, where its answer was not the last word: once only, and only then."""
        for choice in self._choices.values():
            if again := choice.take_next():
                return again
        return None

    @property
    def awaits_more(self) -> bool:
        """Whether the rest of the server's answer is of no use."""
        for choice in self._choices.values():  # noqa: SIM110  # each chunk asks: a generator takes three times as long
            if choice.again:
                return True
        return False

    def give_up(self) -> list[JsonObject] | None:
        """The client's chunks where the server did not take what was asked again: the answer before counts then."""
        chunks: list[JsonObject] = []
        for choice in self._choices.values():
            if (deltas := choice.give_up()) is None:
                return None
            chunks += [self._chunk(choice, delta, {}) for delta in deltas]
        return chunks or None

    def close(self, *, has_ended: bool = False) -> list[JsonObject]:
        """An error where the server stopped in the middle: a client must not take that for an end.

        ``has_ended``: the server said that this is the end, if not why.
        """
        chunks = [] if self.is_done else self._rest(has_ended)
        for choice in self._choices.values():
            choice.heard.close()
        return chunks

    def _rest(self, has_ended: bool) -> list[JsonObject]:
        chunks = self.give_up() or []  # nobody asked again
        unfinished = [choice for choice in self._choices.values() if not choice.finish_reason]
        for choice in unfinished:
            deltas = choice.feed({}, "stop") if has_ended else choice.abandon()
            chunks += [self._chunk(choice, delta, {}) for delta in deltas]
        if (unfinished and not has_ended) or not self._choices:
            return chunks + self._failed(error_object(DIED, "upstream_error"))
        self.is_done = True
        return chunks

    def leave(self, why: str = "") -> None:
        """The client has gone, or has what it wanted: nobody reads on. ``why``: where there was no answer."""
        for choice in self._choices.values():
            choice.leave()
        if not self._choices:
            self._heard.close(why)

    def _failed(self, error: JsonObject) -> list[JsonObject]:
        self._request.account.fail(error)
        self.is_done = True
        if not self._choices:
            self._heard.close(words(error))
        return [error]

    def _take_head(self, chunk: JsonObject) -> None:
        self._has_head = True
        self._request.account.answered(chunk)
        self._head |= {key: chunk[key] for key in ("id", "created", "model") if chunk.get(key)}

    def _choice(self, index: Json) -> Choice | None:
        """None for one that nobody asked for."""
        number = index if isinstance(index, int) else 0
        choice = self._choices.get(number)
        if choice is None and 0 <= number < self._request.answers:
            heard = Heard(self._request) if self._choices else self._heard
            choice = self._choices[number] = Choice(self._request, number, heard)
        return choice

    def _chunks(self, choice: Choice, deltas: list[JsonObject | str], rest: JsonObject) -> list[JsonObject]:
        chunks = [self._chunk(choice, delta, rest) for delta in deltas]
        if choice.error:
            return chunks + self._failed(choice.error)
        if not self._request.parallel and not self._request.wants_usage and not self.awaits_more:
            self.is_done = all(choice.finish_reason for choice in self._choices.values())
        return chunks

    def _chunk(self, choice: Choice, delta: JsonObject | str, rest: JsonObject) -> JsonObject:
        """``delta``: what is added, or the finish reason, whose chunk has the server's further fields (timings)."""
        if isinstance(delta, str):
            further = {key: value for key, value in rest.items() if key != "usage"} | choice.told
            return {**further, **self._head, "choices": [{"index": choice.index, "delta": {}, "finish_reason": delta}]}
        made: JsonObject = {"index": choice.index, "delta": delta, "finish_reason": None}
        if "logprobs" in delta:
            made["logprobs"] = {"content": delta.pop("logprobs"), "refusal": None}
        return {**self._head, "choices": [made]}


class Whole:
    """The answer to one request, from completions that come in one piece: the last with the calls as ``tool_calls``."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._choices: dict[int, tuple[Choice, list[JsonObject | str]]] = {}
        self._heard = Heard(request)
        self._last: JsonObject = {}

    def feed(self, completion: JsonObject) -> JsonObject | Request:
        """The completion for the client, or what to ask the server first."""
        self._last = completion
        self._request.account.answered(completion)
        given = [each for each in completion.get("choices") or () if isinstance(each, dict)]
        if len(given) > self._request.answers:
            return _too_many(len(given) - 1, self._request.answers)
        if (usage := usage_of(completion)) is not None:
            self._request.account.count(usage)
            _heard_of((choice for choice, _ in self._choices.values()), self._heard).count(usage)
        choices = [self._choice(each) for each in given]
        if error := next((choice.error for choice, _ in self._choices.values() if choice.error), None):
            self._request.account.fail(error)
            return error
        for choice, _ in self._choices.values():
            if again := choice.take_next():
                return again
        for choice, _ in self._choices.values():
            choice.heard.close()
        told = {key: value for choice, _ in self._choices.values() for key, value in choice.told.items()}
        return {**completion, **told, "choices": choices}

    def give_up(self) -> JsonObject | None:
        """The completion for the client where the server did not take what was asked again; None: nothing was."""
        choices = []
        for (choice, deltas), given in zip(self._choices.values(), self._last.get("choices") or (), strict=False):
            if (more := choice.give_up()) is None:
                return None
            deltas += more
            choice.heard.close()
            choices.append(self._shown(given, choice, deltas))
        return {**self._last, "choices": choices} if choices else None

    def leave(self, why: str = "") -> None:
        """As `Answer.leave`."""
        for choice, _ in self._choices.values():
            choice.leave()
        if not self._choices:
            self._heard.close(why)

    def _choice(self, given: JsonObject) -> JsonObject:
        message = _object(given.get("message"))
        index = given.get("index")
        index = index if isinstance(index, int) else 0
        if index not in self._choices:
            heard = Heard(self._request) if self._choices else self._heard
            self._choices[index] = (Choice(self._request, index, heard, is_whole=True), [])
        choice, deltas = self._choices[index]
        # A server that does not say why it ended has answered all the same.
        deltas += choice.feed(message, given.get("finish_reason") or "stop", given.get("logprobs"))
        return self._shown(given, choice, deltas)

    @staticmethod
    def _shown(given: JsonObject, choice: Choice, deltas: list[JsonObject | str]) -> JsonObject:
        message = _object(given.get("message"))
        kept = {key: value for key, value in message.items() if key not in ("reasoning", "reasoning_content")}
        return {
            **given,
            **({"logprobs": _tokens(deltas, choice)} if given.get("logprobs") else {}),
            "message": {**kept, **_folded(deltas, choice)},
            "finish_reason": choice.finish_reason,
        }


def _heard_of(choices: Iterable[Choice], before: Heard) -> Heard:
    """Whose what the server counts is: of several answers the first one's. ``before``: where there is none yet."""
    return next((choice.heard for choice in choices), before)


def _too_many(index: Json, answers: int) -> JsonObject:
    asked = f"{answers} answers were" if answers > 1 else "one answer was"
    return error_object(
        f"the model server sent answer number {index} (from 0 on), and {asked} asked for", "upstream_error"
    )


def _folded(deltas: Iterable[JsonObject | str], choice: Choice) -> JsonObject:
    """The deltas as one message; the first ``choice.was_reasoning`` characters of content turned out to be reasoning,
    or all reasoning to be content."""
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
    if choice.was_content:
        reasoning = ""
    message: JsonObject = {"role": "assistant", "content": content if content or not (calls or legacy) else None}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    if legacy:
        message["function_call"] = legacy
    return message


def _tokens(deltas: Iterable[JsonObject | str], choice: Choice) -> JsonObject | None:
    """The probabilities of the tokens of the content; None where that turned out to be something else."""
    tokens = [token for delta in deltas if isinstance(delta, dict) for token in delta.get("logprobs") or ()]
    return None if choice.was_reasoning or choice.was_content else {"content": tokens, "refusal": None}


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
