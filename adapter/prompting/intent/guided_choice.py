"""Plan a very small model's answer to a request: words, or a call to the best-matching tool with the request's values.

`adapter serve`, `wrap`, `Agent` and `adapter run` all use `plan_guided_choice`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from adapter.core.events import JsonObject
from adapter.grammars.schema_ir import Choices
from adapter.prompting.intent.candidate_values import has_all_required, narrow_tool
from adapter.prompting.intent.further_calls import find_further_arguments
from adapter.prompting.intent.text_values import find_known_paths, find_paths, find_quoted, unquote
from adapter.prompting.intent.tool_ranking import ToolRanking, list_request_terms
from adapter.prompting.intent.value_kinds import PATHS, find_value_kinds
from adapter.tools.argument_synonyms import COMMAND
from adapter.tools.coercion import list_types
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

_READS = re.compile(r"(?i)(?:read|view|open|show|cat)(?:_?file\w*)?$")
"""Matches names of tools to prefer if the request is only a path, because reading a file is harmless."""
UNUSED_VALUE = 0.1
"""Factor for a tool's score, for each quoted string or path in the request that fits none of its parameters."""
MIN_SCORE = 2.0
"""Minimum BM25 score of a request that needs a tool."""
MIN_SHARED_WORDS = 3
"""Number of shared words that justify a call at any score, if the request has a value for each required parameter. In a
small tool set, every word is common and scores low."""
DISTINCTIVE = frozenset({"_path_", "_folder_", "_mail_", "_url_", "_date_", "_time_", "_code_"})
"""Kinds of values that occur mainly in requests for an action."""
_REFUSED = re.compile(r"(?i)\b(?:no|not|without|don't)\b[^.!?\n]{0,30}\btools?\b")
_DEMANDED = re.compile(r"(?i)\b(?:use|call|with)\s+(?:\w+\s+){0,2}tools?\b")


@dataclass(frozen=True, slots=True)
class GuidedChoiceSettings:
    """Settings for `plan_guided_choice`."""

    threshold: bool = True
    """True to call a tool only if its definition is similar enough to the request; False to always call one."""
    known_paths: Sequence[str] = ()
    """Paths of the workspace's files. A request can mention a known file by a part of its path."""


@dataclass(frozen=True, slots=True)
class GuidedChoice:
    """The planned answer: a call to one of ``tools``, or text if ``tools`` is empty.

    ``choices`` maps a tool's name and a string parameter's name to the parameter's allowed values.
    """

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
    fit = {name: score * UNUSED_VALUE ** _count_unused(values, request, tools[name]) for name, score in scores.items()}
    ranked = sorted(scores, key=lambda name: -fit[name])
    names = sorted(ranked, key=lambda name: not (names_tool(request, name) or (is_path_alone and _READS.match(name))))
    for name in names[:1] if is_optional else names:
        tool, found = narrow_tool(request, tools[name])
        found |= _find_known_path_candidates(tool, found, known)
        if not tool.is_risky or _names_targets(tool, found):
            return GuidedChoice(ToolSet([tool]), {(tool.name, each): values for each, values in found.items()})
    return GuidedChoice()


def should_call(request: str, tools: ToolSet, ranking: ToolRanking, scores: Mapping[str, float]) -> bool:
    """Return whether a request needs a tool. ``scores`` has the score of each tool, best first."""
    if _REFUSED.search(request):
        return False
    if _DEMANDED.search(request) or any(names_tool(request, name) for name in tools):
        return True
    best = next(iter(scores))
    if scores[best] >= MIN_SCORE:
        return True
    is_about = len(ranking.find_shared_words(best, request)) >= MIN_SHARED_WORDS
    if is_about and has_all_required(request, tools[best]):
        return True
    kinds = (find_value_kinds(name, each) for tool in tools.values() for name, each in tool.properties.items())
    taken = set().union(*kinds)
    return not DISTINCTIVE.isdisjoint(taken.intersection(list_request_terms(request)))


def names_tool(request: str, name: str) -> bool:
    """Return whether a request contains a tool's name. Names without an underscore do not count, because they may be
    common words."""
    return "_" in name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", request) is not None


def _find_known_path_candidates(
    tool: Tool, found: Mapping[str, Sequence[str]], known: Sequence[str]
) -> dict[str, list[str]]:
    """Return the candidates for each path parameter of ``tool``, using the paths of ``known`` files.

    A candidate that is the end of known paths is replaced with these paths. A parameter gets all known paths if no
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
    """Plan the next call in an answer that already contains ``calls`` (names and arguments).

    The next call takes values that no call has used. The plan has no tools if the calls have used all values in the
    request.
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
    """Return the number of ``values`` (the request's quoted strings and paths) that ``tool`` would leave unused.

    A value is used if it is the only candidate for a parameter. Returns 0 if the request has only one value.
    """
    _, found = narrow_tool(request, tool)
    taken = {value for candidates in found.values() if len(candidates) == 1 for value in candidates}
    return sum(value not in taken for value in values) if len(values) > 1 else 0


def _names_targets(tool: Tool, found: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the request contains a value for the tool's command or, without a command, for all its strings and
    lists."""
    names = [name for name in tool.properties if name in COMMAND] or tool.properties
    free = (tool.properties[name] for name in names if name not in found)
    return not any("enum" not in dict(each or {}) and {"string", "array"} & list_types(each) for each in free)
