"""Show a conversation at the terminal, and ask the user for approvals and answers.

The model's answer is written to stdout, everything else to stderr. Control sequences in text from a model or a file
are made visible, so that the terminal does not interpret them. Colors and the status line appear only on a terminal.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Sequence

from adapter.agent.answer_reader import AgentEvent
from adapter.backends.chat_client import Chunk
from adapter.cli.external_editor import edit_in_external_editor
from adapter.cli.terminal_output import ANSWER, OUTPUT, REASONING, Terminal
from adapter.conversation.session_steps import AskModel, Finished, RunTools
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import InvalidToolCall, ReasoningDelta, TextDelta, ToolCall, ToolCallProgress, ToolResult
from adapter.core.text.diffs import render_unified_diff
from adapter.core.text.display_escaping import collapse_blanks, escape_for_display
from adapter.tools.operations import Question
from adapter.tools.operations.permissions import NO_SANDBOX, ApprovalDecision, ApprovalRequest, FileDraft
from adapter.workspace import Workspace

MAX_SHOWN_LINES = 12
"""Maximum number of a result's lines that are shown. The model gets the whole result."""
LONG_COMMAND = 1_000
"""Length, in characters, above which the end of a command is shown again on a separate line in a request for approval.
"""
TAIL_SHOWN = 60
"""Number of characters at the end of an unfinished call that are shown while the model writes it."""
END_SHOWN = 200
"""Number of characters at the end of a long command that are shown again."""


