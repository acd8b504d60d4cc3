"""Help for a model too small to choose: whether to call, which tool, and with which values, as far as words tell.

One place for `adapter serve`, `wrap` and `Agent`; `adapter run`, which knows the files, has
`adapter.upstream.guidance`. `choose` looks at the last request and gives what the
model is to be asked: nothing but words, or a call of one of a few tools, whose parameters take what the request holds.
benchmarks/choices.py has the figures of each part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from adapter.constraints.shapes import Choices
from adapter.prompting.counting import times_of
from adapter.prompting.examples import EXAMPLES
from adapter.prompting.languages import DEMANDED, REFUSED, WHY
from adapter.prompting.offering import has_all, names_one, with_values
from adapter.prompting.ranking import KINDS, Ranking, kinds_in, kinds_of, words
from adapter.prompting.roles import role_of
from adapter.prompting.vocabulary import apart, is_english
from adapter.tools.definition import Tool, ToolSet
from adapter.values.errors import UsageError
from adapter.values.events import Json
from adapter.values.fields import field, frozen, replace

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
    request = apart(_without_quotes_around(request))
    ranking = Ranking(tools, _sayings(tools))
    scores = ranking.scores(request)
    if parts.decides and not must_call and not _wants_call(request, tools, ranking, scores):
        return Chosen()
    few = ToolSet(tools[name] for name in _few(request, tools, scores, parts.shortlist))
    shown, choices = with_values(request, few) if parts.values else (few, {})
    times = times_of(request, *few.values()) if parts.counts and len(few) == 1 else []
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
    nearest = next(iter(scores), None) if not WHY.search(request) else None
    if nearest and (scores[nearest] >= ENOUGH or _is_about(request, tools[nearest], ranking)):
        return True
    taken = {kind for tool in tools.values() for kind in kinds_in(tool)}
    return bool(set(words(request)) & taken & NARROW)


def _is_about(request: str, tool: Tool, ranking: Ranking) -> bool:
    """Whether words that are not rare among the tools at hand tell, as of few tools none is: many of them, or some and
    a value beside a parameter's name; and all that a call needs is there. In another language than English few words
    are known, so one of the tool's name is enough."""
    of_both = ranking.shared_with(tool.name, request)
    if not is_english(request) and not of_both.isdisjoint(words(tool.name.replace("_", " "))):
        needed = {kind for name in tool.required for kind in kinds_of(name, tool.properties.get(name, {}))}
        return has_all(request, tool) and needed & KINDS.keys() <= {*words(request)}
    shared = len(of_both)
    return shared >= SOME and (shared >= MANY or names_one(request, tool)) and has_all(request, tool)


NARROW = frozenset({"_path_", "_folder_", "_mail_", "_url_", "_date_", "_time_", "_code_"})
"""Kinds of values that people name when they want something done with them."""


def _at_a_time(shown: ToolSet, time: Mapping[str, Sequence[Json]]) -> ToolSet:
    (tool,) = shown.values()
    held: dict[str, Json] = {}
    for name, values in time.items():
        schema = tool.properties.get(name)
        held[name] = {**(schema if isinstance(schema, dict) else {}), "enum": list(values)}
    properties = {**tool.properties, **held}
    return ToolSet([replace(tool, parameters={**tool.parameters, "properties": properties})])
