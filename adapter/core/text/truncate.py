"""Results cut to what a small context window can hold, with the next step said.

The rule of the Zaguan Blade document: over 50 KB or over 2,000 lines, the first
100 and the last 50 lines are shown. A line rule alone lets one 1 MB line pass,
so a byte budget follows that cuts inside lines: the result never exceeds it.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.core.text.display_escaping import replace_lone_surrogates
from adapter.core.text.lines import split_lines

MAX_BYTES = 51_200
"""Of a result that a model is given."""
MAX_LINES = 2_000
"""Of a result that a model is given, unless its tool has more."""
HEAD_LINES = 100
"""Kept of the beginning of a longer result."""
TAIL_LINES = 50
"""Kept of the end of a longer result."""
_NEXT_STEP = "Ask for less: a line range, a narrower path or a more specific pattern."


def truncate(
    text: str,
    max_bytes: int = MAX_BYTES,
    max_lines: int = MAX_LINES,
    head: int = HEAD_LINES,
    tail: int = TAIL_LINES,
) -> str:
    """``text`` unchanged when it is within both limits, else its head and tail around a message.

    The result is at most ``max_bytes`` bytes of valid UTF-8, no character is
    split, and lone surrogates are replaced. Linear in ``text``.
    """
    text = replace_lone_surrogates(text)
    size = len(text.encode())
    lines = split_lines(text)
    if size <= max_bytes and len(lines) <= max_lines:
        return text
    upper, lower = _ends(lines, head, tail)
    message = _message(size, len(lines), head, tail)
    budget = max_bytes - len(message.encode())
    if budget <= 0:
        return keep_start(message, max_bytes)
    upper, lower = _fit(upper, lower, budget)
    return upper + message + lower


def with_notes(text: str, notes: Sequence[str], max_bytes: int = MAX_BYTES, max_lines: int = MAX_LINES) -> str:
    """``text``, truncated, with a line below for each note that it does not say itself; as short as without."""
    notes = tuple(map(replace_lone_surrogates, notes))
    below = "".join(f"\n(note: {note})" for note in notes if note not in text)
    shown = truncate(text, max_bytes - len(below.encode()), max_lines)
    # A note in the middle of a long text may have been cut away.
    unsaid = "".join(f"\n(note: {note})" for note in notes if note not in shown)
    if len(unsaid) > len(below):
        shown = truncate(text, max_bytes - len(unsaid.encode()), max_lines)
    return shown.removesuffix("\n") + unsaid if unsaid else shown


def _ends(lines: Sequence[str], head: int, tail: int) -> tuple[str, str]:
    """The text to show before and after the message, as far as the byte budget allows."""
    if len(lines) > head + tail:
        return "".join(lines[:head]), "".join(lines[len(lines) - tail :])
    # Few but long lines: all of them, for the byte budget to cut inside.
    text = "".join(lines)
    return text[: len(text) // 2], text[len(text) // 2 :]


def _message(size: int, lines: int, head: int, tail: int) -> str:
    shown = f"the first {head} and last {tail} lines" if lines > head + tail else "the start and the end"
    return f"\n[TRUNCATED: {size} bytes, {lines} lines; showing {shown}. {_NEXT_STEP}]\n"


def _fit(upper: str, lower: str, budget: int) -> tuple[str, str]:
    """Share ``budget`` bytes: what one part does not need, the other may use; two thirds go to the start."""
    upper_size, lower_size = len(upper.encode()), len(lower.encode())
    if upper_size + lower_size <= budget:
        return upper, lower
    upper_budget = max(budget * 2 // 3, budget - lower_size)
    upper = keep_start(upper, upper_budget)
    return upper, keep_end(lower, budget - len(upper.encode()))


def keep_start(text: str, max_bytes: int) -> str:
    """The longest start of ``text`` that is at most ``max_bytes`` of UTF-8."""
    return text.encode()[: max(max_bytes, 0)].decode("utf-8", "ignore")


def keep_end(text: str, max_bytes: int) -> str:
    """The longest end of ``text`` that is at most ``max_bytes`` of UTF-8."""
    data = text.encode()
    return data[max(len(data) - max_bytes, 0) :].decode("utf-8", "ignore")
