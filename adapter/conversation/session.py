"""Decide the next step of a conversation: a state machine without I/O, which returns a step and takes its result.

::

    session.start(task)              -> AskModel
    session.on_answer(turn, ...)     -> RunTools | AskModel | Finished
    session.on_tool_results(results) -> AskModel | Finished
    session.send(message)            -> AskModel        continue after Finished
    session.resume(message, ...)                        restore another session's messages and answers

The caller (`adapter.agent.agent`, a replay, a test) performs the steps. The session decides which messages the model
sees, when to retry (with `adapter.conversation.guardrails`) and when to stop. Control tokens are escaped in user
messages and tool results (`adapter.prompting.escaping`), and unescaped in the arguments of calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.conversation.guardrails.candidate_answer import CandidateAnswer
from adapter.conversation.guardrails.guardrails import MAX_DROPPED, Guardrails
from adapter.conversation.guardrails.registry import BROKEN_CALLS, GUARDRAILS, LOOPS, UNUSABLE
from adapter.conversation.guardrails.requested_file_changes import has_changed
from adapter.conversation.guardrails.verdicts import DroppedCall, Retry, Stop, Violation
from adapter.conversation.message_content import Content, concat_content
from adapter.conversation.message_rendering import HistoryEntry, Message, MessageRenderer, merge_consecutive_roles
from adapter.conversation.session_answers import (
    append_unused_result,
    exclude_changes,
    has_complete_change,
    keep_whole_call,
    may_have_answer,
    repeats_itself,
)
from adapter.conversation.session_steps import AskModel, Finished, Reason, RunTools, SessionLimits, Step
from adapter.conversation.session_trimming import trim_to_context
from adapter.conversation.token_estimate import compute_usable_tokens
from adapter.core.errors import UsageError
from adapter.core.events import ERROR_LABEL, InvalidToolCall, ToolCall, ToolResult
from adapter.core.text.plurals import pluralize
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.prompting.escaping import map_strings, unescape_control_tokens
from adapter.tools.tool_set import ToolSet

_UNFINISHED: dict[str | None, Reason] = {"length": "cut_off", "incomplete": "broken_off"}
"""The reason for an incomplete answer without calls, by the server's finish reason."""

MOST_CALLS = 128
"""Maximum number of calls in one answer, with and without guardrails."""

STOPPED_ANSWER = "[The user stopped your last answer before its end.]"
"""Note to the model after an interrupted answer."""


