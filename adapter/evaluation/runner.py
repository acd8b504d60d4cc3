"""One scenario, once, by a way of asking the model: through an OpenAI client, or by our agent."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from adapter.agent.agent import Agent
from adapter.agent.response_reader import AgentEvent
from adapter.backends.chat_client import ChatClient, Chunk, Message
from adapter.backends.endpoint_discovery import Endpoint, detect_server_kind
from adapter.conversation.session import REASONS, AskModel, Finished, SessionLimits
from adapter.core.callbacks import require_answer
from adapter.core.errors import ToolError, TransportError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.dialects.toolset import Dialect
from adapter.evaluation.scenario import ExecutedCall, Scenario, perform
from adapter.tools.function_tools import tool as as_tool
from adapter.tools.tool import Tool

if TYPE_CHECKING:
    from openai import OpenAI

MAX_TURNS = 14
"""Answers of the model before a run counts as lost; the longest scenario needs eight."""
NO_TOOLS = Dialect("none", "No tools but those of the scenario", ())


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the model writes. ``seed`` is that of the first run; each run has one of its own."""

    temperature: float = 0.0
    max_tokens: int = 512
    seed: int = 1

    def fields(self, number: int) -> JsonObject:
        """Of the run with this number, from 0."""
        return {"temperature": self.temperature, "max_tokens": self.max_tokens, "seed": self.seed + number}


@dataclass(slots=True)
class EvalRun:
    """How a run came out. ``fault``: why it is not done, nothing when it is. ``turns``: answers of the model that the
    loop saw. ``first_s``: seconds until anything of an answer was there, for the slowest answer, where it was streamed.
    ``messages``: the conversation."""

    scenario: str
    kind: str
    way: str
    number: int
    fault: str = ""
    answer: str = ""
    turns: int = 0
    calls: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    written_tokens: int = 0
    seconds: float = 0.0
    first_s: float | None = None
    messages: list[JsonObject] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return not self.fault


class _NoAnswer(Exception):
    """What came is no completion."""


class Harness(Protocol):
    """How a model is asked. Raises TransportError where the server is not there any more."""

    @property
    def name(self) -> str: ...

    def run(self, scenario: Scenario, number: int, go_on: Callable[[], None]) -> EvalRun:
        """``go_on`` is called before each question, and raises where there is no time left."""
        ...


@dataclass(frozen=True)
class SdkHarness:
    """The plain loop of an OpenAI client: ask, run the calls, until there is none. ``streams``: ask for streams."""

    name: str
    client: OpenAI
    model: str | Callable[[Scenario, int], str]
    sampling: Sampling = Sampling()
    streams: bool = False
    max_turns: int = MAX_TURNS
    extra: Callable[[Scenario], JsonObject] = lambda _scenario: {}
    """Further fields of each request, which are none of OpenAI's."""

    def run(self, scenario: Scenario, number: int, go_on: Callable[[], None]) -> EvalRun:
        from openai import APIConnectionError, APIError, APIStatusError

        world, made, run = (
            scenario.world(),
            list[ExecutedCall](),
            EvalRun(scenario.name, scenario.kind, self.name, number),
        )
        model = self.model if isinstance(self.model, str) else self.model(scenario, number)
        run.messages = scenario.messages
        began = time.monotonic()
        try:
            while (message := self._answer(scenario, model, number, run, go_on)) and message.get("tool_calls"):
                run.messages.append(message)
                for call in message["tool_calls"]:
                    made.append(perform(scenario, world, call["function"]["name"], call["function"]["arguments"]))
                    run.messages.append({"role": "tool", "tool_call_id": call["id"], "content": made[-1].result})
        except APIStatusError as error:
            if error.status_code in (401, 403, 404):
                raise TransportError(
                    f"the server refuses to be asked ({error.status_code}): {error.message}"
                ) from error
            message, run.fault = {}, f"the server failed ({error.status_code}): {error.message[:300]}"
        except APIConnectionError as error:
            raise TransportError(f"the server at {self.client.base_url} does not answer any more: {error}") from error
        except APIError as error:
            message, run.fault = {}, f"the server failed: {error.message[:300]}"
        except _NoAnswer as error:
            message, run.fault = {}, str(error)
        if message is None:
            run.fault = f"not done after {self.max_turns} answers"
        elif not run.fault:
            run.messages.append(message)
            run.answer = str(message.get("content") or "")
        return score_run(run, scenario, world, made, began)

    def _answer(
        self, scenario: Scenario, model: str, number: int, run: EvalRun, go_on: Callable[[], None]
    ) -> JsonObject | None:
        """The next message of the model; None where it had its turns."""
        if run.turns >= self.max_turns:
            return None
        go_on()
        run.turns += 1
        body: dict[str, Any] = {
            "model": model, "messages": run.messages, "tools": scenario.tools, **self.sampling.fields(number),
            "extra_body": self.extra(scenario) or None,
        }  # fmt: skip
        create = self.client.chat.completions.create
        if self.streams:
            began = time.monotonic()
            return _folded(create(**body, stream=True, stream_options={"include_usage": True}), began, run)
        completion = create(**body)
        if not getattr(completion, "choices", None):  # the SDK hands on whatever came
            raise _NoAnswer(f"the server sent no answer: {str(completion)[:200]!r}")
        _count(run, completion.usage)
        message: JsonObject = completion.choices[0].message.model_dump(include={"content", "tool_calls"})
        return {"role": "assistant", **message} if message.get("tool_calls") else _without_calls(message)


