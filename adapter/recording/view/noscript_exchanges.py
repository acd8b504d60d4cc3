"""Prepare the exchanges for browsers without JavaScript: links take the place of repeated messages and tools."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.core.events import JsonObject


def group_for_links(data: JsonObject) -> tuple[list[list[JsonObject]], list[Sequence[int]]]:
    """Return the exchanges of a page, grouped by conversation, and the distinct lists of tools.

    Each exchange has its ``number``, the 1-based number of its ``tool_set``, and the number of messages that are
    ``known`` from the exchange ``before``.
    """
    conversations: dict[int, list[JsonObject]] = {}
    tool_sets: dict[tuple[int, ...], int] = {}
    previous: JsonObject = {"number": 0, "prompt": ()}
    for number, exchange in enumerate(data["exchanges"], start=1):
        group = conversations.setdefault(exchange["conversation"], [])
        earlier = group[-1] if group else previous
        known = _count_known(earlier["prompt"], exchange["prompt"]) if data["goes_on"] else 0
        tool_set = tool_sets.setdefault(tuple(exchange["tools"]), len(tool_sets) + 1)
        previous = {**exchange, "number": number, "before": earlier["number"], "known": known, "tool_set": tool_set}
        group.append(previous)
    return list(conversations.values()), list(tool_sets)


def _count_known(earlier: Sequence[int], prompt: Sequence[int]) -> int:
    pairs = enumerate(zip(earlier, prompt, strict=False))
    same = next((index for index, (one, other) in pairs if one != other), min(len(earlier), len(prompt)))
    return min(same, max(0, len(prompt) - 1))
