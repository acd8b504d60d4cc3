"""Parse the model's text for one choice of a completion, and convert it to deltas in OpenAI's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from adapter.conversation.guardrails.guardrails import MAX_DROPPED
from adapter.conversation.guardrails.unparsed_calls import find_leading_call
from adapter.conversation.message_content import get_reasoning
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
from adapter.parsing.formats import get_format
from adapter.protocols.choice_deltas import EXCLUDED
from adapter.protocols.followed_choice import NOTHING, FollowedChoice, Rest
from adapter.protocols.logprobs import LogprobAligner
from adapter.protocols.openai_errors import build_error_object
from adapter.protocols.sse import MAX_ANSWER_CHARACTERS
from adapter.protocols.tool_call_deltas import NativeCalls, measure_calls
from adapter.protocols.truncated_calls import CUT_REASONS, separate_cut_call

INCOMPLETE, ABANDONED = "incomplete", "abandoned"
"""Finish reasons that this library adds: the server (incomplete) or the client (abandoned) disconnected early."""
PLAIN_FENCES = ("```\n", "```json\n")
"""Openings of ordinary code fences, which no format uses as markers for calls."""
FAILED_REASONS = ("error", "abort")
"""Finish reasons of vLLM and SGLang for a request that failed after its answer began."""


class ChoiceStream(FollowedChoice):
    """Converts one of a completion's ``n`` answers to OpenAI's deltas (dicts) and a finish reason (a string).

    If the model's answer is unusable, `follow_up` is the request for another one. Text that the client already has is
    not retracted.
    """

    def feed(self, delta: JsonObject, finish_reason: Json, logprobs: Json = None) -> list[JsonObject | str]:
        """Feed a delta from the server. Return the deltas for the client and, at the end, the finish reason.

        ``logprobs`` are the log probabilities of the text in ``delta``, in OpenAI's format.
        """
        if self.finish_reason or self.follow_up:
            return []
        self._withheld = None  # the server accepted the follow-up
        deltas: list[JsonObject | str] = []
        if not self._has_role:
            self._has_role = True
            deltas.append({"role": "assistant", "content": ""})
        if reasoning := get_reasoning(delta):
            self._create_parser("")  # parse the following text as the answer
            self._separate += len(reasoning)
            self.reasoned += len(reasoning)
            deltas += self._send_reasoning(reasoning)
            self.attempt.record_reasoning(reasoning)
            self._watch_reasoning(reasoning)
            if self.follow_up:
                return deltas
        if isinstance(text := delta.get("content") or delta.get("refusal"), str) and text:
            if logprobs and (self._logprobs or not self._size):
                self._logprobs = self._logprobs or LogprobAligner()
                self._logprobs.add(text, logprobs)
            deltas += self._take(self._parse(text))
        if native := delta.get("tool_calls"):
            deltas += self._collect_native_calls(native)
        if isinstance(finish_reason, str) and finish_reason and not self.finish_reason:
            deltas += self._end(finish_reason)
        return deltas

    def feed_text(self, text: str) -> str | list[JsonObject | str]:
        """Feed a delta that has only text. If the client's delta also has only text, return its text. Otherwise, return
        deltas as `feed` does."""
        if self.finish_reason or self.follow_up:
            return []
        self._withheld = None
        events, attempt = self._parse(text), self.attempt
        if (
            len(events) != 1
            or type(event := events[0]) is not TextDelta
            or attempt.holds_text
            or not self._content.size
        ):
            return self._take(events)
        self._verbatim.add(event.raw)
        attempt.receive_text(events, event.text)
        self._content.add(event.text)
        return event.text

    def _collect_native_calls(self, calls: Json) -> list[JsonObject | str]:
        """Return the deltas for calls parsed by the server. If the request had no tools, the calls are collected and
        decoded at the end, like calls in the model's text."""
        if self._is_too_long(measure_calls(calls)):
            return []
        if not self._request.is_native:
            self._calls.native.add(calls)
            return []
        calls_before = len(self._calls)
        deltas = self._calls.add_native_calls(calls, streams=self._request.parsing.stream_arguments)
        self._request.stats.calls += len(self._calls) - calls_before
        return [*self._release(), *deltas] if deltas else []

    def _end_native(self, finish_reason: str) -> list[JsonObject]:
        """Return the deltas for calls that the server parsed and that were held back until their end. A call that was
        cut off is left out."""
        if (name := self._calls.drop_cut_native(at_limit=finish_reason in CUT_REASONS)) is not None:
            self._cut_text = name
            self._drop_excluded(name)
        deltas = self._calls.release_native()
        self._request.stats.calls += len(deltas)
        return deltas

    def on_upstream_lost(self) -> list[JsonObject | str]:
        """Return the remaining deltas after the server closed the connection."""
        deltas = [
            *self._take(self._close_parser(INCOMPLETE), "length"),
            *self._release("length"),
            *self._send_later_calls(),
        ]
        self._record(INCOMPLETE)
        return deltas

    def cancel(self) -> None:
        """End the answer because the client disconnected, and record this outcome."""
        if not self.attempt.has_outcome:
            self._record(ABANDONED)
        self.attempt.close()

    def _end(self, finish_reason: str) -> list[JsonObject | str]:
        if finish_reason in FAILED_REASONS:
            message = f"the model server stopped its answer with finish reason {finish_reason!r}"
            self.error = build_error_object(message, "upstream_error")
            self._record(finish_reason)
            return []
        events = self._close_parser(finish_reason)
        native = self._end_native(finish_reason)
        events, self._calls.unreadable = [*events, *self._calls.unreadable], []
        if self._cut_text is not None and finish_reason not in CUT_REASONS:
            finish_reason = "length"  # the model did not continue its call
        if not self.follow_up and (rest := self._continue_call(events, finish_reason)):
            self.follow_up = rest
            return []
        deltas = [*native, *self._take(events, finish_reason)]
        if self.attempt.has_repeated_call and not self._calls.whole and not self.follow_up:
            self.follow_up = self._request.with_enforced_reply()
        elif not (self.error or self.finish_reason or self.follow_up):
            self.follow_up = self._retry(None, NOTHING, finish_reason) or self._build_next_call(finish_reason)
        if not (self._calls.whole or self.error or self.finish_reason or self.follow_up) and self._has_nothing():
            self.follow_up = self._request.with_enforced_reply()
        if self.error:
            self._record(finish_reason)
        elif not self.finish_reason and not self.follow_up:
            deltas += [*self._finish_text(finish_reason), *self._send_later_calls()]
            deltas += [] if self.finish_reason else self._build_ending(finish_reason)
        return deltas

    def _build_ending(self, finish_reason: str) -> list[JsonObject | str]:
        """Return the deltas for the end of the answer. If the answer is only reasoning, the client gets it as text,
        because most clients show an empty answer otherwise."""
        shown = self._content.size - (self.reasoning_length if self._is_whole else 0)
        is_excluded = any(each.guardrail == EXCLUDED for each in self._dropped)
        if finish_reason in CUT_REASONS or shown or len(self._calls) > 0 or is_excluded:
            return [self._finish(finish_reason)]
        _, separate = self.attempt.get_unfinished_text()
        reasoning = f"{separate}{self.attempt.reasoned}{self._content}".strip()
        self.was_content = self.was_content or bool(reasoning)
        return [*self._send_text(reasoning), self._finish(finish_reason)]

    def _has_nothing(self) -> bool:
        """Return whether nothing can be sent to the client.

        This is the case if guardrails drop the whole answer, and there is no tool result to send instead of the answer.
        """
        guardrails = self._request.follow_up.guardrails
        if guardrails is None or guardrails.last_result or self._content.size:
            return False
        candidate = self.attempt.build_candidate()
        is_empty = self._count_dropped() > 0 and not candidate.content.strip()
        return is_empty or (self.attempt.holds_text and guardrails.drops_answer(candidate))

    def _end_flood(self) -> list[JsonObject | str]:
        """End an answer with too many dropped calls if at least one of its calls was used, as `Guardrails.screen` does.
        Return its last delta, or []."""
        if self._count_dropped() <= MAX_DROPPED:
            return []
        if not self._calls.whole[self._calls_before :]:
            return []
        for call in self._later_calls:
            self._drop(call.name, self._dropped[-1].guardrail)
        self._later_calls = []
        self.is_flooded = True
        return [self._finish("stop")]

    def _finish_with_first_call(self, text: str) -> list[JsonObject | str]:
        """If an answer was cut off after a complete call, return the deltas for its first call and for its end.
        Otherwise, return []."""
        whole = find_leading_call(text)
        if self._request.follow_up.guardrails is None or len(self._calls) > 0 or not whole or text.endswith(whole):
            return []
        parser = self._request.make_parser(self.index, self._request.parsing.generation_prompt, streams=False)
        calls = [each for each in [*parser.feed(whole), *parser.close("stop")] if isinstance(each, ToolCall)]
        if not calls or not self._is_allowed(calls[0].name) or self._is_dropped(calls[0]):
            return []
        self._may_remember = False
        self.attempt.release()
        return [*self._send_call(calls[0]), self._finish("stop")]

    def _finish_text(self, finish_reason: str) -> list[JsonObject | str]:
        """Return the deltas for the rest of the text, or for the last tool result if all of the answer was dropped."""
        guardrails = self._request.follow_up.guardrails
        if guardrails is None or len(self._calls) > 0:
            return self._release(finish_reason)
        if finish_reason == "length" and (
            deltas := self._finish_with_first_call(self._cut_text or self.attempt.build_candidate().content)
        ):
            return deltas
        is_dropped = self._count_dropped(0) > 0
        if self.attempt.holds_text and guardrails.drops_answer(self.attempt.build_candidate()):
            self.attempt.release()
            is_dropped = True
        text = self._release(finish_reason)
        return self._send_text(guardrails.last_result) if is_dropped and not text and not self._content.size else text

    def _close_parser(self, finish_reason: str) -> Sequence[Event]:
        """Close the parser, and return the last events. A call that was cut off is removed from them."""
        request, native = self._request, self._calls.native
        self._calls.native = NativeCalls()
        events: Sequence[Event] = self._create_parser().close(finish_reason)
        self._cut_text = None
        names, is_cut = self._tool_names, finish_reason in (*CUT_REASONS, INCOMPLETE)
        if not request.is_native:
            events = [*events, *native.build_events(request.tools, request.turn, at_limit=is_cut)]
        if (request.begun_call or is_cut) and names:
            format = get_format(request.parsing.format)
            events, self._cut_text = separate_cut_call(events, format, names)
            if self._cut_text is not None:
                self._drop_excluded(None, self._cut_text.lstrip())
        return events

    def _is_too_long(self, more: int) -> bool:
        """Count ``more`` further characters. Return True, and set the error, if the answer has become too long."""
        self._length += more
        if self._length > MAX_ANSWER_CHARACTERS:
            reason = f"the model's answer has more than {MAX_ANSWER_CHARACTERS:,} characters"
            self.error = build_error_object(reason, "model_error")
        return self._length > MAX_ANSWER_CHARACTERS

    def _parse(self, text: str) -> Sequence[Event]:
        self._size += len(text)
        if self._is_too_long(len(text)):
            return ()
        self.attempt.record_text(text)
        return (self.attempt.parser or self._create_parser()).feed(text)

    def _take(self, events: Sequence[Event], finish_reason: str | None = None) -> list[JsonObject | str]:
        self._verbatim.receive(events)
        self.attempt.receive(events)
        return self._build_deltas(events, finish_reason)

    def _build_deltas(self, events: Sequence[Event], finish_reason: str | None) -> list[JsonObject | str]:
        deltas: list[JsonObject | str] = []
        guardrails = self._request.follow_up.guardrails
        for index, event in enumerate(events):
            if guardrails is not None and isinstance(event, ToolCall):
                event = guardrails.remove_forbidden(event)
            event_deltas = self._build_event_deltas(event, (events, index), finish_reason)
            if self._logprobs is not None:
                self._logprobs.attach(event, event_deltas)
            deltas += event_deltas
            if self.follow_up or self.finish_reason:
                break
        return deltas

    def _build_event_deltas(self, event: Event, rest: Rest, finish_reason: str | None) -> list[JsonObject | str]:
        """Return the deltas of ``event``. ``rest`` has this event and the events after it."""
        match event:
            case TextDelta(text=text):
                has_guardrails = self._request.follow_up.guardrails is not None
                if has_guardrails and not self._content.size and find_leading_call(text):
                    self.attempt.holds_text = True  # the text may be a call that was not recognized
                return self._send_text(text)
            case ReasoningDelta(text=text):
                self.attempt.reasoned.add(text)
                self.reasoned += len(text)
                self._watch_reasoning(text)
                return self._send_reasoning(text)
            case ContentReclassified():
                self.reasoned = self.reasoning_length = self._content.size
            case ReasoningReclassified():
                self.was_content, self.reasoned = True, 0
                return self._send_text(
                    str(self.attempt.reasoned)
                )  # the client gets the text twice, because its content would be empty without it
            case ToolCallDelta():
                return self._build_fragment(event)
            case ToolCall() | InvalidToolCall() if self._has_ended(rest):
                return self._end_before_call()
            case ToolCall() | InvalidToolCall() if self._is_wrongly_continued(event):
                return self._give_up()
            case ToolCall(name=name, raw=raw, fixes=fixes) if self._drop_excluded(name, raw, fixes):
                pass
            case InvalidToolCall(raw=raw) if (
                self._request.parsing.is_restricted and not self._request.tools and raw.startswith(PLAIN_FENCES)
            ):
                return self._send_text(self._clean_rejected_text(raw))  # an example
            case InvalidToolCall(name=name, raw=raw) if self._drop_excluded(name, raw):
                pass
            case ToolCall() | InvalidToolCall() if retry := self._retry(event, rest, finish_reason):
                self.follow_up = retry
            case InvalidToolCall() if finish_reason == "length" and (deltas := self._finish_with_first_call(event.raw)):
                return deltas
            case ToolCall() if self._is_lookup(event.name):
                self.follow_up = self._lookup(event)
            case ToolCall() if self._is_repeated(event):
                self.attempt.has_repeated_call = True
            case ToolCall() if self._is_dropped(event):
                return self._end_flood()
            case ToolCall() if self._is_allowed(event.name) and self._calls.whole and self._count_dropped() > 0:
                self._later_calls.append(event)
            case ToolCall() if self._is_allowed(event.name):
                deltas = self._send_call(event)
                return deltas if self._request.client.parallel else [*deltas, self._finish("stop")]
            case ToolCall(raw=raw):
                return self._send_text(self._clean_rejected_text(raw))
            case InvalidToolCall():
                self._request.stats.rejected["unreadable"] += 1
                return self._send_invalid_call(event, finish_reason)
            case RejectedCall(reason=reason):
                self._request.stats.rejected[reason] += 1
            case MarkupDelta(raw=raw) if not self._request.tools and raw.isspace():
                return self._send_whitespace(raw)
            case _:
                pass  # markup and progress are not sent to the client
        return []

    def _build_fragment(self, event: ToolCallDelta) -> list[JsonObject | str]:
        guardrails = self._request.follow_up.guardrails
        is_held = guardrails is not None and (len(self._calls.whole) > 0 or guardrails.holds_call(event.name))
        is_held = is_held or self._is_lookup(event.name)
        if is_held or not self._is_allowed(event.name) or (not self._calls.is_open and self._has_ended(NOTHING)):
            return []
        return [*self._release(), *self._calls.add_fragment(event)]

    def use_previous(self) -> list[JsonObject | str] | None:
        """Return the deltas that were withheld because of a follow-up request, after the server rejected that request.
        Return None if there was no follow-up request."""
        if self._withheld is None:
            return None
        (held, events, finish_reason), self._withheld, self.follow_up = self._withheld, None, None
        self._request = replace(self._request, follow_up=replace(self._request.follow_up, guardrails=None))
        self.attempt.release()
        deltas = [*(self._send_text(held) if held else ()), *self._build_deltas(events, finish_reason)]
        deltas += [] if self.finish_reason else self._send_later_calls()
        return deltas if self.finish_reason else [*deltas, *self._build_ending(finish_reason or "stop")]

    def _end_before_call(self) -> list[JsonObject | str]:
        self._may_remember = False  # the model should not see that call again
        self.follow_up = self._retry(None, NOTHING, "stop")
        return [] if self.follow_up else [*self._release("stop"), *self._send_later_calls(), self._finish("stop")]
