"""Run a scenario with an OpenAI client, or with `Agent`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from adapter.agent.agent import Agent
from adapter.agent.answer_reader import AgentEvent
from adapter.backends.chat_client import ChatClient, Chunk, Message
from adapter.backends.endpoint_discovery import Endpoint, detect_server_kind
from adapter.conversation.session_steps import REASONS, AskModel, Finished, SessionLimits
from adapter.core.callback_checks import require_result
from adapter.core.errors import ToolError, TransportError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.dialects.dialect import Dialect
from adapter.evaluation.scenario import ExecutedCall, Scenario, perform
from adapter.tools.function_tools import tool as as_tool
from adapter.tools.tool import Tool

if TYPE_CHECKING:
    from openai import OpenAI

MAX_TURNS = 14
"""Maximum number of answers in a run. The longest scenario needs eight."""
NO_TOOLS = Dialect("none", "Only the tools of the scenario", ())


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters of an evaluation. ``seed`` is the seed of the first run; each further run adds 1."""

    temperature: float = 0.0
    max_tokens: int = 512
    seed: int = 1

    def build_fields(self, number: int) -> JsonObject:
        """Return the request fields with the sampling parameters of run ``number``. The first run has number 0."""
        return {"temperature": self.temperature, "max_tokens": self.max_tokens, "seed": self.seed + number}


@dataclass(slots=True)
class EvalRun:
    """One run of a scenario: the conversation, the answer, the costs, and a fault if the run failed."""

    scenario: str
    kind: str
    way: str
    """Name of the tool-calling method."""
    number: int
    fault: str = ""
    """The reason why the run failed, or "" if it succeeded."""
    answer: str = ""
    turns: int = 0
    """Number of answers."""
    calls: int = 0
    refused: int = 0
    """Number of calls that the scenario refused."""
    prompt_tokens: int = 0
    written_tokens: int = 0
    seconds: float = 0.0
    messages: list[JsonObject] = field(default_factory=list)
    """The conversation."""

    @property
    def done(self) -> bool:
        return not self.fault


class _NoAnswer(Exception):
    """Raised if the server sends no valid completion."""


class Harness(Protocol):
    """A tool-calling method that runs scenarios."""

    @property
    def name(self) -> str: ...

    def run(self, scenario: Scenario, number: int, check_time: Callable[[], None]) -> EvalRun:
        """Run ``scenario`` once. Raises TransportError if the server is unreachable.

        ``check_time`` is called before each request, and raises an exception if the time limit is reached.
        """
        ...


@dataclass(frozen=True)
class SdkHarness:
    """Runs scenarios with the usual loop of an OpenAI client.

    The loop requests an answer and executes its calls, until an answer has no calls. ``model`` is the model's name, or
    returns the name for a scenario and run number.
    """

    name: str
    client: OpenAI
    model: str | Callable[[Scenario, int], str]
    sampling: Sampling = Sampling()
    max_turns: int = MAX_TURNS
    extra: Callable[[Scenario], JsonObject] = lambda _scenario: {}
    """Returns a scenario's additional request fields, which OpenAI's API does not define."""

    def run(self, scenario: Scenario, number: int, check_time: Callable[[], None]) -> EvalRun:
        from openai import APIConnectionError, APIError, APIStatusError

        world, executed = scenario.world(), list[ExecutedCall]()
        run = EvalRun(scenario.name, scenario.kind, self.name, number)
        model = self.model if isinstance(self.model, str) else self.model(scenario, number)
        run.messages = scenario.messages
        began = time.monotonic()
        try:
            while (message := self._request_message(scenario, model, number, run, check_time)) and message.get(
                "tool_calls"
            ):
                run.messages.append(message)
                for call in message["tool_calls"]:
                    executed.append(perform(scenario, world, call["function"]["name"], call["function"]["arguments"]))
                    run.messages.append({"role": "tool", "tool_call_id": call["id"], "content": executed[-1].result})
        except APIStatusError as error:
            if error.status_code in (401, 403, 404):
                raise TransportError(
                    f"the server refused the request ({error.status_code}): {error.message}"
                ) from error
            message, run.fault = {}, f"the server failed ({error.status_code}): {error.message[:300]}"
        except APIConnectionError as error:
            raise TransportError(f"the server at {self.client.base_url} stopped answering: {error}") from error
        except APIError as error:
            message, run.fault = {}, f"the server failed: {error.message[:300]}"
        except _NoAnswer as error:
            message, run.fault = {}, str(error)
        if message is None:
            run.fault = f"not completed after {self.max_turns} answers"
        elif not run.fault:
            run.messages.append(message)
            run.answer = str(message.get("content") or "")
        return score_run(run, scenario, world, executed, began)

    def _request_message(
        self, scenario: Scenario, model: str, number: int, run: EvalRun, check_time: Callable[[], None]
    ) -> JsonObject | None:
        """Request the model's next message, or return None if ``max_turns`` answers have already been requested."""
        if run.turns >= self.max_turns:
            return None
        check_time()
        run.turns += 1
        body: dict[str, Any] = {
            "model": model, "messages": run.messages, "tools": scenario.tools, **self.sampling.build_fields(number),
            "extra_body": self.extra(scenario) or None,
        }  # fmt: skip
        completion = self.client.chat.completions.create(**body)
        if not getattr(completion, "choices", None):  # the SDK does not validate responses
            raise _NoAnswer(f"the server sent no completion: {str(completion)[:200]!r}")
        _add_usage(run, completion.usage)
        message: JsonObject = completion.choices[0].message.model_dump(include={"content", "tool_calls"})
        return {"role": "assistant", **message} if message.get("tool_calls") else _remove_calls(message)


