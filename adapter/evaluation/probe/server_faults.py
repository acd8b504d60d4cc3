"""Recognize faults of a model server by patterns in the answers of a probe. A model would not cause these patterns."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

MIN_ANSWERS = 3
"""Minimum number of answers with a pattern to report a fault. One or two answers may be chance."""

_CONTROL = re.compile(
    r"<(?:s|/s|bos|eos|pad)>|<\|(?:begin_of_text|endoftext|eot_id|im_start|im_end|start_header_id)\|>|<(?:start|end)_of_turn>"
)
_REPEATED = re.compile(r"(\w[^{}\[\]\n]{0,19}?)\1{7}")
"""Matches text of at most 20 characters that is written eight times in succession."""
_COMPARED = 12
"""Number of characters that are compared between answers: the last ones before a call's JSON becomes invalid."""


def find_server_faults(answers: Sequence[str]) -> list[str]:
    """Return a sentence with advice for each server fault found in ``answers``, the model's raw outputs."""
    tokens = [match[0] for text in answers if (match := _CONTROL.search(text))]
    repeated = [match[1] for text in answers if (match := _REPEATED.search(text))]
    breaks = [place for text in answers if (place := _find_break(text))]
    patterns = (
        (tokens, 1, "contain a control token", "The chat template may be wrong, or begin the prompt twice."),
        (repeated, 1, "repeat a token", "The quantization may be damaged; try another file of the model."),
        (breaks, len(breaks) * 2 // 3, "break a call after", "Try without speculative decoding (a draft model)."),
    )
    sentences = []
    for found, at_least, what, advice in patterns:
        text, count = Counter(found).most_common(1)[0] if found else ("", 0)
        if len(found) >= MIN_ANSWERS and count >= at_least:
            sentences.append(f"{len(found)} of {len(answers)} answers {what} ({text!r}). {advice}")
    return sentences


def _find_break(text: str) -> str:
    """Return the last characters before the point where the JSON of a call in ``text`` becomes invalid.

    Returns "" if there is no call, or if its JSON is valid or only incomplete.
    """
    start = text.find('{"')
    if start < 0:
        return ""
    try:
        json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        is_cut = error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip())
        return "" if is_cut else text[max(start, error.pos - _COMPARED) : error.pos]
    except (ValueError, RecursionError):
        return ""
    return ""
