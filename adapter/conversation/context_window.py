"""Makes a conversation fit into the model's context: old results shortened first, then the oldest turns left out.

Both change what the prompt begins with, so that a server must read it anew. So they are done rarely and
for good: once the conversation is too long it is cut to well below the limit, and what was cut stays cut.
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
"""(tool, content, call id)."""

ANSWER_SHARE = 0.25
"""Of the context, kept free for the answer, up to `MAX_ANSWER` tokens."""
MAX_ANSWER = 4_096
"""Tokens kept free for the answer, however large the context."""
CUT_TO = 0.6
"""Of what may be filled: the next dozen turns then fit without another cut."""
PER_MESSAGE = 6
"""Tokens that a template puts around a message."""
PER_IMAGE = 1_000
"""Tokens; models take from some hundred to some thousand."""
SHORT = 240
"""Characters of a shortened result, from its start and its end; shorter results are left as they are."""
TAIL, COMMANDS_TAIL = 1 / 3, 2 / 3
"""Of those, how much is from the end. What a command says at its end is what became of it."""
_COMMANDS = re.compile(r"(?i)run|exec|bash|shell|command|terminal|test|build|output")


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One message. ``results``: what ``content`` was written from, for results that may be shortened; ``about``: the
    calls that gave them, in a few words. ``parts``: of an answer with calls, those parts as a template takes them."""

    role: str
    content: Content
    results: tuple[Result, ...] = ()
    about: tuple[str, ...] = ()
    is_kept: bool = False
    """Never left out: what the user said last."""
    is_passing: bool = False
    """An answer that is asked again, and what was said of it: left out once a better one has come."""
    parts: JsonObject | None = None
    tokens: int = field(init=False)
    """About how many it takes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", sum(map(_tokens, _parts(self.content))) + PER_MESSAGE)


@dataclass(frozen=True, slots=True)
class TrimmedHistory:
    """``entries`` as they are to be shown, and how many messages with results and how many turns this cut took."""

    entries: list[HistoryEntry]
    shortened: int = 0
    dropped: int = 0


def usable_tokens(context_tokens: int) -> int:
    """What of a context a prompt may fill."""
    return context_tokens - min(int(context_tokens * ANSWER_SHARE), MAX_ANSWER)


def trim_to_context(
    entries: list[HistoryEntry], limit: float, encode: Callable[[str, str, str], str], first: int = 2
) -> TrimmedHistory:
    """``entries`` within ``limit`` tokens, as far as that can be had.

    The ``first`` entries (system prompt and task) stay whole, and the last turn stays, its results
    shortened last of all. ``encode`` writes a result as `Format.encode_result` does.
    """
    if _size(entries) <= limit:
        return TrimmedHistory(entries)
    kept, shortened, target = list(entries), 0, limit * CUT_TO
    last_turn = max((index for index, entry in enumerate(kept) if entry.role == "assistant"), default=len(kept))
    for index in range(first, last_turn):
        if _size(kept) > target and kept[index].results:
            kept[index], count = _shortened(kept[index], SHORT, encode)
            shortened += count
    head, rest, dropped = kept[:first], kept[first:], 0
    while _size(head) + _size(rest) > target and sum(entry.role == "assistant" for entry in rest) > 1:
        end = 1 + next(i for i, entry in enumerate(rest[1:]) if entry.role == "assistant")
        head += [entry for entry in rest[:end] if entry.is_kept]
        rest = rest[end:]
        dropped += 1
    if _size(head) + _size(rest) > limit:
        rest, count = _last_shortened(rest, _size(head) + _size(rest) - target, encode)
        shortened += count
    return TrimmedHistory([*head, *rest], shortened, dropped)


def _last_shortened(
    entries: list[HistoryEntry], excess: float, encode: Callable[[str, str, str], str]
) -> tuple[list[HistoryEntry], int]:
    """The results of the last turn, each by its share of what is too much."""
    cut, count = [], 0
    total = sum(entry.tokens for entry in entries if entry.results)
    for entry in entries:
        if entry.results:
            share = max(0.0, 1 - excess / total)
            longest = max(len(content) for _, content, _ in entry.results)
            entry, made = _shortened(entry, max(SHORT, int(longest * share)), encode)
            count += made
        cut.append(entry)
    return cut, count


def _shortened(entry: HistoryEntry, size: int, encode: Callable[[str, str, str], str]) -> tuple[HistoryEntry, int]:
    """Each result stays the answer to its call, and says of which it is a part."""
    about = entry.about or tuple(name for name, _, _ in entry.results)
    cut = tuple(
        (name, _cut(text, size, call or name or "the tool", COMMANDS_TAIL if _COMMANDS.search(name) else TAIL), call_id)
        for (name, text, call_id), call in zip(entry.results, about, strict=True)
    )
    content = "\n".join(encode(*result) for result in cut)
    return (entry, 0) if len(content) >= len(str(entry.content)) else (replace(entry, content=content, results=cut), 1)


def _cut(content: str, size: int, call: str, tail_share: float) -> str:
    """The first and the last lines, or characters where a line is longer than that."""
    tail = int(size * tail_share)
    first, last = content[: size - tail], content[len(content) - tail :]
    first, last = first[: first.rfind("\n") if "\n" in first else None], last[last.find("\n") + 1 :]
    lines = content.count("\n") + 1
    note = f"\n[shortened: {call} gave {len(content)} characters in {pluralize(lines, 'line')}; call it again to see all]\n"
    return content if len(content) <= size + len(note) else first + note + last


def _parts(content: Content) -> list[Json]:
    return [content] if isinstance(content, str) else content


def _tokens(part: Json) -> int:
    text = part.get("text") if isinstance(part, dict) else part
    return estimate_tokens(text) if isinstance(text, str) else PER_IMAGE


def _size(entries: list[HistoryEntry]) -> int:
    return sum(entry.tokens for entry in entries)
