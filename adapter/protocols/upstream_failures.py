"""What a model server's failure means: whether to ask again, and what to tell the user.

Pure: `adapter.backends.chat_client` says which status came and what the server wrote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Retry: TypeAlias = Literal["never", "briefly", "patiently"]


@dataclass(frozen=True, slots=True)
class UpstreamFailure:
    """``advice`` is the next step, a sentence or two; ``missing_model`` asks for a list of those there are."""

    retry: Retry
    advice: str
    missing_model: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    """``statuses`` is a regular expression for the HTTP status, ``wording`` one for the server's message."""

    statuses: str
    wording: str
    failure: UpstreamFailure


_CONTEXT = r"context (size|length|window)|exceed_context|maximum context|too many tokens|prompt is too long"

# The first row that fits counts. Messages as recorded from llama.cpp b11549 and
# Ollama, or as quoted in their issue trackers; statuses alone where servers differ.
_ROWS = (
    _Row(
        "4..|500",
        _CONTEXT,
        UpstreamFailure(
            "never",
            "The conversation does not fit into the model's context. Shorten it, or give the server more: "
            "`llama-server -c 16384`, for Ollama OLLAMA_CONTEXT_LENGTH=16384.",
        ),
    ),
    _Row(
        "...",
        r"does not support tools",
        UpstreamFailure(
            "never", "Send no `tools` to this model: the adapter describes them in the prompt (--profile none)."
        ),
    ),
    _Row(
        "5..",
        r"Failed to parse input",
        UpstreamFailure(
            "never",
            "The server itself tries to read tool calls from the model's text, and cannot. "
            "Start it without that (llama-server: --no-jinja; vLLM: without --enable-auto-tool-choice).",
        ),
    ),
    _Row(
        "400",
        r"grammar|samplers|json_schema|response_format",
        UpstreamFailure(
            "never", "The server refuses the constraint on the answer; ask without one, or report the tool's schema."
        ),
    ),
    _Row(
        "404|400",
        r"model .*(not found|does not exist)|no such model|not_found_error.*model",
        UpstreamFailure("never", "", True),
    ),
    _Row("404|405", "", UpstreamFailure("never", "There is no chat interface at this address: does it end in /v1?")),
    _Row(
        "401|403", "", UpstreamFailure("never", "The server wants an API key: pass --api-key, or set OPENAI_API_KEY.")
    ),
    _Row("429", "", UpstreamFailure("patiently", "The server is busy or your quota is used up; try again later.")),
    _Row(
        "503",
        "",
        UpstreamFailure("patiently", "The server is still loading its model, or overloaded; try again later."),
    ),
    _Row("4..", "", UpstreamFailure("never", "The server does not take this request; its log may say more.")),
    _Row("5..", "", UpstreamFailure("never", "The server failed; its log may say why.")),
)

_REFUSED_TOOLS = re.compile(
    "does not support (tools|function calling)"  # Ollama
    "|tools param requires --jinja|Unsupported param: tools"  # llama.cpp
    "|requires --enable-auto-tool-choice"  # vLLM
    "|No endpoints found that support tool use",  # OpenRouter
    re.IGNORECASE,
)


def refuses_tools(status: int, message: str) -> bool:
    """Whether a server says that it cannot be given ``tools``, at least for this model."""
    return status >= 400 and _REFUSED_TOOLS.search(message) is not None


UNKNOWN = UpstreamFailure("never", "This is not what an OpenAI-compatible server answers: is the address right?")


def classify_failure(status: int, message: str) -> UpstreamFailure:
    """The meaning of an HTTP error."""
    for row in _ROWS:
        if re.fullmatch(row.statuses, str(status)) and re.search(row.wording, message, re.IGNORECASE | re.DOTALL):
            return row.failure
    return UNKNOWN
