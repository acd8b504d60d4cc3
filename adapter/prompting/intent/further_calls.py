"""Find the arguments of further calls in a request that lists several values for a parameter: "Rome, Oslo and Bern"."""

from __future__ import annotations

import re
from itertools import pairwise

from adapter.core.events import Json, JsonObject
from adapter.grammars.gbnf import MAX_CALLS
from adapter.prompting.intent.candidate_values import (
    MAX_REQUEST_CHARS,
    find_candidates,
    find_names,
    find_spans,
    is_distinctive,
)
from adapter.prompting.intent.text_values import find_paths, find_quoted
from adapter.tools.tool import Tool

_SEPARATOR = re.compile(
    r"(?i)[^\w.?!]*(?:[,;/、，]|\b(?P<and>and|und|et|y|e)\b)[^\w.?!]*"
    r"(?:(?:of|at|in|for|to|from|with) )?(?:(?:the|an?|another) )?[^\w.?!]*"
)
"""Matches the text between two values of a list. At least one separator in a list must be an "and"."""


def find_further_arguments(request: str, tool: Tool, arguments: JsonObject) -> list[JsonObject]:
    """Return the arguments of the calls of ``tool`` that the request needs after a first call with ``arguments``.

    At most `MAX_CALLS` - 1 calls are returned. The n-th takes the n-th further value from each list in the request, and
    repeats the first call's values for all other parameters.
    """
    if len(request) > MAX_REQUEST_CHARS:
        return []
    lists = {name: _find_listed(request, tool, name, arguments) for name in arguments.keys() & tool.properties.keys()}
    count = min(max(map(len, lists.values()), default=0), MAX_CALLS - 1)
    rows = [
        arguments | {name: found[min(index, len(found) - 1)] for name, found in lists.items() if found}
        for index in range(count)
    ]
    return [row for index, row in enumerate(rows) if row not in (arguments, *rows[:index])]


def _find_listed(request: str, tool: Tool, name: str, arguments: JsonObject) -> list[Json]:
    """Find the list in the request that contains ``arguments[name]``, and return its other values."""
    value = arguments[name]
    candidates = find_candidates(request, tool, name) or (find_names(request) if isinstance(value, str) else [])
    quoted = [*find_quoted(request), *find_paths(request)]
    is_open = isinstance(value, str) and "enum" not in tool.properties[name]
    certain = [
        each for each in candidates if not is_open or each in quoted or all(map(is_distinctive, str(each).split()))
    ]
    mentions: dict[tuple[int, int], Json] = {}
    for each in sorted([value, *certain], key=lambda each: -len(str(each))):
        for span in find_spans(request, each):
            if not any(span[0] < end and start < span[1] for start, end in mentions):
                mentions[span] = each
    series, found, has_and = list[Json](), list[Json](), False
    for one, other in pairwise([*sorted(mentions), (len(request), len(request))]):
        series.append(mentions[one])
        separator = _SEPARATOR.fullmatch(request, one[1], other[0])
        has_and |= separator is not None and separator["and"] is not None
        if separator is None:
            found = found or (series if has_and and value in series else [])
            series, has_and = [], False
    return [each for each in found if each not in arguments.values()]
