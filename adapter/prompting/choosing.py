"""Help for a model too small to choose: whether to call, which tool, and with which values, as far as words tell.

One place for `adapter serve`, `wrap`, `Agent` and `adapter run`. `choose` looks at the last request and gives what the
model is to be asked: nothing but words, or a call of one of a few tools, whose parameters take what the request holds.
benchmarks/choices.py has the figures of each part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from adapter.constraints.grounding import MAX_CHOICES
from adapter.constraints.mentions import quoted, runs, spelled_paths
from adapter.constraints.shapes import Choices
from adapter.prompting.examples import EXAMPLES, Example, nearest
from adapter.prompting.ranking import KINDS, STOP, Ranking, kinds_in, kinds_of, words
from adapter.prompting.roles import role_of
from adapter.tools.definition import Tool, ToolSet
from adapter.tools.schema import types_of
from adapter.values.events import Json, JsonObject

ENOUGH = 2.0
"""Of a request's score: from there on its words fit a tool."""

MOST_WORDS = 60
"""Of a request whose runs of words are offered as values; in a longer one nearly everything would be."""

MARK = "§"
"""Stands in the values of made examples, and in no text that a grammar then admits."""

_REFUSED = re.compile(r"(?i)\b(?:no|not?\s+(?:use|call)|without|don't\s+(?:use|call))\s+(?:\w+\s+){0,2}?tools?\b")
_DEMANDED = re.compile(r"(?i)\b(?:use|call|with)\s+(?:\w+\s+){0,2}?tools?\b")