class Console(Terminal):
    """Shows the events of an agent, and asks for approvals."""

    def __init__(self) -> None:
        super().__init__()
        self._shown_diff = ""
        self._written = ""
        self._shown: list[str] = []  # pieces of the model's text; a null character precedes each answer
        self._holds_text = False
        self._pending_tools: deque[str] = deque()

    def __call__(self, event: AgentEvent) -> None:
        match event:
            case AskModel(note=note, again=guardrail, holds_text=holds_text):
                self._holds_text = holds_text
                self._shown.append("\0")
                if note:
                    self.note(note)
                if guardrail:
                    self.note(f"!! answer rejected ({guardrail}); retrying", "yellow")
                self.show_status("waiting for the model")
            case Chunk(reading=(done, total)):
                self.show_status(f"reading {done:,} of {total:,} tokens")
            case TextDelta(text=text):
                is_start = not (self._shown and self._shown[-1].strip("\0 \n"))
                self._holds_text |= is_start and text.lstrip().startswith("{")  # a call that may be rejected
                if not self._holds_text:  # `Finished` has the text of an accepted answer
                    self._shown.append(text)
                    self.write_flow(ANSWER, text)
            case ReasoningDelta(text=text):
                self.write_flow(REASONING, text)
            case ToolCallProgress(text=text, name=name, size=size):
                self._written = (self._written + text)[-TAIL_SHOWN:]
                progress = f"writing a call{f' to {name}' if name else ''}: {size:,} characters"
                self.show_status(f"{progress}  ...{' '.join(self._written.split())}")
            case ToolCall():
                self._written = ""
                arguments = ", ".join(f"{name}={_abbreviate(value)}" for name, value in event.arguments.items())
                repairs = f"  (repaired: {', '.join(event.fixes)})" if event.fixes else ""
                self.note(f"-> {event.name}({arguments})", "cyan", repairs)
            case InvalidToolCall(error=error):
                self._written = ""
                self.note(f"!! not a call: {error}", "yellow")
            case RunTools(calls=calls, dropped=dropped):
                for (name, why), count in Counter((each.name, each.guardrail) for each in dropped).items():
                    self.note(f"!! not run: {name} ({why}){f', {count} times' if count > 1 else ''}", "yellow")
                self._pending_tools = deque(call.name for call in calls)
                self._show_running()
            case ToolResult():
                self._show_result(event)
                if self._pending_tools:
                    self._pending_tools.popleft()
                self._show_running()
            case Finished(reason=reason, content=content):
                if reason not in ("failed", "interrupted"):
                    self.write_flow(ANSWER, self._cut_shown(content))  # held text, or the last result
                self._shown.clear()
                self.end_line()

    def _cut_shown(self, content: str) -> str:
        """Return the part of ``content``, the final answer, that was not shown yet.

        Leading lines that equal a complete answer on the screen are removed. If the last answer was streamed to the
        screen, content that occurs anywhere on the screen is also removed. This is not done for an answer that was held
        back, because a short answer such as "4" may occur in an earlier one by chance.
        """
        text = "".join(self._shown)
        if not self._holds_text and content in text:
            return ""
        answers = (answer.strip() for answer in text.split("\0"))
        shown = max(
            (answer for answer in answers if f"{content.strip()}\n".startswith(f"{answer}\n")), key=len, default=""
        )
        return content.strip()[len(shown) :] if shown else content

    def ask(self, approval: ApprovalRequest) -> ApprovalDecision:
        """Ask the user for approval. Without a terminal, the request is refused."""
        self.discard_typed()
        self.note(f"?? {collapse_blanks(escape_for_display(approval.summary, keep=chr(10)))}", "bold")
        if len(approval.summary) > LONG_COMMAND and approval.command is not None:
            self.note(f"   {_describe_end(approval.command)}", "yellow")
        if approval.caution:
            self.note(f"   {approval.caution}", "yellow")
        if approval.label:
            self.note(f"   the model's reason: {' '.join(approval.label.split())[:200]}")
        if approval.sandbox:
            self.note_sandbox(f"   {approval.sandbox}")
        self.show_diff(approval.diff)
        self._shown_diff = approval.diff
        if not self.can_ask:
            self.note("   refused: approval needs a terminal. --approve auto-edit or yolo may allow it.", "yellow")
            return ApprovalDecision(False)
        decision = self._read_decision(approval)
        self._show_running()
        return decision

    def _read_decision(self, approval: ApprovalRequest) -> ApprovalDecision:
        """Read the user's answer to the approval request on the screen. The user may edit a new file's text first."""
        scope = "this exact command" if approval.command is not None else "this tool and file"
        can_edit = approval.draft is not None
        content: str | None = None
        while True:
            edit = " / [e]dit it first" if can_edit else ""
            self.note(f"   allow it? [y]es / [n]o / [a]lways for {scope}{edit}", "bold")
            try:
                typed = self.read_line("   n can take a reason for the model: ")
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
                    content = self._edit_draft(approval.draft, content)
                case _:
                    letters = "y, n, a or e" if can_edit else "y, n or a"
                    self.note(f"   unknown answer: type {letters}; only n can be followed by a reason")

    def _edit_draft(self, draft: FileDraft, content: str | None) -> str | None:
        """Let the user edit the draft, and show the diff. Return the user's version, or None if it is unchanged."""
        current = draft.after if content is None else content
        try:
            edited = edit_in_external_editor(current, draft.path)
        except UsageError as error:
            self.note(f"   not changed: {error}", "yellow")
            return content
        self.discard_typed()
        if edited == current:
            self.note(
                "   nothing was changed. If the editor returned at once, it needs a flag to wait: EDITOR='code --wait'"
            )
            return content
        diff = render_unified_diff(draft.before, edited, draft.path)
        self.note(f"   your version:{'' if diff else ' the file stays unchanged'}")
        self.show_diff(diff)
        self._shown_diff = diff
        return None if edited == draft.after else edited

    def confirm(self, subject: str, question: str) -> bool:
        """Ask the user a yes/no question, and return True for yes. Without a terminal, return False."""
        self.discard_typed()
        self.note(f"?? {collapse_blanks(escape_for_display(subject, keep=chr(10)))}", "bold")
        if not self.can_ask:
            return False
        try:
            return parse_approval_answer(self.read_line(f"   {question} [y]es / [n]o: "), can_edit=False)[0] == "y"
        except EOFError:
            return False

    def ask_question(self, question: Question) -> tuple[str, ...]:
        """Return the chosen labels, or the user's own text. Raises ToolError if the user does not answer."""
        self.note(f"?? {question.text}", "bold")
        for number, option in enumerate(question.options, start=1):
            about = f": {option.description}" if option.description else ""
            self.note(f"   {number}. {option.label}{about}", "bold")
        while True:
            try:
                answer = self.read_line(f"   {_describe_answers(question)}: ").strip()
            except EOFError:
                raise ToolError("the user did not answer; decide yourself, or ask in your final answer") from None
            if labels := _parse_choice(question, answer):
                return labels

    def echo(self, text: str) -> None:
        """Show the output of a program as it arrives."""
        self.write_flow(OUTPUT, text)

    def warn(self, text: str) -> None:
        """Show a warning."""
        self.note(text, "yellow")

    def note_sandbox(self, text: str) -> None:
        """Show ``text``, which names the sandbox for commands. Highlight it if there is no sandbox."""
        self.note(text, "bold red" if NO_SANDBOX in text else "dim")

    def note_workspace(self, workspace: Workspace) -> None:
        """Show the sandbox for commands, and the changes that were recovered after a crash."""
        if workspace.sandbox:
            self.note_sandbox(workspace.sandbox)
        for note in workspace.recovered:
            self.note(note)

    def end(self, text: str, *, is_interrupted: bool = False) -> None:
        """Show the last line of a run."""
        if is_interrupted:
            self.start_fresh_line()
        self.note(f"-- {text}")

    def _show_running(self) -> None:
        if self._pending_tools:
            self.show_status(f"running {self._pending_tools[0]}")

    def _show_result(self, result: ToolResult) -> None:
        if not result.ok:
            self.note(f"<- {result.error}", "red")
            return
        lines = result.content.strip("\n").split("\n")
        shown = "\n   ".join(lines[:MAX_SHOWN_LINES])
        more = f"\n   ... {len(lines) - MAX_SHOWN_LINES} more lines" if len(lines) > MAX_SHOWN_LINES else ""
        self.note(f"<- {shown}{more}", "green")
        if result.diff and result.diff != self._shown_diff:
            self.show_diff(result.diff)

    def show_diff(self, diff: str) -> None:
        """Show a diff in color, indented like all output about a call."""
        diff = collapse_blanks(escape_for_display(diff, keep="\n\t"))
        styles = {"+": "green", "-": "red", "@": "cyan"}
        for line in diff.rstrip("\n").split("\n") if diff else []:
            self.note(f"   {line}", styles.get(line[:1], "dim"))


