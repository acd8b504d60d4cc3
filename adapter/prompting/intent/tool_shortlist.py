"""Fewer tools for a model than there are: those most like the request, and one that finds the others.

No model is asked: BM25 over names, descriptions and parameters ranks them (`adapter.prompting.intent.bm25`). All can be
called all the time; the shortlist is what a prompt describes.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from adapter.core.events import Json
from adapter.prompting.intent.bm25 import ToolRanking
from adapter.tools.tool import Tool, ToolSet

FIND = "find_tools"

FOUND = 5
"""Tools that one search gives."""

LOOKUPS = 3
"""Searches in one answer: who needs more does not find it."""


@dataclass(frozen=True, slots=True)
class ToolShortlist:
    """``shown``: what the prompt describes, ``finder`` among it; ``all``: what can be called, the finder included."""

    shown: ToolSet
    all: ToolSet
    finder: str

    def found(self, query: Json) -> str:
        """The result of a call of the finder: definitions, the best first, one a line."""
        rest = ToolSet(tool for name, tool in self.all.items() if name != self.finder)
        scores = ToolRanking(rest).scores(str(query or ""))
        names = [name for name, score in scores.items() if score > 0][:FOUND]
        if not names:
            return f"No tool is like {str(query)[:80]!r}. Search with other words, or go on with the tools you have."
        lines = (json.dumps(rest[name].to_openai()["function"], ensure_ascii=False) for name in names)
        return "\n".join(["These can be called like the others:", *lines])


def shortlist_tools(tools: ToolSet, request: str, most: int, used: Collection[str] = ()) -> ToolShortlist | None:
    """At most ``most`` of ``tools``, or as many as were ``used`` before; None where there are no more than that."""
    if len(tools) <= most:
        return None
    name = FIND
    while tools.match(name) is not None:
        name += "_by_words"
    scores = ToolRanking(tools).scores(request)
    kept = [each for each in tools if each in used]
    few = {*kept, *[each for each in scores if each not in used][: max(0, most - len(kept))]}
    finder = Tool(
        name,
        f"Find further tools: there are {len(tools) - len(few)} more than these. Gives their definitions.",
        {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "What the tool should do, in a few words."}},
            "required": ["query"],
        },
        example={"query": "send a message"},
    )
    shown = [tool for each, tool in tools.items() if each in few]  # in their order: a prompt that stays is cached
    return ToolShortlist(ToolSet([*shown, finder]), ToolSet([*tools.values(), finder]), name)
