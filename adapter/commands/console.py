"""Shows a conversation to a person: the model's answer on stdout, everything else on stderr.

Nothing a model or a file wrote reaches the terminal raw: control sequences are
made visible. Colours and the line that shows a call being written appear only
on a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from rich.console import Console as Rich
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.text import Text

from adapter.agent import Observed
from adapter.approval import NO_SANDBOX, Approval, Decision
from adapter.conversation.session import REASONS, Done, Query
from adapter.errors import ToolError
from adapter.events import InvalidToolCall, ReasoningDelta, TextDelta, ToolCall, ToolCallProgress, ToolResult
from adapter.operations import Question
from adapter.text.visible import visible

HINTS = {
    "turns": "raise --max-turns, or make the task smaller",
    "repetition": "try a larger model, or a smaller task",
    "unreadable": "try --constraint required, another --format, or a larger model",
    "unsuccessful": "name the file and quote the text exactly, or try a larger model",
}
"""What a person can do about a conversation that came to nothing."""

NO_CALL_HINT = "if it should have acted, try --constraint required, another --format, or a larger model"
MAX_SHOWN_LINES = 12
"""Lines of a result that are shown; the model gets all of it."""


class Console:
    """Observes an agent and shows what happens; asks for approvals."""

    def __init__(self) -> None:
        self._people = Rich(stderr=True, highlight=False, soft_wrap=True)
        self._is_mid_line = False  # on stdout
        self._written = 0  # characters of the call being written
        self._shown_diff = ""
        self._has_calls = False

    def __call__(self, happening: Observed) -> None:
        match happening:
            case Query(note=note) if note:
                self.note(note)
            case TextDelta(text=text):
                self._answer(text)
            case ReasoningDelta(text=text):
                self._people.print(Text(visible(text, keep="\n\t"), style="dim"), end="")
            case ToolCallProgress(text=text):
                self._progress(len(text))
            case ToolCall():
                arguments = ", ".join(f"{name}={_short(value)}" for name, value in happening.arguments.items())
                mended = f"  (mended: {', '.join(happening.fixes)})" if happening.fixes else ""
                self._note(f"-> {happening.name}({arguments})", "cyan", mended)
                self._has_calls = True
            case InvalidToolCall(error=error):
                self._note(f"!! not a call: {error}", "yellow")
            case ToolResult():
                self._result(happening)
            case Done():
                hint = HINTS.get(happening.reason, "")
                if happening.reason == "answered" and not self._has_calls:
                    hint = NO_CALL_HINT
                self._note(f"-- {REASONS[happening.reason]}" + (f": {hint}" if hint else ""), "dim")
            case _:
                pass

    def ask(self, approval: Approval) -> Decision:
        """Ask the person at the terminal. Without one the answer is no."""
        self._note(f"?? {approval.summary}", "bold")
        if approval.label:
            self._note(f"   the model says: {' '.join(approval.label.split())[:200]}", "dim")
        if approval.sandbox:
            self.note_sandbox(f"   {approval.sandbox}")
        self._diff(approval.diff)
        self._shown_diff = approval.diff
        if not sys.stdin.isatty():
            self._note("   refused: no terminal to ask at. --approve auto-edit or yolo would allow it.", "yellow")
            return Decision(False)
        same = "this very command" if approval.command is not None else "this tool and file"
        while True:
            try:
                answer = self._people.input(Text(f"   allow it? [y]es / [n]o / [a]lways for {same}: "))
            except EOFError:
                return Decision(False)
            match answer.strip().lower():
                case "a" | "always":
                    return Decision(True, remember=True)
                case "y" | "yes":
                    return Decision(True)
                case "n" | "no":
                    return Decision(False)

    def ask_question(self, question: Question) -> tuple[str, ...]:
        """The labels chosen, or the person's own words. Raises ToolError when there is no answer."""
        self._note(f"?? {question.text}", "bold")
        for number, option in enumerate(question.options, start=1):
            about = f": {option.description}" if option.description else ""
            self._note(f"   {number}. {option.label}{about}", "bold")
        while True:
            try:
                answer = self._people.input(Text(f"   {_how_to_answer(question)}: ")).strip()
            except EOFError:
                raise ToolError("the user did not answer. Decide yourself, or end with the question") from None
            chosen = _chosen(question, answer)
            if chosen:
                return chosen

    def echo(self, text: str) -> None:
        """Output of a program, as it comes."""
        self._people.print(Text(visible(text, keep="\n\t")), end="")

    def note(self, text: str) -> None:
        """A line for the person."""
        self._note(text, "dim")

    def note_sandbox(self, text: str) -> None:
        """What confines commands; not to be overlooked when nothing does."""
        self._note(text, "bold red" if NO_SANDBOX in text else "dim")

    def _answer(self, text: str) -> None:
        sys.stdout.write(visible(text, keep="\n\t"))
        sys.stdout.flush()
        self._is_mid_line = not text.endswith("\n")

    def _progress(self, size: int) -> None:
        self._written += size
        if self._people.is_terminal:
            self._people.file.write(f"\r   writing a call: {self._written:,} characters")
            self._people.file.flush()

    def _note(self, text: str, style: str, aside: str = "") -> None:
        if self._is_mid_line:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._is_mid_line = False
        if self._written and self._people.is_terminal:
            self._people.file.write("\r\x1b[K")  # the line that showed the call being written
        self._written = 0
        self._people.print(Text(visible(text, keep="\n\t"), style=style) + Text(visible(aside), style="dim"))

    def _result(self, result: ToolResult) -> None:
        if not result.ok:
            self._note(f"<- {result.error}", "red")
            return
        lines = result.content.strip("\n").split("\n")
        shown = "\n   ".join(lines[:MAX_SHOWN_LINES])
        more = f"\n   ... {len(lines) - MAX_SHOWN_LINES} more lines" if len(lines) > MAX_SHOWN_LINES else ""
        self._note(f"<- {shown}{more}", "green")
        if result.diff and result.diff != self._shown_diff:
            self._diff(result.diff)

    def _diff(self, diff: str) -> None:
        styles = {"+": "green", "-": "red", "@": "cyan"}
        for line in diff.rstrip("\n").split("\n") if diff else []:
            self._people.print(Text("   " + visible(line, keep="\t"), style=styles.get(line[:1], "dim")))


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


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
