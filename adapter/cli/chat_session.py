"""One chat: the agent it has now, what was said, and what the person does besides."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from adapter.agent.response_reader import AgentEvent
from adapter.cli.agent_factory import AgentBundle, build_agent, mcp_tools, open_workspace
from adapter.cli.console import Console
from adapter.cli.exit_status import CallTally
from adapter.cli.host_factory import api_keys_of, build_host
from adapter.cli.observers import ObserverGroup
from adapter.cli.run_settings import RunSettings
from adapter.conversation.session import AskModel, Finished
from adapter.core.events import Event
from adapter.core.text.redaction import Redactor
from adapter.core.turn import Turn
from adapter.recording.chat_store import ChatStore, OpenChat, SavedChat
from adapter.recording.recorder import SessionRecorder
from adapter.recording.resume import restore_chat
from adapter.recording.transcript import TranscriptWriter
from adapter.recording.view.page_data import message_text
from adapter.tools.tool import ToolSet
from adapter.workspace import Workspace
from adapter.workspace.changes.history import UndoResult

MAX_TOLD = 4_000
"""Characters of a diff that the model is told when the user takes a change back."""


def open_chat_store(workspace: Workspace) -> ChatStore:
    """The chats that are kept of this workspace."""
    return ChatStore(Path(workspace.history.store.folder("talks")))


@dataclass(slots=True)
class InterruptedAnswer:
    """An answer to the last message, as far as it came; ``query`` says why, where the one before was asked again."""

    query: AskModel
    events: list[Event]

    @property
    def turn(self) -> Turn:
        return Turn.from_events(self.events)


class ChatSession:
    """With a model in a workspace, until ``stack`` is closed. Raises TransportError and UsageError for none."""

    def __init__(self, stack: ExitStack, settings: RunSettings, console: Console) -> None:
        self.settings, self.console = settings, console
        self.answers: list[InterruptedAnswer] = []
        own = mcp_tools(stack, settings, console)
        # Nobody looks at an editor here, and each tool costs tokens.
        host = replace(build_host(settings.config), editor=None)
        self._witnesses = ObserverGroup(console, CallTally(ToolSet()))
        self.workspace = stack.enter_context(
            open_workspace(settings, own, host, ask=self._witnesses.ask, echo=console.echo)
        )
        self._witnesses.tally.tools = self.workspace.known_tools
        self.talks = open_chat_store(self.workspace)
        self._written = stack.enter_context(ExitStack())
        self._model = stack.enter_context(ExitStack())
        self._talk: OpenChat | None = None
        self._made = self._assembled(settings, self._model)

    @property
    def agent(self) -> AgentBundle:
        return self._made

    @property
    def tally(self) -> CallTally:
        return self._witnesses.tally

    @property
    def id(self) -> str | None:
        """By which it can be gone on with; None before the first message."""
        return self._talk.id if self._talk is not None else None

    @property
    def path(self) -> Path | None:
        """Where it is kept."""
        return self._talk.path if self._talk is not None else None

    def send(self, message: str) -> Finished:
        """Say ``message``. Raises TransportError where the model cannot answer: then it can be said again."""
        self.answers = []
        if self._witnesses.recording is None:
            self._record(self._written.enter_context(self.talks.begin()), message)
            return self._made.agent.run(message)
        self._witnesses.recording.user_message(message)
        return self._made.agent.run(message) if self._made.is_guided else self._made.agent.send(message)

    def undo(self) -> UndoResult:
        """Take back the newest change, and tell the model. Raises ToolError where that cannot be done."""
        undone = self.workspace.undo()
        self._tell(f"[The user took back a change: {undone.change.summary}.", undone)
        return undone

    def redo(self) -> UndoResult:
        """Make the change again that was taken back last, and tell the model. Raises ToolError."""
        redone = self.workspace.redo()
        self._tell(f"[The user made a change again that had been taken back: {redone.change.summary}.", redone)
        return redone

    def switch(self, **changed: str | None) -> None:
        """Go on with another ``model`` or ``format``, which is shown all that was said. Raises TransportError and
        UsageError; then nothing is another."""
        settings = replace(self.settings, **changed)  # type: ignore[arg-type]
        stack = ExitStack()
        try:
            made = self._assembled(settings, stack)
        except BaseException:
            stack.close()
            raise
        self._model.close()
        self._model.push(stack)
        self.settings, self._made = settings, made
        if self._talk is not None:
            self._go_on_with(self._talk)

    def clear(self) -> None:
        """Begin anew; the chat so far is kept."""
        self.answers, self._talk, self._witnesses.recording = [], None, None
        self._written.close()

    def resume(self, kept: SavedChat) -> None:
        """Go on with a chat that was kept. Raises UsageError where it cannot be read, or is open elsewhere."""
        self._go_on_with(self._written.enter_context(OpenChat(kept.path)))

    def sees(self) -> str | list[tuple[str, str]]:
        """The conversation so far as the model is given it: the prompt, or role and text of each message."""
        agent = self._made.agent
        messages = agent.messages if self._talk is not None else ({"role": "system", "content": agent.system},)
        given, fields = agent.request(AskModel(messages, 0))
        _, body = self._made.chat.request(self._made.chat.body(given, fields))
        if isinstance(prompt := body.get("prompt"), str):
            return prompt
        return [(str(message["role"]), message_text(message)) for message in body["messages"]]

    def _assembled(self, settings: RunSettings, stack: ExitStack) -> AgentBundle:
        made = build_agent(
            stack, settings, self.workspace, self._witnesses, lambda host: self.workspace.subsession(host=host)
        )
        made.agent.set_observer(self._observe)
        if made.is_guided:
            self.console.note("this model is too small for a conversation: it is shown each message alone")
        return made

    def _go_on_with(self, talk: OpenChat) -> None:
        agent, transcript = self._made.agent, talk.transcript()
        past = restore_chat(transcript, self.workspace.known_tools)
        for message in past.messages:
            agent.resume(message.text, message.answers)
        for told in past.told:
            agent.add_note(told)
        self._record(talk, transcript.header.task)

    def _record(self, talk: OpenChat, task: str) -> None:
        """Write what happens from now on into ``talk``, with who answers from here on."""
        secrets, chat = Redactor(os.environ, api_keys_of(self.workspace.host)), self._made.chat
        recorder = TranscriptWriter(talk.writer(self.console.warn), secrets)
        recording = SessionRecorder(recorder, Path(self.workspace.root), is_chat=True)
        recording.begin(
            self._made.agent, task, approve=self.settings.approve, model=chat.model, server=chat.endpoint.kind
        )
        self._talk, self._witnesses.recording = talk, recording

    def _tell(self, what: str, done: UndoResult) -> None:
        diff = done.diff if len(done.diff) <= MAX_TOLD else f"{done.diff[:MAX_TOLD]}\n... and more"
        text = f"{what} The files are now as this left them:\n{diff}]"
        self._made.agent.add_note(text)
        if self._witnesses.recording is not None:
            self._witnesses.recording.note(text)

    def _observe(self, happening: AgentEvent) -> None:
        if isinstance(happening, AskModel):
            self.answers.append(InterruptedAnswer(happening, []))
        elif isinstance(happening, Event) and self.answers:
            self.answers[-1].events.append(happening)
        self._witnesses.observe(happening)
