"""Fit a conversation into the model's context: shorten old results, then drop the oldest turns.

Both changes invalidate the server's prompt cache. Therefore, a conversation that is too long is cut to well below the
limit, and all cuts are permanent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from adapter.conversation.message_content import Content
from adapter.conversation.token_estimate import estimate_tokens
from adapter.core.events import Json, JsonObject
from adapter.core.text.plurals import pluralize

Result: TypeAlias = tuple[str, str, str]
"""A tool result as (tool, content, call id)."""

ANSWER_SHARE = 0.25
"""Share of the context reserved for the answer, up to `MAX_ANSWER` tokens."""
MAX_ANSWER = 4_096
"""Maximum number of tokens reserved for the answer."""
CUT_TO = 0.6
"""Share of the usable tokens that remain after a cut, so that the next dozen turns fit without another cut."""
PER_MESSAGE = 6
"""Estimated number of tokens that a template adds to a message."""
PER_IMAGE = 1_000
"""Estimated number of tokens for an image. Models use hundreds to thousands."""
SHORT = 240
"""Length of a shortened result, in characters from its start and its end. Shorter results are unchanged."""
TAIL, COMMANDS_TAIL = 1 / 3, 2 / 3
"""Share of the remaining characters that comes from the end of the result. It is larger for commands, which report
their outcome at the end.
"""
_COMMANDS = re.compile(r"(?i)run|exec|bash|shell|command|terminal|test|build|output")


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One message of the history, as the model sees it."""

    role: str
    content: Content
    results: tuple[Result, ...] = ()
    """The tool results encoded in ``content``, which may be shortened."""
    about: tuple[str, ...] = ()
    """Summaries of the calls that returned these results."""
    is_protected: bool = False
    """True if the entry must not be dropped, because it is the user's last message."""
    is_temporary: bool = False
    """True if the entry is a rejected answer or a retry message. Both are dropped once an answer is accepted."""
    parts: JsonObject | None = None
    """The fields of an answer with calls, for a chat template."""
    tokens: int = field(init=False)
    """Estimated number of tokens."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", sum(map(_count_part_tokens, _list_parts(self.content))) + PER_MESSAGE)


@dataclass(frozen=True, slots=True)
class TrimmedHistory:
    """The entries to show, and how many results were ``shortened`` and turns ``dropped``."""

    entries: list[HistoryEntry]
    shortened: int = 0
    dropped: int = 0


def compute_usable_tokens(context_tokens: int) -> int:
    """Return the number of tokens that a prompt may use."""
    return context_tokens - min(int(context_tokens * ANSWER_SHARE), MAX_ANSWER)


def trim_to_context(
    entries: list[HistoryEntry], limit: float, encode: Callable[[str, str, str], str], first: int = 2
) -> TrimmedHistory:
    """Trim ``entries`` to ``limit`` tokens, if possible.

    The first ``first`` entries (system prompt and task) are unchanged. The last turn is not dropped, and its results
    are shortened last. ``encode`` writes a result, as `Format.encode_result` does.
    """
    if _count_tokens(entries) <= limit:
        return TrimmedHistory(entries)
    trimmed, shortened, target = list(entries), 0, limit * CUT_TO
    last_turn = max((index for index, entry in enumerate(trimmed) if entry.role == "assistant"), default=len(trimmed))
    for index in range(first, last_turn):
        if _count_tokens(trimmed) > target and trimmed[index].results:
            trimmed[index], count = _shorten(trimmed[index], SHORT, encode)
            shortened += count
    head, rest, dropped = trimmed[:first], trimmed[first:], 0
    while _count_tokens(head) + _count_tokens(rest) > target and sum(entry.role == "assistant" for entry in rest) > 1:
        end = 1 + next(i for i, entry in enumerate(rest[1:]) if entry.role == "assistant")
        head += [entry for entry in rest[:end] if entry.is_protected]
        rest = rest[end:]
        dropped += 1
    if _count_tokens(head) + _count_tokens(rest) > limit:
        rest, count = _shorten_last(rest, _count_tokens(head) + _count_tokens(rest) - target, encode)
        shortened += count
    return TrimmedHistory([*head, *rest], shortened, dropped)


def _shorten_last(
    entries: list[HistoryEntry], excess: float, encode: Callable[[str, str, str], str]
) -> tuple[list[HistoryEntry], int]:
    """Shorten all results in the last turn by the same share, to save about ``excess`` tokens. Return the entries and
    the number of shortened results."""
    trimmed, total_count = [], 0
    total = sum(entry.tokens for entry in entries if entry.results)
    for entry in entries:
        if entry.results:
            share = max(0.0, 1 - excess / total)
            longest = max(len(content) for _, content, _ in entry.results)
            entry, count = _shorten(entry, max(SHORT, int(longest * share)), encode)
            total_count += count
        trimmed.append(entry)
    return trimmed, total_count


def _shorten(entry: HistoryEntry, size: int, encode: Callable[[str, str, str], str]) -> tuple[HistoryEntry, int]:
    """Shorten each result, and add a note that names its call. Return the entry and the number of shortened results."""
    about = entry.about or tuple(name for name, _, _ in entry.results)
    cut = tuple(
        (name, shorten_result(text, size, call or name or "the tool", name), call_id)
        for (name, text, call_id), call in zip(entry.results, about, strict=True)
    )
    content = "\n".join(encode(*result) for result in cut)
    return (entry, 0) if len(content) >= len(str(entry.content)) else (replace(entry, content=content, results=cut), 1)


def shorten_result(content: str, size: int, call: str, tool: str) -> str:
    """Return the ends of a tool's result around a note that names its call; see `keep_ends`."""
    size_note = f"{len(content)} characters in {pluralize(content.count(chr(10)) + 1, 'line')}"
    note = f"\n[shortened: {call} returned {size_note}; call it again to see all]\n"
    return keep_ends(content, size, note, COMMANDS_TAIL if _COMMANDS.search(tool) else TAIL)


def keep_ends(text: str, size: int, note: str, tail_share: float = TAIL) -> str:
    """Return the first and last lines of ``text`` with ``note`` between them. If the lines are too long, keep
    characters instead. A text that is no longer than ``size`` characters plus the note is unchanged.
    """
    if len(text) <= size + len(note):
        return text
    tail = int(size * tail_share)
    first, last = text[: size - tail], text[len(text) - tail :]
    return first[: first.rfind("\n") if "\n" in first else None] + note + last[last.find("\n") + 1 :]


def _list_parts(content: Content) -> list[Json]:
    return [content] if isinstance(content, str) else content


def _count_part_tokens(part: Json) -> int:
    text = part.get("text") if isinstance(part, dict) else part
    return estimate_tokens(text) if isinstance(text, str) else PER_IMAGE


def _count_tokens(entries: list[HistoryEntry]) -> int:
    return sum(entry.tokens for entry in entries)
