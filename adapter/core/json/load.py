"""Decode JSON written by programs, such as request bodies and events."""

from __future__ import annotations

import json

from pydantic_core import from_json

from adapter.core.events import Json
from adapter.core.json.strict import decode_shallow

MAX_DEPTH = 201
"""Maximum nesting depth: the limit of the decoder jiter, low enough for recursive functions."""


def load_json(text: str | bytes) -> Json:
    """Decode JSON like `json.loads`, with the same results and errors, but two to four times as fast.

    Text that the faster decoder, jiter, rejects is passed to `json.loads`, which also accepts lone surrogates and
    encodings other than UTF-8. Also raises ValueError for text nested more than `MAX_DEPTH` levels deep.
    """
    try:
        return from_json(text)
    except (ValueError, TypeError):  # TypeError for a lone surrogate
        return decode_shallow(json.loads, text, MAX_DEPTH)
