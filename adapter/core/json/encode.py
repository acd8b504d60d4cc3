"""Encode JSON so that the decoder of model output reads the same value."""

from __future__ import annotations

import json
import re
from typing import Any

from adapter.core.events import Json

_ESCAPE = re.compile(r"\\.")
_CONTROL = {r"\b": r"\u0008", r"\f": r"\u000c"}


def dump_json(value: Json, **layout: Any) -> str:
    r"""Return ``value`` as JSON; ``layout`` is for `json.dumps`. A backspace or form feed is written as
    ``\u0008`` or ``\u000c``, because models write ``\b`` and ``\f`` for a backslash and the letter, as in ``\frac``."""
    text = json.dumps(value, ensure_ascii=False, **layout)
    if r"\b" not in text and r"\f" not in text:
        return text
    return _ESCAPE.sub(lambda escape: _CONTROL.get(escape[0], escape[0]), text)
