"""What of a request a tool's parameters may take: the paths, quotations, numbers, dates and names that it holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from adapter.constraints.grounding import MAX_CHOICES
from adapter.constraints.mentions import quoted, runs, spelled_paths
from adapter.constraints.shapes import Choices
from adapter.prompting import currencies, dates, numbers, places, series
from adapter.prompting.beside import CALLED, Placed, Value, beside, is_a_name
from adapter.prompting.languages import ASKING, IN, NUMBERS
from adapter.prompting.narrowing import described, is_flag, json_lists, narrowed, strings
from adapter.prompting.ranking import KINDS, STOP, TYPED, asked, kinds_of, stem, words
from adapter.prompting.vocabulary import SIGN, between_known
from adapter.tools.definition import Tool, ToolSet
from adapter.tools.schema import types_of
from adapter.values.events import Json
from adapter.values.lazy_pattern import lazy_pattern

MOST_WORDS = 60
"""Of a request whose runs of words are offered as values; in a longer one nearly everything would be."""

MOST_SIGNS = 200
"""Of a Chinese or Japanese request; it has no blanks to count words by."""


def with_values(request: str, tools: ToolSet) -> tuple[ToolSet, Choices]:
    """The tools with the parameters that the request may mean, and the texts that these may take."""
    choices: dict[tuple[str, str] | str, Sequence[str]] = {}
    shown = []
    for tool in tools.values():
        meant, given = _offered(request, tool)
        placed = {name: found[0] for name, found in _beside(request, tool, meant, given).items()}
        _place(request, tool, meant, given, placed)
        counting = _counting(tool, meant)
        only = [name for name in counting if len(counting) == len(numbers.said(request)) == 1]
        for name in [name for name in meant if name not in (*tool.required, *placed, *only)]:
            is_unit = name in _UNIT and len(given.get(name, ())) == 1
            if not is_unit and not _is_wanted(name, tool.properties[name]):
                del meant[name]
                given.pop(name, None)
        choices |= {(tool.name, name): values for name, values in given.items() if values}
        flags = [name for name, schema in meant.items() if schema != tool.properties[name] and is_flag(schema)]
        required = list(dict.fromkeys([*tool.required, *placed, *only, *flags]))
        shown.append(replace(tool, parameters={**tool.parameters, "properties": meant, "required": required}))
    return ToolSet(shown), choices


def _is_wanted(name: str, schema: Json) -> bool:
    """Whether an argument that may be left out, and stands beside no value, is to be written all the same: it is a path
    or the like, a choice that is named, or a flag. A model would write something it was not asked for."""
    if not isinstance(schema, dict) or not types_of(schema) <= {"string", "number", "integer"}:
        return True
    return bool(schema.get("enum")) or bool(kinds_of(name, schema) & {"_path_", "_folder_", *TYPED})


def has_all(request: str, tool: Tool) -> bool:
    """Whether the request holds something for each parameter that a call needs, as far as that can be told."""
    meant, given = _offered(request, tool)

    def is_there(name: str) -> bool:
        kinds = types_of(tool.properties.get(name, {}))
        if kinds and kinds <= {"integer", "number"}:
            return bool(meant[name].get("enum"))
        return kinds != {"string"} or bool(meant[name].get("enum") or given.get(name))

    return all(is_there(name) for name in tool.required if name in meant)


def names_one(request: str, tool: Tool) -> bool:
    """Whether some value stands beside what a parameter is called."""
    return bool(_beside(request, tool, *_offered(request, tool)))


def placed(request: str, tool: Tool, name: str) -> list[Value]:
    """The values that stand beside what a parameter is called."""
    return [value for place in _beside(request, tool, *_offered(request, tool)).get(name, ()) for value in place.values]


def placed_often(request: str, tool: Tool) -> list[dict[str, list[Value]]]:
    """Where the request says a tool's values several times, those of each time: "a base of 3 and a height of 4, and
    another with base 5 and height 6". Values that are said once are those of each. Nothing where it says none so."""
    found: dict[str, list[Placed]] = {}
    for name, beside_it in _beside(request, tool, *_offered(request, tool)).items():
        sharp = [place for place in beside_it if place.is_sharp] or beside_it
        found[name] = sorted(sharp, key=lambda place: place.at)
    times = max((len(places) for name, places in found.items() if name in tool.required), default=0)
    found = {name: places for name, places in found.items() if name in tool.required or len(places) in (1, times)}
    if times < 2 or any(len(places) not in (1, times) for places in found.values()):
        return []
    return [{name: places[min(at, len(places) - 1)].values for name, places in found.items()} for at in range(times)]


