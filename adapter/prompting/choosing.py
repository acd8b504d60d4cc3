"""Help for a model too small to choose: whether to call, which tool, and with which values, as far as words tell.

One place for `adapter serve`, `wrap` and `Agent`; `adapter run`, which knows the files, has
`adapter.upstream.guidance`. `choose` looks at the last request and gives what the
model is to be asked: nothing but words, or a call of one of a few tools, whose parameters take what the request holds.
benchmarks/choices.py has the figures of each part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from adapter.constraints.grammar import MAX_CALLS
from adapter.constraints.mentions import spelled_paths
from adapter.constraints.shapes import Choices
from adapter.prompting.examples import EXAMPLES
from adapter.prompting.offering import NAME, has_all, names_one, narrowed, placed_often, with_values
from adapter.prompting.ranking import KINDS, Ranking, kinds_in, kinds_of, words
from adapter.prompting.roles import role_of
from adapter.tools.definition import Tool, ToolSet
from adapter.tools.schema import types_of
from adapter.values.errors import UsageError
from adapter.values.events import Json, JsonObject

ENOUGH = 2.0
"""Of a request's score: from there on its words fit a tool."""

SOME, MANY = 2, 3
"""Words that a request shares with a tool."""

_REFUSED = re.compile(r"(?i)\b(?:no|not?\s+(?:use|call)|without|don't\s+(?:use|call))\s+(?:\w+\s+){0,2}?tools?\b")
_DEMANDED = re.compile(r"(?i)\b(?:use|call|with)\s+(?:\w+\s+){0,2}?tools?\b")


GUIDE_MODES = ("auto", "on", "off")
"""auto: models that their server says are small are helped."""


def check_guide(mode: str) -> None:
    """Raises UsageError for none of `GUIDE_MODES`."""
    if mode not in GUIDE_MODES:
        raise UsageError(f"unknown guide {mode!r}; expected {', '.join(GUIDE_MODES)}")


@dataclass(frozen=True, slots=True)
class Parts:
    """Which help is given.

    ``decides``: whether words decide if a call is made. ``shortlist``: how many tools are offered, None for all.
    ``values``: parameters take what the request holds. ``counts``: as many calls as it names.
    """

    decides: bool = True
    shortlist: int | None = 1
    values: bool = True
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to ask for: a call of ``tools``, none of which means an answer in words."""

    tools: ToolSet = field(default_factory=ToolSet)
    choices: Choices = field(default_factory=dict)
    each: tuple[ToolSet, ...] = ()
    """Where several calls are to be made: the tools of each, with what their parameters may take."""


def choose(request: str, tools: ToolSet, *, must_call: bool = False, parts: Parts = Parts()) -> Chosen:
    """For a request in words. ``must_call``: whatever its words say."""
    request = _without_quotes_around(request)
    ranking = Ranking(tools, _sayings(tools))
    scores = ranking.scores(request)
    if parts.decides and not must_call and not _wants_call(request, tools, ranking, scores):
        return Chosen()
    few = ToolSet(tools[name] for name in _few(request, tools, scores, parts.shortlist))
    shown, choices = with_values(request, few) if parts.values else (few, {})
    times = _times(request, few) if parts.counts else []
    free = {key: values for key, values in choices.items() if not times or key[-1] not in times[0]}
    return Chosen(shown, free, tuple(_at_a_time(shown, time) for time in times))


def _without_quotes_around(request: str) -> str:
    """A request that is quoted as a whole quotes nothing."""
    text = request.strip()
    inner = text[1:-1]
    return inner if text[:1] == text[-1:] and text[:1] in ('"', "'") and text[:1] not in inner else request


def _sayings(tools: ToolSet) -> dict[str, list[str]]:
    """By tool, what people say when they mean one that does what a usual file tool does."""
    found: dict[str, list[str]] = {}
    for tool in tools.values():
        if known := role_of(tool):
            role, own = known
            requests = [each.request for each in EXAMPLES if each.tool == role and set(each.arguments) <= set(own)]
            found[tool.name] = [role.replace("_", " "), *requests]
    return found


def _few(request: str, tools: ToolSet, scores: Mapping[str, float], count: int | None) -> list[str]:
    """The ``count`` nearest tools; where no words fit, those that read a file first, which does no harm."""
    names = list(scores)
    held = set(words(request))
    if max(scores.values(), default=0.0) < ENOUGH and "_path_" in held and "_text_" not in held:
        names.sort(key=lambda name: (role_of(tools[name]) or ("",))[0] != "read_file")
    names.sort(key=lambda name: not _is_spelled(name, request))
    return names[:count]


def _is_spelled(name: str, request: str) -> bool:
    """Whether a request has the name of a tool, which is no common word."""
    return "_" in name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", request) is not None


def _wants_call(request: str, tools: ToolSet, ranking: Ranking, scores: Mapping[str, float]) -> bool:
    if _REFUSED.search(request):
        return False
    if _DEMANDED.search(request) or any(_is_spelled(name, request) for name in tools):
        return True
    nearest = next(iter(scores), None)
    if nearest and (scores[nearest] >= ENOUGH or _is_about(request, tools[nearest], ranking)):
        return True
    taken = {kind for tool in tools.values() for kind in kinds_in(tool)}
    return bool(set(words(request)) & taken & NARROW)


def _is_about(request: str, tool: Tool, ranking: Ranking) -> bool:
    """Whether words that are not rare among the tools at hand tell, as of few tools none is: many of them, or some and
    a value beside a parameter's name; and all that a call needs is there."""
    shared = len(ranking.shared_with(tool.name, request))
    return shared >= SOME and (shared >= MANY or names_one(request, tool)) and has_all(request, tool)


