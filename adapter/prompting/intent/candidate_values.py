"""Find candidate values for a tool's parameters in a request. Constrained decoding then allows only these values.

Candidates are the quoted strings, paths, numbers, URLs, dates, names and enum values in the request. A value next to a
parameter's name is assigned to this parameter: "a base of 10 and a height of 5". A parameter without candidates is not
constrained.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.core.text.word_stems import STOP_WORDS, split_words, stem_word, stem_words
from adapter.prompting.intent import text_values as spelled
from adapter.prompting.intent.text_values import Value
from adapter.prompting.intent.value_kinds import PATHS, find_value_kinds, get_description
from adapter.tools.argument_synonyms import COMMAND, DESTINATION, SOURCE
from adapter.tools.coercion import list_types
from adapter.tools.tool import Tool

MAX_CHOICES = 200
"""Maximum number of candidates per parameter. More do not help a model, and slow the grammar down."""
MAX_REQUEST_WORDS = 60
"""Maximum number of words in a request. In a longer one, nearly every word would be a candidate."""
MAX_DISTANCE = 4.0
"""Maximum distance between a value and a parameter's name. Each word between them adds 1.5, a stop word 0.5."""
MAX_REQUEST_CHARS = 2_500
"""Maximum length of a request, in characters. A longer one is a document that may contain any word."""

_WORD = re.compile(r"[^\W_]+")
_CLAUSE_END = re.compile(r"[.,;!?\n]|\b(?:and|or|but|then)\b")
_Span: TypeAlias = tuple[int, int]

_SHAPED = ("_mail_", "_url_", "_date_", "_time_")
_NUMERIC = {"integer", "number"}
_PERCENT = re.compile(r"(?i)%|percent|\bpct\b")
_NAME = re.compile(r"(?<=[^\s.!?] )[A-Z][\w-]*(?: (?:(?:de|of|the) )?[A-Z0-9][\w-]*)*")
"""Matches capitalized words that do not begin a sentence."""
_EDGES = "many much between within around near under over before after during per using"
_NO_VALUE = STOP_WORDS.union(_EDGES.split())
"""Words that a value neither begins nor ends with."""


def narrow_tool(request: str, tool: Tool) -> tuple[Tool, dict[str, list[str]]]:
    """Narrow ``tool`` to the parameters and values that a request mentions.

    Return the tool with only its required and mentioned parameters, and the candidates for each string parameter by its
    name. For parameters of other types, the candidates become an ``enum`` in the tool's schema.
    """
    candidates = {name: found for name in tool.properties if (found := find_candidates(request, tool, name))}
    matched = match_by_proximity(request, tool.properties, _select_scalars(tool, candidates))
    used = [value for values in matched.values() for value in values]
    rest = {
        name: [value for value in values if not _overlaps(value, used)] or values
        for name, values in candidates.items()
        if name not in matched
    }
    matched |= _assign_in_order(request, tool, rest)
    candidates = {**rest, **matched}
    kept = {
        name: schema
        for name, schema in tool.properties.items()
        if name in tool.required or name in matched or _is_mentioned(request, name, schema, candidates)
    }
    texts = {name: list(map(str, candidates[name])) for name in kept if name in candidates and _is_text(kept[name])}
    for name in kept.keys() & candidates.keys() - texts.keys():
        kept[name] = {**kept[name], "enum": list(candidates[name])}
    required = [name for name in kept if name in tool.required or name in matched]
    return replace(tool, parameters={**tool.parameters, "properties": kept, "required": required}), texts


def has_all_required(request: str, tool: Tool) -> bool:
    """Return whether the request contains a candidate for each of the tool's required strings and numbers."""
    simple = (name for name in tool.required if list_types(tool.properties.get(name)) & {*_NUMERIC, "string"})
    return all(find_candidates(request, tool, name) for name in simple)


