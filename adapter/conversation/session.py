"""One conversation as a machine without I/O: it says what it wants done and takes what came back.

::

    session.start(task)          -> Query        ask the model
    session.answered(turn, ...)  -> Run | Query | Done
    session.ran(results)         -> Query | Done
    session.send(message)        -> Query        after Done: the user goes on
    session.resume(message, ...)                 what was said and answered before, in another session

Whoever drives it (`adapter.agent.agent`, a replay, a test) performs the steps. All
decisions are here: what the model is shown, which answers are asked again (by
`adapter.conversation.guardrails`), and when to stop. What tools and the user say is neutralised before the model is
shown it (`adapter.prompting.escaping`), the arguments of its calls are restored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from adapter.conversation.context_window import HistoryEntry, trim_to_context, usable_tokens
from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.conversation.guardrails.engine import Guardrails, Retry, Stop, Violation
from adapter.conversation.guardrails.registry import BROKEN_CALLS, GUARDRAILS
from adapter.conversation.guardrails.response_checks import CandidateAnswer
from adapter.conversation.message_content import Content, concat_content
from adapter.conversation.message_rendering import Message, MessageRenderer, merge_consecutive_roles
from adapter.core.errors import UsageError
from adapter.core.events import InvalidToolCall, ToolCall, ToolResult
from adapter.core.text.plurals import pluralize
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.prompting.escaping import map_strings, unescape_control_tokens
from adapter.tools.tool import ToolSet

Reason: TypeAlias = Literal[
    "answered",
    "exited",
    "turns",
    "repetition",
    "unreadable",
    "stuck",
    "finished",
    "unsuccessful",
    "interrupted",
    "cut_off",
    "broken_off",
    "failed",
]
"""Why a conversation ended; see `REASONS`."""

REASONS: dict[str, str] = {
    "answered": "the model answered without calling a tool",
    "exited": "the model ended the run",
    "turns": "the limit of turns was reached",
    "repetition": "the model kept repeating the same call",
    "unreadable": "the model's calls could not be read, several times in a row",
    "stuck": "the model's answers did not bring the task to its end",
    "finished": "the call was made; this model gets one per request",
    "unsuccessful": "the call could not be done; this model gets one per request",
    "interrupted": "stopped by the user",
    "cut_off": "the answer was cut off: it reached the limit of its tokens",
    "broken_off": "the model server broke off in the middle of the answer",
    "failed": "the model server failed",
}

_UNFINISHED: dict[str | None, Reason] = {"length": "cut_off", "incomplete": "broken_off"}
"""By why the server says that it ended, what an answer in words is that has no end."""

STOPPED_ANSWER = "[The user stopped your last answer before its end.]"


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """What is counted is counted anew for each message of the user."""

    turns: int = 25
    """Answers asked of the model; agents of this kind need under ten for a small task."""
    repetitions: int = 2
    """How often one call may run again with nothing changed in between; then it is refused."""
    refusals: int = 2
    """Turns of nothing but refused repetitions before the conversation ends."""
    unreadable: int = 3
    """Turns in a row without one readable call where there was an attempt."""
    calls: int = 128
    """Of one answer that are run; the model is told that the others were not."""
    tool_turns: int | None = None
    """Turns with calls before the conversation ends: one for models that cannot judge whether a task is done."""
    context_tokens: int | None = None
    """What the server holds of a conversation; None leaves it to the server what becomes of a longer one."""


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the model. ``number`` counts from 1; ``note`` tells the user what was done to make the messages fit.
    ``again``: the guardrail for which the answer before is asked again; ``held_to``: of `Retry`."""

    messages: tuple[Message, ...]
    number: int
    note: str = ""
    again: str = ""
    held_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls, in order; give one result each."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    reason: Reason
    content: str
    """The model's last words."""


Step: TypeAlias = AskModel | RunTools | Finished


