"""What the model wrote in one answer, kept for whoever records exchanges, and nothing where nobody does."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.wire.memory import Call
from adapter.wire.recorded import Exchange, RecordedCall
from adapter.wire.translated import Request


class Heard:
    """`hear` takes the pieces as they come, `tell` says that the answer is over."""

    def __init__(self, request: Request) -> None:
        self.is_told = False
        self._request = request
        self._text: list[str] = []
        self._reasoning: list[str] = []

    def hear(self, text: str = "", reasoning: str = "") -> None:
        if self._request.observe is not None:
            self._text.append(text)
            self._reasoning.append(reasoning)

    def tell(self, calls: Sequence[Call], finish_reason: str | None, guardrail: str) -> None:
        """``calls``: those of the answer that the client has. ``finish_reason``: None where it was asked again, because
        of ``guardrail`` where one found a fault."""
        request, self.is_told = self._request, True
        if request.observe is None:
            return
        exchange = Exchange(
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
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            finish_reason=finish_reason,
            calls=tuple(RecordedCall(name=name, arguments=arguments) for _, name, arguments in calls),
            asked_again=finish_reason is None,
            guardrail=guardrail,
        )
        request.observe(exchange)
