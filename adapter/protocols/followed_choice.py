"""Decide whether a choice of a completion needs another request: a retry, a tool search or a further call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from adapter.conversation.guardrails.unparsed_calls import find_leading_call
from adapter.core.events import Event, InvalidToolCall, JsonObject, ToolCall
from adapter.grammars.reply_tool import ReplyParser
from adapter.parsing.parser import Parser
from adapter.prompting.tool_shortlist import LOOKUPS
from adapter.protocols.choice_deltas import ChoiceDeltas
from adapter.protocols.pending_answer import PendingAnswer
from adapter.protocols.reasoning_budget import ends_in_loop
from adapter.protocols.translated_request import TranslatedRequest

Rest: TypeAlias = tuple[Sequence[Event], int]
"""A list of events, and the index of the first one that is not processed yet. Slicing the list for each event would
take quadratic time."""
NOTHING: Rest = ((), 0)


_HEAD = 8
"""Number of characters at the beginning of a call that are compared to recognize a repetition."""


def list_remaining(rest: Rest) -> Sequence[Event]:
    events, position = rest
    return events[position:]


class FollowedChoice(ChoiceDeltas):
    """An answer that may need follow-up requests. This is a base class of `ChoiceStream`."""

    def start_next_attempt(self) -> TranslatedRequest | None:
        """Start the next attempt and return its request, or None if no follow-up request is needed."""
        request, self.follow_up = self.follow_up, None
        if request is not None:
            if self.attempt.has_outcome:  # accepted, and followed by a further call
                self._request.stats.add_attempt()
            else:
                self._record(None)
                self._request.stats.count_retry(self.attempt.guardrail)
            self.attempt.close()
            _, reasoning = self.attempt.get_unfinished_text()
            shown = f"{reasoning}{self.attempt.reasoned}".strip() or self._last_reasoning
            self._last_reasoning, self._repeated = "" if request.is_continuation else shown, ""
            self._begin(PendingAnswer(request, self.attempt.retry + 1))
            if request.begun_call:  # its events were already sent, except the call's
                self.attempt.record_text(request.begun_call)
                self.attempt.receive(self._create_parser("" if reasoning else None).feed(request.begun_call))
            self._may_remember = False
        return request

    def _retry(
        self, event: ToolCall | InvalidToolCall | None, rest: Rest, finish_reason: str | None
    ) -> TranslatedRequest | None:
        """Return a request for a better answer if ``event`` is unusable, or None to accept it.

        If ``event`` is None, the answer has ended and is checked as a whole. ``rest`` has ``event`` and the events
        after it. An answer is not retried once the client has one of its calls.
        """
        guardrails, attempt, calls = self._request.follow_up.guardrails, self.attempt, len(self._calls)
        has_call = bool(self._request.begun_call) or self._calls.is_open
        has_call = has_call or (calls > 0 and self._request.follow_up.constraint != "arguments")
        if guardrails is None or has_call or (isinstance(event, ToolCall) and not self._is_allowed(event.name)):
            return None
        if event is None and (calls > 0 or self._count_dropped()):
            return None
        retry = guardrails.judge(
            attempt.build_candidate(event, list_remaining(rest)),
            finish_reason,
            lambda: attempt.build_written_text(event),
        )
        if retry is None:
            return None
        attempt.guardrail = retry.guardrail
        self._withheld = (attempt.release(), list(list_remaining(rest)), finish_reason)
        return self._request.with_retry(retry, attempt.build_written_text(event))

    def _lookup(self, call: ToolCall) -> TranslatedRequest | None:
        """Return the request that follows a call to the tool-search tool, with the tools that were found.

        If the client already has calls or the model has searched too often, drop the call and return None.
        """
        if len(self._calls) > 0 or self._request.follow_up.lookups >= LOOKUPS:
            return None
        self._withheld = (self.attempt.release(), [], None)
        return self._request.with_lookup(call, self.attempt.build_written_text(call))

    def _build_next_call(self, finish_reason: str) -> TranslatedRequest | None:
        """Return the request for another call of the same answer, or None if the answer is complete."""
        next_call, calls = self._request.follow_up.next_call, self._calls.whole
        if next_call is None or finish_reason != "stop" or len(calls) == self._calls_before:
            return None
        request = next_call([(name, arguments) for _, name, arguments in calls])
        if request is None:
            return None
        self._record(finish_reason)
        self._withheld = ("", [], finish_reason)
        return replace(request, turn=f"{self._request.turn}+")

    def _watch_reasoning(self, text: str) -> None:
        """Close the reasoning if it exceeds its budget or loops, so that the model continues with its answer."""
        reason = self._reasoning_watch.add(text)
        if not reason or self._is_whole or len(self._calls) > 0:
            return
        self.follow_up = self._request.with_closed_reasoning(*self.attempt.get_unfinished_text())
        if self.follow_up is not None:
            self.reasoning_end, self.attempt.guardrail = reason, f"reasoning_{reason}"
            self._withheld = ("", [], "length")

    def _has_ended(self, rest: Rest) -> bool:
        """Return whether the answer ended before the events ``rest``, because the model began to write the user's next
        message."""
        guardrails = self._request.follow_up.guardrails
        return guardrails is not None and guardrails.has_ended(
            self.attempt.build_candidate(rest=list_remaining(rest)).content
        )

    def _continue_call(self, events: Sequence[Event], finish_reason: str) -> TranslatedRequest | None:
        """Return the request that lets the model continue a call that was cut off, or None to give the call up.

        ``events`` are the last events of the answer, without the call. The call is given up if the client already has a
        call, or if the answer contains a complete one.
        """
        guardrails, cut_text = self._request.follow_up.guardrails, self._cut_text
        if guardrails is None or not guardrails.may_continue or finish_reason != "length" or not cut_text:
            return None
        whole, (raw, reasoning) = find_leading_call(cut_text), self.attempt.get_unfinished_text()
        has_whole = len(self._calls) > 0 or (whole and not cut_text.endswith(whole))
        if has_whole or not raw.endswith(cut_text) or self.attempt.holds_text or ends_in_loop(raw):
            return None
        request = self._request.with_continued_call(raw, reasoning)
        if request is not None:
            guardrails.may_continue = False
            self.attempt.guardrail = "cut_call"
            self._withheld = ("", list(events), finish_reason)
        return request

    def _is_wrongly_continued(self, call: ToolCall | InvalidToolCall) -> bool:
        """Return whether the model failed to continue its call, for example because it repeated the whole call."""
        begun, head = self._request.begun_call, (self._cut_text or "").lstrip()[:_HEAD]
        if not begun:
            return False
        text, _ = self.attempt.get_unfinished_text()
        return isinstance(call, InvalidToolCall) or text[len(begun) :].lstrip().startswith(head)

    def _give_up(self) -> list[JsonObject | str]:
        """End the answer without the call that was cut off."""
        self._cut_text = self._request.begun_call
        return [self._finish("length")]

    def _create_parser(self, generation_prompt: str | None = None) -> Parser | ReplyParser:
        if self.attempt.parser is None:
            before = self._request.parsing.generation_prompt if generation_prompt is None else generation_prompt
            streams = not (self._is_whole or self._request.begun_call)
            self.attempt.parser = self._request.make_parser(self.index, before, streams=streams)
        return self.attempt.parser
