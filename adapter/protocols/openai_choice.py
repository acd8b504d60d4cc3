"""Convert the model's text for one choice of a completion to deltas in OpenAI's format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from adapter.conversation.guardrails.call_history import call_key
from adapter.conversation.guardrails.response_checks import find_leading_call
from adapter.conversation.verbatim_history import VerbatimText, is_safe_to_replay
from adapter.core.events import (
    ContentReclassified,
    Event,
    InvalidToolCall,
    Json,
    JsonObject,
    MarkupDelta,
    ReasoningDelta,
    ReasoningReclassified,
    RejectedCall,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from adapter.core.text.string_builder import StringBuilder
from adapter.grammars.reply_tool import ReplyParser
from adapter.parsing.formats import get_format
from adapter.parsing.parser import Parser
from adapter.prompting.escaping import map_strings, unescape_control_tokens, with_control_tokens
from adapter.prompting.tool_shortlist import LOOKUPS
from adapter.protocols.cut_calls import CUT_REASONS, find_tool, without_cut_call
from adapter.protocols.guarded_exchange import EXTENSION
from adapter.protocols.held_answer import HeldAnswer
from adapter.protocols.logprobs import LogprobAligner
from adapter.protocols.native_calls import NativeCalls
from adapter.protocols.openai_errors import error_object
from adapter.protocols.reasoning_budget import ReasoningWatch
from adapter.protocols.tool_call_deltas import ToolCallDeltas
from adapter.protocols.translated_request import TranslatedRequest

INCOMPLETE, ABANDONED = "incomplete", "abandoned"
"""This library's finish reasons: the server disconnected before the end of the answer, or the client did."""

MAX_CHARACTERS = 8_000_000
"""Maximum length of an answer, in characters; about two million tokens. A model that exceeds it never stops."""

_TOKEN = re.compile(r"<\|\w{1,40}\|>")
_Rest: TypeAlias = tuple[Sequence[Event], int]
"""A list of events, and the index of the first event in the rest. Copying the rest for each event would take quadratic
time."""
_NOTHING: _Rest = ((), 0)


def _remaining(rest: _Rest) -> Sequence[Event]:
    events, position = rest
    return events[position:]


