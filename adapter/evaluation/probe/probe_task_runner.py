"""Run a probe's task with a tool-calling setup on a real server. `adapter serve` would translate the answer equally."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from adapter.backends.chat_client import ChatClient, Chunk, Usage, build_constraint_fields
from adapter.core.events import Json, JsonObject
from adapter.evaluation.probe.tasks import ProbeCall, ProbeTask, is_valid
from adapter.prompting.calling_setup import CallingSetup
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.openai_chat_response import StreamedCompletion
from adapter.protocols.openai_errors import is_error
from adapter.protocols.recorded_exchange import Observation, RecordedExchange
from adapter.protocols.template_prompt import TemplatePrompt
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import ConstraintSettings, PromptSettings, TranslationOptions

MAX_TOKENS = 160
"""Maximum number of tokens in an answer. In the most verbose format, the longest correct answer has about 100."""

TEMPERATURE, SEED = 0.0, 1
"""Sampling settings of every request."""

MAX_STRING = 120
"""Maximum length of a string in a constrained call. Without a limit, small models never end a string."""


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """A model's answer to a task, with its checks and costs."""

    task: ProbeTask
    valid: bool
    """True if every call was valid, and the text contains no failed attempt at a call."""
    right: bool
    """True if the answer is valid, and has the expected calls or, for a task without calls, text."""
    answer: str
    """The content and calls of the answer, as a client would have received them."""
    usage: Usage
    seconds: float
    named: bool = False
    """True if the answer is valid, and calls the expected tools with any arguments."""
    needless: bool = False
    """True if the answer has a call although the task needs none."""
    written: str = ""
    """The model's unchanged text before any retry. Calls that the server parsed are missing from it."""


class TaskRunner:
    """Runs tasks on the server of ``client``.

    ``template`` renders the model's chat template. ``observe`` is called with each exchange. The exchange's field
    ``conversation`` contains the names of the setup and the task.
    """

    def __init__(
        self, client: ChatClient, max_tokens: int = MAX_TOKENS, template: TemplatePrompt | None = None,
        observe: Callable[[RecordedExchange], object] | None = None,
    ) -> None:  # fmt: skip
        self._client, self._max_tokens, self._template, self._observe = client, max_tokens, template, observe

    def run(self, task: ProbeTask, setup: CallingSetup) -> TaskOutcome:
        """Run ``task`` with ``setup``. Raises TransportError if the server fails or refuses the request."""
        kind = self._client.endpoint.kind
        enforce = partial(build_constraint_fields, kind, max_string=MAX_STRING)
        observe = partial(self._report, f"{setup.name}: {task.name}") if self._observe else None
        options = TranslationOptions(
            PromptSettings(
                format=setup.format,
                style=None if setup.uses_template else setup.style,
                template_prompt=self._template if setup.uses_template else None,
            ),
            ConstraintSettings(mode=setup.constraint, enforce=enforce, waits_for_calls=kind == "llama.cpp"),
            retry_policy=RetryPolicy(clock=time.monotonic),
            observation=Observation(observe),
            native=setup.native,
        )
        body: JsonObject = {"messages": list(task.messages), "tools": list(task.tools), "parallel_tool_calls": True}
        first = translate_chat_request(body, options)
        request: TranslatedRequest | None = first
        answer, usage, chunks, written = StreamedCompletion(first), Usage(0), list[JsonObject](), ""
        began = time.monotonic()
        while request is not None:
            for chunk in self._stream(request):
                usage = chunk.usage or usage
                written += chunk.text if request is first else ""
                if chunk.raw is not None:
                    chunks += answer.feed(chunk.raw)
            request = answer.begin_next_request()
        chunks += answer.close()
        seconds = time.monotonic() - began
        content, calls, is_decoded = _collect_chunks(chunks)
        valid = is_decoded and not any(map(is_error, chunks)) and all(is_valid(call, task.tools) for call in calls)
        valid = valid and not _contains_attempt(content, task.tools)
        text = "\n".join([content.strip(), *(f"{call.name}({json.dumps(call.arguments)})" for call in calls)]).strip()
        right = valid and task.is_right(calls, content)
        named, needless = valid and task.calls_expected_tools(calls), bool(calls) and not task.expected
        return TaskOutcome(task, valid, right, text, usage, seconds, named, needless, written)

    def _report(self, conversation: str, exchange: RecordedExchange) -> None:
        assert self._observe is not None
        self._observe(exchange.model_copy(update={"conversation": conversation, "model": self._client.model}))

    def _stream(self, request: TranslatedRequest) -> Iterator[Chunk]:
        extra = {key: value for key, value in request.body.items() if key not in ("messages", "stop")}
        return self._client.stream(
            request.body["messages"], stop=request.body.get("stop", ()),
            max_tokens=self._max_tokens, temperature=TEMPERATURE, seed=SEED, extra=extra,
        )  # fmt: skip


def _collect_chunks(chunks: Iterable[JsonObject]) -> tuple[str, list[ProbeCall], bool]:
    """Combine streamed chunks into the content and the calls, and return whether all arguments were JSON objects.

    Calls with other arguments are omitted.
    """
    content = ""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    for chunk in chunks:
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            content += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                index, function = call["index"], call["function"]
                names.setdefault(index, function.get("name", ""))
                arguments[index] = arguments.get(index, "") + (function.get("arguments") or "")
    decoded = [_decode(arguments[index]) for index in names]
    calls = [ProbeCall(name, each) for name, each in zip(names.values(), decoded, strict=True) if each is not None]
    return content, calls, None not in decoded


def _decode(arguments: str) -> JsonObject | None:
    try:
        value: Json = json.loads(arguments or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _contains_attempt(content: str, tools: Sequence[JsonObject]) -> bool:
    """Return whether the text contains a quoted tool name and a brace, and so looks like a failed call."""
    return any(f'"{tool["function"]["name"]}"' in content and "{" in content for tool in tools)
