"""Define the steps of a conversation, its limits, and the reasons for its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapter.conversation.guardrails.guardrails import MAX_CALLS
from adapter.conversation.guardrails.verdicts import DroppedCall
from adapter.conversation.message_rendering import Message
from adapter.core.events import ToolCall

Reason: TypeAlias = Literal[
    "answered",
    "exited",
    "turns",
    "repetition",
    "unreadable",
    "stuck",
    "finished",
    "unsuccessful",
    "interrupted",
    "cut_off",
    "broken_off",
    "failed",
]
"""The reason why a conversation ended; see `REASONS`."""

REASONS: dict[str, str] = {
    "answered": "the model answered without calling a tool",
    "exited": "the model ended the run",
    "turns": "the limit of turns was reached",
    "repetition": "the model kept repeating the same call",
    "unreadable": "the model's calls could not be parsed, several times in a row",
    "stuck": "the model's answers made no progress",
    "finished": "the call was made; this model is limited to one call per request",
    "unsuccessful": "the call failed; this model is limited to one call per request",
    "interrupted": "stopped by the user",
    "cut_off": "the answer was truncated at the token limit",
    "broken_off": "the model server disconnected during the answer",
    "failed": "the model server failed",
}


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Limits of a conversation. Counts restart with each user message."""

    turns: int = 25
    """Maximum number of answers. A small task needs fewer than ten."""
    repetitions: int = 2
    """Maximum number of times that a call may be repeated if nothing changed in between. Further repetitions are
    refused."""
    refusals: int = 2
    """Maximum number of turns that have only calls refused as repetitions."""
    unreadable: int = 3
    """Maximum number of consecutive turns that have only invalid calls."""
    calls: int = MAX_CALLS
    """Maximum number of calls in one answer that are run. The ``too_many_calls`` guardrail drops further calls."""
    tool_turns: int | None = None
    """Maximum number of turns with calls; None for no limit. Use 1 for models that cannot decide whether a task is
    done.
    """
    context_tokens: int | None = None
    """Size of the server's context, in tokens. None disables trimming."""


@dataclass(frozen=True, slots=True)
class AskModel:
    """A step of the caller: query the model with ``messages``."""

    messages: tuple[Message, ...]
    number: int
    """Number of the query, from 1."""
    note: str = ""
    """Note for the user about messages that were shortened to fit the context."""
    again: str = ""
    """The guardrail that triggered a retry."""
    held_to: tuple[str, ...] = ()
    """If the server supports constraints, the answer must call one of these tools. Empty for no constraint."""
    in_words: bool = False
    """True to withdraw the tools for this query: the model has results, but repeats a call or makes no progress."""
    holds_text: bool = False
    """True to show the answer's text only after it was accepted, because it may be a copy of a guardrail's message."""
    classified: str = ""
    """The kind of the user's request, as in `CallHistory`."""


@dataclass(frozen=True, slots=True)
class RunTools:
    """A step of the caller: run ``calls`` in order, and return one result for each. ``dropped`` has the answer's calls
    that are not run."""

    calls: tuple[ToolCall, ...]
    dropped: tuple[DroppedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The last step: the conversation has ended, until the user sends another message."""

    reason: Reason
    content: str
    """The text to show to the user as the answer: the model's last message or, without any, the last call's result.

    It is "" if the only call changed something.
    """


Step: TypeAlias = AskModel | RunTools | Finished
