"""Shorten a long list of tools to those that best match the request, plus a tool that searches the others.

`adapter.prompting.intent.bm25` ranks the tools, without a model. The shortlist affects only the prompt: the model can
call every tool at any time.
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
"""Number of tools in a search result."""
LOOKUPS = 3
"""Maximum number of searches in one response."""


@dataclass(frozen=True, slots=True)
class ToolShortlist:
    """A shortlist of the tools. ``shown``: the tools in the prompt, including the finder. ``all``: all tools that can
    be called, including the finder. ``finder``: name of the tool that searches the tools that are not shown."""

    shown: ToolSet
    all: ToolSet
    finder: str

    def search(self, query: Json) -> str:
        """Return the result of a call to the finder: the matching definitions, best first, one per line."""
        rest = ToolSet(tool for name, tool in self.all.items() if name != self.finder)
        scores = ToolRanking(rest).scores(str(query or ""))
        names = [name for name, score in scores.items() if score > 0][:FOUND]
        if not names:
            return f"No tool matches {str(query)[:80]!r}. Try other words, or use the tools you have."
        lines = (json.dumps(rest[name].to_openai()["function"], ensure_ascii=False) for name in names)
        return "\n".join(["You can call these tools like the others:", *lines])


def shortlist_tools(tools: ToolSet, request: str, most: int, used: Collection[str] = ()) -> ToolShortlist | None:
    """Return a shortlist of ``most`` tools: all tools that were ``used`` before, even if there are more than ``most``,
    and then those that best match the request. Return None if no shortlist is needed."""
    if len(tools) <= most:
        return None
    name = FIND
    while tools.match(name) is not None:
        name += "_by_words"
    used_before = [each for each in tools if each in used]
    unused = [each for each in ToolRanking(tools).scores(request) if each not in used]
    chosen = {*used_before, *unused[: max(0, most - len(used_before))]}
    parameters: Json = {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "Purpose of the tool, in a few words."}},
        "required": ["query"],
    }
    summary = f"Find further tools: there are {len(tools) - len(chosen)} more. Returns their definitions."
    finder = Tool(name, summary, parameters, example={"query": "send a message"})
    shown = [tool for each, tool in tools.items() if each in chosen]  # in a fixed order, for the prompt cache
    return ToolShortlist(ToolSet([*shown, finder]), ToolSet([*tools.values(), finder]), name)
