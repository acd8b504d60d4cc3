"""Help a very small model: let it classify the request, and write a file's new text instead of an edit."""

from __future__ import annotations

from functools import partial

from adapter.agent.file_question import FileQuestion, find_file_question, needs_file_question, read_short_file
from adapter.agent.request_classification import build_classification, needs_classification, read_classification
from adapter.backends.endpoint_discovery import Kind
from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.message_rendering import Message
from adapter.conversation.session_steps import AskModel
from adapter.core.errors import ToolError
from adapter.core.events import JsonObject
from adapter.parsing.format import Format
from adapter.prompting.intent.text_values import find_paths
from adapter.tools.operations import ReadText
from adapter.tools.tool_set import ToolSet
from adapter.workspace import Workspace


class SmallModelHelp:
    """Decides when a very small model classifies the user's message, or writes a file's new text instead of a call.

    ``question`` is the question that replaces the current query, or None.
    """

    def __init__(self, server: Kind, format: Format, workspace: Workspace) -> None:
        self._server, self._format, self._workspace = server, format, workspace
        self._asked: list[FileQuestion] = []
        self.question: FileQuestion | None = None

    def begin(self) -> None:
        """Forget the questions of an earlier conversation."""
        self._asked, self.question = [], None

    def build_classification(self, message: str) -> tuple[list[Message], JsonObject] | None:
        """Return the messages and request fields that let the model classify ``message``, or None if the server cannot
        limit answers, or the message needs no classification."""
        return build_classification(self._server, message, self._format) if needs_classification(message) else None

    def read_classification(self, message: str, answer: str) -> str:
        """Return the kind of ``message`` as in `CallHistory.classified`."""
        path = find_paths(message)[0]
        is_short = read_short_file(self._workspace, path) is not None
        is_known = is_short or self._is_missing(path)  # not a long, binary or forbidden file
        return read_classification(message, answer, file_exists=is_short) if is_known else ""

    def _is_missing(self, path: str) -> bool:
        try:
            self._workspace.read(ReadText(path, max_lines=1))
        except ToolError as error:
            return "does not exist" in str(error)
        return False

    def choose_question(self, query: AskModel, history: CallHistory, tools: ToolSet) -> FileQuestion | None:
        """Set and return the question that replaces ``query``, or None if the model may answer freely."""
        self.question = None
        if query.held_to or needs_file_question(history, tools):
            read_file = partial(read_short_file, self._workspace)
            self.question = find_file_question(history, tools, read_file, self._asked)
        self._asked += [self.question] if self.question else []
        return self.question

    def build_request(self) -> tuple[list[Message], JsonObject] | None:
        """Return the messages and fields of the current question, or None if there is none."""
        return self.question.build_request(self._server, self._format) if self.question else None
