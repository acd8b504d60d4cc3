"""Manage a chat: its agent, its saved messages, and the user's actions, such as undoing a change."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from adapter.agent.answer_reader import AgentEvent
from adapter.cli import agent_factory
from adapter.cli.agent_console import Console
from adapter.cli.call_tally import CallTally
from adapter.cli.run_settings import RunSettings
from adapter.conversation.session_steps import AskModel, Finished
from adapter.core.events import Event
from adapter.recording.chat_store import ChatStore, OpenChat, SavedChat
from adapter.recording.restore_chat import restore_chat
from adapter.recording.view.view_page_data import render_message_text
from adapter.workspace import Workspace
from adapter.workspace.changes.history import UndoResult

MAX_NOTED_DIFF = 4_000
"""Maximum length of the diff in a note that informs the model of an undo or redo, in characters."""


def open_chat_store(workspace: Workspace) -> ChatStore:
    """Open the store of this workspace's saved chats."""
    return ChatStore(Path(workspace.history.store.create_directory("talks")))


@dataclass(slots=True)
class ReceivedAnswer:
    """An answer to the user's last message, possibly incomplete. ``query`` is the request that it answers."""

    query: AskModel
    events: list[Event]


class ChatSession:
    """A chat with a model in a workspace. Closing ``stack`` ends the chat.

    Raises TransportError or UsageError if the model or the workspace cannot be opened.
    """

    def __init__(self, stack: ExitStack, settings: RunSettings, console: Console) -> None:
        self.settings, self.console = settings, console
        self.answers: list[ReceivedAnswer] = []
        self.workspace, self._observers = agent_factory.open_workspace(stack, settings, console)
        self._store = open_chat_store(self.workspace)
        self._file_stack = stack.enter_context(ExitStack())
        self._model_stack = stack.enter_context(ExitStack())
        self._chat: OpenChat | None = None
        self.agent = self._build_agent(settings, self._model_stack)

    @property
    def tally(self) -> CallTally:
        return self._observers.tally

    @property
    def id(self) -> str | None:
        """The id for continuing the chat later. None before the first message."""
        return self._chat.id if self._chat is not None else None

    @property
    def path(self) -> Path | None:
        """The file in which the chat is saved. None before the first message."""
        return self._chat.path if self._chat is not None else None

    def send(self, message: str) -> Finished:
        """Send ``message``. Raises TransportError if the model cannot answer; the message can then be sent again."""
        self.answers = []
        if self._observers.recording is None:
            self._record(self._file_stack.enter_context(self._store.begin()), message)
            return self.agent.agent.run(message)
        self._observers.recording.record_user_message(message)
        return self.agent.agent.run(message) if self.agent.is_guided else self.agent.agent.send(message)

    def undo(self) -> UndoResult:
        """Undo the newest change, and notify the model. Raises ToolError if it cannot be undone."""
        return self._notify("undid", self.workspace.undo())

    def redo(self) -> UndoResult:
        """Redo the last undone change, and notify the model. Raises ToolError if it cannot be redone."""
        return self._notify("redid", self.workspace.redo())

    def switch(self, **changes: str | None) -> None:
        """Continue with a different ``model`` or ``format``. The new model receives the whole conversation.

        Raises TransportError or UsageError if the model is unavailable. The chat then continues with the previous
        model.
        """
        settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        stack = ExitStack()
        try:
            bundle = self._build_agent(settings, stack)
        except BaseException:
            stack.close()
            raise
        self._model_stack.close()
        self._model_stack.push(stack)
        self.settings, self.agent = settings, bundle
        if self._chat is not None:
            self._restore(self._chat)

    def clear(self) -> None:
        """Start a new chat. The current chat remains saved."""
        self.answers, self._chat, self._observers.recording = [], None, None
        self._file_stack.close()

    def resume(self, saved: SavedChat) -> None:
        """Continue a saved chat. Raises UsageError if its file cannot be read or another process has it open."""
        self._restore(self._file_stack.enter_context(OpenChat(saved.path)))

    def render_prompt(self) -> str | list[tuple[str, str]]:
        """Return the model's current input: one prompt, or the role and text of each message."""
        agent = self.agent.agent
        messages = agent.messages if self._chat is not None else ({"role": "system", "content": agent.system},)
        sent, fields = agent.build_request(AskModel(messages, 0))
        _, body = self.agent.chat.build_request(self.agent.chat.build_body(sent, fields))
        if isinstance(prompt := body.get("prompt"), str):
            return prompt
        return [(str(message["role"]), render_message_text(message)) for message in body["messages"]]

    def _build_agent(self, settings: RunSettings, stack: ExitStack) -> agent_factory.AgentBundle:
        bundle = agent_factory.build_agent(stack, settings, self.workspace, self._observers)
        bundle.agent.set_observer(self._observe)
        if bundle.is_guided:
            self.console.note(
                "this model is too small for a conversation, so each message is sent without the earlier ones"
            )
        return bundle

    def _restore(self, chat: OpenChat) -> None:
        agent, transcript = self.agent.agent, chat.read_transcript()
        past = restore_chat(transcript, self.workspace.known_tools)
        for message in past.messages:
            agent.resume(message.text, message.answers)
        for note in past.notes:
            agent.add_note(note)
        self._record(chat, transcript.header.task)

    def _record(self, chat: OpenChat, task: str) -> None:
        write = chat.create_writer(self.console.warn)
        recording = agent_factory.begin_recording(self.agent, write, self.settings, task, is_chat=True)
        self._chat, self._observers.recording = chat, recording

    def _notify(self, verb: str, done: UndoResult) -> UndoResult:
        """Notify the model that the user undid or redid a change, and return the change."""
        diff = done.diff if len(done.diff) <= MAX_NOTED_DIFF else f"{done.diff[:MAX_NOTED_DIFF]}\n... and more"
        text = f"[The user {verb} a change: {done.change.summary}. This changed the files as follows:\n{diff}]"
        self.agent.agent.add_note(text)
        if self._observers.recording is not None:
            self._observers.recording.note(text)
        return done

    def _observe(self, event: AgentEvent) -> None:
        if isinstance(event, AskModel):
            self.answers.append(ReceivedAnswer(event, []))
        elif isinstance(event, Event) and self.answers:
            self.answers[-1].events.append(event)
        self._observers.observe(event)
