"""Plan a very small model's answer to a request: words, or a call to the best-matching tool with the request's values.

`adapter serve`, `wrap`, `Agent` and `adapter run` all use `plan_guided_choice`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from adapter.core.events import JsonObject
from adapter.grammars.schema_ir import Choices
from adapter.prompting.intent.bm25 import PATHS, ToolRanking, find_value_kinds, is_risky, list_request_terms
from adapter.prompting.intent.call_threshold import names_tool, should_call
from adapter.prompting.intent.candidate_values import narrow_tool
from adapter.prompting.intent.further_calls import find_further_arguments
from adapter.prompting.intent.text_values import find_known_paths, find_paths, find_quoted, unquote
from adapter.tools.argument_synonyms import COMMAND
from adapter.tools.coercion import list_types
from adapter.tools.tool import Tool, ToolSet

_READS = re.compile(r"(?i)(?:read|view|open|show|cat)(?:_?file\w*)?$")
"""Matches names of tools to prefer if the request is only a path. Reading a file is harmless."""
_UNUSED_VALUE = 0.1
"""Factor applied to a tool's score for each quoted string or path in the request that fits none of its parameters."""


@dataclass(frozen=True, slots=True)
class GuidedChoiceSettings:
    """Settings for `plan_guided_choice`."""

    threshold: bool = True
    """True to call a tool only if its definition is similar enough to the request; False to always call a tool."""
    max_tools: int | None = 1
    """Maximum number of tools offered; None for all."""
    values: bool = True
    """True to restrict parameters to values from the request."""
    known_paths: Sequence[str] = ()
    """Paths of the files in the workspace, to find the file that a request mentions by a part of its path."""


@dataclass(frozen=True, slots=True)
class GuidedChoice:
    """The planned answer: a call to one of ``tools``, or words if ``tools`` is empty. ``choices``: the values to which
    string parameters are restricted."""

    tools: ToolSet = field(default_factory=ToolSet)
    choices: Choices = field(default_factory=dict)


def plan_guided_choice(
    request: str, tools: ToolSet, settings: GuidedChoiceSettings, *, must_call: bool = False
) -> GuidedChoice:
    """Plan the answer to the last request in a conversation. ``must_call``: whether a call is required.

    A tool that deletes, moves or overwrites data, or executes commands, is offered only if the request names its
    targets.
    """
    request = unquote(request)
    known = find_known_paths(settings.known_paths, request)
    spelled = request if find_paths(request) else " ".join([request, *known[:1]])  # "the readme" names a path
    ranking = ToolRanking(tools)
    scores = ranking.score_tools(spelled)
    is_optional = settings.threshold and not must_call
    if is_optional and not should_call(spelled, tools, ranking, scores):
        return GuidedChoice()
    present = {kind for kind in list_request_terms(spelled) if kind.startswith("_")}
    is_path_alone = present == {"_path_"} and not ranking.find_shared_words(next(iter(scores)), request)
    values = {*find_quoted(request), *find_paths(request)}
    fit = {name: score * _UNUSED_VALUE ** _count_unused(values, request, tools[name]) for name, score in scores.items()}
    ranked = sorted(scores, key=lambda name: -fit[name])
    names = sorted(ranked, key=lambda name: not (names_tool(request, name) or (is_path_alone and _READS.match(name))))
    if not settings.values:
        return GuidedChoice(ToolSet(tools[name] for name in names[: settings.max_tools]))
    offered: list[Tool] = []
    choices: dict[tuple[str, str] | str, Sequence[str]] = {}
    for name in names[: settings.max_tools] if is_optional else names:
        tool, found = narrow_tool(request, tools[name])
        found |= _find_known_path_candidates(tool, found, known)
        if len(offered) != settings.max_tools and (not is_risky(tool) or _names_targets(tool, found)):
            offered.append(tool)
            choices |= {(tool.name, each): values for each, values in found.items()}
    return GuidedChoice(ToolSet(offered), choices)


def _find_known_path_candidates(
    tool: Tool, found: Mapping[str, Sequence[str]], known: Sequence[str]
) -> dict[str, list[str]]:
    """Return the candidates for each path parameter, using the paths of ``known`` files.

    A candidate that is the end of known paths is replaced by these paths. A parameter gets all known paths if no
    candidate for it is a path, or if another path parameter has the same candidates.
    """
    names = [name for name, schema in tool.properties.items() if known and PATHS & find_value_kinds(name, schema)]
    result: dict[str, list[str]] = {}
    for name in names:
        written = found.get(name, ())
        is_shared = any(found.get(other, ()) == written for other in names if other != name)
        resolved = [path for each in written if find_paths(each) for path in find_known_paths(known, each) or [each]]
        result[name] = list(dict.fromkeys([*resolved, *known] if is_shared or not resolved else resolved))
    return result


def plan_next_call(request: str, tools: ToolSet, calls: Sequence[tuple[str, JsonObject]]) -> GuidedChoice:
    """Plan the call that follows ``calls`` (names and arguments) in the same answer, with values that no call has used.

    The plan has no tools if the calls use all values of the request.
    """
    name, arguments = calls[0]
    further = find_further_arguments(unquote(request), tools[name], arguments) if name in tools else []
    if len(calls) > len(further):
        return GuidedChoice()
    tool, values = tools[name], further[len(calls) - 1]
    fixed = {each: {**dict(tool.properties.get(each) or {}), "enum": [value]} for each, value in values.items()}
    parameters = {**tool.parameters, "properties": fixed, "required": list(fixed)}
    return GuidedChoice(ToolSet([replace(tool, parameters=parameters)]))


def _count_unused(values: Collection[str], request: str, tool: Tool) -> int:
    """Return how many of ``values``, the quoted strings and paths in the request, ``tool`` would leave unused.

    A value is used if it is the only candidate for a parameter. A single value in a request is not counted.
    """
    _, found = narrow_tool(request, tool)
    taken = {value for candidates in found.values() if len(candidates) == 1 for value in candidates}
    return sum(value not in taken for value in values) if len(values) > 1 else 0


def _names_targets(tool: Tool, found: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the request contains a value for a narrowed tool's command. If the tool has no command, return
    whether the request contains a value for each of its strings and lists."""
    names = [name for name in tool.properties if name in COMMAND] or tool.properties
    free = (tool.properties[name] for name in names if name not in found)
    return not any("enum" not in dict(each or {}) and {"string", "array"} & list_types(each) for each in free)
