"""Shorten a long list of tools to the best matches for the request, and add a tool that searches the others.

`adapter.prompting.intent.tool_ranking` ranks the tools without a model. The shortlist affects only the prompt: the
model can call every tool at any time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from adapter.core.events import Json
from adapter.prompting.intent.tool_ranking import ToolRanking
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

FIND = "find_tools"
FOUND = 5
"""Number of tools in a search result."""
LOOKUPS = 3
"""Maximum number of searches in one answer."""


@dataclass(frozen=True, slots=True)
class ToolShortlist:
    """The tools that a prompt describes, and all tools that the model can call."""

    shown: ToolSet
    """The tools in the prompt, including the search tool."""
    all: ToolSet
    """All tools that can be called, including the search tool."""
    finder: str
    """Name of the search tool, which finds tools that are not shown."""

    def search(self, query: Json) -> str:
        """Return the search tool's result for ``query``: the matching tools' definitions, best first, one per line."""
        rest = ToolSet(tool for name, tool in self.all.items() if name != self.finder)
        names = _find_matching(rest, str(query or ""))[:FOUND]
        if not names:
            return f"No tool matches {str(query)[:80]!r}. Try other words, or use the tools you have."
        lines = (json.dumps(rest[name].to_openai()["function"], ensure_ascii=False) for name in names)
        return "\n".join(["You can call these tools like the others:", *lines])


@dataclass(frozen=True, slots=True)
class UserRequest:
    """A user message, and the names of the tools ``used`` before it."""

    text: str
    used: frozenset[str] = frozenset()


def shortlist_tools(tools: ToolSet, requests: Sequence[UserRequest], most: int) -> ToolShortlist | None:
    """Return a shortlist of ``most`` tools for a conversation with ``requests``.

    Returns None if there are at most ``most`` tools. The shortlist has the best matches for the first request. To keep
    the prompt cache valid, it does not change until it lacks the best match for a later request. It is then filled with
    all tools used before (even if more than ``most``), the later request's matches, and tools from the previous
    shortlist, which stay in front.
    """
    if len(tools) <= most:
        return None
    name = FIND
    while tools.match(name) is not None:
        name += "_by_words"
    chosen: list[str] = []
    for request in requests or [UserRequest("")]:
        matching = _find_matching(tools, request.text)
        if chosen and not set(matching[:1]) - set(chosen):
            continue
        used = [each for each in tools if each in request.used]
        candidates = dict.fromkeys([*used, *matching, *chosen, *tools])
        best = set([*candidates][: max(most, len(used))])
        chosen = [each for each in dict.fromkeys([*chosen, *tools]) if each in best]
    parameters: Json = {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "Purpose of the tool, in a few words."}},
        "required": ["query"],
    }
    summary = f"Find further tools: there are {len(tools) - len(chosen)} more. Returns their definitions."
    finder = Tool(name, summary, parameters, example={"query": "send a message"})
    return ToolShortlist(ToolSet([*(tools[each] for each in chosen), finder]), ToolSet([*tools.values(), finder]), name)


def _find_matching(tools: ToolSet, request: str) -> list[str]:
    """Return the names of the tools that share a word with the request, best first."""
    return [name for name, score in _ranking(tools).score_tools(request).items() if score > 0]


_ranking = lru_cache(32)(ToolRanking)
