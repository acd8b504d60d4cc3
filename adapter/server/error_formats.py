"""Convert errors to the format of the client's API: OpenAI's, Anthropic's or Ollama's."""

from __future__ import annotations

from adapter.protocols import anthropic_response, ollama
from adapter.server.streaming_responses import AsError, keep_unchanged


def find_error_format(path: str) -> AsError:
    """Return the function that converts an OpenAI error and its status to the format of the API at ``path``."""
    if path.startswith("/api/") and not path.startswith(("/api/v0/", "/api/v1/")):  # those are LM Studio's
        return ollama.to_error
    return anthropic_response.to_error if path.startswith("/v1/messages") else keep_unchanged
