"""Plan the assistance for one request: an answer in words, or a call of the nearest tool with values of the request.

`plan_assist` is the one entry point, for `adapter serve`, `wrap`, `Agent` and `adapter run` alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from adapter.grammars.schema_ir import Choices
from adapter.prompting.intent.bm25 import PATHS, ToolRanking, tokens, value_kinds_of
from adapter.prompting.intent.call_threshold import names_tool, should_call
from adapter.prompting.intent.candidate_values import narrow
from adapter.prompting.intent.text_values import find_known_paths, find_paths
from adapter.tools.tool import ToolSet

_READS = re.compile(r"(?i)(?:read|view|open|show|cat)(?:_?file\w*)?$")
"""Tools to try for a path alone: reading does no harm."""


@dataclass(frozen=True, slots=True)
class AssistSettings:
    """``threshold``: whether the request's words decide if a call is made; otherwise one always is. ``max_tools``:
    the number of tools offered, None for all. ``values``: whether parameters take values of the request only.
    ``known_paths``: the files of the workspace."""

    threshold: bool = True
    max_tools: int | None = 1
    values: bool = True
    known_paths: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Assist:
    """What to ask of the model: a call of one of ``tools``, or an answer in words if there are none."""

    tools: ToolSet = field(default_factory=ToolSet)
    choices: Choices = field(default_factory=dict)


def plan_assist(request: str, tools: ToolSet, settings: AssistSettings, *, must_call: bool = False) -> Assist:
    """Plan the answer to the last request of a conversation. ``must_call``: a call is demanded, whatever its words."""
    known = find_known_paths(settings.known_paths, request)
    spelled = request if find_paths(request) else " ".join([request, *known[:1]])  # "the readme" is a path, too
    ranking = ToolRanking(tools)
    scores = ranking.scores(spelled)
    if settings.threshold and not must_call and not should_call(spelled, tools, ranking, scores):
        return Assist()
    held = {kind for kind in tokens(spelled) if kind.startswith("_")}
    is_path_alone = held == {"_path_"} and not ranking.shared_words(next(iter(scores)), request)
    names = sorted(scores, key=lambda name: not (names_tool(request, name) or (is_path_alone and _READS.match(name))))
    names = names[: settings.max_tools]
    if not settings.values:
        return Assist(ToolSet(tools[name] for name in names))
    narrowed = [narrow(request, tools[name]) for name in names]
    choices: dict[tuple[str, str] | str, Sequence[str]] = {}
    for tool, found in narrowed:
        choices |= {(tool.name, name): values for name, values in found.items()}
        if known:
            paths = (name for name, schema in tool.properties.items() if PATHS & value_kinds_of(name, schema))
            choices |= {(tool.name, name): known for name in paths}
    return Assist(ToolSet(tool for tool, _ in narrowed), choices)
