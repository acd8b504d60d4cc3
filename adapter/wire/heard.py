"""What the model wrote in one answer, for whoever records exchanges or looks on; nothing is kept where nobody does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from adapter.values.events import Event, JsonObject, ReasoningDelta
from adapter.wire.memory import Call
from adapter.wire.recorded import Exchange, RecordedCall
from adapter.wire.translated import Request
from adapter.wire.usage import Usage


class Heard:
    """`hear` takes the pieces as they come, `take` what they were read as, `tell` what the client has of them; `close`
    says that no more comes. ``retry``: answers of this request that were asked again before."""

    def __init__(self, request: Request, retry: int = 0) -> None:
        self.is_told = False
        self.retry = retry
        self._request = request
        self._is_heard = request.observe is not None or request.listen is not None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._began = request.clock() if self._is_heard else 0.0
        self._figures: JsonObject = {}
        self._outcome: JsonObject = {}
        self._is_over = False
        self._listener = request.listen(self._asked) if request.listen is not None else None

    def hear(self, text: str = "", reasoning: str = "") -> None:
        if not self._is_heard:
            return
        if "first_s" not in self._figures:
            self._figures["first_s"] = self._since()
        self._text.append(text)
        self._reasoning.append(reasoning)
        if reasoning:
            self.take([ReasoningDelta(reasoning, "")])

    def take(self, events: Sequence[Event]) -> None:
        if self._listener is not None:
            self._listener.take(events)

    def count(self, usage: Usage) -> None:
        if self._is_heard:
            self._figures |= {"prompt_tokens": usage.prompt, "written_tokens": usage.written}

    def tell(self, calls: Sequence[Call], finish_reason: str | None, guardrail: str) -> None:
        """``calls``: those of the answer that the client has. ``finish_reason``: None where it was asked again, because
        of ``guardrail`` where one found a fault."""
        self.is_told = True
        if self._is_heard:
            self._figures["duration_s"] = self._since()
            self._outcome = {
                "finish_reason": finish_reason,
                "calls": tuple(RecordedCall(name=name, arguments=arguments) for _, name, arguments in calls),
                "asked_again": finish_reason is None,
                "guardrail": guardrail,
            }

    def close(self, why: str = "") -> None:
        """``why``: there was no answer."""
        if not self._is_heard or self._is_over:
            return
        self._is_over = True
        exchange = self._exchange() if self.is_told else None
        if exchange is not None and self._request.observe is not None:
            self._request.observe(exchange)
        if self._listener is not None:
            self._listener.end(exchange, why)

    def _exchange(self) -> Exchange:
        said = {"text": "".join(self._text), "reasoning": "".join(self._reasoning)}
        return self._asked.model_copy(update=said | self._figures | self._outcome)

    @cached_property
    def _asked(self) -> Exchange:
        """The exchange before anything is answered."""
        request = self._request
        return Exchange(
            model=str(request.body.get("model") or ""),
            format=request.format,
            policy=request.policy,
            generation_prompt=request.generation_prompt,
            sent=request.body,
            messages=None if request.messages == request.body.get("messages") else tuple(request.messages or ()),
            tools=tuple(tool.to_openai() for tool in request.tools.values()),
            is_restricted=request.is_restricted,
            is_parallel=request.parallel,
            has_reply=request.reply is not None,
            retry=self.retry,
            text="",
        )

    def _since(self) -> float:
        return round(self._request.clock() - self._began, 4)