def _without_calls(message: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": message.get("content") or ""}


def _folded(chunks: Any, began: float, run: EvalRun) -> JsonObject:
    """The message that a stream makes."""
    content, calls = "", dict[int, JsonObject]()
    first_s: float | None = None
    for chunk in chunks:
        _count(run, chunk.usage)
        for choice in chunk.choices:
            if first_s is None and (choice.delta.content or choice.delta.tool_calls):
                first_s = time.monotonic() - began
            content += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                made = calls.setdefault(piece.index, {"name": "", "arguments": ""})
                made["id"] = piece.id or made.get("id", f"call_{piece.index}")
                if piece.function:
                    made["name"] += piece.function.name or ""
                    made["arguments"] += piece.function.arguments or ""
    run.first_s = max(first_s or 0.0, run.first_s or 0.0)
    if not calls:
        return _without_calls({"content": content})
    made_calls = [{"id": each.pop("id"), "type": "function", "function": each} for _, each in sorted(calls.items())]
    return {"role": "assistant", "content": content or None, "tool_calls": made_calls}


def _count(run: EvalRun, usage: Any) -> None:
    if usage is not None:
        run.prompt_tokens += usage.prompt_tokens
        run.written_tokens += usage.completion_tokens


class _Sampled(ChatClient):
    """A model that is asked with the same sampling each time."""

    def __init__(self, endpoint: Endpoint, model: str, fields: JsonObject, go_on: Callable[[], None]) -> None:
        super().__init__(endpoint, model)
        self._fields, self._go_on = fields, go_on

    def body(self, messages: Sequence[Message], fields: JsonObject) -> JsonObject:
        self._go_on()
        return super().body(messages, {**self._fields, **fields})


@dataclass(frozen=True)
class AgentHarness:
    """Our `Agent`, with nothing but the tools of the scenario."""

    name: str
    endpoint: Endpoint
    model: str | Callable[[Scenario, int], str]
    sampling: Sampling = Sampling()
    max_turns: int = MAX_TURNS
    options: Callable[[Scenario], JsonObject] = lambda _scenario: {}
    """Further ones of the `Agent`."""

    def run(self, scenario: Scenario, number: int, go_on: Callable[[], None]) -> EvalRun:
        world, made, run = (
            scenario.world(),
            list[ExecutedCall](),
            EvalRun(scenario.name, scenario.kind, self.name, number),
        )
        model = self.model if isinstance(self.model, str) else self.model(scenario, number)

        def observe(happening: AgentEvent) -> None:
            run.turns += isinstance(happening, AskModel)
            if isinstance(happening, Chunk) and happening.usage is not None:
                run.prompt_tokens += happening.usage.prompt
                run.written_tokens += happening.usage.written

        def perform_one(name: str, /, **arguments: Json) -> str:
            made.append(perform(scenario, world, name, arguments))
            if not made[-1].ok:
                raise ToolError(made[-1].result.removeprefix("error: "))
            return made[-1].result

        tools = [_own_tool(each, perform_one) for each in scenario.tools]
        began = time.monotonic()
        with (
            tempfile.TemporaryDirectory() as folder,
            _Sampled(self.endpoint, model, self.sampling.fields(number), go_on) as chat,
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
        return score_run(run, scenario, world, made, began)


def _own_tool(definition: JsonObject, perform_one: Callable[..., str]) -> Tool:
    return as_tool(definition, partial(perform_one, definition["function"]["name"]), effect="read")


def score_run(run: EvalRun, scenario: Scenario, world: object, made: Sequence[ExecutedCall], began: float) -> EvalRun:
    """``run`` with what came of it. ``began``: by `time.monotonic`."""
    run.seconds = round(time.monotonic() - began, 4)
    run.calls, run.refused = len(made), sum(not one.ok for one in made)
    try:
        fault = run.fault or scenario.check(world, made, run.answer)
    except Exception as error:  # a program of the user's
        raise UsageError(f"the check of {scenario.name!r} failed: {error!r}") from error
    require_answer(scenario.check, f"the check of {scenario.name!r}", fault, str, "a text, empty if all is right")
    run.fault = fault
    return run