@dataclass(slots=True)
class Session:
    """The state of one conversation, and the decisions about its next step."""

    system: str
    """The system prompt."""
    format: Format
    """Format of the history."""
    tools: ToolSet
    limits: SessionLimits = field(default_factory=SessionLimits)
    shows_calls: bool = False
    """True to keep calls and results structured in the messages, for the model's own template."""
    guardrails: Guardrails | None = None
    """The guardrails; None for the default ones."""
    _entries: list[HistoryEntry] = field(default_factory=list)
    _dropped: int = 0  # number of dropped turns
    _tokens: int = 0  # estimated size of the last query
    _token_ratio: float = 1.0  # ratio of the server's count to the estimate
    _queries: int = 0
    _calls: list[ToolCall] = field(default_factory=list)  # calls of this turn
    _refused: dict[str, ToolResult] = field(default_factory=dict)  # results of calls that were not run, by id
    _held_to: tuple[str, ...] = ()  # the only tools for the next answer if all calls were refused
    _may_be_held: bool = False  # whether this constraint was postponed, in case the message suffices
    _is_repeating: bool = False  # whether all calls were refused as repetitions
    _repeated_result: str = ""
    _invalid: tuple[InvalidToolCall, ...] = ()
    _notes: list[str] = field(default_factory=list)  # notes for the user's next message
    _task: str = ""
    _history: CallHistory = field(default_factory=CallHistory)
    # Since the user's last message:
    _turns: int = 0
    _content: str = ""
    _content_calls: int = 0  # number of calls before this content
    _unreadable_turns: int = 0
    _refused_turns: int = 0
    _call_turns: int = 0
    _was_in_words: bool = False  # whether the tools were withdrawn for a query
    _is_corrected: bool = False  # whether the model received a message about a mistake

    def start(self, task: str) -> AskModel:
        """Begin a conversation. An earlier one is forgotten."""
        self._entries, self._calls, self._refused, self._invalid, self._queries = [], [], {}, (), 0
        self._add_message(task)
        return self._build_query()

    def send(self, message: str) -> AskModel:
        """Continue after `Finished` with a user message. Raises UsageError before `start`."""
        if not self._entries:
            raise UsageError("the conversation has not begun; call start(task) first")
        self._add_message(message)
        return self._build_query()

    def classify_request(self, query: AskModel, kind: str) -> AskModel:
        """Store the kind of the user's request, one of the values of `CallHistory.classified`. Return ``query`` with
        this kind."""
        self._history = replace(self._history, classified=kind)
        return replace(query, classified=kind)

    def add_note(self, text: str) -> None:
        """Add a note about events outside the conversation to the user's next message."""
        self._notes.append(text)

    def resume(self, message: str, answers: Sequence[tuple[Turn, Sequence[ToolResult]]]) -> None:
        """Add a user message of a saved chat to the history, with its answers and their results. The answers are not
        checked, and their calls are not run."""
        self._add_message(message)
        for turn, results in answers:
            self._add_answer(turn, reencode=True)
            self._remember(results)
            self._show_results(results)

    def on_interrupt(self, results: Sequence[ToolResult] = (), turn: Turn | None = None) -> Finished:
        """End the turn, because the user interrupted it.

        ``results`` has the results of the finished calls of the last `RunTools`. ``turn`` is the partial answer, whose
        calls are not run.
        """
        self._show_results(results)
        if turn is None or not (turn.content.strip() or turn.calls):
            return Finished("interrupted", "")
        self._add_answer(turn)
        self._notes.append(STOPPED_ANSWER)
        return Finished("interrupted", turn.content)

    def on_answer(self, turn: Turn, prompt_tokens: int | None = None, finish_reason: str | None = "stop") -> Step:
        """Return the next step after the model's answer.

        ``prompt_tokens`` is the size of the prompt, as counted by the server. ``finish_reason`` is the server's finish
        reason, such as ``length`` at the token limit, or ``incomplete`` after a disconnect.
        """
        if finish_reason == "length" and not turn.calls:
            turn = keep_whole_call(turn, self.tools, self.format)
        turn, dropped = self._screen_calls(self._active_guardrails.drop_calls_after_end(self._history, turn))
        if prompt_tokens and self._tokens:
            self._token_ratio = min(max(prompt_tokens / self._tokens, 0.5), 3.0)
        answer = self._renderer.render_answer(turn)
        self._unreadable_turns = self._unreadable_turns + 1 if turn.invalid and not turn.calls else 0
        is_unreadable = self._unreadable_turns >= self.limits.unreadable
        verdict, candidate = None, CandidateAnswer.from_turn(turn)
        if not turn.calls and not is_unreadable and self._turns < self.limits.turns:
            verdict = self._active_guardrails.check_response(self._history, candidate, finish_reason)
        if turn.content.strip() and not (isinstance(verdict, Retry) and verdict.guardrail in UNUSABLE):
            self._content, self._content_calls = turn.content, len(self._history.calls)
        if isinstance(verdict, Retry) and not self._has_nothing_to_add(verdict):
            return self._retry(answer, verdict)
        self._entries = [*self._list_lasting_entries(), answer]
        self._active_guardrails.begin()
        self._invalid = turn.invalid
        for each in turn.invalid:
            self._remember_message(each.error, candidate)
        if is_unreadable:
            return self._give_up("unreadable")
        if not turn.calls and not turn.invalid:
            is_unusable = self._active_guardrails.drops_answer(self._history, candidate)
            result, request = self._repeated_result, self._history.request
            self._content = "" if is_unusable else append_unused_result(turn.content, result, request)
            if finish_reason in _UNFINISHED:
                return self._finish(_UNFINISHED[finish_reason])
            if is_unusable or isinstance(verdict, Stop):
                return self._give_up("stuck")
            return self._finish("answered" if self._content == turn.content else "repetition")
        self._calls = [
            replace(call, arguments=map_strings(unescape_control_tokens, call.arguments)) for call in turn.calls
        ]
        may_be_held, self._refused = self._may_be_held, self._refuse_calls()
        to_run = tuple(call for call in self._calls if call.id not in self._refused)
        self._refused_turns = self._refused_turns + 1 if turn.calls and not to_run else 0
        if self._refused_turns >= self.limits.refusals + may_be_held:
            return self._give_up("repetition")
        if to_run:
            return RunTools(to_run, dropped)
        step = self.on_tool_results([])
        if not isinstance(step, AskModel):
            return step
        may_end = self._is_repeating or may_have_answer(self._history)
        in_words = may_end and not self._held_to and not self._may_be_held
        self._was_in_words |= in_words
        return replace(step, held_to=self._held_to, in_words=in_words)

    def _has_nothing_to_add(self, verdict: Retry) -> bool:
        """Return whether the model has made a change and has nothing to add. It either repeated the change and copied
        the guardrail's message about that, or made the complete change and then wrote nothing."""
        if not has_changed(self._history):
            return False
        if verdict.guardrail == "empty_answer":
            return has_complete_change(self._history)
        return verdict.guardrail == "own_words" and self._is_repeating

    def _give_up(self, reason: Reason) -> Step:
        """End the turn. If tool results may contain the answer to a question, first query the model once more, without
        tools."""
        if self._was_in_words or not may_have_answer(self._history) or self._turns >= self.limits.turns:
            return self._finish(reason)
        self._was_in_words = True
        self._show_results([])
        return replace(self._build_query(), in_words=True)

    def _finish(self, reason: Reason) -> Finished:
        is_outdated = reason in ("repetition", "stuck") and len(self._history.calls) > self._content_calls
        if (self._content.strip() and not is_outdated) or reason not in (
            "answered", "finished", "repetition", "stuck"
        ):  # fmt: skip
            return Finished(reason, self._content)
        is_reported = reason == "finished" and self._history.recent[-1].changes
        return Finished(reason, "" if is_reported else self._history.last_result)

    def _screen_calls(self, turn: Turn) -> tuple[Turn, tuple[DroppedCall, ...]]:
        """Remove the calls that guardrails drop, and everything after the last used call. The removed parts are also
        hidden from the model, because a small model would continue them.
        """
        kept, dropped = self._active_guardrails.screen_calls(self._history, turn.calls)
        used = kept[:MOST_CALLS]
        if len(used) == len(turn.calls):
            return turn, ()
        end = turn.events.index(used[-1]) + 1
        events = [each for each in turn.events[:end] if not isinstance(each, ToolCall) or each in used]
        return Turn.from_events(events), tuple(dropped)

    def is_flood(self, text: str, turn: Turn) -> bool:
        """Return whether to stop receiving an answer, because it has more calls than will be used, repeats itself, or
        begins like a call but cannot become a valid one. ``text`` and ``turn`` are the answer so far."""
        if repeats_itself(text, turn, self.tools):
            return True
        guardrails = self._active_guardrails
        is_hopeless = not turn.calls and guardrails.is_hopeless(self._history, text)
        return is_hopeless or len(guardrails.screen_calls(self._history, turn.calls)[1]) > MAX_DROPPED

    def on_tool_results(self, results: Sequence[ToolResult]) -> Step:
        """Return the next step after the last `RunTools`. ``results`` are the results of its calls, in order."""
        self._remember(results)
        self._show_results(results)
        if any(result.ends for result in results) or self._active_guardrails.steps.has_ended(self._history):
            return self._finish("exited")
        self._call_turns += bool(results)
        if self._call_turns == self.limits.tool_turns:
            return self._finish("finished" if all(result.ok for result in results) else "unsuccessful")
        return self._build_query() if self._turns < self.limits.turns else self._finish("turns")

    @property
    def _active_guardrails(self) -> Guardrails:
        if self.guardrails is None:
            encode = self.format.encode_calls
            self.guardrails = Guardrails(self.tools, encode=encode, max_calls=self.limits.calls)
        return self.guardrails

    def _retry(self, answer: HistoryEntry, retry: Retry) -> AskModel:
        """Query the model again. ``answer``, the rejected answer, is removed once a better one is accepted."""
        is_broken = retry.guardrail in BROKEN_CALLS
        message = self.format.encode_result("", f"{ERROR_LABEL} {retry.message}", "") if is_broken else retry.message
        rejected = [replace(answer, parts=None, is_temporary=True)] if answer.content else []
        self._entries += [*rejected, HistoryEntry("user", message, is_temporary=True)]
        self._is_corrected = True
        held_to = exclude_changes(retry.held_to, self._history, self.tools)
        return replace(self._build_query(), again=retry.guardrail, held_to=held_to)

    def _remember_message(self, message: str, answer: CandidateAnswer) -> None:
        self._active_guardrails.remember_message(message, self._history, answer)
        self._is_corrected = True

    def _list_lasting_entries(self) -> list[HistoryEntry]:
        return [entry for entry in self._entries if not entry.is_temporary]

    def _remember(self, results: Sequence[ToolResult]) -> None:
        by_id = {result.call_id: result for result in results}
        for call in self._calls:
            if (result := by_id.get(call.id)) is None:
                continue
            made = PastCall(call.name, call.arguments, result.content, result.ok, self._changes(call))
            self._history = replace(self._history, calls=(*self._history.calls, made))

    def _changes(self, call: ToolCall) -> bool:
        return call.name in self.tools and self.tools[call.name].effect != "read"

    @property
    def history(self) -> CallHistory:
        """The calls so far, for the guardrails."""
        return self._history

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, as shown to the model."""
        return self._renderer.render_messages(self._entries)

    @property
    def _renderer(self) -> MessageRenderer:
        return MessageRenderer(self.format, self.tools, self.shows_calls)

    def _add_message(self, message: str) -> None:
        """Add a user message, preceded by the pending notes."""
        self._show_results([])
        text, self._notes = self._renderer.escape("\n\n".join([*self._notes, message])), []
        content: Content = text
        last_exchange = (("user", self._history.request), ("assistant", self._content))
        self._active_guardrails.begin()
        self._turns, self._content, self._is_corrected, self._was_in_words = 0, "", False, False
        self._unreadable_turns = self._refused_turns = self._call_turns = 0
        if not self._entries:
            self._task, self._history, self._dropped = text, CallHistory(message), 0
            self._entries = [HistoryEntry("system", self.system), HistoryEntry("user", text)]
            return
        entries = [replace(entry, is_protected=False) for entry in self._list_lasting_entries()]
        if entries[-1].role == "user" and not entries[-1].results:  # the last message was never answered
            self._task += f"\n\n{text}" if len(entries) == 2 else ""
            content = concat_content(entries.pop().content, text, "\n\n")
        self._entries = [*entries, HistoryEntry("user", content, is_protected=True)]
        self._history = CallHistory(
            message, self._history.calls, len(self._history.calls), (*self._history.messages, *last_exchange)
        )

    def _add_answer(self, turn: Turn, *, reencode: bool = False) -> None:
        """Add an answer to the history. Its results are added later."""
        self._entries = [*self._list_lasting_entries(), self._renderer.render_answer(turn, reencode=reencode)]
        self._calls, self._refused, self._invalid = list(turn.calls), {}, turn.invalid

    def _show_results(self, results: Sequence[ToolResult]) -> None:
        """Add the results of this turn's calls. A call without a result was stopped."""
        if not self._calls and not self._invalid:
            return
        contents = {result.call_id: result.content for result in (*results, *self._refused.values())}
        self._entries.append(self._renderer.render_results(self._calls, self._invalid, contents))
        self._entries += self._renderer.render_follow_ups(results)
        self._calls, self._refused, self._invalid = [], {}, ()

    def _build_query(self) -> AskModel:
        self._queries += 1
        self._turns += 1
        note = self._fit() if self.limits.context_tokens is not None else ""
        self._tokens = sum(entry.tokens for entry in self._entries)
        messages = self.messages if self.shows_calls else merge_consecutive_roles(self.messages)
        classified = self._history.classified
        return AskModel(tuple(messages), self._queries, note, holds_text=self._is_corrected, classified=classified)

    def _fit(self) -> str:
        """Trim the conversation to the context size. Return a note for the user, or "" if nothing was cut."""
        context = self.limits.context_tokens or 0
        fitted = trim_to_context(
            self._entries, compute_usable_tokens(context) / self._token_ratio, self.format.encode_result
        )
        self._entries = fitted.entries
        if fitted.dropped:
            self._dropped += fitted.dropped
            note = f"[{self._dropped} turns after this message were left out: the conversation became too long.]"
            self._entries[1] = HistoryEntry("user", f"{self._task}\n\n{note}")
        if fitted.shortened or fitted.dropped:
            return (
                f"the model's context of {context:,} tokens is full: "
                f"{pluralize(fitted.shortened, 'older result was', 'older results were')} shortened, "
                f"{pluralize(fitted.dropped, 'turn')} left out"
            )
        tokens = int(sum(entry.tokens for entry in self._entries) * self._token_ratio)
        if self._queries > 1 or tokens <= compute_usable_tokens(context):
            return ""
        return f"the tools and the task alone take about {tokens:,} tokens of {context:,}"

    def _refuse_calls(self) -> dict[str, ToolResult]:
        """Return the results of the calls that must not be run now, by call id."""
        refused: dict[str, ToolResult] = {}
        self._held_to, self._may_be_held, self._is_repeating, self._repeated_result = (), False, False, ""
        earlier: list[PastCall] = []
        for call in self._calls:
            violations = self._active_guardrails.check_call(self._history, call, earlier, self.limits.repetitions)
            violation = next((each for each in violations if self._is_refused(each)), None)
            if violation is None:
                earlier.append(PastCall(call.name, call.arguments, changes=self._changes(call)))
            else:
                error = violation.wordings[min(self._refused_turns, len(violation.wordings) - 1)]
                self._remember_message(error, CandidateAnswer("", (call,)))
                self._may_be_held = violation.is_free_first and not self._refused_turns
                held_to = () if self._may_be_held else violation.held_to
                self._held_to = exclude_changes(held_to, self._history, self.tools)
                self._is_repeating = violation.guardrail in LOOPS
                is_one = violation.guardrail in ("made_already", "repeated_call")
                self._repeated_result = self._history.last_result if is_one and not violation.held_to else ""
                refused[call.id] = ToolResult.from_error(call.name, error, call.id)
        return refused

    def _is_refused(self, violation: Violation) -> bool:
        """Return whether to refuse a call because of ``violation``. After the last wording of the message, only
        guardrails that stop the agent or drop calls still refuse it."""
        guardrail = GUARDRAILS[violation.guardrail]
        has_wording = guardrail.stops or guardrail.drops or self._refused_turns < len(violation.wordings)
        return guardrail.name in self._active_guardrails.on and has_wording
