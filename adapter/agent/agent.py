"""The synchronous agent loop: query the model and run its calls until the session is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Self

from adapter.agent.answer_reader import AgentEvent, AnswerReader, ChatModel, iter_chunks
from adapter.agent.base_agent import BaseAgent
from adapter.conversation.session_steps import AskModel, Finished, RunTools
from adapter.core.events import ToolResult
from adapter.tools.operations.permissions import Approver

if TYPE_CHECKING:
    from adapter.backends.chat_client import Chunk


class Agent(BaseAgent[ChatModel, Approver, Callable[[AgentEvent], None]]):
    """Lets a model work in a workspace until it has answered::

        with Agent("my-project", base_url="http://127.0.0.1:8080", approve="auto-edit") as agent:
            print(agent.send("Rename greeting() to hello()").content)
            print(agent.send("Also rename it in the tests").content)

    The agent closes the resources that it opened: use it in a ``with`` block, or call `close`.

    Args:
        workspace: A `Workspace`, a folder, or None. In a folder, the agent opens a `Workspace` with ``dialect``,
            ``approve``, ``tools`` and ``host``. With None, the agent has only ``tools``, and no folder.
        chat: The model. None selects the model named ``model`` on the server at ``base_url``, by default the first
            model on a server that answers on a default local port.
        format: Format of the prompt and the history; None detects it. Answers are parsed in any format.
        system: The system prompt; None generates it from dialect, format and ``style``.
        prompt: ``own`` describes the tools with the model's chat template, ``words`` with this package's system prompt.
            ``auto`` is ``own`` if a `ChatClient` supports it and neither ``style`` nor ``system`` is set (see
            `adapter.protocols.template_prompt`).
        observe: Called with every event. If it raises an exception, the run ends, and `run` raises the exception.
        constraint: Constrained decoding of calls (see `adapter.grammars.constraint_mode`), which requires a
            `ChatClient`.
        guide: Assistance for very small models (see `adapter.prompting.intent.guided_choice`): ``auto`` (if the server
            reports a small model), ``on`` or ``off``. A guided model calls at most one tool for each message, several
            times if the message lists several values. With ``constraint="required"`` and ``guide="on"`` it always calls
            one.
        guardrails: The checks that trigger a retry: ``on``, ``off`` or names (docs/reliability.md).
        retries: Maximum number of consecutive retries.
        steps: The steps of the task, as `Steps` or a mapping.
        max_tools: Maximum number of tools in the prompt. If there are more, the prompt has the tools most relevant to
            the first message, and a tool that searches all tools.

    Raises UsageError for unknown names, conflicting settings, a constraint with a chat that is not a `ChatClient`, and
    async functions, which require `AsyncAgent`. Raises TransportError if no model is found.
    """

    _connects_at_once = True
    _interrupts = (KeyboardInterrupt,)

    def run(self, task: str) -> Finished:
        """Work on ``task`` in a new conversation, until the model answers without a call, or a limit is reached.

        Raises TransportError when the server fails, after informing the observer. KeyboardInterrupt stops the model and
        ends the conversation as ``interrupted``. Raises UsageError if the agent is still working on another message.
        """
        with self._work_alone():
            return self._work(self._start(task))

    def send(self, message: str) -> Finished:
        """Send ``message`` in the current conversation and work on it as `run` does, even if the previous turn failed.
        The first message starts a conversation."""
        with self._work_alone():
            return self._work(self._continue(message))

    def close(self) -> None:
        """Close the workspace and the connection to the server, if the agent opened them itself."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self, query: AskModel) -> Finished:
        assert self._session is not None
        results: list[ToolResult] = []
        try:
            step: AskModel | RunTools | Finished = self._classify(query)
            while not isinstance(step, Finished):
                self._observe(step)
                if isinstance(step, AskModel):
                    step = self._take_next_step(self._ask(step))
                    continue
                results = []
                for call in step.calls:
                    results.append(self._run_call(call))
                    self._observe(results[-1])
                step = self._session.on_tool_results(results)
        except BaseException as error:
            if stopped := self._end_turn(error, results):
                self._observe(stopped)
            if stopped is None or not isinstance(error, KeyboardInterrupt):
                raise
            return stopped
        self._observe(step)
        return step

    def _classify(self, query: AskModel) -> AskModel:
        """Let a very small model classify the user's request if its wording is unclear. Called before the first
        ``query``."""
        question = self._build_classification()
        if question is None or self._client is None:
            return query
        messages, fields = question
        answer = "".join(chunk.text for chunk in self._client.stream(messages, extra=fields))
        return self._apply_classification(query, answer)

    def _ask(self, query: AskModel) -> AnswerReader:
        """Query the model once, and return its parsed answer."""
        answer, chunks = self._create_answer_reader(query), self._stream(query)
        with closing(chunks) if hasattr(chunks, "close") else nullcontext():  # type: ignore[type-var]
            for chunk in chunks:
                answer.feed(chunk)
                if answer.stop_flood():
                    break
        return answer

    def _stream(self, query: AskModel) -> Iterator[Chunk]:
        messages, fields = self.build_request(query)
        if fields and self._client is not None:
            return self._client.stream(messages, stop=self.format.stop_sequences, extra=fields)
        chunks: Iterator[Chunk] = iter_chunks(self._chat.stream, messages, self.format.stop_sequences, "__iter__")
        return chunks
