"""Choices instead of inventions: which values a request leaves open for a call.

A small model that must invent a path copies one from its prompt; one that
chooses among what was *mentioned* mostly chooses well. So for each parameter
whose meaning its name tells (a path, a text to replace, a pattern, a command)
this collects the values that the request, or a result the model has seen,
speaks of. `adapter.constraints.grammar` turns them into the only values that can be written.

The rule, for every request in every language:

- a *path* is a known file that the request names, or a path that it spells out;
  else one that an earlier result named; else any known file.
- *old text* is a quoted piece of the request, or a run of its words, that
  stands in one of those files; as a whole line where it stands there more than once.
- *new text* and *patterns* are the other quoted pieces, or runs of words.
- what deletes, moves or executes gets only what was mentioned, never the fallback.
- the *content* of a file of prose is what the request quotes.
- everything else stays free: a program, an answer, a number.

Of a parameter with no value left the grammar takes the tool out: text that is
not in the file cannot be replaced, and what nobody named is not deleted.

Tools of a client are grounded where it is asked for: by `conversational`, which goes by what
the conversation mentions, or by a `Ground` of the client's own, which knows more::

    def ground(tool, argument, messages):
        return customer_numbers() if argument == "customer" else None

    adapter.wrap(client, constraint="prefer", ground=ground)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath
from typing import Protocol

from adapter.constraints.mentions import LONGEST_RUN, directories, ends_with, mentioned, quoted, runs, spelled_paths
from adapter.constraints.shapes import Choices
from adapter.tools.definition import Tool, ToolSet
from adapter.values.callbacks import failure, require_items
from adapter.values.events import Json
from adapter.values.fields import field, frozen
from adapter.values.lazy_pattern import lazy_pattern

MAX_CHOICES = 200
"""Values offered per parameter: more are no help to a model and slow the grammar down."""

_DIRECTORIES = {"cwd", "directory", "dir"}
_PATHS = {"path", "file", "filename", "file_path", "filepath", "source", "source_path", "src"} | _DIRECTORIES
_DESTINATIONS = {"destination", "destination_path", "dest", "dst", "target", "new_path", "to"}
_OLD = {"old_text", "old_string", "old_str", "old", "search", "find"}
_NEW = {"new_text", "new_string", "new_str", "new", "replace", "replacement"}
_PATTERNS = {"pattern", "query", "regex", "search_term"}
_CONTENTS = {"content", "contents", "file_text"}
_COMMANDS = {"command", "cmd", "command_line"}
_LOOKS_INSIDE = lazy_pattern(r"(?i)list|dir|tree|find|glob|search|grep|run|shell|exec")
"""Tools whose path may be a directory."""
_RISKY = lazy_pattern(r"(?i)delete|remove|unlink|erase|drop|move|rename|overwrite|run|shell|exec|kill")
"""Tools that get no fallback, also where a client's definition says nothing about their effect."""

_PROSE = {"", ".txt", ".md", ".rst", ".log", ".csv"}
"""Suffixes of files whose content a request may quote; that of a program is more than what it prints."""


@frozen
class Evidence:
    """What has been said so far.

    ``known_paths``: files of the workspace relative to its root, with ``/``.
    ``results``: texts of earlier tool results. ``contents``: texts of files that may be edited, by known path.
    """

    request: str
    known_paths: Sequence[str] = ()
    results: Sequence[str] = ()
    contents: Mapping[str, str] = field(default_factory=dict)


def choices_for(tools: ToolSet, evidence: Evidence) -> Choices:
    """The values that each grounded parameter may take; parameters that stay free are absent."""
    choices: dict[tuple[str, str] | str, Sequence[str]] = {}
    for tool in tools.values():
        for name in _property_names(tool.parameters):
            values = _values(tool, name, evidence)
            if values is not None:
                choices[tool.name, name] = list(dict.fromkeys(values))[:MAX_CHOICES]
    return choices


class Ground(Protocol):
    """The values that an argument of a tool may take, as far as somebody knows: None leaves it free, none forbids it.

    ``messages``: the conversation so far, in OpenAI's shape. It is asked for each argument with each request, and
    must be quick. Arguments inside objects and lists are asked for by their own names. Any other answer, or an
    exception, refuses the request.
    """

    def __call__(self, tool: str, argument: str, messages: Sequence[Mapping[str, Json]]) -> Sequence[str] | None: ...


