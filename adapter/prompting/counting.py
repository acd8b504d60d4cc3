"""How many calls of a tool a request wants, and which of its values are for which."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from adapter.constraints.grammar import MAX_CALLS
from adapter.constraints.mentions import quoted, spelled_paths
from adapter.prompting import numbers, places, series
from adapter.prompting.languages import AND, AND_SIGNS, EACH
from adapter.prompting.narrowing import choices_named, json_lists, narrowed
from adapter.prompting.offering import is_sharp, placed, placed_often, said_for, with_values
from adapter.prompting.ranking import KINDS, kinds_of
from adapter.prompting.repeating import parts
from adapter.tools.definition import Tool, ToolSet
from adapter.tools.schema import types_of
from adapter.values.events import Json, JsonObject
from adapter.values.lazy_pattern import lazy_pattern

Time: TypeAlias = dict[str, list[Json]]
"""By parameter, what one call may take."""


def times_of(request: str, tool: Tool) -> list[Time]:
    """For each call of several that the request wants of this tool, the values that it says for that: of each of its
    parts, of each time it says them, or else of lists, one for each of some parameters."""
    once, optional = said_for(request, tool)
    times = _given_lists(request, tool)
    for shared in ({}, once) if not times else ():
        pieces = parts(request, tool, shared, optional)
        if len(pieces) == 1 or len(pieces) > MAX_CALLS:
            return []
        times = times or _of_parts(request, pieces, tool, shared, optional)
    if not times and _SEVERAL.search(request):
        times = _of_pairs(request, tool) or _of_lists(request, tool, optional)
    if times:
        times = _with_choices(request, tool, _with_numbers(request, tool, once, times))
    return times if 1 < len(times) <= MAX_CALLS else []


def _with_numbers(request: str, tool: Tool, once: Collection[str], times: list[Time]) -> list[Time]:
    """Numbers that are said for all calls are none of those that are said for one."""
    own = {value for time in times for values in time.values() for value in values if isinstance(value, int | float)}
    shared = [name for name in tool.required if _is_number(tool.properties.get(name, {})) and name not in once]
    for name in (name for name in shared if not any(name in time for time in times)):
        left = [value for value in numbers.meant(request, name, tool.properties[name]) if value not in own]
        if left:
            times = [{**time, name: left} for time in times]
    return times


def _is_number(schema: Json) -> bool:
    return isinstance(schema, dict) and not schema.get("enum") and bool(types_of(schema) & {"integer", "number"})


def _with_choices(request: str, tool: Tool, times: list[Time]) -> list[Time]:
    """Each call once for each choice, where the request names several that no call has for its own: "for 2015 and 2020,
    both monthly and yearly"."""
    for name, schema in tool.properties.items():
        named = choices_named(request, schema) if not any(name in time for time in times) else []
        if 1 < len(named) <= MAX_CALLS // len(times):
            times = [{**time, name: [value]} for time in times for value in named]
    return times


_SEVERAL = lazy_pattern(rf"(?i)(?<!\w)(?:{'|'.join((*AND, *EACH))})(?!\w)|{AND_SIGNS}")


def _of_parts(
    request: str, pieces: Sequence[str], tool: Tool, shared: Collection[str], optional: Sequence[str]
) -> list[Time]:
    """What each part of a request says, for a call that is about that part. A part in which nothing but common words
    could be a text has that of the part before: "a room in Oslo for Ann, then the same for Bob"."""
    times: list[Time] = []
    for piece in pieces:
        shown, choices = with_values(piece, ToolSet([tool]))
        properties = shown[tool.name].properties
        said = {name: each["enum"] for name, each in properties.items() if _is_narrower(each, tool.properties[name])}
        said |= {name: choices[tool.name, name] for name in properties if choices.get((tool.name, name))}
        counted = [name for name in optional if name not in said and _is_number(tool.properties[name])]
        said |= {name: found for name in counted if (found := numbers.meant(piece, name, tool.properties[name]))}
        times.append({name: list(values) for name, values in said.items()})
    for name in tool.properties:
        told = [_sharp(time.get(name, ()), piece) for time, piece in zip(times, pieces, strict=True)]
        if name in shared or not all(name in time for time in times):
            for time in times:
                time.pop(name, None)
        elif not all(told):
            listed = _listed(request, tool, name, tool.properties[name])
            for at, time in enumerate(times):  # "'Dara' in 2019, then the same in 2018"
                before = next((each for each in (*told[at::-1], *told[at:]) if each), time[name])
                time[name] = [listed[at]] if len(listed) == len(times) else before
    return times if all(times) else []


