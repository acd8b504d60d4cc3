"""Convert errors to the format of the client's API: OpenAI's, Anthropic's or Ollama's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from adapter.core.events import JsonObject
from adapter.protocols import anthropic_response, ollama

AsError: TypeAlias = Callable[[JsonObject, int], JsonObject]
"""Converts an OpenAI error and its HTTP status to the format of the client's API."""


def find_error_format(path: str) -> AsError:
    """Return the function that converts errors to the format of the API at ``path``."""
    if path.startswith("/api/") and not path.startswith(("/api/v0/", "/api/v1/")):  # those are LM Studio's
        return ollama.to_error
    return anthropic_response.to_error if path.startswith("/v1/messages") else lambda error, _: error