def conversational(tools: ToolSet, messages: Sequence[Mapping[str, Json]], ground: Ground | None = None) -> Choices:
    """The choices for a client's tools: those of ``ground``, or else what the conversation mentions.

    With a ``ground`` the conversation decides only for what deletes, moves, overwrites or executes:
    there nothing is offered that nobody named, whatever ``ground`` says.
    """
    evidence = _evidence_in(messages)
    choices: dict[tuple[str, str] | str, Sequence[str]] = {}
    for key, values in choices_for(tools, evidence).items():
        if isinstance(key, tuple) and (ground is None or _is_risky(tools[key[0]])):
            choices[key] = values
    if ground is None:
        return choices
    for tool in tools.values():
        for name in _property_names(tool.parameters):
            try:
                known = ground(tool.name, name, messages)
            except Exception as error:
                raise failure(ground, "ground", error, "Nothing was asked") from error
            if known is None:
                continue
            require_items(ground, "ground", known, str, "a list of texts, or None")
            mentioned_ones = choices.get((tool.name, name))
            if mentioned_ones is not None:
                known = [value for value in known if value in mentioned_ones or _is_named(value, evidence)]
            choices[tool.name, name] = list(dict.fromkeys(known))[:MAX_CHOICES]
    return choices


def _is_named(value: str, evidence: Evidence) -> bool:
    """Whether the request or a result has the value, word for word."""
    return any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) for text in (evidence.request, *evidence.results))


def _evidence_in(messages: Sequence[Mapping[str, Json]]) -> Evidence:
    """What the last request and the results say. Paths that results spell are known ones."""
    requests = [text for message in messages if message.get("role") == "user" and (text := _text_of(message))]
    results = [text for message in messages if message.get("role") == "tool" and (text := _text_of(message))]
    known = dict.fromkeys(chain.from_iterable(spelled_paths(text) for text in reversed(results)))
    return Evidence(requests[-1] if requests else "", tuple(known), tuple(results))