def _sharp(values: Sequence[Json], piece: str) -> list[Json]:
    """Of what a parameter may take, what is quoted in a part of the request; else what is no common word."""
    pieces = quoted(piece)
    found = [value for value in values if value in pieces]
    return found or [value for value in values if not isinstance(value, str) or is_sharp(value, piece)]


def _is_narrower(schema: Json, than: Json) -> bool:
    return schema != than and _has_choices(schema)


def _given_lists(request: str, tool: Tool) -> list[Time]:
    """Several lists as JSON, and none inside another, for a tool that takes one."""
    taking = [name for name in tool.required if types_of(tool.properties.get(name, {})) == {"array"}]
    others = [name for name in tool.required if name not in taking and not _has_choices(tool.properties.get(name, {}))]
    lists = [] if "[[" in request.replace(" ", "") else json_lists(request)
    return [{taking[0]: [each]} for each in lists] if len(taking) == 1 and not others and len(lists) > 1 else []


def _has_choices(schema: Json) -> bool:
    return isinstance(schema, dict) and bool(schema.get("enum"))


def _of_pairs(request: str, tool: Tool) -> list[Time]:
    """For a tool that needs two texts."""
    if len(tool.required) != 2 or any(types_of(tool.properties.get(name, {})) != {"string"} for name in tool.required):
        return []
    first, second = tool.required
    return [{first: [one], second: [other]} for one, other in series.pairs(request)]


def _of_lists(request: str, tool: Tool, optional: Sequence[str]) -> list[Time]:
    """As many calls as the request says the tool's values, or as its lists have items, of which each call has one."""
    times: list[Time] = [dict(time) for time in placed_often(request, tool)]
    lists: dict[str, list[Json]] = {}
    for name in (*tool.required, *optional):
        schema = narrowed(request, name, tool.properties.get(name, {}))
        values = _listed(request, tool, name, schema) if isinstance(schema, dict) else []
        if len(values) > len(times) and all(each in values for time in times for each in time.get(name, ())):
            times = [{**times[0]} for _ in values] if len(times) > 1 else times  # "a term of 15, 20 and 30 years"
        if len(values) > 1 and values not in lists.values() and len(values) == len(times or values):
            lists[name] = values
    counts = {len(values) for values in lists.values()}
    if len(counts) > 1:
        return times
    times = times or [{} for _ in range(max(counts, default=0))]
    return [time | {name: [values[at]] for name, values in lists.items()} for at, time in enumerate(times)]


def _listed(request: str, tool: Tool, name: str, schema: JsonObject) -> list[Json]:
    """What the request lists for a parameter; for a text only where that is the only one."""
    types = types_of(schema)
    if types and types <= {"integer", "number"}:
        return _numbers_listed(request, tool, name)
    if schema.get("enum"):
        return choices_named(request, schema)
    placing = [each for each in tool.required if "_place_" in kinds_of(each, tool.properties.get(each, {}))]
    if placing == [name] and len(found := places.with_regions(request)) > 1:
        return list(found)
    texts = [each for each in tool.required if "string" in types_of(tool.properties.get(each, {}))]
    if types != {"string"} or texts != [name] or any(types_of(each) == {"array"} for each in tool.properties.values()):
        return []
    kinds = kinds_of(name, schema)
    for kind in ("_mail_", "_url_", "_date_", "_time_", "_code_"):
        if kind in kinds:
            return list(dict.fromkeys(KINDS[kind].findall(request)))
    if kinds & {"_path_", "_folder_"}:
        return list(spelled_paths(request))
    return list(series.names(request) or series.quotations(request))


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
    beside_it = placed(request, tool, name)
    is_beside = any(value in values for value in beside_it)
    return values if is_beside or (taking == [name] and not beside_it) else []