def said_for(request: str, tool: Tool) -> tuple[dict[str, Value], list[str]]:
    """By parameter, the value that stands, and no other, beside what it is called; and the parameters that may be left
    out, of which the request speaks."""
    meant, given = _offered(request, tool)
    found = _beside(request, tool, meant, given)
    once = {name: places[0].values[0] for name, places in found.items() if len(places) == len(places[0].values) == 1}
    return once, [name for name in meant if name not in tool.required]


def _offered(request: str, tool: Tool) -> tuple[dict[str, Json], dict[str, list[str]]]:
    """The parameters that the request may mean, and the texts that it has for each."""
    meant = {
        name: narrowed(request, name, schema)
        for name, schema in tool.properties.items()
        if name in tool.required or _is_meant(request, name, schema)
    }
    arrays = [name for name in tool.required if types_of(tool.properties.get(name, {})) == {"array"}]
    if len(lists := json_lists(request)) == len(arrays) > 1:
        meant |= {name: {**meant[name], "enum": [each]} for name, each in zip(arrays, lists, strict=True)}
    given = {name: _texts(request, tool, name, schema) for name, schema in strings(meant)}
    return meant, given | _in_order(request, tool)


def _beside(
    request: str, tool: Tool, meant: Mapping[str, Json], given: Mapping[str, Sequence[str]]
) -> dict[str, list[Placed]]:
    offered: dict[str, Sequence[Value]] = {name: given[name] for name in meant if given.get(name)}
    for name in list(offered):
        if of_kind := [KINDS[kind] for kind in kinds_of(name, tool.properties[name]) & set(TYPED)]:
            offered[name] = [value for value in given[name] if any(kind.search(value) for kind in of_kind)]
    offered |= {name: meant[name]["enum"] for name in _counting(tool, meant)}
    return beside(request, tool.properties, offered)


def _counting(tool: Tool, meant: Mapping[str, Json]) -> list[str]:
    """The parameters that take a number which the request has."""
    return [name for name, schema in meant.items() if _is_number(tool.properties[name]) and schema.get("enum")]


def _place(
    request: str, tool: Tool, meant: dict[str, Json], given: dict[str, list[str]], placed: Mapping[str, Placed]
) -> None:
    """Narrow what each parameter takes to what stands beside it, which others lose as long as something is left for
    them; and as many numbers, dates or names as parameters to one each, in the order in which they are said."""
    counting = _counting(tool, meant)
    taken = [same for place in placed.values() for value in place.values for same in _same(request, value)]
    offered: dict[str, Sequence[Value]] = {name: given[name] for name in meant if given.get(name)}
    offered |= {name: meant[name]["enum"] for name in counting}
    left = {
        name: [value for value in values if not _is_part(value, taken)] or list(values)
        for name, values in offered.items()
        if name not in placed
    }
    listed = series.names(request)
    for same in _alike({name: values for name, values in left.items() if name in tool.required}):
        values = [value for value in left[same[0]] if not isinstance(value, str) or is_sharp(value, request)]
        figures = [number for number in numbers.in_figures(request) if number in values]
        if len(figures) == len(same):  # "two notes, of 440 and 880 Hz"
            values = list(figures)
        elif len(values) != len(same) == len(listed) and same[0] in given:  # "between Olten and Bern"
            values = list(listed)
        if len(values) == len(same) > 1:
            left |= {name: [value] for name, value in zip(same, values, strict=True)}
    for name, values in ({name: place.values for name, place in placed.items()} | left).items():
        if name in counting:
            meant[name] = {**meant[name], "enum": list(values)}
        else:
            given[name] = [str(value) for value in values]


