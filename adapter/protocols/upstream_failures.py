"""Classify the errors of model servers: whether to retry a request, and the advice for the user.

No I/O: `adapter.backends.chat_client` passes the status and the server's message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Retry: TypeAlias = Literal["never", "briefly", "patiently"]
"""Time for which a request is retried: none, a few seconds, or as long as a server may take to load its model."""


@dataclass(frozen=True, slots=True)
class UpstreamFailure:
    """The recommended handling of a model server's error.

    ``advice`` is the next step for the user, in one or two sentences. ``missing_model`` is True if the error message
    must also list the server's models.
    """

    retry: Retry
    advice: str
    missing_model: bool = False


_CONTEXT = r"context (size|length|window)|exceed_context|maximum context|too many tokens|prompt is too long"
_NO_MODEL = r"model .*(not found|does not exist)|no such model|not_found_error.*model"

_CONTEXT_ADVICE = (
    "The conversation does not fit into the model's context. Shorten it, or increase the server's context: "
    "`llama-server -c 16384`, for Ollama OLLAMA_CONTEXT_LENGTH=16384."
)
_PARSE_ADVICE = (
    "The server could not parse the tool calls in the model's text. Start it without its own parser "
    "(llama-server: --no-jinja; vLLM: without --enable-auto-tool-choice)."
)
_KEY_ADVICE = (
    "The server requires an API key: set OPENAI_API_KEY. It is sent only to servers on other machines; for one on this "
    "machine, start it without a key, or pass `ChatClient(api_key=...)` in Python."
)
_TOOLS_ADVICE = "This model does not support `tools`; with --profile none, the adapter describes them in the prompt."
_CONSTRAINT_ADVICE = "The server rejects the constraint on the answer; omit it, or report the tool's schema."

_FAILURES: tuple[tuple[str, str, Retry, str], ...] = (
    ("4(?!29)..|500", _CONTEXT, "never", _CONTEXT_ADVICE),  # 429: too many tokens in a minute or day
    ("...", "does not support tools", "never", _TOOLS_ADVICE),
    ("5..", "Failed to parse input", "never", _PARSE_ADVICE),
    ("400", "grammar|samplers|json_schema|response_format", "never", _CONSTRAINT_ADVICE),
    ("404|400", _NO_MODEL, "never", ""),
    ("404|405", "", "never", "This address has no chat endpoint; check that it ends in /v1."),
    ("401|403", "", "never", _KEY_ADVICE),
    ("429", "", "patiently", "The server is busy or your quota is used up; try again later."),
    ("503", "", "patiently", "The server is still loading its model, or overloaded; try again later."),
    ("4..", "", "never", "The server rejected the request; check its log."),
    ("5..", "", "never", "The server failed; check its log."),
)
"""Patterns of known errors.

Each row contains regular expressions for the HTTP status and the server's message, when to retry, and the advice. The
first match is used. The messages are from llama.cpp b11549, Ollama and issue trackers. Rows without a message apply to
any server.
"""

_REFUSED_TOOLS = re.compile(
    "does not support (tools|function calling)"  # Ollama
    "|tools param requires --jinja|Unsupported param: tools"  # llama.cpp
    "|requires --enable-auto-tool-choice"  # vLLM
    "|No endpoints found that support tool use",  # OpenRouter
    re.IGNORECASE,
)


def refuses_tools(status: int, message: str) -> bool:
    """Return whether an error means that the server does not support ``tools``, at least for this model."""
    return status >= 400 and _REFUSED_TOOLS.search(message) is not None


def refuses_schemas(status: int, message: str) -> bool:
    """Return whether an error means that llama.cpp has no grammar for the schemas of these ``tools``."""
    return status == 400 and "failed to parse grammar" in message


def is_context_failure(status: str, message: str) -> bool:
    """Return whether an error means that the prompt does not fit into the model's context. ``status`` may be empty."""
    return status != "429" and re.search(_CONTEXT, message, re.IGNORECASE) is not None


UNKNOWN = UpstreamFailure("never", "This response is not from an OpenAI-compatible server; check the address.")
"""Handling of errors that match no row of `_FAILURES`."""


def classify_failure(status: int, message: str) -> UpstreamFailure:
    """Return the meaning of an HTTP error: whether to retry the request, and the advice for the user."""
    for statuses, wording, retry, advice in _FAILURES:
        if re.fullmatch(statuses, str(status)) and re.search(wording, message, re.IGNORECASE | re.DOTALL):
            return UpstreamFailure(retry, advice, wording is _NO_MODEL)
    return UNKNOWN
