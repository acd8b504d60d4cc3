"""Help for a model too small to choose: whether to call, which tool, and with which values, as far as words tell.

One place for `adapter serve`, `wrap` and `Agent`; `adapter run`, which knows the files, has
`adapter.upstream.guidance`. `choose` looks at the last request and gives what the
model is to be asked: nothing but words, or a call of one of a few tools, whose parameters take what the request holds.
benchmarks/choices.py has the figures of each part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from adapter.constraints.grammar import MAX_CALLS
from adapter.constraints.grounding import MAX_CHOICES
from adapter.constraints.mentions import quoted, runs, spelled_paths
from adapter.constraints.shapes import Choices
from adapter.prompting.examples import EXAMPLES
from adapter.prompting.ranking import KINDS, STOP, Ranking, kinds_in, kinds_of, stem, words
from adapter.prompting.roles import role_of
from adapter.tools.definition import Tool, ToolSet
from adapter.tools.schema import types_of
from adapter.values.errors import UsageError
from adapter.values.events import Json, JsonObject

ENOUGH = 2.0
"""Of a request's score: from there on its words fit a tool."""

MOST_WORDS = 60
"""Of a request whose runs of words are offered as values; in a longer one nearly everything would be."""

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
    """Where several calls are to be made: the tools of each."""


def choose(request: str, tools: ToolSet, *, must_call: bool = False, parts: Parts = Parts()) -> Chosen:
    """For a request in words. ``must_call``: whatever its words say."""
    scores = Ranking(tools, _sayings(tools)).scores(request)
    if parts.decides and not must_call and not _wants_call(request, tools, scores):
        return Chosen()
    few = ToolSet(tools[name] for name in _few(request, tools, scores, parts.shortlist))
    choices: Choices = {}
    if parts.values:
        few, choices = _with_values(request, few)
    return Chosen(few, choices, _each(request, few) if parts.counts else ())


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


def _wants_call(request: str, tools: ToolSet, scores: Mapping[str, float]) -> bool:
    if _REFUSED.search(request):
        return False
    if _DEMANDED.search(request) or any(_is_spelled(name, request) for name in tools):
        return True
    if max(scores.values(), default=0.0) >= ENOUGH:
        return True
    taken = {kind for tool in tools.values() for kind in kinds_in(tool)}
    return bool(set(words(request)) & taken & NARROW)


NARROW = frozenset({"_path_", "_folder_", "_mail_", "_url_", "_date_", "_time_", "_code_"})
"""Kinds of values that people name when they want something done with them."""


# ---------------------------------------------------------------------- values


def _with_values(request: str, tools: ToolSet) -> tuple[ToolSet, Choices]:
    """The tools with the parameters that the request may mean, and the texts that these may take."""
    choices: dict[tuple[str, str] | str, Sequence[str]] = {}
    shown = []
    for tool in tools.values():
        meant = {
            name: _narrowed(request, schema)
            for name, schema in tool.properties.items()
            if name in tool.required or _is_meant(request, name, schema)
        }
        given = {name: _texts(request, tool, name, schema) for name, schema in _strings(meant)}
        given |= _in_order(request, tool)
        choices |= {(tool.name, name): values for name, values in given.items() if values}
        shown.append(replace(tool, parameters={**tool.parameters, "properties": meant}))
    return ToolSet(shown), choices


def _strings(properties: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """The parameters that take texts, those inside lists and objects included."""
    for name, schema in properties.items():
        if not isinstance(schema, dict):
            continue
        if "string" in types_of(schema):
            yield name, schema
        items = schema.get("items")
        if isinstance(items, dict):
            yield from _strings({name: items})
        if isinstance(inner := schema.get("properties"), dict):
            yield from _strings(inner)


def _is_meant(request: str, name: str, schema: Json) -> bool:
    """Whether the request speaks of an argument that may be left out."""
    if not isinstance(schema, dict):
        return False
    if kinds_of(name, schema) & {"_path_", "_folder_"}:
        return bool(_places(request))
    values = " ".join(map(str, schema.get("enum") or ()))
    said = set(words(f"{name.replace('_', ' ')} {schema.get('description') or ''} {values}"))
    return any(word in said for word in words(request) if not word.startswith("_"))


def _narrowed(request: str, schema: Json) -> Json:
    """A number, or a list of them, as one of those that the request has; of choices those that it names."""
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("enum"), list):
        asked = set(words(request))
        named = [value for value in schema["enum"] if (of := words(str(value))) and asked.issuperset(of)]
        return {**schema, "enum": named} if named else schema
    types = types_of(schema)
    if "array" in types and isinstance(items := schema.get("items"), dict):
        return _counted(request, {**schema, "items": _narrowed(request, items)})
    if not types & {"integer", "number"} or "string" in types:
        return schema
    fitting = [each for each in _numbers(request, whole="number" not in types) if _fits(each, schema)]
    return {**schema, "enum": fitting} if fitting else schema


def _counted(request: str, schema: JsonObject) -> JsonObject:
    """A list with no more items than the request has of what one of them needs: small models do not end a list."""
    items: JsonObject = schema["items"]
    named = [(name, each) for name, each in _strings({"item": items}) if kinds_of(name, each) & _COUNTED.keys()]
    counts = [len(items["enum"])] if items.get("enum") else []
    counts += [len(_COUNTED[kind](request)) for name, each in named for kind in kinds_of(name, each) & _COUNTED.keys()]
    most = min((count for count in counts if count), default=0)
    return {**schema, "maxItems": max(most, schema.get("minItems") or 0)} if most else schema