class ChoiceStream:
    """One of the ``n`` answers, as deltas (dicts) and a finish reason (a string).

    ``attempt``: the model's current answer. If it is unusable, `follow_up` is the request for another answer; text that
    the client already has is not retracted. ``is_whole``: the client gets a buffered answer.
    """

    def __init__(self, index: int, attempt: HeldAnswer, *, is_whole: bool = False) -> None:
        self.index = index
        self.finish_reason: str | None = None
        self.error: JsonObject | None = None
        self.was_reasoning = 0
        """Length of the leading content that turned out to be reasoning."""
        self.was_content = False
        """True if all reasoning turned out to be content."""
        self.follow_up: TranslatedRequest | None = None
        self.reasoning_end = ""
        """The reason why the reasoning was closed: ``budget``, ``loop`` or ""."""
        self._is_whole = is_whole
        self._has_role = False
        self.reasoned = 0
        """Number of characters of reasoning."""
        self._size = self._separate = 0  # characters in the text, and outside of it
        self._content, self._verbatim = StringBuilder(), VerbatimText()  # for the client, and as the model wrote it
        self._calls = ToolCallDeltas(attempt.request.client.kinds, attempt.request.turn)
        self._native = NativeCalls()
        self._cut_text: str | None = None  # see `without_cut_call`
        self._may_remember = True  # False after a retry, or a call with control tokens
        self._withheld: tuple[str, list[Event], str | None] | None = None  # the rest of a rejected answer
        self._space = ("", -1)  # the last whitespace and its position
        self._rejected_end = -1  # position after text that looked like a call
        self._logprobs: LogprobAligner | None = None
        self._begin(attempt)

    def _begin(self, attempt: HeldAnswer) -> None:
        self.attempt, self._request = attempt, attempt.request
        self._calls_before = len(self._calls.whole)
        self._reasoning_watch = ReasoningWatch(self._request.reasoning_limit)
        self._has_text = self._content.size > 0  # text of an earlier attempt
        guard = self._request.follow_up.guard
        self._dropped_before = len(guard.dropped) if guard is not None else 0
        # A model that was sent a message may copy it, which is known only at the end.
        is_retry = not self._request.is_continuation and (self._has_text or attempt.retry > 0)
        attempt.holds_text = guard is not None and (is_retry or guard.holds_text)

    @property
    def size(self) -> int:
        """Number of characters that the model wrote."""
        return self._size + self._separate

    def feed(self, delta: JsonObject, finish_reason: Json, logprobs: Json = None) -> list[JsonObject | str]:
        """Return the client's deltas and, at the end, the finish reason. ``logprobs``: of the text in ``delta``."""
        if self.finish_reason or self.follow_up:
            return []
        self._withheld = None  # the server accepted the follow-up
        deltas: list[JsonObject | str] = []
        if not self._has_role:
            self._has_role = True
            deltas.append({"role": "assistant", "content": ""})
        # llama.cpp, vLLM, SGLang and DeepSeek send reasoning_content; OpenRouter and newer vLLM send reasoning.
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            self._parser("")  # parse the following text as the answer
            self._separate += len(reasoning)
            self.reasoned += len(reasoning)
            deltas.append({"reasoning_content": reasoning})
            self.attempt.record_reasoning(reasoning)
            self._watch_reasoning(reasoning)
            if self.follow_up:
                return deltas
        if isinstance(text := delta.get("content"), str) and text:
            if logprobs and (self._logprobs or not self._size):
                self._logprobs = self._logprobs or LogprobAligner()
                self._logprobs.add(text, logprobs)
            deltas += self._take(self._parse(text))
        if native := delta.get("tool_calls"):
            deltas += self._take_native(native)
        if isinstance(finish_reason, str) and finish_reason and not self.finish_reason:
            deltas += self._end(finish_reason)
        return deltas

    def _watch_reasoning(self, text: str) -> None:
        """Close the reasoning if it exceeds its budget or loops, and let the model go on with its answer."""
        reason = self._reasoning_watch.add(text)
        if not reason or self._is_whole or len(self._calls) > 0:
            return
        self.follow_up = self._request.with_closed_reasoning(*self.attempt.unfinished_text())
        if self.follow_up is not None:
            self.reasoning_end, self.attempt.guardrail = reason, f"reasoning_{reason}"
            self._withheld = ("", [], "length")

    def feed_text(self, text: str) -> str | list[JsonObject | str]:
        """Feed text without other fields. Return a string if the result is only text."""
        if self.finish_reason or self.follow_up:
            return []
        self._withheld = None
        events = self._parse(text)
        is_held = self.attempt.holds_text or not self._content.size
        if len(events) != 1 or not isinstance(event := events[0], TextDelta) or is_held:
            return self._take(events)
        self._verbatim.add(event.raw)
        self.attempt.take_text(events, event.text)
        self._content.add(event.text)
        return event.text

    def _take_native(self, calls: Json) -> list[JsonObject | str]:
        """Forward calls that the server parsed. If none were requested, they are treated as the model's text."""
        if not self._request.is_native:
            self._native.add(calls)
            return []
        calls_before = len(self._calls)
        deltas = self._calls.forward_native(calls)
        self._request.stats.calls += len(self._calls) - calls_before
        return [*deltas]

    def on_upstream_lost(self) -> list[JsonObject | str]:
        """Return the remaining deltas after the server closed the connection."""
        deltas = [*self._take(self._close_parser(INCOMPLETE), "length"), *self._release("length")]
        self._record(INCOMPLETE)
        return deltas

    def cancel(self) -> None:
        """Record that the client disconnected."""
        if not self.attempt.has_outcome:
            self._record(ABANDONED)
        self.attempt.close()

    def _end(self, finish_reason: str) -> list[JsonObject | str]:
        deltas = self._take(self._close_parser(finish_reason), finish_reason)
        if self.attempt.has_repeated_call and not self._calls.whole and not self.follow_up:
            self.follow_up = self._request.without_tools()
        elif not (self.error or self.finish_reason or self.follow_up):
            self.follow_up = self._retry(None, _NOTHING, finish_reason) or self._next_call(finish_reason)
        if self.error:
            self._record(finish_reason)
        elif not self.finish_reason and not self.follow_up:
            deltas += self._last_text(finish_reason)
            deltas += [] if self.finish_reason else [self._finish(finish_reason)]
        return deltas

    def _whole_call(self, text: str) -> list[JsonObject | str]:
        """Return the deltas for the first call of a truncated answer that continued after it, and its end; or []."""
        whole = find_leading_call(text)
        if self._request.follow_up.guard is None or len(self._calls) > 0 or not whole or text.endswith(whole):
            return []
        parser = self._request.make_parser(self.index, self._request.parsing.generation_prompt, streams=False)
        calls = [each for each in [*parser.feed(whole), *parser.close("stop")] if isinstance(each, ToolCall)]
        if not calls or not self._is_allowed(calls[0].name) or self._is_dropped(calls[0]):
            return []
        self._may_remember = False
        self.attempt.release()
        return [*self._call(calls[0]), self._finish("stop")]

    def _last_text(self, finish_reason: str) -> list[JsonObject | str]:
        """Return the deltas for the rest of the text.

        If the client would get nothing because all of the answer is dropped, it gets the last result.
        """
        guard = self._request.follow_up.guard
        if guard is None or len(self._calls) > 0:
            return self._release(finish_reason)
        if finish_reason == "length" and (
            deltas := self._whole_call(self._cut_text or self.attempt.candidate().content)
        ):
            return deltas
        is_dropped = bool(guard.dropped)
        if self.attempt.holds_text and guard.drops_answer(self.attempt.candidate()):
            self.attempt.release()
            is_dropped = True
        text = self._release(finish_reason)
        return self._text(guard.last_result) if is_dropped and not text and not self._content.size else text

    def _close_parser(self, finish_reason: str) -> Sequence[Event]:
        """Return the last events, without the start of a call that was cut off."""
        request, native = self._request, self._native
        self._native = NativeCalls()
        events: Sequence[Event] = self._parser().close(finish_reason)
        if finish_reason in (*CUT_REASONS, INCOMPLETE) and request.tools:
            format = get_format(request.parsing.format)
            events, self._cut_text = without_cut_call(events, format, request.tools)
        return [*events, *native.events(request.tools, request.turn)]

    def _parser(self, generation_prompt: str | None = None) -> Parser | ReplyParser:
        if self.attempt.parser is None:
            before = self._request.parsing.generation_prompt if generation_prompt is None else generation_prompt
            self.attempt.parser = self._request.make_parser(self.index, before, streams=not self._is_whole)
        return self.attempt.parser

    def _parse(self, text: str) -> Sequence[Event]:
        self._size += len(text)
        if self._size > MAX_CHARACTERS:
            self.error = error_object(f"the model's answer has more than {MAX_CHARACTERS:,} characters", "model_error")
            return ()
        self.attempt.record_text(text)
        return self._parser().feed(text)

    def _take(self, events: Sequence[Event], finish_reason: str | None = None) -> list[JsonObject | str]:
        self._verbatim.take(events)
        self.attempt.take(events)
        return self._deltas(events, finish_reason)

    def _deltas(self, events: Sequence[Event], finish_reason: str | None) -> list[JsonObject | str]:
        deltas: list[JsonObject | str] = []
        guard = self._request.follow_up.guard
        for index, event in enumerate(events):
            if guard is not None and isinstance(event, ToolCall):
                event = guard.without_forbidden(event)
            event_deltas = self._deltas_of(event, (events, index), finish_reason)
            if self._logprobs is not None:
                self._logprobs.attach(event, event_deltas)
            deltas += event_deltas
            if self.follow_up or self.finish_reason:
                break
        return deltas

    def _deltas_of(self, event: Event, rest: _Rest, finish_reason: str | None) -> list[JsonObject | str]:
        """Return the deltas of ``event``. ``rest``: the events from ``event`` on."""
        match event:
            case TextDelta(text=text):
                is_guarded = self._request.follow_up.guard is not None
                if is_guarded and not self._content.size and find_leading_call(text):
                    self.attempt.holds_text = True  # it may be no answer
                return self._text(text)
            case ReasoningDelta(text=text):
                self.attempt.reasoned.add(text)
                self.reasoned += len(text)
                self._watch_reasoning(text)
                return [{"reasoning_content": text}]
            case ContentReclassified():
                self.reasoned = self.was_reasoning = self._content.size
            case ReasoningReclassified():
                self.was_content, self.reasoned = True, 0
                return self._text(str(self.attempt.reasoned))  # streamed twice, but otherwise the answer would be empty
            case ToolCallDelta():
                return self._fragment(event)
            case ToolCall() | InvalidToolCall() if self._has_ended(rest):
                return self._end_before_call()
            case ToolCall() | InvalidToolCall() if retry := self._retry(event, rest, finish_reason):
                self.follow_up = retry
            case InvalidToolCall() if finish_reason == "length" and (deltas := self._whole_call(event.raw)):
                return deltas
            case ToolCall() if self._is_lookup(event.name):
                self.follow_up = self._lookup(event)
            case ToolCall() if self._is_repeated(event):
                self.attempt.has_repeated_call = True
            case ToolCall() if self._is_dropped(event):
                self._may_remember = False  # the model should not see that call again
            case ToolCall() if self._is_allowed(event.name):
                deltas = self._call(event)
                return deltas if self._request.client.parallel else [*deltas, self._finish("stop")]
            case ToolCall(raw=raw):
                return self._text(self._rejected_text(raw))
            case InvalidToolCall():
                self._request.stats.rejected["unreadable"] += 1
                return self._invalid_call(event, finish_reason)
            case RejectedCall(reason=reason):
                self._request.stats.rejected[reason] += 1
            case MarkupDelta(raw=raw) if not self._request.tools and raw.isspace():
                return self._whitespace(raw)
            case _:
                pass  # markup and progress are not sent to the client
        return []

    def _text(self, text: str) -> list[JsonObject | str]:
        if self.attempt.holds_text:
            self.attempt.hold(text)
            return []
        self._content.add(text)
        return [{"content": text}] if text else []

    def _release(self, finish_reason: str | None = None) -> list[JsonObject | str]:
        """Return the deltas for the text that was held back.

        If the client has text of an earlier attempt, it gets only the new part of the text, and only at the end.
        """
        if not self.attempt.holds_text:
            return []
        text = self.attempt.release()
        if not self._has_text:
            return self._text(text)
        before = str(self._content).strip()
        if finish_reason is None or not text.strip() or before.endswith(text.strip()):
            return []
        return self._text("\n\n" + text.lstrip().removeprefix(before).lstrip())

    def _whitespace(self, raw: str) -> list[JsonObject | str]:
        """Treat whitespace around a rejected call as text: without tools, the rejected call is also sent as text."""
        if self._rejected_end == self._position():
            deltas = self._text(raw)
            self._rejected_end = self._position()
            return deltas
        self._space = (raw, self._position())
        return []

    def _rejected_text(self, raw: str) -> str:
        """Return the text of a rejected call, without the special tokens that most servers remove."""
        tokens = get_format(self._request.parsing.format).special_tokens
        space, position = self._space
        space = space if position == self._position() else ""
        text = space + _TOKEN.sub(lambda token: "" if token[0] in tokens else token[0], raw)
        self._rejected_end = self._position() + len(text)
        return text

    def _position(self) -> int:
        return self._content.size + self.attempt.reasoned.size

    def _is_allowed(self, name: str) -> bool:
        """Return whether the client gets a call of ``name``.

        Without tools, no call is sent. A call of an unknown tool is sent because the client can respond to it.
        """
        tools = self._request.tools
        return name in tools if self._request.parsing.is_restricted else bool(tools)

    def _is_lookup(self, name: str) -> bool:
        shortlist = self._request.follow_up.shortlist
        return shortlist is not None and name == shortlist.finder

    def _is_repeated(self, call: ToolCall) -> bool:
        """Return whether a constrained model repeats a call of this answer or a call whose result it has."""
        if self._request.parsing.reply is None:
            return False
        key, keys = call_key(call.name, map_strings(unescape_control_tokens, call.arguments)), self.attempt.call_keys
        is_repeated = key in keys or key in self._request.follow_up.previous_calls
        keys.add(key)
        return is_repeated

    def _is_dropped(self, call: ToolCall) -> bool:
        """Return whether the client does not get a call, unless it already has the call's beginning."""
        guard = self._request.follow_up.guard
        if guard is None or self._calls.is_open or not self._is_allowed(call.name):
            return False
        arguments = map_strings(unescape_control_tokens, call.arguments)
        if not guard.drops(replace(call, arguments=arguments), self._calls.whole):
            return False
        self._request.stats.dropped[guard.dropped[-1].guardrail] += 1
        return True

    def _fragment(self, event: ToolCallDelta) -> list[JsonObject | str]:
        guard = self._request.follow_up.guard
        is_held = guard is not None and (len(self._calls.whole) > 0 or guard.holds_call(event.name))
        is_held = is_held or self._is_lookup(event.name)
        if is_held or not self._is_allowed(event.name) or (not self._calls.is_open and self._has_ended(_NOTHING)):
            return []
        return [*self._release(), *self._calls.add_fragment(event)]

    def _call(self, call: ToolCall) -> list[JsonObject | str]:
        before, request = self._release(), self._request
        guard = request.follow_up.guard
        call = call if guard is None else guard.without_forbidden(call, is_final=True)
        request.stats.count_call(call)
        format = with_control_tokens(get_format(request.parsing.format), request.parsing.control_tokens)
        self._may_remember = self._may_remember and is_safe_to_replay(call.arguments, format, request.tools)
        arguments = map_strings(unescape_control_tokens, call.arguments)
        return [*before, *self._calls.add_call(call.id, call.name, arguments)]

    def _invalid_call(self, wrong: InvalidToolCall, finish_reason: str | None) -> list[JsonObject | str]:
        """Send an invalid call as text; if part of its arguments was already sent, fail the answer."""
        if self._request.parsing.reply is not None and finish_reason == "length":
            return []  # written only because of the constraint
        if not self._calls.is_open:
            return self._text(self._rejected_text(wrong.raw))
        self.error = error_object(f"tool call {wrong.name} is incomplete: {wrong.error}", "model_error")
        return []

    @property
    def notice(self) -> JsonObject:
        """A response field that lists guardrails that caused retries, dropped calls, a call that was cut off, and the
        reason why reasoning was closed."""
        guard = self._request.follow_up.guard
        notice = dict(guard.report) if guard else {}
        notice |= {"cut_call": find_tool(self._cut_text, self._request.tools)} if self._cut_text is not None else {}
        notice |= {"reasoning": self.reasoning_end} if self.reasoning_end else {}
        return {EXTENSION: notice} if notice else {}

    def take_next(self) -> TranslatedRequest | None:
        """Return the follow-up request and begin its attempt; None without a follow-up."""
        request, self.follow_up = self.follow_up, None
        if request is not None:
            if self.attempt.has_outcome:  # accepted, and followed by a further call
                self._request.stats.add_attempt()
            else:
                self._record(None)
                self._request.stats.count_retry(self.attempt.guardrail)
            self.attempt.close()
            self._begin(HeldAnswer(request, self.attempt.retry + 1))
            self._may_remember = False
        return request

    def use_previous(self) -> list[JsonObject | str] | None:
        """Return the rest of the rejected answer after the server rejected the follow-up; None if no answer was
        rejected."""
        if self._withheld is None:
            return None
        (held, events, finish_reason), self._withheld, self.follow_up = self._withheld, None, None
        self._request = replace(self._request, follow_up=replace(self._request.follow_up, guard=None))
        self.attempt.release()
        deltas = [*(self._text(held) if held else ()), *self._deltas(events, finish_reason)]
        return deltas if self.finish_reason else [*deltas, self._finish(finish_reason or "stop")]

    def _retry(
        self, event: ToolCall | InvalidToolCall | None, rest: _Rest, finish_reason: str | None
    ) -> TranslatedRequest | None:
        """Return a request for a better answer if ``event`` is unusable; None to accept it.

        ``event``: None checks the whole answer at its end. ``rest``: the events from ``event`` on. There is no retry
        once the client has a call of the answer.
        """
        guard, attempt, calls = self._request.follow_up.guard, self.attempt, len(self._calls)
        has_call = self._calls.is_open or (calls > 0 and self._request.follow_up.constraint != "arguments")
        if guard is None or has_call or (isinstance(event, ToolCall) and not self._is_allowed(event.name)):
            return None
        if event is None and (calls > 0 or len(guard.dropped) > self._dropped_before):
            return None
        retry = guard.judge(
            attempt.candidate(event, _remaining(rest)), finish_reason, lambda: attempt.written_text(event)
        )
        if retry is None:
            return None
        attempt.guardrail = retry.guardrail
        self._withheld = (attempt.release(), list(_remaining(rest)), finish_reason)
        return self._request.with_retry(retry, attempt.written_text(event))

    def _lookup(self, call: ToolCall) -> TranslatedRequest | None:
        """Return the next request after the model searched for tools.

        Return None, which drops the call, if the client already has calls or the model searched too often.
        """
        if len(self._calls) > 0 or self._request.follow_up.lookups >= LOOKUPS:
            return None
        self._withheld = (self.attempt.release(), [], None)
        return self._request.with_lookup(call, self.attempt.written_text(call))

    def _next_call(self, finish_reason: str) -> TranslatedRequest | None:
        """Return the request for a further call of the same answer; None if it has all calls."""
        next_call, calls = self._request.follow_up.next_call, self._calls.whole
        if next_call is None or finish_reason != "stop" or len(calls) == self._calls_before:
            return None
        request = next_call([(name, arguments) for _, name, arguments in calls])
        if request is None:
            return None
        self._record(finish_reason)
        self._withheld = ("", [], finish_reason)
        return replace(request, turn=f"{self._request.turn}+")

    def _has_ended(self, rest: _Rest) -> bool:
        """Return whether the answer ended before ``rest``, because the model then wrote the user's next message."""
        guard = self._request.follow_up.guard
        return guard is not None and guard.has_ended(self.attempt.candidate(rest=_remaining(rest)).content)

    def _end_before_call(self) -> list[JsonObject | str]:
        self._may_remember = False  # the model should not see that call again
        self.follow_up = self._retry(None, _NOTHING, "stop")
        return [] if self.follow_up else [*self._release("stop"), self._finish("stop")]

    def _finish(self, finish_reason: str) -> str:
        """Set the finish reason. If the model stopped after calls, it is ``tool_calls`` or ``function_call``."""
        calling = "function_call" if self._request.client.kinds.is_legacy else "tool_calls"
        is_cut = finish_reason in CUT_REASONS
        self.finish_reason = finish_reason if is_cut else calling if len(self._calls) > 0 else "stop"
        self._request.stats.finish_reasons.append(self.finish_reason)
        self._remember()
        self._record(finish_reason)
        return self.finish_reason

    def _record(self, finish_reason: str | None) -> None:
        guard = self._request.follow_up.guard
        dropped = guard.dropped[self._dropped_before :] if guard is not None else ()
        self.attempt.record_outcome(self._calls.whole[self._calls_before :], finish_reason, dropped)

    def _remember(self) -> None:
        content, verbatim = str(self._content)[self.was_reasoning if self._is_whole else 0 :], self._verbatim.text()
        is_one_of_several = bool(self._calls.whole) and not self._request.client.parallel  # later calls were dropped
        if self._request.is_native or is_one_of_several or self._cut_text is not None or not self._may_remember:
            return
        if verbatim != content and (content or self._calls.whole):
            self._request.memory.remember(self._request.parsing.format, content, self._calls.whole, verbatim)