def _alike(offered: Mapping[str, Sequence[Value]]) -> list[list[str]]:
    """The parameters by what they may take."""
    found: dict[tuple[Value, ...], list[str]] = {}
    for name, values in offered.items():
        found.setdefault(tuple(values), []).append(name)
    return list(found.values())


def is_sharp(value: str, request: str) -> bool:
    """A name, a code, a date, or what is quoted; no run of common words."""
    is_name = value in NAME.findall(request) or value in _quoted(request) or value in currencies.said(request)
    return is_name or any(map(str.isdigit, value))


def _is_number(schema: Json) -> bool:
    return isinstance(schema, dict) and not schema.get("enum") and bool(types_of(schema) & {"integer", "number"})


def _same(request: str, value: Value) -> list[Value]:
    """5 and 0.05 are the same of "5 %"."""
    if isinstance(value, str):
        return [value]
    return [
        each for said in numbers.said(request) if value in (said.value, said.share) for each in (said.value, said.share)
    ]


def _is_part(value: Value, taken: Sequence[Value]) -> bool:
    if not isinstance(value, str):
        return value in taken
    return any(isinstance(each, str) and (value in each or each in value) for each in taken)


def _is_meant(request: str, name: str, schema: Json) -> bool:
    """Whether the request speaks of an argument that may be left out."""
    if not isinstance(schema, dict):
        return False
    if is_a_name(name) and CALLED.search(request):
        return True
    if name in _UNIT and numbers.units(request):
        return True
    if kinds_of(name, schema) & {"_path_", "_folder_"}:
        return bool(places.folders(request))
    values = " ".join(map(str, schema.get("enum") or ()))
    said = set(words(f"{name.replace('_', ' ')} {schema.get('description') or ''} {values}"))
    return any(word in said for word in asked(request) if not word.startswith("_"))


@lru_cache(maxsize=2)
def _quoted(request: str) -> list[str]:
    return quoted(request)


@lru_cache(maxsize=2)
def _paths(request: str) -> list[str]:
    return spelled_paths(request)


def _in_order(request: str, tool: Tool) -> dict[str, list[str]]:
    """Paths, and quoted texts, one for each parameter that takes them: in the order in which they were said."""
    strings = [name for name in tool.required if types_of(tool.properties.get(name, {})) == {"string"}]
    kinds = {name: kinds_of(name, tool.properties[name]) for name in strings}
    paths = _paths(request)
    pieces = [piece for piece in dict.fromkeys(_pieces(request)) if piece not in paths]
    taking_paths = [name for name in strings if "_path_" in kinds[name]]
    taking_texts = [name for name in strings if name not in taking_paths]
    found: dict[str, list[str]] = {}
    for names, values in ((taking_paths, paths), (taking_texts, pieces)):
        if len(names) == len(values) > 1:
            if _REVERSED.search(request):
                values = values[::-1]
            found |= {name: [value] for name, value in zip(names, values, strict=True)}
    return found


_REVERSED = lazy_pattern(r"(?i)\b(?:instead of|in place of|rather than)\s+\W")


_UNIT = ("unit", "units")
"""Names of a text that says what a tool's numbers are of."""


