"""Decode JSON written by programs, such as request bodies and events."""

from __future__ import annotations

import json

from pydantic_core import from_json

from adapter.core.events import Json


def load_json(text: str | bytes) -> Json:
    """Decode JSON with the results and errors of `json.loads`, in a quarter to half of the time. Texts that the faster
    decoder, jiter, rejects are passed to `json.loads`, which also accepts lone surrogates and encodings other than
    UTF-8."""
    try:
        return from_json(text)
    except (ValueError, TypeError):  # TypeError for a lone surrogate
        return json.loads(text)
