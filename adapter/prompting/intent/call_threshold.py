"""Decide between a call and an answer in words: a call if the request's score for any tool exceeds a threshold."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapter.prompting.intent.bm25 import ToolRanking, find_value_kinds, list_request_terms
from adapter.prompting.intent.candidate_values import has_all_required, names_parameter
from adapter.tools.tool import ToolSet

MIN_SCORE = 2.0
"""Minimum BM25 score at which a request needs a tool."""
MIN_SHARED_WORDS = 3
"""Number of shared words that justify a call to a tool at any score, because in a small tool set every word is common
and scores low. One word fewer suffices if the request has a value next to a parameter's name. In both cases, the
request must contain a value for each required parameter.
"""
DISTINCTIVE = frozenset({"_path_", "_folder_", "_mail_", "_url_", "_date_", "_time_", "_code_"})
"""Kinds of values that occur mainly in requests for an action."""
_REFUSED = re.compile(r"(?i)\b(?:no|not|without|don't)\b[^.!?\n]{0,30}\btools?\b")
_DEMANDED = re.compile(r"(?i)\b(?:use|call|with)\s+(?:\w+\s+){0,2}tools?\b")


def should_call(request: str, tools: ToolSet, ranking: ToolRanking, scores: Mapping[str, float]) -> bool:
    if _REFUSED.search(request):
        return False
    if _DEMANDED.search(request) or any(names_tool(request, name) for name in tools):
        return True
    best = next(iter(scores))
    if scores[best] >= MIN_SCORE:
        return True
    shared = len(ranking.find_shared_words(best, request))
    is_about = shared >= MIN_SHARED_WORDS or (shared == MIN_SHARED_WORDS - 1 and names_parameter(request, tools[best]))
    if is_about and has_all_required(request, tools[best]):
        return True
    kinds = (find_value_kinds(name, each) for tool in tools.values() for name, each in tool.properties.items())
    taken = set().union(*kinds)
    return not DISTINCTIVE.isdisjoint(taken.intersection(list_request_terms(request)))


def names_tool(request: str, name: str) -> bool:
    """Return whether a request contains a tool's name. Names without an underscore are ignored, because they may be
    common words."""
    return "_" in name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", request) is not None
