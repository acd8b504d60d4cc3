"""Find the parts of a rendered prompt: the calls, and the markers around answers, reasoning and tool results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from adapter.core.events import JsonObject
from adapter.parsing.bodies.compiled_format import is_marker
from adapter.parsing.marker_tables import END_OF_TURN, REASONING
from adapter.prompting.deriving.probe_conversations import (
    ANSWER,
    BOS,
    EOS,
    FOLLOW_UP,
    NAME,
    ONE_CALL,
    OTHER_NAME,
    RESULT,
    THOUGHT,
    TWO_CALLS,
    VALUE,
    Call,
    RenderedConversations,
    find_shared_end,
    find_shared_start,
    is_control_token,
    looks_like_marker,
    split_tokens,
)

_FOLLOW_UP_MESSAGE: JsonObject = {"role": "user", "content": FOLLOW_UP}


class CannotDeriveError(Exception):
    """Raised if no format can be derived from the template. The message gives the reason, for the user."""


@dataclass(frozen=True, slots=True)
class TurnLayout:
    """The text and markers that a chat template writes around turns."""

    generation_prompt: str = ""
    ends: tuple[str, ...] = ()
    """Tokens that end or surround an answer."""
    next_turns: tuple[str, ...] = ()
    """Tokens that begin another role's turn."""
    head: int = 0
    """Number of markers between the end of an answer and the text of the next user message."""
    plain: tuple[str, str] | None = None
    """The text before and after an answer without calls."""
    reasoning: dict[str, str] = field(default_factory=dict)
    """Maps reasoning's opening markers to its closing markers."""
    starts_in_reasoning: bool = False
    """True if the generation prompt opens reasoning."""


def find_turn_layout(conversations: RenderedConversations) -> TurnLayout:
    """Find the text and markers around turns by rendering an answer with and without a following user message."""
    generation_prompt = conversations.render(add_generation_prompt=True) or ""
    answer = conversations.conventions.build_answer_message([], ANSWER)
    alone, followed = conversations.render(answer), conversations.render(answer, _FOLLOW_UP_MESSAGE)
    plain = _split_around(alone, ANSWER)
    if plain is None:
        around = _split_around(followed, ANSWER)
        plain = (around[0], "") if around is not None else None
    before, after = plain or ("", "")
    wrapping = split_tokens(before[len(find_shared_start(before, generation_prompt)) :])
    heads = _find_specials(generation_prompt)[1:]
    closing = takewhile(lambda token: token not in heads, _find_specials(after))
    ends = [token for token in (*closing, *_find_specials("".join(wrapping))) if token not in (BOS, EOS)]
    between = followed.partition(ANSWER)[2].partition(FOLLOW_UP)[0] if followed and ANSWER in followed else ""
    following = [
        token for token in split_tokens(between[len(find_shared_start(between, after)) :]) if looks_like_marker(token)
    ]
    next_turns = [token for token in following if token not in ends and is_control_token(token)][:1]
    reasoning = _find_reasoning(conversations, plain)
    known = {**REASONING, **reasoning}
    starts = any(generation_prompt.rstrip().endswith(opening.strip()) for opening in known)
    named = {token.strip() for pair in known.items() for token in pair}
    return TurnLayout(
        generation_prompt=generation_prompt,
        ends=tuple(dict.fromkeys(token for token in ends if token not in named)),
        next_turns=tuple(next_turns),
        head=len(following),
        plain=plain,
        reasoning=reasoning,
        starts_in_reasoning=starts,
    )


def _split_around(text: str | None, word: str) -> tuple[str, str] | None:
    if text is None or word not in text:
        return None
    before, _, after = text.partition(word)
    return before, after


