"""Where in a prompt the calls of an answer begin and end, and what stands around answers, reasoning and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from adapter.core.events import JsonObject
from adapter.parsing.bodies.format_compiler import is_marker
from adapter.parsing.marker_tables import END_OF_TURN, REASONING
from adapter.prompting.deriving.probes import (
    BOS,
    EOS,
    MORE,
    NAME,
    ONE,
    OTHER,
    RESULT,
    SAID,
    THOUGHT,
    TWO_CALLS,
    VALUE,
    Call,
    RenderedConversations,
    is_control,
    is_special,
    shared_end,
    shared_start,
    split_tokens,
)

_USER: JsonObject = {"role": "user", "content": MORE}


class CannotDeriveError(Exception):
    """``str(error)``: what could not be decided, for people."""


@dataclass(frozen=True, slots=True)
class TurnLayout:
    """``ends``: tokens that end an answer or stand around it. ``next_turns``: those that begin somebody else's.
    ``opened``: what the prompt ends with, so that an answer goes on from there."""

    opened: str = ""
    ends: tuple[str, ...] = ()
    next_turns: tuple[str, ...] = ()
    head: int = 0
    """How many markers stand between the end of an answer and the words of the user."""
    plain: tuple[str, str] | None = None
    """What stands before and after an answer without calls."""
    reasoning: dict[str, str] = field(default_factory=dict)
    starts_in_reasoning: bool = False


def find_turns(writings: RenderedConversations) -> TurnLayout:
    """What stands around answers."""
    opened = writings.talk(opened=True) or ""
    answer = writings.way.answer([], SAID)
    alone, followed = writings.talk(answer), writings.talk(answer, _USER)
    plain = _around(alone, SAID)
    if plain is None:
        around = _around(followed, SAID)
        plain = (around[0], "") if around is not None else None
    before, after = plain or ("", "")
    wrapping = split_tokens(before[len(shared_start(before, opened)) :])
    heads = _specials(opened)[1:]
    closing = takewhile(lambda token: token not in heads, _specials(after))
    ends = [token for token in (*closing, *_specials("".join(wrapping))) if token not in (BOS, EOS)]
    between = followed.partition(SAID)[2].partition(MORE)[0] if followed and SAID in followed else ""
    following = [token for token in split_tokens(between[len(shared_start(between, after)) :]) if is_special(token)]
    next_turns = [token for token in following if token not in ends and is_control(token)][:1]
    reasoning = _reasoning(writings, plain)
    known = {**REASONING, **reasoning}
    starts = any(opened.rstrip().endswith(opening.strip()) for opening in known)
    named = {token.strip() for pair in known.items() for token in pair}
    return TurnLayout(
        opened=opened,
        ends=tuple(dict.fromkeys(token for token in ends if token not in named)),
        next_turns=tuple(next_turns),
        head=len(following),
        plain=plain,
        reasoning=reasoning,
        starts_in_reasoning=starts,
    )


def _around(text: str | None, word: str) -> tuple[str, str] | None:
    if text is None or word not in text:
        return None
    before, _, after = text.partition(word)
    return before, after


def _reasoning(writings: RenderedConversations, plain: tuple[str, str] | None) -> dict[str, str]:
    """The markers around past reasoning, where the template shows it."""
    for text, end in (
        (writings.calls(ONE, SAID, THOUGHT), SAID),
        (writings.calls(ONE, None, THOUGHT), NAME),
        (writings.talk(writings.way.answer([], SAID, THOUGHT)), SAID),
    ):
        around = _around(text, THOUGHT)
        if around is None or plain is None or end not in around[1]:
            continue
        opening = around[0][len(shared_start(around[0], plain[0])) :].strip()
        closing = around[1].partition(end)[0]
        marked = [token for token in split_tokens(closing) if is_special(token)]
        close = marked[0] if marked else closing.strip()
        if end == SAID and opening and close and (is_marker(opening) or is_marker(close)):
            return {opening: close}
        if opening and marked and close.startswith(("</", "[/")):
            return {opening: close}
    return {}


@dataclass(frozen=True, slots=True)
class PromptFrame:
    """``lead`` stands before the calls of an answer that only calls, ``suffix`` after them."""

    writings: RenderedConversations
    turns: TurnLayout
    lead: str
    suffix: str

    def calls(self, calls: Sequence[Call]) -> str | None:
        """The text of these calls alone; None where the template refuses them or puts them elsewhere."""
        text = self.writings.calls(calls)
        if text is None or not text.startswith(self.lead) or not text.endswith(self.suffix):
            return None
        if any(name not in text for name, _ in calls):
            return None  # some templates show the first of several calls and leave out the rest
        return text[len(self.lead) : len(text) - len(self.suffix)]

    @property
    def end(self) -> str:
        """What a server that strips nothing would hand on of an answer's end."""
        return "" if self.suffix.strip() == "" else _first_end(self.suffix, self.turns.ends)

    def answer(self, calls: Sequence[Call], content: str) -> str | None:
        """What the model would write to say ``content`` and call; None where the template cannot show both."""
        text = self.writings.calls(calls, content)
        if text is None or content not in text or not text.endswith(self.suffix):
            return None
        if any(name not in text.partition(content)[2] for name, _ in calls):
            return None
        before = text.partition(content)[0].rstrip()
        if any(before.endswith(opening) for opening in self.turns.reasoning):
            return None  # what is said beside a call is shown as reasoning
        start = len(shared_start(text, self.turns.opened)) if self.turns.opened else text.index(content)
        return text[min(start, text.index(content)) : len(text) - len(self.suffix)]


