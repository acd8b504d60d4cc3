"""Error bodies in the API that the client uses: OpenAI's, Anthropic's or Ollama's."""

from __future__ import annotations

from adapter.protocols import anthropic_response, ollama
from adapter.server.streaming_responses import AsError, identity


def error_format_for(path: str) -> AsError:
    """Return the function that converts OpenAI's error object and a status for clients of ``path``."""
    if path.startswith("/api/"):
        return ollama.as_error
    return anthropic_response.as_error if path.startswith("/v1/messages") else identity