def _find_reasoning(conversations: RenderedConversations, plain: tuple[str, str] | None) -> dict[str, str]:
    """Return the marker that opens reasoning, mapped to the one that closes it.

    Returns {} if the template does not render the reasoning of earlier answers.
    """
    for text, end in (
        (conversations.render_calls(ONE_CALL, ANSWER, THOUGHT), ANSWER),
        (conversations.render_calls(ONE_CALL, None, THOUGHT), NAME),
        (conversations.render(conversations.conventions.build_answer_message([], ANSWER, THOUGHT)), ANSWER),
    ):
        around = _split_around(text, THOUGHT)
        if around is None or plain is None or end not in around[1]:
            continue
        opening = around[0][len(find_shared_start(around[0], plain[0])) :].strip()
        closing = around[1].partition(end)[0]
        marked = [token for token in split_tokens(closing) if looks_like_marker(token)]
        close = marked[0] if marked else closing.strip()
        if end == ANSWER and opening and close and (is_marker(opening) or is_marker(close)):
            return {opening: close}
        if opening and marked and close.startswith(("</", "[/")):
            return {opening: close}
    return {}


@dataclass(frozen=True, slots=True)
class PromptFrame:
    """The text around the calls in a rendered answer.

    ``prefix`` precedes the calls of an answer that has only calls, and ``suffix`` follows them.
    """

    conversations: RenderedConversations
    turns: TurnLayout
    prefix: str
    suffix: str

    def render_calls(self, calls: Sequence[Call]) -> str | None:
        """Render calls without ``prefix`` and ``suffix``. Returns None if the template rejects, moves or drops
        calls."""
        text = self.conversations.render_calls(calls)
        if text is None or not text.startswith(self.prefix) or not text.endswith(self.suffix):
            return None
        if any(name not in text for name, _ in calls):
            return None  # some templates render only the first of several calls
        return text[len(self.prefix) : len(text) - len(self.suffix)]

    @property
    def end(self) -> str:
        """The text after the calls that ends an answer. Most servers remove such end tokens from their responses."""
        return "" if self.suffix.strip() == "" else _take_first_end(self.suffix, self.turns.ends)

    def render_answer(self, calls: Sequence[Call], content: str) -> str | None:
        """Render an answer with ``content`` and calls, or return None if the template cannot render both."""
        text = self.conversations.render_calls(calls, content)
        if text is None or content not in text or not text.endswith(self.suffix):
            return None
        if any(name not in text.partition(content)[2] for name, _ in calls):
            return None
        before = text.partition(content)[0].rstrip()
        if any(before.endswith(opening) for opening in self.turns.reasoning):
            return None  # the template renders text next to a call as reasoning
        start = (
            len(find_shared_start(text, self.turns.generation_prompt))
            if self.turns.generation_prompt
            else text.index(content)
        )
        return text[min(start, text.index(content)) : len(text) - len(self.suffix)]


def _take_first_end(text: str, ends: Sequence[str]) -> str:
    """Return ``text`` up to and including the first of ``ends``, or "" if it contains none of them."""
    size = 0
    for token in split_tokens(text):
        size += len(token)
        if token in ends:
            return text[:size]
    return ""


def find_prompt_frame(conversations: RenderedConversations, turns: TurnLayout) -> PromptFrame:
    """Find the text before and after the calls in a rendered answer.

    Raises CannotDeriveError if the end of a call cannot be recognized.
    """
    one = conversations.render_calls(ONE_CALL)
    if one is None:  # `detect_conventions` has already rendered this call
        raise CannotDeriveError("the template does not always render the same conversation")
    head, tail = one.partition(NAME)[0], one.rpartition(VALUE)[2]
    before, after = turns.plain or ("", "")
    prefix = max(find_shared_start(before, head), find_shared_start(turns.generation_prompt, head), key=len)
    prefix += _find_skippable(head[len(prefix) :], turns)
    own = _find_specials(one.rpartition(VALUE)[0][len(prefix) :])
    # A marker between two results also ends the calls before a result.
    results = [token for token in _find_specials(_find_text_between_results(conversations)) if token not in own]
    ends = {*_find_specials(after), *turns.ends, *turns.next_turns, *END_OF_TURN, BOS, EOS, *results}
    return PromptFrame(
        conversations, turns, prefix, _find_suffix(tail, after, ends, is_cut=conversations.conventions.with_results)
    )