@dataclass(slots=True)
class Session:
    """See the module. ``system`` is the system prompt; ``format`` is how history is written for the model.
    ``shows_calls``: calls and results stand in the messages as such, for the model's own template to write.
    ``guardrails``: by which answers are judged; None takes those that are on by default."""

    system: str
    format: Format
    tools: ToolSet
    limits: SessionLimits = field(default_factory=SessionLimits)
    shows_calls: bool = False
    guardrails: Guardrails | None = None
    _entries: list[HistoryEntry] = field(default_factory=list)
    _dropped: int = 0  # turns
    _tokens: int = 0  # of the last query, by estimate
    _real_share: float = 1.0  # how many tokens the server counted for each that was estimated
    _queries: int = 0
    _waiting: list[ToolCall] = field(default_factory=list)  # the calls of this turn
    _refused: dict[str, ToolResult] = field(default_factory=dict)  # of them, those not run, by id
    _complaints: tuple[InvalidToolCall, ...] = ()
    _told: list[str] = field(default_factory=list)  # with the user's next message
    _task: str = ""
    _past: CallHistory = field(default_factory=CallHistory)
    # Since the user spoke last:
    _turns: int = 0
    _content: str = ""
    _unreadable_turns: int = 0
    _refused_turns: int = 0
    _call_turns: int = 0

    def start(self, task: str) -> AskModel:
        self._entries, self._waiting, self._complaints = [], [], ()
        self._hear(task)
        return self._query()

    def send(self, message: str) -> AskModel:
        """What the user says next, after `Finished`. `SessionLimits` count anew. Raises UsageError before `start`."""
        if not self._entries:
            raise UsageError("the conversation has not begun; call start(task) first")
        self._hear(message)
        return self._query()

    def add_note(self, text: str) -> None:
        """Tell the model something besides, with the user's next message: what happened outside of the conversation."""
        self._told.append(text)

    def resume(self, message: str, answers: Sequence[tuple[Turn, Sequence[ToolResult]]]) -> None:
        """Go on as if ``message`` had been said here, and answered so: nothing is judged, asked or run."""
        self._hear(message)
        for turn, results in answers:
            self._take(turn, anew=True)
            self._remember(results)
            self._show_results(results)

    def on_interrupt(self, results: Sequence[ToolResult] = (), turn: Turn | None = None) -> Finished:
        """The user stopped it. ``results``: of those calls of the last `RunTools` that were done by then; ``turn``: what
        there was of an answer, none of whose calls is run."""
        self._show_results(results)
        if turn is None or not (turn.content.strip() or turn.calls):
            return Finished("interrupted", "")
        self._take(turn)
        self._told.append(STOPPED_ANSWER)
        return Finished("interrupted", turn.content)

    def on_answer(self, turn: Turn, prompt_tokens: int | None = None, finish_reason: str | None = "stop") -> Step:
        """The model's answer, read. ``prompt_tokens``: how many the server counted in the query. ``finish_reason``: why
        it ended, as the server says; ``length`` at the limit of tokens, ``incomplete`` where the connection broke."""
        turn = self._bounded(self._rails.enabled_faults(self._past, turn))
        if prompt_tokens and self._tokens:
            self._real_share = min(max(prompt_tokens / self._tokens, 0.5), 3.0)
        self._content = turn.content or self._content
        answer = self._shown.answer(turn)
        self._unreadable_turns = self._unreadable_turns + 1 if turn.invalid and not turn.calls else 0
        is_unreadable = self._unreadable_turns >= self.limits.unreadable
        judged = not turn.calls and not is_unreadable and self._turns < self.limits.turns
        verdict = self._rails.check_response(self._past, CandidateAnswer.of(turn), finish_reason) if judged else None
        if isinstance(verdict, Retry):
            return self._asked_again(answer, verdict)
        self._entries = [*(entry for entry in self._entries if not entry.is_passing), answer]
        self._rails.begin()
        self._complaints = turn.invalid
        if is_unreadable:
            return Finished("unreadable", self._content)
        if not turn.calls and not turn.invalid:
            if finish_reason in _UNFINISHED:
                return Finished(_UNFINISHED[finish_reason], turn.content)
            return Finished("stuck" if isinstance(verdict, Stop) else "answered", turn.content)
        self._waiting = [
            replace(call, arguments=map_strings(unescape_control_tokens, call.arguments)) for call in turn.calls
        ]
        self._refused = self._refusals()
        to_run = tuple(call for call in self._waiting if call.id not in self._refused)
        self._refused_turns = self._refused_turns + 1 if turn.calls and not to_run else 0
        if self._refused_turns >= self.limits.refusals:
            return Finished("repetition", self._content)
        return RunTools(to_run) if to_run else self.on_tool_results([])

    def _bounded(self, turn: Turn) -> Turn:
        """The turn with no more calls than an answer may have."""
        most = self.limits.calls
        if len(turn.calls) <= most:
            return turn
        error = (
            f"the answer has {len(turn.calls):,} calls, and only the first {most} were run: the others were not. "
            "Look at the results before you call more"
        )
        return replace(turn, calls=turn.calls[:most], invalid=(*turn.invalid[:most], InvalidToolCall("", error)))

    def on_tool_results(self, results: Sequence[ToolResult]) -> Step:
        """The results of the calls of the last `RunTools`, in their order."""
        self._remember(results)
        self._show_results(results)
        if any(result.ends for result in results) or self._rails.steps.has_ended(self._past):
            return Finished("exited", self._content)
        self._call_turns += bool(results)
        if self._call_turns == self.limits.tool_turns:
            return Finished("finished" if all(result.ok for result in results) else "unsuccessful", self._content)
        return self._query() if self._turns < self.limits.turns else Finished("turns", self._content)

    @property
    def _rails(self) -> Guardrails:
        if self.guardrails is None:
            self.guardrails = Guardrails(self.tools, encode=self.format.encode_calls)
        return self.guardrails

    def _asked_again(self, answer: HistoryEntry, ask: Retry) -> AskModel:
        """A query for a better answer than ``answer``, which the model sees no more once that has come."""
        is_broken = ask.guardrail in BROKEN_CALLS
        message = self.format.encode_result("", f"tool_error: {ask.message}", "") if is_broken else ask.message
        tried = [replace(answer, parts=None, is_passing=True)] if answer.content else []
        self._entries += [*tried, HistoryEntry("user", message, is_passing=True)]
        return replace(self._query(), again=ask.guardrail, held_to=ask.held_to)

    def _remember(self, results: Sequence[ToolResult]) -> None:
        by_id = {result.call_id: result for result in results}
        made = [
            PastCall(call.name, call.arguments, result.content, result.ok, self._changes(call))
            for call in self._waiting
            if (result := by_id.get(call.id)) is not None
        ]
        self._past = replace(self._past, calls=(*self._past.calls, *made))

    def _changes(self, call: ToolCall) -> bool:
        return call.name in self.tools and self.tools[call.name].effect != "read"

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, as the model is shown it."""
        return self._shown.messages(self._entries)

    @property
    def _shown(self) -> MessageRenderer:
        return MessageRenderer(self.format, self.tools, self.shows_calls)

    def _hear(self, message: str) -> None:
        """What the user says, with what is to be told besides."""
        self._show_results([])
        said, self._told = self._neutral("\n\n".join([*self._told, message])), []
        content: Content = said
        if not self._entries:
            self._task, self._past = said, CallHistory(message)
            self._entries = [HistoryEntry("system", self.system), HistoryEntry("user", said)]
            return
        kept = [replace(entry, is_kept=False) for entry in self._entries if not entry.is_passing]
        if kept[-1].role == "user" and not kept[-1].results:  # it was never answered
            self._task += f"\n\n{said}" if len(kept) == 2 else ""
            content = concat_content(kept.pop().content, said, "\n\n")
        self._entries = [*kept, HistoryEntry("user", content, is_kept=True)]
        self._past = replace(self._past, request=message, turn_start=len(self._past.calls))
        self._rails.begin()
        self._turns, self._content = 0, ""
        self._unreadable_turns = self._refused_turns = self._call_turns = 0

    def _take(self, turn: Turn, *, anew: bool = False) -> None:
        """An answer whose calls, and what was wrong with it, are still to be shown."""
        self._entries = [
            *(entry for entry in self._entries if not entry.is_passing),
            self._shown.answer(turn, anew=anew),
        ]
        self._waiting, self._refused, self._complaints = list(turn.calls), {}, turn.invalid

    def _neutral(self, text: str) -> str:
        return self._shown.escape(text)

    def _show_results(self, results: Sequence[ToolResult]) -> None:
        """Show the model what became of its calls: those without a result were stopped."""
        if not self._waiting and not self._complaints:
            return
        contents = {result.call_id: result.content for result in (*results, *self._refused.values())}
        self._entries.append(self._shown.results(self._waiting, self._complaints, contents))
        self._entries += self._shown.after(results)
        self._waiting, self._refused, self._complaints = [], {}, ()

    def _query(self) -> AskModel:
        self._queries += 1
        self._turns += 1
        note = self._fit() if self.limits.context_tokens is not None else ""
        self._tokens = sum(entry.tokens for entry in self._entries)
        messages = self.messages if self.shows_calls else merge_consecutive_roles(self.messages)
        return AskModel(tuple(messages), self._queries, note)

    def _fit(self) -> str:
        """Make the conversation fit, and tell the model in its words and the user in the note that comes back."""
        context = self.limits.context_tokens or 0
        fitted = trim_to_context(self._entries, usable_tokens(context) / self._real_share, self.format.encode_result)
        self._entries = fitted.entries
        if fitted.dropped:
            self._dropped += fitted.dropped
            left_out = f"[{self._dropped} turns after this message were left out: the conversation became too long.]"
            self._entries[1] = HistoryEntry("user", f"{self._task}\n\n{left_out}")
        if fitted.shortened or fitted.dropped:
            return (
                f"the model's context of {context:,} tokens is full: "
                f"{pluralize(fitted.shortened, 'older result was', 'older results were')} shortened, "
                f"{pluralize(fitted.dropped, 'turn')} left out"
            )
        if self._queries > 1:
            return ""
        tokens = int(sum(entry.tokens for entry in self._entries) * self._real_share)
        return (
            ""
            if tokens <= usable_tokens(context)
            else f"the tools and the task alone take about {tokens:,} tokens of {context:,}"
        )

    def _refusals(self) -> dict[str, ToolResult]:
        """What the model is told of calls that are not to be made now, by id."""
        refused: dict[str, ToolResult] = {}
        earlier: list[PastCall] = []
        for call in self._waiting:
            faults = self._rails.of_call(self._past, call, earlier, self.limits.repetitions)
            fault = next((each for each in faults if self._counts(each)), None)
            if fault is None:
                earlier.append(PastCall(call.name, call.arguments, changes=self._changes(call)))
            else:
                refused[call.id] = self._refusal(call, fault)
        return refused

    def _counts(self, fault: Violation) -> bool:
        """A call that was refused in all words that there are is made, but where it would lead nowhere."""
        is_stopped = GUARDRAILS[fault.guardrail].stops or self._refused_turns < len(fault.wordings)
        return fault.guardrail in self._rails.on and is_stopped

    def _refusal(self, call: ToolCall, fault: Violation) -> ToolResult:
        error = fault.wordings[min(self._refused_turns, len(fault.wordings) - 1)]
        return ToolResult(call.name, ok=False, content=f"tool_error: {error}", error=error, call_id=call.id)
