"""Encode JSON so that the decoder for model output reads back the same value."""

from __future__ import annotations

import json
import re
from typing import Any

from adapter.core.events import Json

_ESCAPE = re.compile(r"\\.")
_CONTROL = {r"\b": r"\u0008", r"\f": r"\u000c"}


def dump_json(value: Json, **layout: Any) -> str:
    r"""Return ``value`` as JSON; ``layout`` is for `json.dumps`. Backspace and form feed are written as ``\u0008`` and
    ``\u000c``, because models write ``\b`` and ``\f`` when they mean a backslash and a letter, as in ``\frac``."""
    text = json.dumps(value, ensure_ascii=False, **layout)
    if r"\b" not in text and r"\f" not in text:
        return text
    return _ESCAPE.sub(lambda escape: _CONTROL.get(escape[0], escape[0]), text)
