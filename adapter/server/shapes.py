"""In which shape a client takes an error, by the path that it asked for: OpenAI's, Anthropic's or Ollama's."""

from __future__ import annotations

from adapter.server.relay import AsError, as_it_is
from adapter.wire import anthropic_answer, ollama


def shape_of(path: str) -> AsError:
    """Takes an error in OpenAI's shape and its status."""
    if path.startswith("/api/"):
        return ollama.as_error
    return anthropic_answer.as_error if path.startswith("/v1/messages") else as_it_is
