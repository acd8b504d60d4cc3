"""One of the answers to a request: the model's text, as deltas in OpenAI's shape."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from adapter.constraints.replies import ReplyParser
from adapter.conversation.guardrails.past import key_of
from adapter.conversation.history import Written, is_tame
from adapter.formats import get_format
from adapter.formats.parser import Parser
from adapter.prompting.intent.tool_shortlist import LOOKUPS
from adapter.prompting.neutral import in_strings, knowing, restore
from adapter.text.pieces import Pieces
from adapter.values.events import (
    ContentWasReasoning,
    Event,
    InvalidToolCall,
    Json,
    JsonObject,
    Markup,
    ReasoningDelta,
    ReasoningWasContent,
    RejectedCall,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from adapter.wire.attempt import Attempt
from adapter.wire.errors import error_object
from adapter.wire.heard import Heard
from adapter.wire.parsers import parser_of
from adapter.wire.positions import Positions
from adapter.wire.told_calls import ToldCalls
from adapter.wire.translated import Request
from adapter.wire.watching import EXTENSION

INCOMPLETE, ABANDONED = "incomplete", "abandoned"
"""Finish reasons of our own: the server broke off, the client did not wait."""

MAX_CHARACTERS = 8_000_000
"""Of one answer: two million tokens. What goes on longer has no end."""

_TOKEN = re.compile(r"<\|\w{1,40}\|>")


@dataclass(frozen=True, slots=True)
class _Rest:
    """The events from one on, copied for whoever asks: for each event that would cost the square of their number."""

    taken: Sequence[Event] = ()
    position: int = 0

    def events(self) -> Sequence[Event]:
        return self.taken[self.position :]


class Choice:
    """One of the ``n`` answers: its parser, and what of it the client has seen. ``heard``: for whoever looks on."""

    def __init__(self, request: Request, index: int, heard: Heard, *, is_whole: bool = False) -> None:
        self.index = index
        self.finish_reason: str | None = None
        self.error: JsonObject | None = None
        self.was_reasoning = 0
        self.was_content = False
        self._reasoned = Pieces()  # by this parser
        self.again: Request | None = None
        self._is_whole = is_whole
        self._has_role = False
        self._written = Written()
        self._content = Pieces()  # what the client has of it
        self._calls = ToldCalls(request.kinds, request.turn)
        self._may_remember = True  # it was written in one, and nothing in the calls could act on a server
        self._withheld: tuple[str, list[Event], str | None] | None = None  # of an answer that was asked again
        self._guardrail = ""  # for which that was
        self._size = 0
        self._space = ("", -1)  # white space that came last, and where
        self._called_at = -1  # where what looked like a call ended
        self._positions: Positions | None = None  # where the client wants to know how likely each token was
        self._begin(request, heard)

    def _begin(self, request: Request, heard: Heard) -> None:
        self._request = request
        self.heard = heard
        self._parser: Parser | ReplyParser | None = None
        self._reasoned = Pieces()
        self._keys: set[str] = set()  # of the calls in this answer
        self._has_repeated = False
        self._calls_before = len(self._calls.whole)
        self._is_again = self._content.size > 0  # text of this answer follows text that the client has
        watch = request.watch
        self._attempt = Attempt(holds_text=watch is not None and (self._is_again or watch.holds_text))

    def take_next(self) -> Request | None:
        """The request whose answer goes on where this one ended."""
        again, self.again = self.again, None
        if again is not None:
            self._observed(None)
            self._request.account.ask_again(self._guardrail)
            self.heard.close()
            self._guardrail = ""
            self._begin(again, Heard(again, self.heard.retry + 1))
            self._may_remember = False
        return again

    @property
    def told(self) -> JsonObject:
        """What the client is told of what was asked again: nothing where nothing was."""
        watch = self._request.watch
        return {EXTENSION: {"asked_again": list(watch.asked_again)}} if watch and watch.asked_again else {}

    def give_up(self) -> list[JsonObject | str] | None:
        """The rest of the answer that was asked again, as it came; None where there is none."""
        if self._withheld is None:
            return None
        (held, events, finish_reason), self._withheld, self.again = self._withheld, None, None
        self._request = replace(self._request, watch=None)
        self._attempt = Attempt()
        deltas = [*(self._text(held) if held else ()), *self._made(events, finish_reason)]
        return deltas if self.finish_reason else [*deltas, self._finish(finish_reason or "stop")]

    def feed(self, delta: JsonObject, finish_reason: Json, logprobs: Json = None) -> list[JsonObject | str]:
        """The client's deltas and, where this is the end, the finish reason. ``logprobs``: of the text; those that are
        left stand in the deltas."""
        if self.finish_reason or self.again:
            return []
        self._withheld = None  # the server took what was asked again
        deltas: list[JsonObject | str] = []
        if not self._has_role:
            self._has_role = True
            deltas.append({"role": "assistant", "content": ""})
        # llama.cpp, vLLM, SGLang and DeepSeek say reasoning_content; OpenRouter and newer vLLM reasoning.
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            self._parser = self._parser or self._new_parser("")  # what is left for the text is the answer
            deltas.append({"reasoning_content": reasoning})
            self.heard.hear(reasoning=reasoning)
            self._attempt.reasoned()
        if isinstance(text := delta.get("content"), str) and text:
            if logprobs and (self._positions or not self._size):
                self._positions = self._positions or Positions()
                self._positions.add(text, logprobs)
            deltas += self._deltas(self._events(text))
        if self._request.is_native:
            calls_before = len(self._calls)
            deltas += self._calls.native(delta.get("tool_calls"))
            self._request.account.calls += len(self._calls) - calls_before
        if isinstance(finish_reason, str) and not self.finish_reason:
            deltas += self._deltas(self._reading().close(finish_reason), finish_reason)
            if self._has_repeated and not self._calls.whole and not self.again:
                self.again = self._request.replying()
            elif not (self.error or self.finish_reason or self.again):
                self.again = self._asked_again(None, _Rest(), finish_reason)
            if self.error:
                self._observed(finish_reason)
            elif not self.finish_reason and not self.again:
                deltas += self._released(finish_reason)
                deltas.append(self._finish(finish_reason))
        return deltas

    def feed_text(self, text: str) -> str | list[JsonObject | str]:
        """As `feed`, of nothing but text; what comes of it where that is nothing but text again."""
        if self.finish_reason or self.again:
            return []
        self._withheld = None  # the server took what was asked again
        events = self._events(text)
        if len(events) != 1 or not isinstance(event := events[0], TextDelta) or self._attempt.holds_text:
            return self._deltas(events)
        self._written.add(event.raw)
        self._attempt.add_text(event.text)
        self.heard.take(events)
        self._content.add(event.text)
        return event.text

    def _events(self, text: str) -> Sequence[Event]:
        self._size += len(text)
        if self._size > MAX_CHARACTERS:
            self.error = error_object(f"the model's answer has more than {MAX_CHARACTERS:,} characters", "model_error")
            return ()
        self.heard.hear(text)
        self._attempt.hear(text)
        return self._reading().feed(text)

    def abandon(self) -> list[JsonObject | str]:
        """What is left when the server has gone without a word."""
        deltas = [*self._deltas(self._reading().close(INCOMPLETE), "length"), *self._released("length")]
        self._observed(INCOMPLETE)
        return deltas

    def leave(self) -> None:
        """Nobody reads on."""
        if not self.heard.is_told:
            self._observed(ABANDONED)
        self.heard.close()

    def _reading(self) -> Parser | ReplyParser:
        if self._parser is None:
            self._parser = self._new_parser(self._request.generation_prompt)
        return self._parser

    def _new_parser(self, generation_prompt: str | None) -> Parser | ReplyParser:
        return parser_of(self._request, self.index, generation_prompt, is_whole=self._is_whole)

    def _deltas(self, events: Sequence[Event], finish_reason: str | None = None) -> list[JsonObject | str]:
        self._written.take(events)
        self._attempt.take(events)
        self.heard.take(events)
        return self._made(events, finish_reason)

    def _made(self, events: Sequence[Event], finish_reason: str | None) -> list[JsonObject | str]:
        """The deltas of events that were taken already."""
        deltas: list[JsonObject | str] = []
        for position, event in enumerate(events):
            made = self._made_of(event, _Rest(events, position), finish_reason)
            if self._positions is not None:
                self._positions.place(event, made)
            deltas += made
            if self.again or self.finish_reason:
                break
        return deltas

    def _made_of(self, event: Event, rest: _Rest, finish_reason: str | None) -> list[JsonObject | str]:
        """``rest``: the events from this one on."""
        match event:
            case TextDelta(text=text):
                return self._text(text)
            case ReasoningDelta(text=text):
                self._reasoned.add(text)
                return [{"reasoning_content": text}]
            case ContentWasReasoning():
                self.was_reasoning = self._content.size
            case ReasoningWasContent():
                self.was_content = True
                return self._text(str(self._reasoned))  # in a stream it comes twice, or there is no answer
            case ToolCallDelta():
                return self._fragment(event)
            case ToolCall() | InvalidToolCall() if self._is_over(rest):
                return self._ended_before()
            case ToolCall() | InvalidToolCall() if again := self._asked_again(event, rest, finish_reason):
                self.again = again
            case ToolCall() if self._request.few is not None and event.name == self._request.few.finder:
                self.again = self._looked_up(event)
            case ToolCall() if self._is_repeated(event):
                self._has_repeated = True
            case ToolCall() if self._is_allowed(event.name):
                called = self._call(event)
                return called if self._request.parallel else [*called, self._finish("stop")]
            case ToolCall(raw=raw):
                return self._text(self._shown(raw))
            case InvalidToolCall():
                self._request.account.refused["unreadable"] += 1
                return self._invalid(event, finish_reason)
            case RejectedCall(reason=reason):
                self._request.account.refused[reason] += 1
            case Markup(raw=raw) if not self._request.tools and raw.isspace():
                return self._blank(raw)
            case _:
                pass  # markup and progress are not for the client
        return []

    def _blank(self, raw: str) -> list[JsonObject | str]:
        """White space around what would be a call, were there tools: then it is text as well."""
        if self._called_at == self._place():
            made = self._text(raw)
            self._called_at = self._place()
            return made
        self._space = (raw, self._place())
        return []

    def _place(self) -> int:
        return self._content.size + self._reasoned.size

    def _shown(self, raw: str) -> str:
        """What looked like a call and is none, for the client: without tokens that most servers take out."""
        tokens = get_format(self._request.format).special_tokens
        space, place = self._space
        space = space if place == self._place() else ""
        text = space + _TOKEN.sub(lambda found: "" if found[0] in tokens else found[0], raw)
        self._called_at = self._place() + len(text)
        return text

    def _asked_again(
        self, event: ToolCall | InvalidToolCall | None, rest: _Rest, finish_reason: str | None
    ) -> Request | None:
        """The request for a better answer where ``event``, or all of it at its end, is of no use; not where the client
        has a call of it. ``rest``: the events from ``event`` on."""
        watch, attempt = self._request.watch, self._attempt
        has_call = self._calls.is_open or (len(self._calls) > 0 and self._request.constraint != "arguments")
        if watch is None or has_call or (isinstance(event, ToolCall) and not self._is_allowed(event.name)):
            return None
        if event is None and len(self._calls) > 0:
            return None
        ask = watch.judge(attempt.said(event, rest.events()), finish_reason, lambda: attempt.wrote(event))
        if ask is None:
            return None
        self._guardrail = ask.guardrail
        self._withheld = (attempt.released(), list(rest.events()), finish_reason)
        return self._request.again(ask, attempt.wrote(event))

    def _is_over(self, rest: _Rest) -> bool:
        """Whether the answer has ended before ``rest``, and the model has gone on as the user."""
        watch = self._request.watch
        return watch is not None and watch.is_over(self._attempt.said(rest=rest.events()).content)

    def _ended_before(self) -> list[JsonObject | str]:
        """What is left of an answer that ended before a call, and whatever follows that."""
        self._may_remember = False  # the model is not to be shown that call
        self.again = self._asked_again(None, _Rest(), "stop")
        return [] if self.again else [*self._released("stop"), self._finish("stop")]

    def _looked_up(self, call: ToolCall) -> Request | None:
        """The request that goes on after a search among the tools; None where the client has calls to answer, or after
        too many: then it goes unsaid."""
        if len(self._calls) > 0 or self._request.lookups >= LOOKUPS:
            return None
        self._withheld = (self._attempt.released(), [], None)
        return self._request.looked_up(call, self._attempt.wrote(call))

    def _is_repeated(self, call: ToolCall) -> bool:
        """Whether a model that is held to calls makes one again, in this answer or with the result before it."""
        if self._request.reply is None:
            return False
        key = key_of(call.name, in_strings(restore, call.arguments))
        is_repeated = key in self._keys or key in self._request.made
        self._keys.add(key)
        return is_repeated

    def _text(self, text: str) -> list[JsonObject | str]:
        if self._attempt.holds_text:
            self._attempt.hold(text)
            return []
        self._content.add(text)
        return [{"content": text}] if text else []

    def _released(self, finish_reason: str | None = None) -> list[JsonObject | str]:
        """The text that waited. Before a call it goes unsaid where the client has text already: it would come twice."""
        if not self._attempt.holds_text:
            return []
        text = self._attempt.released()
        if not self._is_again:
            return self._text(text)
        said = str(self._content).strip()
        if finish_reason is None or not text.strip() or said.endswith(text.strip()):
            return []
        return self._text("\n\n" + text.lstrip().removeprefix(said).lstrip())

    def _is_allowed(self, name: str) -> bool:
        """Without tools nothing is a call; an unknown name is told to the client, which can answer it."""
        tools = self._request.tools
        return name in tools if self._request.is_restricted else bool(tools)

    def _fragment(self, event: ToolCallDelta) -> list[JsonObject | str]:
        watch, few = self._request.watch, self._request.few
        is_held = (watch is not None and watch.holds_call(event.name)) or (few is not None and event.name == few.finder)
        if is_held or not self._is_allowed(event.name) or (not self._calls.is_open and self._is_over(_Rest())):
            return []
        return [*self._released(), *self._calls.fragment(event)]

    def _call(self, call: ToolCall) -> list[JsonObject | str]:
        before = self._released()
        arguments = in_strings(restore, call.arguments)
        self._request.account.called(call)
        request = self._request
        format, tools = knowing(get_format(request.format), request.control_tokens), request.tools
        self._may_remember = self._may_remember and is_tame(call.arguments, format, tools)
        return [*before, *self._calls.call(call.id, call.name, arguments)]

    def _invalid(self, wrong: InvalidToolCall, finish_reason: str | None) -> list[JsonObject | str]:
        """It is text, so that nothing is lost; where its arguments have been streamed the answer cannot stand."""
        if self._request.reply is not None and finish_reason == "length":
            return []  # what the server made the model write is not meant for anybody's eyes
        if not self._calls.is_open:
            return self._text(self._shown(wrong.raw))
        if finish_reason != "length":  # cut arguments before finish_reason "length" are what OpenAI sends, too
            self.error = error_object(f"the model's call of {wrong.name} came to nothing: {wrong.error}", "model_error")
        return []

    def _finish(self, finish_reason: str) -> str:
        """A text that was cut is ``length``, whatever calls came before; else calls are what ended the answer."""
        called = "function_call" if self._request.kinds.is_legacy else "tool_calls"
        self.finish_reason = called if len(self._calls) > 0 and finish_reason == "stop" else finish_reason
        self._request.account.finish_reasons.append(self.finish_reason)
        self._remember()
        self._observed(finish_reason)
        return self.finish_reason

    def _observed(self, finish_reason: str | None) -> None:
        """This answer is over; ``finish_reason`` is None where another is asked for."""
        self.heard.tell(self._calls.whole[self._calls_before :], finish_reason, self._guardrail)

    def _remember(self) -> None:
        content, written = str(self._content)[self.was_reasoning if self._is_whole else 0 :], self._written.text()
        is_one_of_several = bool(self._calls.whole) and not self._request.parallel  # the others were not made
        if self._request.is_native or is_one_of_several or not self._may_remember:
            return
        if written != content and (content or self._calls.whole):
            self._request.memory.remember(self._request.format, content, self._calls.whole, written)
