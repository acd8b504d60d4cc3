"""Help for a model too small to choose: whether to call, which tool, and with which values, as far as words tell.

One place for `adapter serve`, `wrap` and `Agent`; `adapter run`, which knows the files, has
`adapter.upstream.guidance`. `choose` looks at the last request and gives what the
model is to be asked: nothing but words, or a call of one of a few tools, whose parameters take what the request holds.
benchmarks/choices.py has the figures of each part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from adapter.constraints.grammar import MAX_CALLS
from adapter.constraints.mentions import spelled_paths
from adapter.constraints.shapes import Choices
from adapter.prompting import numbers, series
from adapter.prompting.examples import EXAMPLES
from adapter.prompting.languages import AND, DEMANDED, EACH, REFUSED
from adapter.prompting.narrowing import json_lists, narrowed
from adapter.prompting.offering import has_all, names_one, placed, placed_often, with_values
from adapter.prompting.ranking import KINDS, Ranking, kinds_in, kinds_of, words
from adapter.prompting.roles import role_of
from adapter.tools.definition import Tool, ToolSet
from adapter.tools.schema import types_of
from adapter.values.errors import UsageError
from adapter.values.events import Json, JsonObject
from adapter.values.fields import field, frozen, replace
from adapter.values.lazy_pattern import lazy_pattern

ENOUGH = 2.0
"""Of a request's score: from there on its words fit a tool."""

SOME, MANY = 2, 3
"""Words that a request shares with a tool."""


GUIDE_MODES = ("auto", "on", "off")
"""auto: models that their server says are small are helped."""


def check_guide(mode: str) -> None:
    """Raises UsageError for none of `GUIDE_MODES`."""
    if mode not in GUIDE_MODES:
        raise UsageError(f"unknown guide {mode!r}; expected {', '.join(GUIDE_MODES)}")


@frozen
class Parts:
    """Which help is given.

    ``decides``: whether words decide if a call is made. ``shortlist``: how many tools are offered, None for all.
    ``values``: parameters take what the request holds. ``counts``: as many calls as it names.
    """

    decides: bool = True
    shortlist: int | None = 1
    values: bool = True
    counts: bool = True


ALL = Parts()


@frozen
class Chosen:
    """What to ask for: a call of ``tools``, none of which means an answer in words."""

    tools: ToolSet = field(default_factory=ToolSet)
    choices: Choices = field(default_factory=dict)
    each: tuple[ToolSet, ...] = ()
    """Where several calls are to be made: the tools of each, with what their parameters may take."""


def choose(request: str, tools: ToolSet, *, must_call: bool = False, parts: Parts = ALL) -> Chosen:
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
    if REFUSED.search(request):
        return False
    if DEMANDED.search(request) or any(_is_spelled(name, request) for name in tools):
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
    them, or else of lists, one for each of some parameters."""
    if len(tools) != 1:
        return []
    (tool,) = tools.values()
    times = _given_lists(request, tool)
    if not times and _SEVERAL.search(request):
        times = _of_pairs(request, tool) or _of_lists(request, tool)
    return times if 1 < len(times) <= MAX_CALLS else []


_SEVERAL = lazy_pattern(rf"(?i)(?<!\w)(?:{'|'.join((*AND, *EACH))})(?!\w)")


def _given_lists(request: str, tool: Tool) -> list[dict[str, list[Json]]]:
    """Several lists as JSON, for a tool that takes one."""
    taking = [name for name in tool.required if types_of(tool.properties.get(name, {})) == {"array"}]
    lists = json_lists(request)
    return [{taking[0]: [each]} for each in lists] if len(taking) == 1 and len(tool.required) == 1 else []


def _of_pairs(request: str, tool: Tool) -> list[dict[str, list[Json]]]:
    """For a tool that needs two texts."""
    if len(tool.required) != 2 or any(types_of(tool.properties.get(name, {})) != {"string"} for name in tool.required):
        return []
    first, second = tool.required
    return [{first: [one], second: [other]} for one, other in series.pairs(request)]


def _of_lists(request: str, tool: Tool) -> list[dict[str, list[Json]]]:
    """As many calls as the request says the tool's values, or as its lists have items, of which each call has one."""
    times: list[dict[str, list[Json]]] = [dict(time) for time in placed_often(request, tool)]
    lists: dict[str, list[Json]] = {}
    for name in tool.required:
        schema = narrowed(request, name, tool.properties.get(name, {}))
        values = _listed(request, tool, name, schema) if isinstance(schema, dict) else []
        if len(values) > 1 and values not in lists.values() and len(values) == len(times or values):
            lists[name] = values
    counts = {len(values) for values in lists.values()}
    if len(counts) > 1:
        return times
    times = times or [{} for _ in range(max(counts, default=0))]
    return [time | {name: [values[at]] for name, values in lists.items()} for at, time in enumerate(times)]


def _at_a_time(shown: ToolSet, time: Mapping[str, Sequence[Json]]) -> ToolSet:
    (tool,) = shown.values()
    held: dict[str, Json] = {}
    for name, values in time.items():
        schema = tool.properties[name]
        held[name] = {**(schema if isinstance(schema, dict) else {}), "enum": list(values)}
    properties = {**tool.properties, **held}
    return ToolSet([replace(tool, parameters={**tool.parameters, "properties": properties})])


def _listed(request: str, tool: Tool, name: str, schema: JsonObject) -> list[Json]:
    """What the request lists for a parameter; for a text only where that is the only one."""
    types = types_of(schema)
    if types and types <= {"integer", "number"}:
        return _numbers_listed(request, tool, name)
    if schema.get("enum"):
        return list(schema["enum"]) if schema != tool.properties[name] else []
    texts = [each for each in tool.required if "string" in types_of(tool.properties.get(each, {}))]
    if types != {"string"} or texts != [name]:
        return []
    kinds = kinds_of(name, schema)
    for kind in ("_mail_", "_url_", "_date_", "_time_", "_code_"):
        if kind in kinds:
            return list(dict.fromkeys(KINDS[kind].findall(request)))
    if kinds & {"_path_", "_folder_"}:
        return list(spelled_paths(request))
    return list(series.names(request))


def _numbers_listed(request: str, tool: Tool, name: str) -> list[Json]:
    """The only series of numbers, where this is the only parameter that takes a number, or it stands beside one of
    them: "for 10, 20 and 30 years"."""
    runs = numbers.series(request)
    fitting = numbers.meant(request, name, tool.properties[name])
    if len(runs) != 1 or not all({each.value, each.share} & {*fitting} for each in runs[0]):
        return []
    values: list[Json] = [each.value if each.value in fitting else each.share for each in runs[0]]
    counting = {"integer", "number", "array"}
    taking = [each for each in tool.required if types_of(tool.properties.get(each, {})) & counting]
    is_beside = any(value in values for value in placed(request, tool, name))
    return values if taking == [name] or is_beside else []
