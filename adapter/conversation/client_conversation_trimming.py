"""Trim a client's conversation to a token budget, so that later requests of the same conversation get the same cuts.

A client sends the whole conversation with each request, and the model server caches the prefix that two prompts have in
common. Therefore, a cut must not depend on later messages. The conversation is read from its beginning. Wherever a
request would have exceeded the budget, it is cut to well below the budget, so that many requests fit before the next
cut. Reading takes linear time; the token counts of strings are cached.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from adapter.conversation.message_content import Content, concat_content, get_reasoning, get_text
from adapter.conversation.result_shortening import CUT_TO, SHORT, compute_share, keep_ends, shorten_result
from adapter.conversation.token_estimate import PER_IMAGE, PER_MESSAGE, compute_usable_tokens, estimate_tokens
from adapter.core.events import Json, JsonObject
from adapter.core.text.plurals import pluralize
from adapter.core.text.truncate import shorten

ACCURACY = 0.9
"""Share of the budget that the estimated number of tokens may use, because models with small vocabularies need more
tokens than estimated."""
LONG_TEXT = 1_000
"""Number of characters that remain of an old user or model message."""
MAX_NOTED, NOTED_PER_TOKEN = 20, 1 / 250
"""Maximum number of summarized calls that a note lists, in total and per token of the budget. More are only counted."""
MAX_COUNTS = 16_384
"""Maximum number of strings whose token counts are cached."""

_RESULTS = ("tool", "function")
_counts: dict[bytes, int] = {}


def compute_prompt_limit(context_tokens: int) -> int:
    """Return the maximum estimated number of tokens of a prompt that leaves room for an answer in the context."""
    return int(compute_usable_tokens(context_tokens) * ACCURACY)


@dataclass(frozen=True, slots=True)
class FittedMessages:
    """A conversation that was shortened to a token budget.

    ``indices`` are the positions of the messages in the client's conversation; empty if nothing was cut. ``cuts``
    counts the ``results`` that were shortened, the ``turns`` that were summarized, and the ``messages`` that were
    shortened or omitted.
    """

    messages: Sequence[Json]
    indices: Sequence[int] = ()
    cuts: Counter[str] = field(default_factory=Counter)

    @property
    def summary(self) -> str:
        """Describe the cuts as the value of a header: ``results=3, turns=1``. Return "" if there were none."""
        return ", ".join(f"{name}={self.cuts[name]}" for name in ("results", "turns", "messages") if self.cuts[name])


def fit_messages(messages: Json, limit: int) -> FittedMessages:
    """Shorten messages in OpenAI's or Ollama's format to ``limit`` tokens, if possible.

    Old tool results are shortened first. Then old turns with calls are summarized, long messages shortened, and old
    messages omitted. System messages, the first and last user messages, and the last turn are kept; results in the last
    turn are shortened only as a last resort. Invalid messages are returned unchanged.
    """
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        return FittedMessages(messages)
    if 2 * sum(map(_count_characters, messages)) + PER_MESSAGE * len(messages) <= limit:
        return FittedMessages(messages)  # a character is at most two tokens
    fitting = _Fitting(messages, limit)
    for index, message in enumerate(messages):
        if message.get("role") == "assistant":
            fitting.cut()
        fitting.add(index)
    fitting.cut()
    if not fitting.cuts:
        return FittedMessages(messages)
    kept = [index for index, each in enumerate(fitting.messages) if each is not None]
    return FittedMessages([fitting.messages[index] for index in kept], kept, fitting.cuts)


def count_tokens(message: Json) -> int:
    """Estimate the number of tokens of a message."""
    if not isinstance(message, dict):
        return 0
    return PER_MESSAGE + sum(_count(each) for each in _list_texts(message)) + PER_IMAGE * len(_list_media(message))


def count_json_tokens(value: Json) -> int:
    """Estimate the number of tokens of a JSON value, such as tool definitions."""
    return _count(json.dumps(value, ensure_ascii=False, default=str)) if value else 0


@dataclass(slots=True)
class _Note:
    """A note that replaces omitted messages and calls in the conversation."""

    lines: deque[str]
    """The most recent of the summarized calls."""
    calls: int = 0
    """The number of all summarized calls."""
    messages: int = 0
    """The number of omitted messages."""

    def render_text(self) -> str:
        omitted = [f"{pluralize(self.messages, 'earlier message')} omitted"] if self.messages else []
        if self.calls:
            calls = pluralize(self.calls, "earlier call")
            omitted.append(f"{calls} not shown{'; the last of them:' if self.calls > len(self.lines) else ':'}")
        return "\n".join([f"[shortened: {', '.join(omitted)}", *self.lines]) + "]"


class _Fitting:
    """Shortens the messages of a conversation. In ``messages``, None replaces a summarized or omitted message.

    Each kind of cut has a position, which only moves forward: the cut was applied to all messages before it.
    """

    def __init__(self, originals: Sequence[JsonObject], limit: int) -> None:
        self.messages: list[JsonObject | None] = []
        self.cuts: Counter[str] = Counter()
        self._originals, self._limit = originals, limit
        self._tokens: list[int] = []
        self._total = 0
        self._calls: dict[str, tuple[str, str]] = {}  # tool name and summary of each call, by id
        self._call_of: dict[int, tuple[str, str]] = {}  # the same by index of the result message
        self._notes: dict[int, _Note] = {}
        self._shortened: dict[int, JsonObject] = {}  # long messages without their middle
        self._last_kept = -1  # the last message before the position of `_summarize_turn` that is not summarized
        self._first_user = self._last_user = self._last_turn = -1
        self._steps: list[Callable[[int], int]] = [
            self._shorten_result, self._summarize_turn, self._shorten_text, self._omit_message,
        ]  # fmt: skip
        self._positions = [0] * len(self._steps)

    def add(self, index: int) -> None:
        message = self._originals[index]
        self.messages.append(message)
        self._tokens.append(count_tokens(message))
        self._total += self._tokens[-1]
        match message.get("role"):
            case "user":
                self._first_user = index if self._first_user < 0 else self._first_user
                self._last_user = index
            case "assistant":
                self._last_turn = index
                self._calls |= {call_id: (name, summary) for call_id, name, summary in _list_calls(message)}
            case "tool" | "function":
                name = str(message.get("tool_name") or message.get("name") or "")
                key = str(message.get("tool_call_id") or name)
                self._call_of[index] = self._calls.get(key, (name, name or "the tool"))

    def cut(self) -> None:
        """Shorten the conversation to well below the limit if it exceeds the limit."""
        if self._total <= self._limit:
            return
        end = self._last_turn if self._last_turn >= 0 else len(self.messages)
        for number, step in enumerate(self._steps):
            while self._total > self._limit * CUT_TO and self._positions[number] < end:
                self._positions[number] = step(self._positions[number])
        if self._total > self._limit:
            self._shorten_last_results(end)

    def _shorten_result(self, index: int) -> int:
        message = self.messages[index]
        if message is not None and message.get("role") in _RESULTS:
            self._shorten_result_to(index, SHORT)
        return index + 1

    def _shorten_result_to(self, index: int, size: int) -> None:
        original = self._originals[index]
        tool, call = self._call_of[index]
        self._replace(index, _remove_media(original, lambda text: shorten_result(text, size, call, tool)), "results")

    def _shorten_last_results(self, end: int) -> None:
        """Shorten the results in the last turn in proportion to their lengths."""
        results = [index for index in range(end, len(self.messages)) if index in self._call_of]
        total = sum(self._tokens[index] for index in results)
        share = compute_share(self._total - self._limit * CUT_TO, total)
        for index in results:
            length = _count_characters(self._originals[index])
            self._shorten_result_to(index, max(SHORT, int(length * share)))

    def _summarize_turn(self, index: int) -> int:
        """Replace an answer with calls, and the results of the calls, with lines in the preceding message's note.
        Return the index of the message after the results."""
        message = self.messages[index]
        if message is None:
            return index + 1
        if message.get("role") != "assistant" or not _list_calls(message):
            self._last_kept = index
            return index + 1
        end = index + 1
        while end < len(self.messages) and end in self._call_of:
            end += 1
        note = self._get_note(self._last_kept, instead=index)
        note.calls += len(_list_calls(message))
        note.lines.extend(self._list_lines(index, end))
        for position in range(index, end):
            self._set(position, None)
        if self._notes.get(index) is note:
            self._last_kept = index
        self._write_note(self._last_kept)
        self.cuts["turns"] += 1
        return end

    def _list_lines(self, index: int, end: int) -> Iterator[str]:
        said = get_text(self._originals[index].get("content")).strip()
        if said:
            yield f"- you said: {shorten(said.partition(chr(10))[0], 120)}"
        results = {str(self._originals[each].get("tool_call_id")): each for each in range(index + 1, end)}
        for call_id, _, summary in _list_calls(self._originals[index]):
            position = results.get(call_id)
            text = "" if position is None else get_text(self._originals[position].get("content"))
            yield f"- {summary}" + (f" returned {pluralize(text.count(chr(10)) + 1, 'line')}" if text else "")

    def _shorten_text(self, index: int) -> int:
        original, message = self._originals[index], self.messages[index]
        is_text = message is not None and (original.get("role") == "user" or _is_plain_answer(original))
        if is_text and index not in (self._first_user, self._last_user):
            note = f"\n[shortened: this message has {_count_characters(original)} characters]\n"
            shortened = _remove_media(original, lambda text: keep_ends(text, LONG_TEXT, note))
            if count_tokens(shortened) < count_tokens(original):
                self.cuts["messages"] += 1
                self._shortened[index] = shortened
                if index in self._notes:
                    self._write_note(index)
                else:
                    self._set(index, shortened)
        return index + 1

    def _omit_message(self, index: int) -> int:
        message = self.messages[index]
        is_text = message is not None and (message.get("role") == "user" or _is_plain_answer(message))
        if not is_text or index in (self._first_user, self._last_user):
            return index + 1
        kept = self._first_user if 0 <= self._first_user < index else index
        old = self._notes.pop(index, None) or self._create_note()
        note = self._get_note(kept, instead=index)
        note.messages += old.messages + 1
        note.calls += old.calls
        note.lines.extend(old.lines)
        self._set(index, None)
        self._write_note(kept)
        self.cuts["messages"] += 1
        return index + 1

    def _get_note(self, index: int, *, instead: int) -> _Note:
        """Return the note of message ``index``, or of message ``instead`` if ``index`` is not a user message."""
        message = self.messages[index] if index >= 0 else None
        is_user = message is not None and message.get("role") == "user"
        return self._notes.setdefault(index if is_user else instead, self._create_note())

    def _create_note(self) -> _Note:
        return _Note(deque(maxlen=max(1, min(MAX_NOTED, int(self._limit * NOTED_PER_TOKEN)))))

    def _write_note(self, index: int) -> None:
        """Append the note about shortened messages to the message ``index``.

        If that message was dropped, or is not from the user, replace it with a user message that has only the note.
        """
        original, note = self._shortened.get(index, self._originals[index]), self._notes[index].render_text()
        if original.get("role") != "user" or self.messages[index] is None:
            self._set(index, {"role": "user", "content": note})
            return
        content = original.get("content")
        own: Content = content if isinstance(content, str | list) else ""
        # The note is counted separately, because counting a long message again for each note would take quadratic time.
        tokens = count_tokens(original) + _count(f"\n\n{note}")
        self._set(index, {**original, "content": concat_content(own, note, "\n\n")}, tokens)

    def _replace(self, index: int, message: JsonObject, kind: str) -> None:
        if count_tokens(message) < self._tokens[index]:
            self.cuts[kind] += self.messages[index] is self._originals[index]
            self._set(index, message)

    def _set(self, index: int, message: JsonObject | None, tokens: int | None = None) -> None:
        if tokens is None:
            tokens = 0 if message is None else count_tokens(message)
        self._total += tokens - self._tokens[index]
        self.messages[index], self._tokens[index] = message, tokens


def _is_plain_answer(message: JsonObject) -> bool:
    return message.get("role") == "assistant" and not _list_calls(message)


def _list_calls(message: JsonObject) -> list[tuple[str, str, str]]:
    """Return the id, the name and a summary of each call. Ollama's calls have no id; the name takes its place."""
    calls = message.get("tool_calls") or message.get("function_call")
    found = []
    for call in calls if isinstance(calls, list) else [calls]:
        function = call.get("function", call) if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            name = str(function.get("name") or "")
            found.append((str(call.get("id") or name), name, f"{name}({shorten(_get_arguments(function), 120)})"))
    return found