def find_candidates(request: str, tool: Tool, name: str) -> Sequence[Json]:
    """Return the candidates in the request for the tool's parameter ``name``, or [] if there are none."""
    schema = tool.properties.get(name)
    if not isinstance(schema, dict):
        return []
    types = list_types(schema)
    if isinstance(schema.get("enum"), list):
        known = set(stem_words(request))
        return [each for each in schema["enum"] if (words := stem_words(str(each))) and known.issuperset(words)]
    if "array" in types:
        return list(_find_lists(request, tool, schema))
    if _is_text(schema):
        found = [] if schema.keys() & {"pattern", "const"} else _find_texts(request, name, schema)
        return [each for each in found if not tool.is_risky or _is_target(each, request, name, tool)][:MAX_CHOICES]
    return list(dict.fromkeys(_find_numbers(request, name, schema)))[:MAX_CHOICES] if types & _NUMERIC else []


def _is_target(value: str, request: str, name: str, tool: Tool) -> bool:
    """Return whether ``value`` is precise enough to be the target of a risky tool.

    A path must be complete or quoted. Any other value must look like a value.
    """
    is_path = PATHS & find_value_kinds(name, tool.properties[name]) or name in (*SOURCE, *DESTINATION)
    if not is_path or name in COMMAND:
        return _may_be_value(value)
    quoted = () if tool.properties.keys() & set(COMMAND) else spelled.find_quoted(request)
    return value in (*spelled.find_paths(request), *quoted)


def _find_lists(request: str, tool: Tool, schema: JsonObject) -> Iterator[list[Json]]:
    """Yield the candidates for a list parameter: the lists that are written in the request.

    If the request contains no list, the only candidate is a list of all its numbers or quoted strings. There is no
    candidate if another required parameter could need some of these values.
    """
    if written := spelled.find_lists(request):
        yield from (value for value, _ in written)
        return
    types = list_types(schema.get("items"))
    others = [list_types(each) for name in tool.required if (each := tool.properties.get(name)) is not schema]
    rivals = {*types, "array", *(_NUMERIC if types & _NUMERIC else ())}
    if types and types <= {*_NUMERIC, "string"} and not any(each & rivals for each in others):
        numbers = [each.value for each in spelled.find_numbers(request)]
        found: list[Json] = [*(spelled.find_quoted(request) if types == {"string"} else numbers)]
        yield from [found] if len(found) > 1 else []


def _find_numbers(request: str, name: str, schema: JsonObject) -> Iterator[int | float]:
    """Yield the numbers in the request that are within the parameter's bounds.

    "5 %" is 0.05, or 5 if the parameter is an integer or a percentage.
    """
    is_whole = "number" not in list_types(schema)
    as_percent = is_whole or _PERCENT.search(f"{name} {get_description(schema)}")
    for each in spelled.find_numbers(request):
        value = each.value if as_percent else each.share
        is_inside = schema.get("minimum", value) <= value <= schema.get("maximum", value)
        if is_inside and not (is_whole and isinstance(value, float)):
            yield value


def _find_texts(request: str, name: str, schema: JsonObject) -> list[str]:
    kinds, quoted, paths = find_value_kinds(name, schema), spelled.find_quoted(request), spelled.find_paths(request)
    for kind in _SHAPED:
        if kind in kinds and (found := spelled.find_values_of_kind(kind, request)):
            return found
    if kinds & PATHS and paths:
        return paths
    if len(request.split()) > MAX_REQUEST_WORDS:
        return []
    if "_text_" in kinds and (found := [piece for piece in dict.fromkeys(quoted) if piece not in paths]):
        return found
    if "_code_" in kinds and (found := spelled.find_values_of_kind("_code_", request)):
        return found
    rest = request
    for piece in (*spelled.find_values_of_kind("_date_", request), *paths, *quoted):
        rest = rest.replace(piece, "\n")
    names = _find_capitalized(rest)
    if names and "_name_" in kinds:
        return [*quoted, *names]
    rest = re.sub("|".join([r"^\W*\w+", *map(re.escape, names)]), "\n", rest)  # the verb at the start
    runs = (run for part in re.split(r"[\n,;:!?、，。；：！？]\s*", rest) for run in spelled.find_runs(part))
    some = (run for run in runs if "_text_" in kinds or _may_be_value(run))
    return list(dict.fromkeys([*quoted, *names, *some]))


