"""In which shape a client takes an error, by the path that it asked for: OpenAI's, Anthropic's or Ollama's."""

from __future__ import annotations

from adapter.protocols import anthropic_response, ollama
from adapter.server.streaming_responses import AsError, identity


def error_format_for(path: str) -> AsError:
    """Takes an error in OpenAI's shape and its status."""
    if path.startswith("/api/"):
        return ollama.as_error
    return anthropic_response.as_error if path.startswith("/v1/messages") else identity
