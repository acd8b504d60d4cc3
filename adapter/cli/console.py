"""Shows a conversation to a person: the model's answer on stdout, everything else on stderr.

Nothing a model or a file wrote reaches the terminal raw: control sequences are
made visible. Colours and the line that says what is being waited for appear only
on a terminal.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager

from rich.console import Console as Rich
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.text import Text

from adapter.agent.response_reader import AgentEvent
from adapter.backends.chat_client import Chunk
from adapter.cli.external_editor import edit_in_external_editor
from adapter.cli.terminal import ANSWER, OUTPUT, REASONING, Terminal
from adapter.conversation.session import AskModel, Finished, RunTools
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import InvalidToolCall, ReasoningDelta, TextDelta, ToolCall, ToolCallProgress, ToolResult
from adapter.core.text.diffs import unified_diff
from adapter.core.text.display_escaping import collapse_blanks, escape_for_display
from adapter.tools.operations import Question
from adapter.tools.operations.permissions import NO_SANDBOX, ApprovalDecision, ApprovalRequest, FileDraft

MAX_SHOWN_LINES = 12
"""Lines of a result that are shown; the model gets all of it."""
LONG_COMMAND = 1_000
"""Characters of a command from which on its end is shown once more, below all of it."""
TAIL_SHOWN = 60
"""Characters of a call that is being written, the last ones, behind how long it is."""
END_SHOWN = 200
"""Characters of that end."""


class Console:
    """Observes an agent and shows what happens; asks for approvals."""

    def __init__(self) -> None:
        self._screen = Terminal()
        self._shown_diff = ""
        self._written = ""
        self._to_run: deque[str] = deque()

    def __call__(self, happening: AgentEvent) -> None:
        match happening:
            case AskModel(note=note):
                if note:
                    self.note(note)
                self._screen.status("waiting for the model")
            case Chunk(reading=(done, total)):
                self._screen.status(f"reading {done:,} of {total:,} tokens")
            case TextDelta(text=text):
                self._screen.flow(ANSWER, text)
            case ReasoningDelta(text=text):
                self._screen.flow(REASONING, text)
            case ToolCallProgress(text=text, name=name, size=size):
                self._written = (self._written + text)[-TAIL_SHOWN:]
                what = f"writing a call{f' of {name}' if name else ''}: {size:,} characters"
                self._screen.status(f"{what}  ...{' '.join(self._written.split())}")
            case ToolCall():
                self._written = ""
                arguments = ", ".join(f"{name}={_short(value)}" for name, value in happening.arguments.items())
                mended = f"  (mended: {', '.join(happening.fixes)})" if happening.fixes else ""
                self._screen.note(f"-> {happening.name}({arguments})", "cyan", mended)
            case InvalidToolCall(error=error):
                self._written = ""
                self._screen.note(f"!! not a call: {error}", "yellow")
            case RunTools(calls=calls):
                self._to_run = deque(call.name for call in calls)
                self._show_running()
            case ToolResult():
                self._result(happening)
                if self._to_run:
                    self._to_run.popleft()
                self._show_running()
            case Finished():
                self._screen.end_line()
            case _:
                pass

    def ask(self, approval: ApprovalRequest) -> ApprovalDecision:
        """Ask the person at the terminal. Without one the answer is no."""
        self._screen.forget_typed()
        self._screen.note(f"?? {collapse_blanks(escape_for_display(approval.summary, keep=chr(10)))}", "bold")
        if len(approval.summary) > LONG_COMMAND and approval.command is not None:
            self._screen.note(f"   {_ending(approval.command)}", "yellow")
        if approval.caution:
            self._screen.note(f"   {approval.caution}", "yellow")
        if approval.label:
            self.note(f"   the model says: {' '.join(approval.label.split())[:200]}")
        if approval.sandbox:
            self.note_sandbox(f"   {approval.sandbox}")
        self.show_diff(approval.diff)
        self._shown_diff = approval.diff
        if not self._screen.can_ask:
            self._screen.note(
                "   refused: no terminal to ask at. --approve auto-edit or yolo would allow it.", "yellow"
            )
            return ApprovalDecision(False)
        decision = self._answer(approval)
        self._show_running()
        return decision

    def _answer(self, approval: ApprovalRequest) -> ApprovalDecision:
        """The answer to the question that is shown, after as many changes of the draft as the person makes."""
        same = "this very command" if approval.command is not None else "this tool and file"
        can_edit = approval.draft is not None
        content: str | None = None
        while True:
            edit = " / [e]dit it first" if can_edit else ""
            self._screen.note(f"   allow it? [y]es / [n]o / [a]lways for {same}{edit}", "bold")
            try:
                typed = self._screen.ask("   words behind n tell the model why: ")
            except EOFError:
                self.note("   refused: no answer")
                return ApprovalDecision(False)
            letter, reason = parse_approval_answer(typed, can_edit=can_edit)
            match letter:
                case "n":
                    return ApprovalDecision(False, reason=reason)
                case "y" | "a":
                    return ApprovalDecision(True, remember=letter == "a", content=content)
                case "e" if approval.draft is not None:
                    content = self._edited(approval.draft, content)
                case _:
                    letters = "y, n, a or e" if can_edit else "y, n or a"
                    self.note(f"   that is none of the answers: type {letters}; only n takes words behind it")

    def _edited(self, draft: FileDraft, content: str | None) -> str | None:
        """What the person makes of the draft, shown; None when that is what the model wrote."""
        now = draft.after if content is None else content
        try:
            edited = edit_in_external_editor(now, draft.path)
        except UsageError as error:
            self._screen.note(f"   not changed: {error}", "yellow")
            return content
        self._screen.forget_typed()
        if edited == now:
            self.note("   nothing was changed. An editor that returns at once needs to wait: EDITOR='code --wait'")
            return content
        diff = unified_diff(draft.before, edited, draft.path)
        self.note(f"   as you changed it:{'' if diff else ' the file stays as it is'}")
        self.show_diff(diff)
        self._shown_diff = diff
        return None if edited == draft.after else edited

    def confirm(self, what: str, question: str) -> bool:
        """Whether the person at the terminal says yes. Without one the answer is no."""
        self._screen.forget_typed()
        self._screen.note(f"?? {collapse_blanks(escape_for_display(what, keep=chr(10)))}", "bold")
        if not self._screen.can_ask:
            return False
        try:
            return parse_approval_answer(self._screen.ask(f"   {question} [y]es / [n]o: "), can_edit=False)[0] == "y"
        except EOFError:
            return False

    def ask_question(self, question: Question) -> tuple[str, ...]:
        """The labels chosen, or the person's own words. Raises ToolError when there is no answer."""
        self._screen.note(f"?? {question.text}", "bold")
        for number, option in enumerate(question.options, start=1):
            about = f": {option.description}" if option.description else ""
            self._screen.note(f"   {number}. {option.label}{about}", "bold")
        while True:
            try:
                answer = self._screen.ask(f"   {_how_to_answer(question)}: ").strip()
            except EOFError:
                raise ToolError("the user did not answer. Decide yourself, or end with the question") from None
            chosen = _chosen(question, answer)
            if chosen:
                return chosen

    def echo(self, text: str) -> None:
        """Output of a program, as it comes."""
        self._screen.flow(OUTPUT, text)

    def note(self, text: str, style: str = "dim") -> None:
        """A line for the person."""
        self._screen.note(text, style)

    def fresh_line(self) -> None:
        """What comes next begins a line, after a key that the terminal may have shown."""
        self._screen.fresh_line()

    def warn(self, text: str) -> None:
        """What was not done, and why."""
        self._screen.note(text, "yellow")

    def show(self, text: Text) -> None:
        """Lines in several styles; see `Terminal.show`."""
        self._screen.show(text)

    def read_line(self, prompt: str) -> str:
        """What the person types. Raises EOFError for Ctrl-D."""
        return self._screen.ask(prompt)

    def note_sandbox(self, text: str) -> None:
        """What confines commands; not to be overlooked when nothing does."""
        self._screen.note(text, "bold red" if NO_SANDBOX in text else "dim")

    def busy(self, text: str) -> AbstractContextManager[None]:
        """Says what is being waited for while it is."""
        return self._screen.busy(text)

    def end(self, text: str, *, is_interrupted: bool = False) -> None:
        """The last line of a run."""
        if is_interrupted:
            self._screen.fresh_line()
        self._screen.note(f"-- {text}")

    def _show_running(self) -> None:
        if self._to_run:
            self._screen.status(f"running {self._to_run[0]}")

    def _result(self, result: ToolResult) -> None:
        if not result.ok:
            self._screen.note(f"<- {result.error}", "red")
            return
        lines = result.content.strip("\n").split("\n")
        shown = "\n   ".join(lines[:MAX_SHOWN_LINES])
        more = f"\n   ... {len(lines) - MAX_SHOWN_LINES} more lines" if len(lines) > MAX_SHOWN_LINES else ""
        self._screen.note(f"<- {shown}{more}", "green")
        if result.diff and result.diff != self._shown_diff:
            self.show_diff(result.diff)

    def show_diff(self, diff: str) -> None:
        """In colour, shifted like all that belongs to a call."""
        diff = collapse_blanks(escape_for_display(diff, keep="\n\t"))
        styles = {"+": "green", "-": "red", "@": "cyan"}
        for line in diff.rstrip("\n").split("\n") if diff else []:
            self._screen.note(f"   {line}", styles.get(line[:1], "dim"))