def _first_end(text: str, ends: Sequence[str]) -> str:
    """``text`` up to the first of ``ends``, and with it; "" without one."""
    size = 0
    for token in split_tokens(text):
        size += len(token)
        if token in ends:
            return text[:size]
    return ""


def find_frame(writings: RenderedConversations, turns: TurnLayout) -> PromptFrame:
    """Raises CannotDeriveError where a call's end is not to be seen."""
    one = writings.calls(ONE)
    assert one is not None  # the way of writing was found by it
    head, tail = one.partition(NAME)[0], one.rpartition(VALUE)[2]
    before, after = turns.plain or ("", "")
    lead = max(shared_start(before, head), shared_start(turns.opened, head), key=len)
    lead += _passed_over(head[len(lead) :], turns)
    own = _specials(one.rpartition(VALUE)[0][len(lead) :])
    results = [token for token in _between_results(writings) if token not in own]
    ends = {*_specials(after), *turns.ends, *turns.next_turns, *END_OF_TURN, BOS, EOS, *results}
    return PromptFrame(writings, turns, lead, _suffix(tail, after, ends, is_cut=writings.way.with_results))


def _between_results(writings: RenderedConversations) -> list[str]:
    """The markers between two results: what begins a result ends the calls before it."""
    way = writings.way
    text = writings.talk(way.answer(TWO_CALLS), way.result(NAME), way.result(OTHER, 1, MORE)) or ""
    return _specials(text.partition(RESULT)[2].partition(MORE)[0])


def _passed_over(text: str, turns: TurnLayout) -> str:
    """What stands before the first call and is none of it: white space, ends of an answer, empty reasoning."""
    known = {**REASONING, **turns.reasoning}
    passed = {*turns.ends, BOS, EOS, *(each.strip() for pair in known.items() for each in pair)}
    size = 0
    for token in split_tokens(text):
        if token.strip() and token not in passed:
            break
        size += len(token)
    return text[:size]


def _suffix(tail: str, after: str, ends: set[str], *, is_cut: bool) -> str:
    """What follows the calls: ``tail`` from where the answer ends, at the latest at one of ``ends``."""
    shared = "" if is_cut else shared_end(tail, after)
    place = len(tail) - len(shared)
    size = 0
    for token in split_tokens(tail):
        if token in ends:
            place = min(place, size)
            break
        size += len(token)
    else:
        if is_cut:
            raise CannotDeriveError(f"where a call ends is not to be seen: {tail!r} stands between it and its result")
    return tail[len(tail[:place].rstrip()) :]


def _specials(text: str) -> list[str]:
    return [token for token in split_tokens(text) if is_special(token)]


def find_result(frame: PromptFrame) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What a result stands in, with ``{}`` for it, the marker that begins one, and those of the turn it comes in."""
    writings, turns = frame.writings, frame.turns
    way = writings.way
    text = writings.talk(way.answer(ONE), way.result(NAME))
    if text is None or RESULT not in text:
        return "{}", (), ()
    before, _, after = text.partition(RESULT)
    before = before[len(frame.lead) :]
    two = writings.talk(way.answer(TWO_CALLS), way.result(NAME), way.result(OTHER, 1, MORE)) or ""
    between = two.partition(RESULT)[2].partition(MORE)[0].replace(OTHER, NAME)
    passed = {*turns.ends, *turns.next_turns, *_specials(turns.opened), *END_OF_TURN, BOS, EOS}
    own = {*_specials(frame.calls(ONE) or ""), *passed}
    opening = _without_head(shared_end(before, between) if between else before, own, turns)
    begins = tuple(token for token in _specials(opening))[:1]
    heads = [token for token in _specials(before) if token not in own and token not in _specials(opening)]
    heads = [token for token in heads if is_control(token)]
    if not begins:
        return "{}", (), tuple(heads[:1])
    closing = ""
    for token in split_tokens(after):
        if token in passed or token in begins or token in heads:
            break
        closing += token
    kept = closing.rstrip() if _specials(closing) else ""
    return f"{opening}{{}}{kept}".replace(NAME, "{name}"), begins, tuple(heads[:1])


def _without_head(text: str, passed: set[str], turns: TurnLayout) -> str:
    """What of ``text`` follows the head of a turn, from the first marker on."""
    pieces = split_tokens(text)
    last = max((place for place, token in enumerate(pieces) if token in passed), default=-1)
    # The head of a result's turn has as many markers as that of the user's, and they need not be the same.
    ended = max((place for place, token in enumerate(pieces) if token in turns.ends), default=-1)
    marks = [place for place, token in enumerate(pieces) if is_special(token)]
    if ended >= 0:
        last = max([last, *[place for place in marks if place > ended][: turns.head]])
    return "".join(pieces[next((place for place in marks if place > last), len(pieces)) :])