def _texts(request: str, tool: Tool, name: str, schema: Json) -> list[str]:
    """What of the request a text may be; nothing leaves it free."""
    if not isinstance(schema, dict) or "string" not in types_of(schema) or schema.keys() & {"enum", "pattern", "const"}:
        return []
    kinds = kinds_of(name, schema)
    for kind in TYPED:
        if kind in kinds and (found := list(dict.fromkeys(KINDS[kind].findall(request)))):
            return dates.written(found, schema) if kind == "_date_" else found
    if found := described(request, schema):
        return found
    if name in _UNIT and len(found := numbers.units(request)) == 1:
        return found
    if "_currency_" in kinds and (found := currencies.said(request)):
        return found
    pieces, paths = _quoted(request), _paths(request)
    if kinds & {"_path_", "_folder_"} and (found := paths or places.folders(request)):
        return found
    if len(request.split()) > MOST_WORDS:
        return []
    if "_text_" in kinds and (found := [piece for piece in _pieces(request) if piece not in paths]):
        return found
    if "_code_" in kinds and (found := _codes(request, name)):
        return found
    if "_place_" in kinds and (found := places.named(request)):
        return found
    rest = KINDS["_date_"].sub("\n", request)
    for piece in (*paths, *pieces):
        rest = rest.replace(piece, "\n")
    if SIGN.search(rest):
        found = between_known(rest) if len(rest) <= MOST_SIGNS else []
        return [*pieces, *dict.fromkeys(found)][:MAX_CHOICES]
    parts = re.split(r"[\n,;:!?]\s*", rest)
    if "_text_" in kinds:
        return [*pieces, *dict.fromkeys(run for part in parts for run in runs(part))][:MAX_CHOICES]
    names = [name for name in dict.fromkeys(NAME.findall(rest)) if name != "I"]
    for each in names:
        parts = [piece for part in parts for piece in part.split(each)]
    is_numbered = _NUMBERED.search(name) is not None
    if is_numbered:
        pieces = pieces + re.findall(r"(?<![\w.])\d+(?![\w.])", rest)
    if names and "_name_" in kinds:
        return [*pieces, *names]
    own = set(_plain_words(tool))
    others = (run for part in parts for run in runs(part) if _is_name(run, own, is_numbered=is_numbered))
    return [*pieces, *names, *dict.fromkeys(others)][:MAX_CHOICES]


NAME = lazy_pattern(r"(?<=[^\s.!?] )[A-Z][\w'-]*(?: (?:(?:de|of|the|and) )?[A-Z0-9][\w'-]*)*")
"""Words with capitals that do not begin a sentence."""


_NUMBERED = lazy_pattern(r"(?i)number|(?:^|_)(?:id|no)(?:_|$)|code|zip|phone|account|address|street|size|year|season")
"""In the name of a text that may begin with figures, or be of them."""


def _codes(request: str, name: str) -> list[str]:
    """Those with figures, and numbers, where a parameter's name says so and there are any."""
    found = list(dict.fromkeys(KINDS["_code_"].findall(request)))
    if not _NUMBERED.search(name):
        return found
    numbered = [code for code in found if any(map(str.isdigit, code))]
    return numbered or re.findall(r"(?<![\w.,])\d{2,}(?![\w.,]\w)", request) or found


def _plain_words(tool: Tool) -> list[str]:
    return [word for word in words(f"{tool.name.replace('_', ' ')} {tool.description}") if not word.startswith("_")]


def _is_name(run: str, own: set[str], *, is_numbered: bool) -> bool:
    """Whether a run of words may be a value: it ends in no little word, and is not what the tool is called itself."""
    spelled = re.findall(r"[^\W_]+", run.lower())
    if not spelled or spelled[0] in _NO_NAME or spelled[-1] in _NO_NAME - ASKING or run[-1] in ".,;:!?":
        return False
    if spelled[0].isdigit() and not is_numbered:
        return False
    return not own.intersection(map(stem, spelled))


_NO_NAME = STOP | ASKING | IN | NUMBERS.keys()


def _pieces(request: str) -> list[str]:
    """What is quoted, and what follows a colon, or "that", to the end: words that are to be written as they stand."""
    pieces = _quoted(request)
    found = re.search(r":\s+(\S.*)$", request) or re.search(r"\b(?:that|saying)\s+(\S.*)$", request)
    said = found[1].rstrip(".") if found else ""
    return [*pieces, said] if said and not any(piece in said for piece in pieces) else pieces