def parse_approval_answer(typed: str, *, can_edit: bool) -> tuple[str, str]:
    """Return an approval answer's letter (y, n, a or e; "" if invalid), and the reason that follows an "n". A "yes"
    followed by more words is invalid, because the words may be a condition.
    """
    word, _, rest = typed.strip().partition(" ")
    letter = _LETTERS.get(word.rstrip(",.:;").lower(), "")
    if (letter == "e" and not can_edit) or (rest and letter != "n"):
        return "", ""
    return letter, rest.strip()


_LETTERS = {word: word[0] for name in ("yes", "no", "always", "edit") for word in (name, name[0])}


class ConsoleQuestions:
    """Asks questions at the terminal, one at a time."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def ask(self, questions: Sequence[Question]) -> Sequence[Sequence[str]]:
        return [self._console.ask_question(question) for question in questions]


def _describe_answers(question: Question) -> str:
    if not question.options:
        return "your answer"
    numbers = "numbers, e.g. 1,3" if question.multiple else "a number"
    return f"{numbers}, or your own text" if question.allow_other else numbers


def _parse_choice(question: Question, answer: str) -> tuple[str, ...]:
    """Return the labels that ``answer`` selects. Return ``answer`` itself for the user's own text, () if it is
    invalid."""
    parts = [part.strip() for part in answer.split(",")]
    labels = [option.label for option in question.options]
    exact = next((label for label in labels if label.casefold() == answer.casefold()), None)
    if exact is not None:
        return (exact,)
    if labels and all(part.isdecimal() for part in parts):
        numbers = dict.fromkeys(int(part) for part in parts)
        is_choice = all(1 <= number <= len(labels) for number in numbers) and (question.multiple or len(numbers) == 1)
        return tuple(labels[number - 1] for number in numbers) if is_choice else ()
    return (answer,) if answer and (question.allow_other or not labels) else ()


def _describe_end(command: str) -> str:
    """Describe the length and the end of a command. Its beginning may have scrolled off the screen."""
    lines = command.count("\n") + 1
    size = f"{len(command):,} characters" + (f" in {lines:,} lines" if lines > 1 else "")
    return f"{size}, ending in: ...{collapse_blanks(escape_for_display(command[-END_SHOWN:]))}"


def _abbreviate(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