def find_names(request: str) -> list[str]:
    """Return a request's quoted strings and capitalized words."""
    quoted = spelled.find_quoted(request)
    for piece in quoted:
        request = request.replace(piece, "\n")
    return [*quoted, *_find_capitalized(request)]


def _find_capitalized(text: str) -> list[str]:
    return [each for each in dict.fromkeys(_NAME.findall(text)) if each != "I"]


def _may_be_value(run: str) -> bool:
    """Return whether a run of words may be a value.

    Such a run begins with a letter, and neither begins nor ends with a stop word.
    """
    words = re.findall(r"[^\W_]+", run.lower())
    return run[0].isalpha() and run[-1].isalnum() and _NO_VALUE.isdisjoint((words[0], words[-1]))


def _is_text(schema: Json) -> bool:
    return isinstance(schema, dict) and "string" in list_types(schema) and not schema.get("enum")


def _select_scalars(tool: Tool, candidates: Mapping[str, Sequence[Json]]) -> dict[str, list[Value]]:
    """Return the candidates for string and number parameters without an enum."""
    free = (name for name in candidates if "enum" not in dict(tool.properties[name] or {}))
    return {name: [each for each in candidates[name] if isinstance(each, Value)] for name in free}


def _assign_in_order(request: str, tool: Tool, candidates: Mapping[str, Sequence[Json]]) -> dict[str, list[Json]]:
    """Assign candidates to parameters that have the same candidates, in the order in which they occur in the request.

    Such parameters form a group. A group of n parameters needs exactly n candidates; if there are more, only quoted
    ones are used, or only quoted and capitalized ones. An optional parameter belongs to a group only if all its
    candidates are quoted. Returns a list with one candidate for each parameter in a group, by the parameter's name.
    """
    groups: dict[str, list[str]] = {}
    quoted = spelled.find_quoted(request)
    for name, values in candidates.items():
        if name in tool.required or all(value in quoted for value in values):
            groups.setdefault(repr(values), []).append(name)
    found: dict[str, list[Json]] = {}
    for names in (names for names in groups.values() if len(names) > 1):
        values = candidates[names[0]]
        for some in (values, quoted, [*quoted, *_NAME.findall(request)]):
            if len(chosen := [value for value in values if value in some]) == len(names):
                found |= {name: [value] for name, value in zip(names, chosen, strict=True)}
                break
    return found


def _overlaps(value: Json, used: Sequence[Value]) -> bool:
    if not isinstance(value, str):
        return value in used
    return any(isinstance(each, str) and (value in each or each in value) for each in used)


def _is_mentioned(request: str, name: str, schema: Json, candidates: Mapping[str, Sequence[Json]]) -> bool:
    """Return whether the request mentions an optional parameter.

    A flag, list or object is mentioned by a word from its name or description. Any other parameter is mentioned by a
    candidate that is a path, an enum value or a value of a recognized kind, such as a URL.
    """
    is_certain = name in candidates and (
        "enum" in dict(schema or {}) or find_value_kinds(name, schema) & {*PATHS, *_SHAPED}
    )
    is_simple = list_types(schema) <= {"string", *_NUMERIC}
    words = stem_words(f"{name} {get_description(schema)}")
    return bool(is_certain) or (not is_simple and not set(words).isdisjoint(stem_words(request)))


# --- values next to names of parameters