def parse_approval_answer(typed: str, *, can_edit: bool) -> tuple[str, str]:
    """The letter of an answer to an approval, and the reason behind a no; no letter for what is no answer.

    Words behind a yes may be a condition, so that is none.
    """
    word, _, rest = typed.strip().partition(" ")
    letter = _LETTERS.get(word.rstrip(",.:;").lower(), "")
    if (letter == "e" and not can_edit) or (rest and letter != "n"):
        return "", ""
    return letter, rest.strip()


_LETTERS = {word: word[0] for name in ("yes", "no", "always", "edit") for word in (name, name[0])}


class ConsoleQuestions:
    """Asks at the terminal, one question after the other."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def ask(self, questions: Sequence[Question]) -> Sequence[Sequence[str]]:
        return [self._console.ask_question(question) for question in questions]


def _how_to_answer(question: Question) -> str:
    if not question.options:
        return "your answer"
    numbers = "numbers, such as 1,3" if question.multiple else "a number"
    return f"{numbers}, or your own words" if question.allow_other else numbers


def _chosen(question: Question, answer: str) -> tuple[str, ...]:
    """What ``answer`` means; nothing when it is no answer to this question."""
    parts = [part.strip() for part in answer.split(",")]
    labels = [option.label for option in question.options]
    spelt = next((label for label in labels if label.casefold() == answer.casefold()), None)
    if spelt is not None:
        return (spelt,)
    if labels and all(part.isdecimal() for part in parts):
        numbers = dict.fromkeys(int(part) for part in parts)
        is_choice = all(1 <= number <= len(labels) for number in numbers) and (question.multiple or len(numbers) == 1)
        return tuple(labels[number - 1] for number in numbers) if is_choice else ()
    return (answer,) if answer and (question.allow_other or not labels) else ()


def download_progress() -> Progress:
    """A progress bar for a download, on stderr; silent when that is no terminal."""
    people = Rich(stderr=True)
    return Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=people, disable=not people.is_terminal
    )


def _ending(command: str) -> str:
    """How long a command is, and how it ends: its beginning may have left the screen."""
    lines = command.count("\n") + 1
    size = f"{len(command):,} characters" + (f" in {lines:,} lines" if lines > 1 else "")
    return f"{size}, which end: ...{collapse_blanks(escape_for_display(command[-END_SHOWN:]))}"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
