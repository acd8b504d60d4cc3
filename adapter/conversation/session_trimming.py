"""Trim a session's history to the model's context: shorten old results, then drop the oldest turns.

Both changes invalidate the server's prompt cache. To make them rare, a history that is too long is cut to well below
the limit, and all cuts are permanent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from adapter.conversation.message_rendering import HistoryEntry
from adapter.conversation.result_shortening import CUT_TO, SHORT, compute_share, shorten_result


@dataclass(frozen=True, slots=True)
class TrimmedHistory:
    """The entries of a history that was trimmed, and the numbers of ``shortened`` entries and ``dropped`` turns."""

    entries: list[HistoryEntry]
    shortened: int = 0
    dropped: int = 0


def trim_to_context(
    entries: list[HistoryEntry], limit: float, encode: Callable[[str, str, str], str], first: int = 2
) -> TrimmedHistory:
    """Trim ``entries`` to ``limit`` tokens, if possible.

    The first ``first`` entries (system prompt and task) are unchanged. The last turn is not dropped, and its results
    are shortened last. ``encode`` writes a result, as `Format.encode_result` does.
    """
    if _count_tokens(entries) <= limit:
        return TrimmedHistory(entries)
    trimmed, target, dropped = list(entries), limit * CUT_TO, 0
    for index in range(first, max(_list_answers(trimmed), default=len(trimmed))):
        if _count_tokens(trimmed) > target:
            trimmed[index] = _shorten(trimmed[index], SHORT, encode)
    while _count_tokens(trimmed) > target and len(answers := _list_answers(trimmed, first)) > 1:
        end = next(index for index in answers if index > first)
        protected = [entry for entry in trimmed[first:end] if entry.is_protected]
        trimmed[first:end] = protected
        first += len(protected)
        dropped += 1
    if (total := _count_tokens(trimmed)) > limit:
        share = compute_share(total - target, _count_tokens([entry for entry in trimmed[first:] if entry.results]))
        for index, entry in enumerate(trimmed[first:], first):
            longest = max((len(content) for _, content, _ in entry.results), default=0)
            trimmed[index] = _shorten(entry, max(SHORT, int(longest * share)), encode)
    unchanged = set(map(id, entries))
    return TrimmedHistory(trimmed, sum(id(entry) not in unchanged for entry in trimmed), dropped)


def _list_answers(entries: list[HistoryEntry], first: int = 0) -> list[int]:
    return [index for index, entry in enumerate(entries) if index >= first and entry.role == "assistant"]


def _shorten(entry: HistoryEntry, size: int, encode: Callable[[str, str, str], str]) -> HistoryEntry:
    """Shorten each result in ``entry``, unless the added notes would make the entry longer."""
    about = entry.about or tuple(name for name, _, _ in entry.results)
    cut = tuple(
        (name, shorten_result(text, size, call or name or "the tool", name), call_id)
        for (name, text, call_id), call in zip(entry.results, about, strict=True)
    )
    content = "\n".join(encode(*result) for result in cut)
    is_shorter = bool(cut) and len(content) < len(str(entry.content))
    return replace(entry, content=content, results=cut) if is_shorter else entry


def _count_tokens(entries: list[HistoryEntry]) -> int:
    return sum(entry.tokens for entry in entries)