@dataclass(frozen=True, slots=True)
class Parts:
    """Which help is given. ``examples``: worked ones before the request; none, ``made`` from the schemas where no others
    are known, or ``known`` only. ``decides``: whether words decide if a call is made. ``shortlist``: how many tools are
    offered, None for all. ``values``: parameters take what the request holds. ``counts``: as many calls as it names."""

    examples: Literal["none", "known", "made"] = "made"
    decides: bool = True
    shortlist: int | None = 1
    values: bool = True
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to ask for: a call of ``tools``, none of which means an answer in words."""

    tools: ToolSet = field(default_factory=ToolSet)
    examples: tuple[Example, ...] = ()
    choices: Choices = field(default_factory=dict)
    calls: int = 1


def choose(request: str, tools: ToolSet, *, must_call: bool = False, parts: Parts = Parts()) -> Chosen:
    """For a request in words. ``must_call``: whatever its words say."""
    known = known_examples(tools)
    scores = Ranking(tools, _sayings(tools, known)).scores(request)
    if parts.decides and not must_call and not _wants_call(request, tools, scores):
        return Chosen()
    few = ToolSet(tools[name] for name in _few(tools, scores, parts.shortlist))
    shown = _examples(request, tools, few, known, parts)
    choices: Choices = {}
    if parts.values:
        few, choices = _with_values(request, few)
    return Chosen(few, shown, choices, _count(request, few) if parts.counts else 1)


def _sayings(tools: ToolSet, known: Sequence[Example]) -> dict[str, list[str]]:
    """By tool, what people say when they mean it, as far as its role or its examples tell."""
    found = {name: [each.request for each in known if each.tool == name] for name in tools}
    for tool in tools.values():
        if role := role_of(tool):
            found[tool.name].append(role[0].replace("_", " "))
    return found


def _few(tools: ToolSet, scores: Mapping[str, float], count: int | None) -> list[str]:
    """The ``count`` nearest tools; where no words fit, those that read a file first, which does no harm."""
    names = list(scores)
    if max(scores.values(), default=0.0) < ENOUGH:
        names.sort(key=lambda name: (role_of(tools[name]) or ("",))[0] != "read_file")
    return names[:count]


def _wants_call(request: str, tools: ToolSet, scores: Mapping[str, float]) -> bool:
    if _REFUSED.search(request):
        return False
    if _DEMANDED.search(request) or any(re.search(rf"\b{re.escape(name)}\b", request) for name in tools if "_" in name):
        return True
    if max(scores.values(), default=0.0) >= ENOUGH:
        return True
    taken = {kind for tool in tools.values() for kind in kinds_in(tool)}
    return bool(set(words(request)) & taken & NARROW)


NARROW = frozenset({"_path_", "_folder_", "_mail_", "_url_", "_date_", "_time_", "_code_"})
"""Kinds of values that people name when they want something done with them."""


# -------------------------------------------------------------------- examples


def known_examples(tools: ToolSet) -> list[Example]:
    """The worked examples in the words of foreign tools that do what the usual ones do."""
    found: list[Example] = []
    roles = {tool.name: known for tool in tools.values() if (known := role_of(tool))}
    for example in EXAMPLES:
        for name, (usual_name, own) in roles.items():
            if usual_name == example.tool and set(example.arguments) <= set(own):
                arguments = {own[usual]: value for usual, value in example.arguments.items()}
                found.append(replace(example, tool=name, arguments=arguments))
    return found


def _examples(
    request: str, tools: ToolSet, few: ToolSet, known: Sequence[Example], parts: Parts
) -> tuple[Example, ...]:
    if parts.examples == "none":
        return ()
    pool = [example for example in known if example.tool in few]
    if parts.examples == "made":
        there = {example.tool for example in pool}
        pool += [made_example(tool) for tool in few.values() if tool.name not in there]
    return tuple(nearest(request, few, pool))


def made_example(tool: Tool) -> Example:
    """A request in the words of the definition and the call that answers it, with values that nobody could mean."""
    arguments: JsonObject = {}
    said = []
    for number, name in enumerate(tool.required):
        value = _marked(name, tool.properties.get(name, {}), number)
        arguments[name] = value
        said.append(f"{name.replace('_', ' ')} {value}")
    about = tool.description.split("\n")[0].split(". ")[0].rstrip(".") or tool.name.replace("_", " ")
    return Example(f"{about}: {', '.join(said)}" if said else about, tool.name, arguments)


def _marked(name: str, schema: Json, number: int) -> Json:
    if not isinstance(schema, dict):
        return f"{MARK}{name}{MARK}"
    if schema.get("enum"):
        return schema["enum"][-1]
    types = types_of(schema)
    if "string" in types or not types:
        return f"{MARK}{name}{MARK}"
    if "array" in types:
        return [_marked(name, schema.get("items") or {}, number)]
    if "object" in types:
        properties = schema.get("properties") or {}
        return {key: _marked(key, properties.get(key, {}), number) for key in schema.get("required") or ()}
    if "boolean" in types:
        return True
    return 70 + number


# ---------------------------------------------------------------------- values


def _with_values(request: str, tools: ToolSet) -> tuple[ToolSet, Choices]:
    """The tools with the parameters that the request may mean, and the texts that these may take."""
    choices: dict[tuple[str, str] | str, Sequence[str]] = {}
    shown = []
    for tool in tools.values():
        properties: JsonObject = {}
        for name, schema in tool.properties.items():
            if name not in tool.required and not _is_meant(request, name, schema):
                continue
            properties[name] = _numbered(request, schema)
            values = _texts(request, name, schema)
            if values:
                choices[tool.name, name] = values
        parameters = {**tool.parameters, "properties": properties}
        shown.append(replace(tool, parameters=parameters))
    return ToolSet(shown), choices


def _is_meant(request: str, name: str, schema: Json) -> bool:
    """Whether the request speaks of an argument that may be left out."""
    description = str(schema.get("description") or "") if isinstance(schema, dict) else ""
    values = " ".join(map(str, schema.get("enum") or ())) if isinstance(schema, dict) else ""
    said = {word for word in words(f"{name.replace('_', ' ')} {description} {values}") if not word.startswith("_")}
    return bool(said & set(words(request)))


def _numbered(request: str, schema: Json) -> Json:
    """A number, or a list of them, as one of those that the request has."""
    if not isinstance(schema, dict) or "enum" in schema:
        return schema
    types = types_of(schema)
    if "array" in types and isinstance(items := schema.get("items"), dict):
        return {**schema, "items": _numbered(request, items)}
    if not types & {"integer", "number"} or "string" in types:
        return schema
    numbers = _numbers(request, whole="number" not in types)
    fitting = [each for each in numbers if _fits(each, schema)]
    return {**schema, "enum": fitting} if fitting else schema


def _numbers(request: str, *, whole: bool) -> list[int | float]:
    found: list[int | float] = []
    for text in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w]|\.\d)|(?<=[$€£])\d+(?:\.\d+)?", request):
        number = float(text)
        if number == int(number):
            found.append(int(number))
        elif not whole:
            found.append(number)
    return list(dict.fromkeys(found))


def _fits(number: float, schema: JsonObject) -> bool:
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    return (lowest is None or number >= lowest) and (highest is None or number <= highest)


def _texts(request: str, name: str, schema: Json) -> list[str]:
    """What of the request a text may be; nothing leaves it free."""
    if not isinstance(schema, dict) or "string" not in types_of(schema) or schema.keys() & {"enum", "pattern", "const"}:
        return []
    kinds = kinds_of(name, schema)
    for kind in ("_mail_", "_url_", "_date_", "_time_"):
        if kind in kinds and (found := KINDS[kind].findall(request)):
            return list(dict.fromkeys(found))
    pieces, paths = quoted(request), spelled_paths(request)
    if "_path_" in kinds and paths:
        return paths
    if len(request.split()) > MOST_WORDS:
        return []
    if pieces and "_text_" in kinds:
        return [piece for piece in pieces if piece not in paths] or pieces
    if "_code_" in kinds and (found := KINDS["_code_"].findall(request)):
        return list(dict.fromkeys(found))
    rest = request
    for piece in (*paths, *pieces):
        rest = rest.replace(piece, "\n")
    spoken = (run for part in re.split(r"[\n,;:!?]\s", rest) for run in runs(part))
    return [*pieces, *dict.fromkeys(run for run in spoken if "_text_" in kinds or _is_name(run))][:MAX_CHOICES]


def _is_name(run: str) -> bool:
    """Whether a run of words does not begin or end in the middle of something else."""
    spelled = re.findall(r"[^\W_]+", run.lower())
    return bool(spelled) and spelled[0] not in STOP and spelled[-1] not in STOP


# ----------------------------------------------------------------- how many


def _count(request: str, tools: ToolSet) -> int:
    """How many calls a request names: two values of the kind of which the only tool takes one."""
    if len(tools) != 1:
        return 1
    (tool,) = tools.values()
    if len(tool.required) != 1 or not re.search(r"(?i)\b(?:and|both|,|once per|each)\b", request):
        return 1
    schema = tool.properties.get(tool.required[0], {})
    values: Sequence[object] = schema.get("enum") or [] if isinstance(schema, dict) else []
    if isinstance(schema, dict) and not values and "string" in types_of(schema):
        kinds = kinds_of(tool.required[0], schema)
        for kind in ("_mail_", "_url_", "_date_", "_time_", "_code_"):
            if kind in kinds:
                values = KINDS[kind].findall(request)
                break
        else:
            values = spelled_paths(request) if "_path_" in kinds else _named(request)
    return max(1, min(len(dict.fromkeys(values)), 8))


def _named(request: str) -> list[str]:
    """The names that a list joins: words with a capital on both sides of "and"."""
    joined = re.search(r"((?:[A-Z][\w'-]*(?: [A-Z][\w'-]*)*(?:, | and (?:in |of |for |at |from )?|, and )?){2,})", request)
    found = re.findall(r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)*", joined[1]) if joined and " and " in joined[1] else []
    return found