_COUNTED: Mapping[str, Callable[[str], Sequence[str]]] = {
    **{kind: KINDS[kind].findall for kind in ("_mail_", "_url_", "_date_", "_time_")},
    "_path_": spelled_paths,
}


def _numbers(request: str, *, whole: bool) -> list[int | float]:
    found: list[int | float] = []
    for text in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w|\.\d)", request):
        number = float(text)
        if number == int(number):
            found.append(int(number))
        elif not whole:
            found.append(number)
    return list(dict.fromkeys(found))


def _fits(number: float, schema: JsonObject) -> bool:
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    return (lowest is None or number >= lowest) and (highest is None or number <= highest)


def _in_order(request: str, tool: Tool) -> dict[str, list[str]]:
    """Paths, and quoted texts, one for each parameter that takes them: in the order in which they were said."""
    strings = [name for name in tool.required if types_of(tool.properties.get(name, {})) == {"string"}]
    kinds = {name: kinds_of(name, tool.properties[name]) for name in strings}
    paths = spelled_paths(request)
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


_REVERSED = re.compile(r"(?i)\b(?:instead of|in place of|rather than)\s+\W")


def _texts(request: str, tool: Tool, name: str, schema: Json) -> list[str]:
    """What of the request a text may be; nothing leaves it free."""
    if not isinstance(schema, dict) or "string" not in types_of(schema) or schema.keys() & {"enum", "pattern", "const"}:
        return []
    kinds = kinds_of(name, schema)
    for kind in ("_mail_", "_url_", "_date_", "_time_"):
        if kind in kinds and (found := KINDS[kind].findall(request)):
            return list(dict.fromkeys(found))
    pieces, paths = quoted(request), spelled_paths(request)
    if kinds & {"_path_", "_folder_"} and (found := paths or _places(request)):
        return found
    if len(request.split()) > MOST_WORDS:
        return []
    if "_text_" in kinds and (found := [piece for piece in _pieces(request) if piece not in paths]):
        return found
    if "_code_" in kinds and (found := KINDS["_code_"].findall(request)):
        return list(dict.fromkeys(found))
    rest = request
    for piece in (*paths, *pieces):
        rest = rest.replace(piece, "\n")
    parts = re.split(r"[\n,;:!?]\s*", rest)
    if "_text_" in kinds:
        return [*pieces, *dict.fromkeys(run for part in parts for run in runs(part))][:MAX_CHOICES]
    names = list(dict.fromkeys(_NAME.findall(rest)))
    for each in names:
        parts = [piece for part in parts for piece in part.split(each)]
    own = set(_plain_words(tool))
    others = (run for part in parts for run in runs(part) if _is_name(run, own))
    return [*pieces, *names, *dict.fromkeys(others)][:MAX_CHOICES]


_NAME = re.compile(r"(?<=[^\s.!?] )[A-Z][\w'-]*(?: (?:(?:de|of|the|and) )?[A-Z0-9][\w'-]*)*")
"""Words with capitals that do not begin a sentence."""


def _plain_words(tool: Tool) -> list[str]:
    return [word for word in words(f"{tool.name.replace('_', ' ')} {tool.description}") if not word.startswith("_")]


def _is_name(run: str, own: set[str]) -> bool:
    """Whether a run of words may be a value: it ends in no little word, and is not what the tool is called itself."""
    spelled = re.findall(r"[^\W_]+", run.lower())
    if not spelled or spelled[0] in STOP or spelled[-1] in STOP or spelled[0].isdigit():
        return False
    return not own.intersection(map(stem, spelled))


def _pieces(request: str) -> list[str]:
    """What is quoted, and what follows a colon, or "that", to the end: words that are to be written as they stand."""
    pieces = quoted(request)
    found = re.search(r":\s+(\S.*)$", request) or re.search(r"\b(?:that|saying)\s+(\S.*)$", request)
    said = found[1].rstrip(".") if found else ""
    return [*pieces, said] if said and not any(piece in said for piece in pieces) else pieces


def _places(request: str) -> list[str]:
    """Where something is to be done: a path after "in" and the like, or a word there that stands alone."""
    found = re.findall(r"(?i)\b(?:in|inside|under|within) (?:the (?:folder |directory )?)?([\w./-]*\w/?)", request)
    return [place for place in dict.fromkeys(found) if stem(place.lower()) not in _EVERYWHERE]


_EVERYWHERE = frozenset(
    map(stem, ("project", "code", "file", "repository", "repo", "all", "every", "this", "my", "our"))
)


# ----------------------------------------------------------------- how many


def _each(request: str, tools: ToolSet) -> tuple[ToolSet, ...]:
    """The tool once for each value that a list in the request names, where it is the only one and takes one of them."""
    if len(tools) != 1 or not re.search(r"(?i)\b(?:and|both|each|per)\b", request):
        return ()
    (tool,) = tools.values()
    if len(tool.required) != 1:
        return ()
    name = tool.required[0]
    schema = tool.properties.get(name, {})
    values = _listed(request, name, schema) if isinstance(schema, dict) else []
    if not 1 < len(values) <= MAX_CALLS:
        return ()

    def with_value(value: Json) -> ToolSet:
        properties = {**tool.properties, name: {**schema, "enum": [value]}}
        return ToolSet([replace(tool, parameters={**tool.parameters, "properties": properties})])

    return tuple(map(with_value, values))


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
    joined = re.search(rf"({_NAME.pattern})((?:, {_ONE})*),? and (?:in |of |for |at |from |with )?({_ONE})", request)
    if joined is None:
        return []
    return list(dict.fromkeys([joined[1], *re.findall(_ONE, joined[2]), joined[3]]))


_ONE = r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)*"
