"""Truncate tool results for a small context window, with a hint about the next step.

The rule is from the Zaguan Blade document: only the first 100 and last 50 lines of a result over 50 KB or 2,000 lines
are shown. Because a single line may have 1 MB, these lines are also cut to the byte limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.core.text.display_escaping import replace_lone_surrogates
from adapter.core.text.lines import split_lines

MAX_BYTES = 51_200
"""Maximum size of a result, in bytes."""
MAX_LINES = 2_000
"""Maximum number of lines in a result, unless its tool sets another maximum."""
HEAD_LINES = 100
"""Number of lines shown from the start of a truncated result."""
TAIL_LINES = 50
"""Number of lines shown from the end of a truncated result."""
_NEXT_STEP = "Request less: a line range, a narrower path or a more specific pattern."


def truncate(
    text: str, max_bytes: int = MAX_BYTES, max_lines: int = MAX_LINES, head: int = HEAD_LINES, tail: int = TAIL_LINES
) -> str:
    """Return ``text`` if it is within both limits. Otherwise, return its first ``head`` and last ``tail`` lines, with a
    message between them.

    The result is valid UTF-8 of at most ``max_bytes`` bytes. No character is split, and lone surrogates are replaced.
    The time is linear in the length of ``text``.
    """
    text = replace_lone_surrogates(text)
    size = len(text.encode())
    lines = split_lines(text)
    if size <= max_bytes and len(lines) <= max_lines:
        return text
    upper, lower = _split_ends(lines, head, tail)
    message = _describe_omission(size, len(lines), head, tail)
    budget = max_bytes - len(message.encode())
    if budget <= 0:
        return keep_start(message, max_bytes)
    upper, lower = _fit(upper, lower, budget)
    return upper + message + lower


def with_notes(text: str, notes: Sequence[str], max_bytes: int = MAX_BYTES, max_lines: int = MAX_LINES) -> str:
    """Append ``notes`` to the truncated ``text``, one per line, without exceeding the limits. A note that already
    occurs in the text is not repeated."""
    notes = tuple(map(replace_lone_surrogates, notes))
    below = "".join(f"\n(note: {note})" for note in notes if note not in text)
    shown = truncate(text, max_bytes - len(below.encode()), max_lines)
    # A note in the middle of a long text may have been cut away.
    missing = "".join(f"\n(note: {note})" for note in notes if note not in shown)
    if len(missing) > len(below):
        shown = truncate(text, max_bytes - len(missing.encode()), max_lines)
    return shown.removesuffix("\n") + missing if missing else shown


def _split_ends(lines: Sequence[str], head: int, tail: int) -> tuple[str, str]:
    """Return the text before and after the truncation message. The byte limit is applied later."""
    if len(lines) > head + tail:
        return "".join(lines[:head]), "".join(lines[len(lines) - tail :])
    # Few but long lines: only the byte limit cuts them.
    text = "".join(lines)
    return text[: len(text) // 2], text[len(text) // 2 :]


def _describe_omission(size: int, lines: int, head: int, tail: int) -> str:
    shown = f"the first {head} and last {tail} lines" if lines > head + tail else "the start and the end"
    return f"\n[TRUNCATED: {size} bytes, {lines} lines; showing {shown}. {_NEXT_STEP}]\n"


def _fit(upper: str, lower: str, budget: int) -> tuple[str, str]:
    """Cut ``upper`` and ``lower`` to ``budget`` bytes in total: two thirds for ``upper``, or more if ``lower`` is
    short."""
    upper_size, lower_size = len(upper.encode()), len(lower.encode())
    if upper_size + lower_size <= budget:
        return upper, lower
    upper_budget = max(budget * 2 // 3, budget - lower_size)
    upper = keep_start(upper, upper_budget)
    return upper, keep_end(lower, budget - len(upper.encode()))


def keep_start(text: str, max_bytes: int) -> str:
    """Return the longest prefix of ``text`` of at most ``max_bytes`` bytes in UTF-8."""
    return text.encode()[: max(max_bytes, 0)].decode("utf-8", "ignore")


def keep_end(text: str, max_bytes: int) -> str:
    """Return the longest suffix of ``text`` of at most ``max_bytes`` bytes in UTF-8."""
    data = text.encode()
    return data[max(len(data) - max_bytes, 0) :].decode("utf-8", "ignore")


def shorten(text: str, max_characters: int) -> str:
    """Return ``text``, cut to ``max_characters`` with ``...`` at its end if it is longer."""
    return text if len(text) <= max_characters else f"{text[: max_characters - 3]}..."
