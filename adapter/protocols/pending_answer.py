"""Record a model's answer while it arrives, for guardrails, recordings and live views."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from adapter.conversation.guardrails.candidate_answer import POSSIBLY_INTENDED, CandidateAnswer, starts_with_tool_result
from adapter.conversation.guardrails.verdicts import DroppedCall
from adapter.core.events import (
    ContentReclassified,
    Event,
    InvalidToolCall,
    JsonObject,
    MarkupDelta,
    ReasoningDelta,
    ReasoningReclassified,
    RejectedCall,
    TextDelta,
    ToolCall,
)
from adapter.core.text.string_builder import StringBuilder
from adapter.grammars.reply_tool import ReplyParser
from adapter.parsing.parser import Parser
from adapter.protocols.conversation_cache import Call
from adapter.protocols.recorded_exchange import RecordedCall, RecordedDrop, RecordedExchange
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.usage import Usage


class PendingAnswer:
    """One answer of the model while it arrives. Its text can be held back until guardrails accept the answer.

    ``retry`` is the number of attempts before this answer. While ``holds_text`` is True, no text is sent to the client.
    Data for recordings is collected only if the request is observed.
    """

    def __init__(self, request: TranslatedRequest, retry: int = 0) -> None:
        self.request, self.retry = request, retry
        self.parser: Parser | ReplyParser | None = None
        self.holds_text = False
        self.reasoned = StringBuilder()  # reasoning that the parser found
        self.call_keys: set[str] = set()
        self.has_repeated_call = False
        self.guardrail = ""
        """The guardrail that rejected this answer."""
        self.has_outcome = False
        self._held: list[str] = []
        self._raw, self._content, self._reasoning = StringBuilder(), StringBuilder(), StringBuilder()
        self._server_reasoning: list[str] = []
        self._rejected: list[RejectedCall] = []
        self._has_reasoned = self._has_invented = self._is_closed = False
        self._facts: JsonObject = {}
        self._calls_s: list[float] = []
        observation = request.observation
        self._is_observed = observation.is_active
        self._began = request.clock() if self._is_observed else 0.0
        self._listener = observation.listen(self._request_record) if observation.listen is not None else None

    def get_unfinished_text(self) -> tuple[str, str]:
        """Return the model's text so far, and the reasoning separated from it by the server."""
        return str(self._raw), "".join(self._server_reasoning)

    def record_text(self, raw: str) -> None:
        """Record the model's text before it is parsed."""
        self._raw.add(raw)
        if self._is_observed:
            self._begin()

    def record_reasoning(self, text: str) -> None:
        """Record reasoning separated from the text by the server."""
        self._has_reasoned = True
        self._server_reasoning.append(text)
        if self._is_observed:
            self._begin()
            self._facts["reasoning_s"] = self._measure_elapsed_s()
        if self._listener is not None:
            self._listener.receive([ReasoningDelta(text, "")])

    def receive_text(self, events: Sequence[Event], text: str) -> None:
        """Receive one `TextDelta`, whose text is ``text``. This is faster than `receive`."""
        self._content.add(text)
        if self._listener is not None:
            self._listener.receive(events)

    def receive(self, events: Sequence[Event]) -> None:
        """Record the parser's events."""
        for event in events:
            match event:
                case TextDelta(text=text):
                    self._content.add(text)
                case RejectedCall(reason=reason) if reason in POSSIBLY_INTENDED:
                    self._rejected.append(event)
                case MarkupDelta():
                    self._has_invented = self._has_invented or starts_with_tool_result(event)
                case ContentReclassified():
                    self._content = StringBuilder()
                    self._has_reasoned = True
                case ReasoningDelta(text=text):
                    self._reasoning.add(text)
                    self._has_reasoned = True
                case ReasoningReclassified():
                    self._content, self._reasoning = (
                        StringBuilder(str(self._reasoning), str(self._content)),
                        StringBuilder(),
                    )
                case _:
                    pass
        if self._is_observed:
            self._record_times(events)
        if self._listener is not None:
            self._listener.receive(events)

    def count(self, usage: Usage) -> None:
        self._facts |= {"prompt_tokens": usage.prompt, "written_tokens": usage.written}

    def add_content(self, text: str) -> None:
        """Add text that becomes content although it was parsed as something else."""
        self._content.add(text)

    def hold(self, text: str) -> None:
        self._held.append(text)

    def release(self) -> str:
        """Return the text that was held back, and stop holding text back."""
        held, self._held = "".join(self._held), []
        self.holds_text = False
        return held

    def build_candidate(
        self, event: ToolCall | InvalidToolCall | None = None, rest: Sequence[Event] = ()
    ) -> CandidateAnswer:
        """Return the answer up to and including ``event``, for guardrails. ``rest`` has later events. Their text is
        left out although it was recorded."""
        content = str(self._content)
        end = max(0, len(content) - sum(len(each.text) for each in rest if isinstance(each, TextDelta)))
        raw = str(self._raw) if self._rejected else ""
        return CandidateAnswer(
            content[:end],
            (event,) if isinstance(event, ToolCall) else (),
            (event,) if isinstance(event, InvalidToolCall) else (),
            tuple(raw[each.start : each.end] for each in self._rejected),
            self._has_reasoned,
            self._has_invented,
        )

    def build_written_text(self, event: ToolCall | InvalidToolCall | None = None) -> str:
        """Return the content and ``event`` as text for the model, without reasoning and markup."""
        content = str(self._content)
        return f"{content.rstrip()}\n{event.raw}".lstrip() if event is not None else content

    def record_outcome(
        self, calls: Sequence[Call], finish_reason: str | None, dropped: Sequence[DroppedCall] = ()
    ) -> None:
        """Record the ``calls`` sent to the client and the ``dropped`` ones. A retry has no ``finish_reason``."""
        self.has_outcome = True
        if self._is_observed:
            self._facts |= {
                "duration_s": self._measure_elapsed_s(),
                "finish_reason": finish_reason,
                "calls": tuple(RecordedCall(name=name, arguments=arguments) for _, name, arguments in calls),
                "dropped": tuple(RecordedDrop(name=each.name, guardrail=each.guardrail) for each in dropped),
                "asked_again": finish_reason is None,
                "guardrail": self.guardrail,
            }

    def close(self, why: str = "") -> None:
        """Report the exchange to its observers. ``why`` is the reason if there was no answer. Later calls do
        nothing."""
        if not self._is_observed or self._is_closed:
            return
        self._is_closed = True
        exchange = None
        if self.has_outcome:
            texts = {"text": str(self._raw), "reasoning": "".join(self._server_reasoning)}
            exchange = self._request_record.model_copy(update=texts | {"calls_s": tuple(self._calls_s)} | self._facts)
            if self.request.observation.observe is not None:
                self.request.observation.observe(exchange)
        if self._listener is not None:
            self._listener.end(exchange, why)

    @cached_property
    def _request_record(self) -> RecordedExchange:
        """The request of the exchange, to be completed with the answer."""
        request, parsing, messages = self.request, self.request.parsing, self.request.client.messages
        return RecordedExchange(
            model=str(request.body.get("model") or ""),
            format=parsing.format,
            policy=parsing.policy,
            generation_prompt=parsing.generation_prompt,
            sent=request.body,
            messages=None if messages == request.body.get("messages") else tuple(messages or ()),
            tools=tuple(tool.to_openai() for tool in request.tools.values()),
            is_restricted=parsing.is_restricted,
            is_parallel=request.client.parallel,
            has_reply=parsing.reply is not None,
            retry=self.retry,
            text="",
        )

    def _record_times(self, events: Sequence[Event]) -> None:
        """Record when reasoning and calls end."""
        for event in events:
            match event:
                case ReasoningDelta() | ContentReclassified():
                    self._facts["reasoning_s"] = self._measure_elapsed_s()
                case ReasoningReclassified():
                    self._facts.pop("reasoning_s", None)
                case ToolCall():
                    self._calls_s.append(self._measure_elapsed_s())
                case _:
                    pass

    def _begin(self) -> None:
        if "first_s" not in self._facts:
            self._facts["first_s"] = self._measure_elapsed_s()

    def _measure_elapsed_s(self) -> float:
        return round(self.request.clock() - self._began, 4)