def _remove_calls(message: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": message.get("content") or ""}


def _add_usage(run: EvalRun, usage: Any) -> None:
    if usage is not None:
        run.prompt_tokens += usage.prompt_tokens
        run.written_tokens += usage.completion_tokens


class _SampledChat(ChatClient):
    """A client that adds the sampling parameters to every request, and calls ``check_time`` before it."""

    def __init__(self, endpoint: Endpoint, model: str, fields: JsonObject, check_time: Callable[[], None]) -> None:
        super().__init__(endpoint, model)
        self._fields, self._check_time = fields, check_time

    def build_body(self, messages: Sequence[Message], fields: JsonObject) -> JsonObject:
        self._check_time()
        return super().build_body(messages, {**self._fields, **fields})


@dataclass(frozen=True)
class AgentHarness:
    """Runs scenarios with an `Agent` that has only the scenario's tools.

    ``model`` is the model's name, or returns the name for a scenario and run number.
    """

    name: str
    endpoint: Endpoint
    model: str | Callable[[Scenario, int], str]
    sampling: Sampling = Sampling()
    max_turns: int = MAX_TURNS
    options: Callable[[Scenario], JsonObject] = lambda _scenario: {}
    """Returns a scenario's additional arguments for the `Agent`."""

    def run(self, scenario: Scenario, number: int, check_time: Callable[[], None]) -> EvalRun:
        world, executed = scenario.world(), list[ExecutedCall]()
        run = EvalRun(scenario.name, scenario.kind, self.name, number)
        model = self.model if isinstance(self.model, str) else self.model(scenario, number)

        def observe(event: AgentEvent) -> None:
            run.turns += isinstance(event, AskModel)
            if isinstance(event, Chunk) and event.usage is not None:
                run.prompt_tokens += event.usage.prompt
                run.written_tokens += event.usage.written

        def perform_one(name: str, /, **arguments: Json) -> str:
            executed.append(perform(scenario, world, name, arguments))
            if not executed[-1].ok:
                raise ToolError(executed[-1].result.removeprefix("error: "))
            return executed[-1].result

        tools = [_make_tool(each, perform_one) for each in scenario.tools]
        began = time.monotonic()
        with (
            tempfile.TemporaryDirectory() as folder,
            _SampledChat(self.endpoint, model, self.sampling.build_fields(number), check_time) as chat,
            Agent(folder, chat, dialect=NO_TOOLS, approve="yolo", tools=tools, observe=observe,
                  limits=SessionLimits(turns=self.max_turns), **self.options(scenario)) as agent,
        ):  # fmt: skip
            try:
                ended = agent.run(f"{scenario.system}\n\n{scenario.user}")
            except TransportError as error:
                if detect_server_kind(self.endpoint.base_url) is None:
                    raise
                ended = Finished("failed", str(error))
            run.messages = [dict(message) for message in agent.messages]
        if ended.reason == "interrupted":
            raise KeyboardInterrupt
        run.answer = ended.content
        if ended.reason not in ("answered", "exited", "finished"):
            run.fault = REASONS[ended.reason]
        return score_run(run, scenario, world, executed, began)


def _make_tool(definition: JsonObject, perform_one: Callable[..., str]) -> Tool:
    return as_tool(definition, partial(perform_one, definition["function"]["name"]), effect="read")


def score_run(
    run: EvalRun, scenario: Scenario, world: object, executed: Sequence[ExecutedCall], began: float
) -> EvalRun:
    """Set the duration, the numbers of calls and the fault of a finished run, and return the run.

    ``began`` is the start of the run, from `time.monotonic`. Raises UsageError if the scenario's check raises an
    exception.
    """
    run.seconds = round(time.monotonic() - began, 4)
    run.calls, run.refused = len(executed), sum(not call.ok for call in executed)
    try:
        fault = run.fault or scenario.check(world, executed, run.answer)
    except Exception as error:  # this is user code
        raise UsageError(f"the check of {scenario.name!r} raised {type(error).__name__}: {error}") from error
    require_result(scenario.check, f"the check of {scenario.name!r}", fault, str, "a string, empty for success")
    run.fault = fault
    return run