def match_by_proximity(
    request: str, properties: Mapping[str, Json], candidates: Mapping[str, Sequence[Value]]
) -> dict[str, list[Value]]:
    """Return, for each parameter whose name occurs in the request, the ``candidates`` nearest to the name.

    No part of the request is used for two parameters. Only distinctive values count: numbers, quoted strings, and
    strings with a digit or capital.
    """
    if len(request) > MAX_REQUEST_CHARS:
        return {}
    quoted = spelled.find_quoted(request)
    matches: dict[tuple[str, int], list[tuple[float, Value, _Span]]] = {}
    for name, values in candidates.items():
        mentions = list(_find_mentions(request, name, properties))
        distinctive = (each for each in values if each in quoted or is_distinctive(each))
        for value, span in ((each, span) for each in distinctive for span in find_spans(request, each)):
            for distance, at in _measure_distances(request, mentions, span, is_number=not isinstance(value, str)):
                matches.setdefault((name, at), []).append((distance, value, span))
    matched: dict[str, list[Value]] = {}
    used: list[_Span] = []
    for (name, _), found in sorted(matches.items(), key=lambda each: (min(near for near, *_ in each[1]), each[0][1])):
        free = [each for each in found if not any(start < each[2][1] and each[2][0] < end for start, end in used)]
        if free and name not in matched:
            matched[name] = list(dict.fromkeys(value for _, value, _ in free))
            used += [span for *_, span in free]
    return matched


def _measure_distances(
    request: str, mentions: Sequence[tuple[int, int, float]], span: _Span, *, is_number: bool
) -> Iterator[tuple[float, int]]:
    """Yield the distance from the value at ``span`` to each near mention of a parameter, and the value's nearer end.

    ``mentions`` comes from `_find_mentions`.
    """
    start, end = span
    for first, last, doubt in mentions:
        is_behind = last <= start
        gap = request[last:start] if is_behind else request[end:first]
        distance = doubt + sum(0.5 if word in STOP_WORDS else 1.5 for word in split_words(gap))
        is_adjacent = is_behind or (end <= first and not gap.strip())
        if is_adjacent and distance <= MAX_DISTANCE and not _CLAUSE_END.search(gap):
            distance += 0 if is_behind or is_number else 1  # in "5 meters", the unit is as good as a name
            yield distance, start if is_behind else end


def is_distinctive(value: Value) -> bool:
    """Return whether a value contains a digit, capital or symbol, and neither begins nor ends with a stop word."""
    words = str(value).split()
    has_sign = any(not each.islower() and each.isalnum() for each in str(value))
    return has_sign and STOP_WORDS.isdisjoint((words[0], words[-1]))


def find_spans(request: str, value: Json) -> list[_Span]:
    """Return the start and end of each occurrence of ``value`` in a request."""
    if isinstance(value, str):
        return [match.span() for match in re.finditer(rf"(?<![\w.^]){re.escape(value)}(?!\w)", request)]
    if isinstance(value, list):
        return [span for found, span in spelled.find_lists(request) if found == value]
    return [(each.start, each.end) for each in spelled.find_numbers(request) if value in (each.value, each.share)]


def _find_mentions(request: str, name: str, properties: Mapping[str, Json]) -> Iterator[tuple[int, int, float]]:
    """Yield the start and end of each mention of a parameter, and a distance to add if the mention is uncertain.

    A parameter is mentioned by its full name, or by a word from its name or description that no other parameter's name
    or description has.
    """
    names = {each: [stem_word(word) for word in split_words(each)] for each in properties}
    texts = {each: {stem_word(word) for word in split_words(get_description(properties[each]))} for each in properties}
    own, others = names[name], {word for each in properties if each != name for word in names[each]}
    described = texts[name].difference(*(texts[each] for each in properties if each != name))
    words = [(match.span(), match[0]) for match in _WORD.finditer(request)]
    found = [stem_word(word.lower()) for _, word in words]
    for at, ((start, end), word) in enumerate(words):
        if own and found[at : at + len(own)] == own:
            yield start, words[at + len(own) - 1][0][1], 0.0 if len(own) > 1 else 0.5
        elif word.islower() and word not in STOP_WORDS:
            if found[at] in own and found[at] not in others:
                yield start, end, 1.0
            elif found[at] in described and (found[at] in own or found[at] not in others):
                yield start, end, 1.5