NARROW = frozenset({"_path_", "_folder_", "_mail_", "_url_", "_date_", "_time_", "_code_"})
"""Kinds of values that people name when they want something done with them."""


# ----------------------------------------------------------------- how many


def _times(request: str, tools: ToolSet) -> list[dict[str, list[Json]]]:
    """For each call that the request wants of the only tool, the values that it says for that: of each time it says
    them, or else of the one parameter those of a list."""
    if len(tools) != 1 or not re.search(r"(?i)\b(?:and|both|each|per)\b", request):
        return []
    (tool,) = tools.values()
    times: list[dict[str, list[Json]]] = [dict(time) for time in placed_often(request, tool)]
    if not times and len(tool.required) == 1:
        name = tool.required[0]
        schema = narrowed(request, name, tool.properties.get(name, {}))
        times = [{name: [value]} for value in _listed(request, name, schema)] if isinstance(schema, dict) else []
    return times if 1 < len(times) <= MAX_CALLS else []


def _at_a_time(shown: ToolSet, time: Mapping[str, Sequence[Json]]) -> ToolSet:
    (tool,) = shown.values()
    held: dict[str, Json] = {}
    for name, values in time.items():
        schema = tool.properties[name]
        held[name] = {**(schema if isinstance(schema, dict) else {}), "enum": list(values)}
    properties = {**tool.properties, **held}
    return ToolSet([replace(tool, parameters={**tool.parameters, "properties": properties})])


def _listed(request: str, name: str, schema: JsonObject) -> list[Json]:
    if schema.get("enum"):
        return list(schema["enum"])
    if types_of(schema) != {"string"}:
        return []
    kinds = kinds_of(name, schema)
    for kind in ("_mail_", "_url_", "_date_", "_time_", "_code_"):
        if kind in kinds:
            return list(dict.fromkeys(KINDS[kind].findall(request)))
    if kinds & {"_path_", "_folder_"}:
        return list(spelled_paths(request))
    joined = re.search(rf"({NAME.pattern})((?:, {_ONE})*),? and (?:in |of |for |at |from |with )?({_ONE})", request)
    if joined is None:
        return []
    return list(dict.fromkeys([joined[1], *re.findall(_ONE, joined[2]), joined[3]]))


_ONE = r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)*"