def _text_of(message: Mapping[str, Json]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def offered(tools: ToolSet, evidence: Evidence) -> ToolSet:
    """The tools that have room for what the request quotes.

    What somebody puts in quotes is meant to be used: a request with two quoted
    texts is not answered by a tool that takes one, as long as there is one that takes both.
    """
    texts = {piece for piece in quoted(evidence.request) if piece not in spelled_paths(evidence.request)}
    room = {tool.name: _room(tool) for tool in tools.values()}
    needed = min(len(texts), max(room.values(), default=0))
    return ToolSet(tool for tool in tools.values() if room[tool.name] >= needed)


def _room(tool: Tool) -> int:
    """How many quoted texts a call of this tool can hold, beside its path."""
    return sum(name in _OLD | _NEW | _PATTERNS | _CONTENTS | _COMMANDS for name in _property_names(tool.parameters))


def _replaces(tool: Tool) -> bool:
    names = {*_property_names(tool.parameters)}
    return bool(_OLD & names and _NEW & names)


def _looks_inside(tool: Tool) -> bool:
    return bool(_LOOKS_INSIDE.search(tool.name)) and not _replaces(tool)


def _is_risky(tool: Tool) -> bool:
    return tool.effect in ("delete", "execute") or bool(_RISKY.search(tool.name))


def _property_names(schema: Mapping[str, Json]) -> list[str]:
    """All parameter names of a schema, those inside lists and objects included."""
    names = []
    properties = schema.get("properties")
    for name, inner in (properties if isinstance(properties, Mapping) else {}).items():
        names.append(name)
        if isinstance(inner, Mapping):
            names += _property_names(inner)
    items = schema.get("items")
    return names + _property_names(items) if isinstance(items, Mapping) else names


def _values(tool: Tool, name: str, evidence: Evidence) -> list[str] | None:
    if name in _DESTINATIONS:
        return spelled_paths(evidence.request)
    if name in _PATHS:
        paths = _paths(tool, evidence)
        return [".", *(paths or [])] if name in _DIRECTORIES and _is_risky(tool) else paths
    if name in _OLD and _replaces(tool):
        return _old_texts(evidence)
    if name in _NEW and _replaces(tool):
        return _new_texts(evidence)
    if name in _PATTERNS | _OLD:
        return quoted(evidence.request) or runs(evidence.request, 3)
    if name in _CONTENTS:
        return _contents(tool, evidence)
    if name in _COMMANDS:
        return quoted(evidence.request) or runs(evidence.request, LONGEST_RUN)
    return None


# ----------------------------------------------------------------------- paths


def _paths(tool: Tool, evidence: Evidence) -> list[str] | None:
    known = list(evidence.known_paths)
    if _looks_inside(tool):
        known = [".", *directories(known), *known]
    spelled = spelled_paths(evidence.request)
    found = mentioned(known, evidence.request)
    if known and _replaces(tool):
        spelled = [path for path in spelled if path in known]  # what does not exist cannot be edited
        if not found and spelled_paths(evidence.request):
            return []
    elif found:
        spelled = [path for path in spelled if not any(ends_with(each, path) for each in found)]
    if found or spelled:
        return [*found, *spelled]
    if found := list(chain.from_iterable(mentioned(known, result) for result in evidence.results)):
        return found
    if _is_risky(tool):
        return []
    if _CONTENTS & {*tool.properties}:
        return None  # a new file that nobody named yet: its name is the model's to invent
    if _looks_inside(tool):
        return ["."]  # nothing was named: everywhere is meant
    return known or None


# ----------------------------------------------------------------------- texts


def _old_texts(evidence: Evidence) -> list[str] | None:
    """What of the request stands in the files; of an unquoted one that names nothing there, any line of them."""
    files, pieces = _editable(evidence), _pieces(evidence)
    if not files:
        return pieces or None
    if not quoted(evidence.request):
        pieces = [piece for piece in pieces if len(piece) > 2]  # shorter words stand everywhere by accident
    found = [place for text in files for piece in pieces for place in _places(piece, text)]
    if found or quoted(evidence.request):
        return _maximal(found)
    return [line for text in files for line in text.splitlines() if text.count(line) == 1]


def _new_texts(evidence: Evidence) -> list[str] | None:
    """What is left of the request beside the old text; in whole lines, put where it belongs."""
    if not evidence.contents:
        return _pieces(evidence) or None
    old = _old_texts(evidence) or []
    pieces = _pieces(evidence, leave_out=old)
    inserted = [piece for piece in pieces if not any(piece in each for each in old)]
    replaced = _pieces(evidence)
    if quoted(evidence.request) and not inserted:
        return []  # everything quoted is in the file already: nothing says what should become of it
    lines = [each for each in old if each not in replaced]
    changed = [line.replace(piece, new) for line in lines for piece in replaced if piece in line for new in inserted]
    return [text for text in changed if text not in lines] or inserted or None


def _pieces(evidence: Evidence, leave_out: Iterable[str] = ()) -> list[str]:
    """What the request may want to replace or insert: what it quotes, or else any run of its words beside the paths."""
    if found := quoted(evidence.request):
        return found
    rest = evidence.request
    for piece in [*spelled_paths(rest), *leave_out]:
        rest = rest.replace(piece, "\n")
    return [run for part in rest.splitlines() for run in runs(part)]


def _contents(tool: Tool, evidence: Evidence) -> list[str] | None:
    """For a file of prose, what the request quotes; else free."""
    paths = [path for name in tool.properties if name in _PATHS for path in _paths(tool, evidence) or []]
    pieces = [piece for piece in quoted(evidence.request) if piece not in paths]
    is_prose = bool(paths) and all(PurePosixPath(path).suffix.lower() in _PROSE for path in paths)
    return pieces if is_prose and pieces else None


def _editable(evidence: Evidence) -> list[str]:
    named = mentioned(evidence.contents, evidence.request) or list(evidence.contents)
    return [evidence.contents[path] for path in named]


def _places(piece: str, text: str) -> list[str]:
    """The piece itself where it stands in the text once; else each line with it."""
    times = text.count(piece)
    if times < 2:
        return [piece] * times
    return [line for line in text.splitlines() if piece in line]


def _maximal(pieces: Sequence[str]) -> list[str]:
    return [piece for piece in pieces if not any(piece != other and piece in other for other in pieces)]