def _find_text_between_results(conversations: RenderedConversations) -> str:
    """Return the text between the results of two calls, or "" if the template cannot render two results."""
    conventions = conversations.conventions
    results = (conventions.build_result_message(NAME), conventions.build_result_message(OTHER_NAME, 1, FOLLOW_UP))
    text = conversations.render(conventions.build_answer_message(TWO_CALLS), *results) or ""
    return text.partition(RESULT)[2].partition(FOLLOW_UP)[0]


def _find_skippable(text: str, turns: TurnLayout) -> str:
    """Return the prefix of ``text`` that calls may follow: whitespace, end tokens and empty reasoning."""
    known = {**REASONING, **turns.reasoning}
    skipped = {*turns.ends, BOS, EOS, *(each.strip() for pair in known.items() for each in pair)}
    size = 0
    for token in split_tokens(text):
        if token.strip() and token not in skipped:
            break
        size += len(token)
    return text[:size]


def _find_suffix(tail: str, after: str, ends: set[str], *, is_cut: bool) -> str:
    """Return the part of ``tail`` that follows the calls.

    ``tail`` is the text after the last value of a call. ``after`` is the text after an answer without calls. The calls
    end before the first token in ``ends``, or where ``tail`` and ``after`` become equal. ``is_cut``: whether ``tail``
    ends before a result, so that it cannot be compared. Raises CannotDeriveError if no end is found.
    """
    shared = "" if is_cut else find_shared_end(tail, after)
    end = len(tail) - len(shared)
    size = 0
    for token in split_tokens(tail):
        if token in ends:
            end = min(end, size)
            break
        size += len(token)
    else:
        if is_cut:
            raise CannotDeriveError(f"no marker ends a call: {tail!r} separates the call's last value from its result")
    return tail[len(tail[:end].rstrip()) :]


def _find_specials(text: str) -> list[str]:
    return [token for token in split_tokens(text) if looks_like_marker(token)]


def find_result_layout(frame: PromptFrame) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the layout of tool results: a template, the marker that begins a result, and the marker of its turn.

    The template has ``{}`` in place of the result, and ``{name}`` in place of the tool's name. Each marker is a tuple
    of one string, or empty.
    """
    conversations, turns = frame.conversations, frame.turns
    conventions = conversations.conventions
    text = conversations.render(conventions.build_answer_message(ONE_CALL), conventions.build_result_message(NAME))
    if text is None or RESULT not in text:
        return "{}", (), ()
    before, _, after = text.partition(RESULT)
    before = before[len(frame.prefix) :]
    between = _find_text_between_results(conversations).replace(OTHER_NAME, NAME)
    skipped = {*turns.ends, *turns.next_turns, *_find_specials(turns.generation_prompt), *END_OF_TURN, BOS, EOS}
    own = {*_find_specials(frame.render_calls(ONE_CALL) or ""), *skipped}
    opening = _remove_head(find_shared_end(before, between) if between else before, own, turns)
    known = {*own, *_find_specials(opening)}
    begins = tuple(_find_specials(opening)[:1])
    heads = [token for token in _find_specials(before) if token not in known and is_control_token(token)]
    if not begins:
        return "{}", (), tuple(heads[:1])
    closing = ""
    for token in split_tokens(after):
        if token in skipped or token in begins or token in heads:
            break
        closing += token
    closing = closing.rstrip() if _find_specials(closing) else ""
    return f"{opening}{{}}{closing}".replace(NAME, "{name}"), begins, tuple(heads[:1])


def _remove_head(text: str, skipped: set[str], turns: TurnLayout) -> str:
    """Remove the head of a turn (the text that names its role), and return ``text`` from the next marker on.

    The markers in ``skipped`` belong to the head.
    """
    tokens = split_tokens(text)
    last = max((index for index, token in enumerate(tokens) if token in skipped), default=-1)
    # The heads of a result's turn and the user's turn have equally many markers, but their text may differ.
    end = max((index for index, token in enumerate(tokens) if token in turns.ends), default=-1)
    markers = [index for index, token in enumerate(tokens) if looks_like_marker(token)]
    if end >= 0:
        last = max([last, *[index for index in markers if index > end][: turns.head]])
    return "".join(tokens[next((index for index in markers if index > last), len(tokens)) :])
