"""Collect one choice of a completion, and write its text and calls as deltas in OpenAI's format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adapter.conversation.guardrails.call_history import build_call_key
from adapter.conversation.guardrails.verdicts import DroppedCall
from adapter.conversation.verbatim_history import VerbatimText, is_safe_to_replay
from adapter.core.events import Event, InvalidToolCall, JsonObject, ToolCall
from adapter.core.text.string_builder import StringBuilder
from adapter.parsing.formats import get_format
from adapter.prompting.escaping import map_strings, unescape_control_tokens, with_control_tokens
from adapter.protocols.exchange_guardrails import EXTENSION, build_report
from adapter.protocols.logprobs import LogprobAligner
from adapter.protocols.openai_errors import build_error_object
from adapter.protocols.pending_answer import PendingAnswer
from adapter.protocols.reasoning_budget import ReasoningWatch
from adapter.protocols.tool_call_deltas import ToolCallDeltas
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.truncated_calls import CUT_REASONS, find_tool

EXCLUDED = "tool_choice"
"""Reason for dropping a call to a tool that the client's ``tool_choice`` excludes."""

_TOKEN = re.compile(r"<\|\w{1,40}\|>")


class ChoiceDeltas:
    """Collects one answer and builds its deltas. This is a base class of `ChoiceStream`, which parses the text.

    ``attempt`` is the model's current answer; a retry replaces it. ``is_whole`` is True if the client gets a buffered
    answer instead of a stream.
    """

    def __init__(self, index: int, attempt: PendingAnswer, *, is_whole: bool = False) -> None:
        self.index = index
        self.finish_reason: str | None = None
        self.error: JsonObject | None = None
        self.reasoning_length = 0
        """Number of leading characters of the content that turned out to be reasoning."""
        self.was_content = False
        """True if all of the reasoning turned out to be content."""
        self.follow_up: TranslatedRequest | None = None
        """The next request to the model server, for example a retry, or None if no further request is needed."""
        self.is_flooded = False
        """True if the answer was ended because too many of its calls were dropped."""
        self.reasoning_end = ""
        """The reason why the reasoning was closed: ``budget``, ``loop`` or ""."""
        self._is_whole = is_whole
        self._has_role = False
        self.reasoned = 0
        """Number of characters of reasoning."""
        self._last_reasoning = ""  # reasoning of the rejected answer
        self._repeated = ""  # beginning of this answer's reasoning, while it repeats the rejected answer's
        self._size = self._separate = 0  # characters in the text, and in reasoning that the server separated
        self._length = 0  # characters in the text and in calls that the server parsed
        self._content, self._verbatim = StringBuilder(), VerbatimText()  # for the client, and as the model wrote it
        self._calls = ToolCallDeltas(attempt.request.client.kinds, attempt.request.turn, self._drop_native)
        self._later_calls: list[ToolCall] = []  # calls after a dropped one, for the end of the answer
        self._dropped: list[DroppedCall] = []  # calls that the client does not get
        self._cut_text: str | None = None  # see `separate_cut_call`
        self._may_remember = True  # False after a retry, or a call with control tokens
        self._withheld: tuple[str, list[Event], str | None] | None = None  # the rest of a rejected answer
        self._space = ("", -1)  # the last whitespace and its position
        self._rejected_end = -1  # position after a rejected call that was sent as text
        self._logprobs: LogprobAligner | None = None
        self._begin(attempt)

    def _begin(self, attempt: PendingAnswer) -> None:
        self.attempt, self._request = attempt, attempt.request
        self._calls_before, self._dropped_before = len(self._calls.whole), len(self._dropped)
        self._reasoning_watch = ReasoningWatch(self._request.reasoning_limit)
        self._has_text = self._content.size > 0  # text of an earlier attempt
        guardrails = self._request.follow_up.guardrails
        # A model may copy the message of a retry, which can be detected only at the end of the answer.
        is_retry = not self._request.is_continuation and (self._has_text or attempt.retry > 0)
        attempt.holds_text = guardrails is not None and (is_retry or guardrails.holds_text)

    @property
    def size(self) -> int:
        """Number of characters written by the model."""
        return self._size + self._separate

    @property
    def is_empty(self) -> bool:
        """True if the model wrote nothing."""
        return not (self.size or len(self._calls))

    @property
    def notice(self) -> JsonObject:
        """The field ``adapter``: guardrails that caused retries, dropped or cut calls, and why reasoning was closed."""
        notice = build_report(self._request.follow_up.guardrails, self._dropped)
        notice |= {"cut_call": find_tool(self._cut_text, self._tool_names)} if self._cut_text is not None else {}
        notice |= {"reasoning": self.reasoning_end} if self.reasoning_end else {}
        return {EXTENSION: notice} if notice else {}

    def _send_reasoning(self, text: str) -> list[JsonObject | str]:
        """Return the deltas for reasoning. A retry's reasoning is held back while it repeats what was already sent."""
        shown, repeated = self._last_reasoning, self._repeated
        if not shown:
            return [{"reasoning_content": text}]
        text = text if repeated else text.lstrip()
        if shown.startswith(text, len(repeated)) or (len(repeated) >= len(shown) and text.isspace()):
            self._repeated += text
            return []
        self._last_reasoning = ""
        return [{"reasoning_content": f"\n\n{repeated}{text}"}]

    def _send_text(self, text: str) -> list[JsonObject | str]:
        if self.attempt.holds_text:
            self.attempt.hold(text)
            return []
        self._content.add(text)
        return [{"content": text}] if text else []

    def _release(self, finish_reason: str | None = None) -> list[JsonObject | str]:
        """Return the deltas for the text that was held back.

        If the client already has text of an earlier attempt, it gets only the new part, and only at the end of the
        answer.
        """
        if not self.attempt.holds_text:
            return []
        text = self.attempt.release()
        if not self._has_text:
            return self._send_text(text)
        before = str(self._content).strip()
        if finish_reason is None or not text.strip() or before.endswith(text.strip()):
            return []
        return self._send_text("\n\n" + text.lstrip().removeprefix(before).lstrip())

    def _send_whitespace(self, raw: str) -> list[JsonObject | str]:
        """Return the deltas for whitespace between markers. It is sent only next to a rejected call, which is sent as
        text if the request has no tools."""
        if self._rejected_end == self._get_position():
            deltas = self._send_text(raw)
            self._rejected_end = self._get_position()
            return deltas
        self._space = (raw, self._get_position())
        return []

    def _clean_rejected_text(self, raw: str) -> str:
        """Return a rejected call as text, without the special tokens that most servers remove."""
        tokens = get_format(self._request.parsing.format).special_tokens
        space, position = self._space
        space = space if position == self._get_position() else ""
        text = space + _TOKEN.sub(lambda token: "" if token[0] in tokens else token[0], raw)
        self._rejected_end = self._get_position() + len(text)
        return text

    def _get_position(self) -> int:
        return self._content.size + self.attempt.reasoned.size

    def _is_allowed(self, name: str) -> bool:
        """Return whether calls to the tool ``name`` are sent to the client. Calls to unknown tools are also sent,
        because the client can respond to them, unless the request has no tools or ``tool_choice`` allows only some."""
        tools = self._request.tools
        return name in tools if self._request.parsing.is_restricted else bool(tools)

    @property
    def _tool_names(self) -> set[str]:
        """The names of the described tools."""
        return {*self._request.tools, *self._request.parsing.described}

    def _drop_excluded(self, name: str | None, raw: str = "", fixes: Sequence[str] = ()) -> bool:
        """Drop the call ``raw`` of the tool ``name`` if the client's ``tool_choice`` excludes it. Return whether it was
        dropped. A call in a code fence is only an example and stays in the text, unless the format requires the
        fence."""
        is_example = "code-fence" in fixes and raw.startswith("```")
        if not self._request.parsing.is_restricted or is_example:
            return False
        if not self._request.tools:
            name = name or find_tool(raw, self._tool_names) or "any"  # even a broken call is excluded
        is_excluded = bool(name) and name not in self._request.tools
        if is_excluded:
            self._drop(name or "", EXCLUDED)
        return is_excluded

    def _drop_native(self, name: str) -> bool:
        """Return whether to drop a call that the server parsed: a second call if only one is allowed, or a call of an
        excluded tool."""
        is_one_too_many = len(self._calls) > 0 and not self._request.client.parallel
        return is_one_too_many or self._drop_excluded(name)

    def _drop(self, name: str, reason: str) -> None:
        """Record a call that is withheld from the client."""
        self._may_remember = False  # the model should not see that call again
        self._dropped.append(DroppedCall(name, reason))
        self._request.stats.dropped[reason] += 1

    def _is_lookup(self, name: str) -> bool:
        shortlist = self._request.follow_up.shortlist
        return shortlist is not None and name == shortlist.finder

    def _is_repeated(self, call: ToolCall) -> bool:
        """Return whether a constrained model repeats a call of this answer, or one that already has a result."""
        if self._request.parsing.reply is None:
            return False
        key, keys = (
            build_call_key(call.name, map_strings(unescape_control_tokens, call.arguments)),
            self.attempt.call_keys,
        )
        is_repeated = key in keys or key in self._request.follow_up.previous_calls
        keys.add(key)
        return is_repeated

    def _is_dropped(self, call: ToolCall) -> bool:
        """Return whether to drop a call. A call that was already sent in part is not dropped."""
        guardrails = self._request.follow_up.guardrails
        if guardrails is None or self._calls.is_open or not self._is_allowed(call.name):
            return False
        arguments = map_strings(unescape_control_tokens, call.arguments)
        later = [(each.id, each.name, each.arguments) for each in self._later_calls]
        reason = guardrails.find_drop_reason(replace(call, arguments=arguments), [*self._calls.whole, *later])
        if reason:
            self._drop(call.name, reason)
        return bool(reason)

    def _count_dropped(self, start: int | None = None) -> int:
        """Return how many calls guardrails dropped: in this attempt, or from the position ``start`` in the list of all
        dropped calls."""
        start = self._dropped_before if start is None else start
        return sum(each.guardrail != EXCLUDED for each in self._dropped[start:])

    def _send_later_calls(self) -> list[JsonObject | str]:
        """Return the deltas for the calls that were held back because they came after a dropped call."""
        later, self._later_calls = self._later_calls, []
        return [delta for call in later for delta in self._send_call(call)]

    def _send_call(self, call: ToolCall) -> list[JsonObject | str]:
        before, request = self._release(), self._request
        guardrails = request.follow_up.guardrails
        call = call if guardrails is None else guardrails.remove_forbidden(call, is_final=True)
        request.stats.count_call(call)
        format = with_control_tokens(get_format(request.parsing.format), request.parsing.control_tokens)
        self._may_remember = self._may_remember and is_safe_to_replay(call.arguments, format, request.tools)
        arguments = map_strings(unescape_control_tokens, call.arguments)
        return [*before, *self._calls.add_call(call.id, call.name, arguments)]

    def _send_invalid_call(self, wrong: InvalidToolCall, finish_reason: str | None) -> list[JsonObject | str]:
        """Return an invalid call as text. If part of it was already sent, set an error, so that the answer fails."""
        if self._request.parsing.reply is not None and finish_reason == "length":
            return []  # the model wrote the call only because of the constraint
        if not self._calls.is_open:
            self.attempt.add_content(wrong.raw)
            return self._send_text(self._clean_rejected_text(wrong.raw))
        self.error = build_error_object(f"tool call {wrong.name} is incomplete: {wrong.error}", "model_error")
        return []

    def _finish(self, finish_reason: str) -> str:
        """Set the finish reason. If the model stopped after calls, it is ``tool_calls`` or ``function_call``."""
        if self._request.follow_up.must_call and not len(self._calls):
            names = self._request.tools if self._request.parsing.is_restricted else ["any"]
            self._drop(" or ".join(names), "missing_call")
        calling = "function_call" if self._request.client.kinds.is_legacy else "tool_calls"
        is_cut = finish_reason in CUT_REASONS
        self.finish_reason = finish_reason if is_cut else calling if len(self._calls) > 0 else "stop"
        self._request.stats.finish_reasons.append(self.finish_reason)
        self._remember()
        self._record(finish_reason)
        return self.finish_reason

    def _record(self, finish_reason: str | None) -> None:
        dropped = self._dropped[self._dropped_before :]
        self.attempt.record_outcome(self._calls.whole[self._calls_before :], finish_reason, dropped)

    def _remember(self) -> None:
        content, verbatim = (
            str(self._content)[self.reasoning_length if self._is_whole else 0 :],
            self._verbatim.build_text(),
        )
        is_one_of_several = bool(self._calls.whole) and not self._request.client.parallel  # calls may have been dropped
        if self._request.is_native or is_one_of_several or self._cut_text is not None or not self._may_remember:
            return
        if verbatim != content and (content or self._calls.whole):
            format, beginning = self._request.parsing.format, self._request.beginning
            self._request.memory.remember(format, beginning, content, self._calls.whole, verbatim)
