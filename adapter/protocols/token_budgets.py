"""Limit the tokens of a conversation and of an answer's reasoning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from adapter.conversation.client_conversation_trimming import (
    FittedMessages,
    compute_prompt_limit,
    count_json_tokens,
    fit_messages,
)
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject

SHORTENED = "adapter-shortened"
"""Response header that reports how many tool results, turns and messages were shortened."""

AUTO: Literal["auto"] = "auto"
"""Context budget that means the context size of the model server, if the server reports one."""
MIN_CONTEXT = 256
"""Minimum context budget, in tokens. A smaller one has no room for a system prompt and an answer."""

ContextBudget: TypeAlias = int | Literal["auto"] | None


@dataclass(frozen=True, slots=True)
class Budgets:
    """Token budgets for a conversation."""

    context: ContextBudget = None
    """Maximum number of tokens of a prompt with its answer; longer conversations are shortened. None is no limit."""
    reasoning: int | None = None
    """Maximum number of tokens of reasoning in an answer; None is unlimited."""

    def override(self, other: Budgets | None) -> Budgets:
        """Return a copy in which the budgets set in ``other`` take precedence."""
        if other is None:
            return self
        context = self.context if other.context is None else other.context
        return Budgets(context, self.reasoning if other.reasoning is None else other.reasoning)

    def with_context_size(self, tokens: int | None) -> Budgets:
        """Replace `AUTO` with the context size of the model server, or with None if it reports none."""
        return replace(self, context=tokens) if self.context == AUTO else self

    def fit(self, messages: Json, rest: Json) -> FittedMessages:
        """Shorten ``messages`` so that they fit into the context budget together with ``rest``, the rest of the
        prompt."""
        if not isinstance(self.context, int):
            return FittedMessages(messages)
        return fit_messages(messages, compute_prompt_limit(self.context) - count_json_tokens(rest))

    def fit_body(self, body: JsonObject) -> tuple[JsonObject, str]:
        """Shorten the messages of an untranslated request. Return the request, and the value of the header `SHORTENED`
        ("" if nothing was cut)."""
        if not isinstance(self.context, int):
            return body, ""
        fitted = self.fit(body.get("messages"), body.get("tools"))
        return ({**body, "messages": fitted.messages}, fitted.summary) if fitted.summary else (body, "")


def validate_reasoning_budget(value: Json) -> int | None:
    """Return ``value``. Raises UsageError if it is not a valid reasoning budget."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise UsageError(f"reasoning_budget must be a number of tokens, 0 or more, got {value!r}")
    return value


def build_shortened_header(shortened: str) -> dict[str, str]:
    """Return the `SHORTENED` header, or no header if nothing was cut."""
    return {SHORTENED: shortened} if shortened else {}


def parse_context_budget(text: str | None) -> ContextBudget:
    """Parse the value of ``--context-budget``. Raises UsageError for an invalid value."""
    if text is None or text == "off":
        return None
    return AUTO if text == AUTO else validate_context_budget(int(text) if text.isdecimal() else text)


def validate_context_budget(value: Json) -> ContextBudget:
    """Return ``value``. Raises UsageError if it is not a valid context budget."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= MIN_CONTEXT
    if value is not None and value != AUTO and not is_number:
        raise UsageError(
            f"context_budget must be a number of tokens, at least {MIN_CONTEXT}, or 'auto' for the context size of the "
            f"model server, got {value!r}"
        )
    return value  # type: ignore[no-any-return]