def _get_arguments(function: JsonObject) -> str:
    arguments = function.get("arguments")
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False, default=str)


def _list_texts(message: JsonObject) -> Iterator[str]:
    yield get_text(message.get("content"))
    yield get_reasoning(message)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield str(function.get("name") or "")
            yield _get_arguments(function)


def _count_characters(message: JsonObject) -> int:
    return sum(map(len, _list_texts(message))) + PER_IMAGE * len(_list_media(message))


def _list_media(message: JsonObject) -> list[str]:
    """Return the type of each part that is not text."""
    content, images = message.get("content"), message.get("images")
    parts = content if isinstance(content, list) else ()
    kinds = [
        str(part.get("type")) for part in parts if isinstance(part, dict) and not isinstance(part.get("text"), str)
    ]
    return kinds + ["image"] * (len(images) if isinstance(images, list) else 0)


def _remove_media(message: JsonObject, change: Callable[[str], str]) -> JsonObject:
    """Return the message with changed text, and with a note in place of each part that is not text."""
    notes = [f"[{kind} left out]" for kind in _list_media(message)]
    text = change(get_text(message.get("content")))
    fields = {key: value for key, value in message.items() if key != "images"}
    return {**fields, "content": "\n".join([*([text] if text else []), *notes])}


def _count(text: str) -> int:
    if not text:
        return 0
    key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    tokens = _counts.get(key)
    if tokens is None:
        if len(_counts) >= MAX_COUNTS:
            _counts.clear()
        tokens = _counts[key] = estimate_tokens(text)
    return tokens
