"""Calls of a tool that another dialect has, understood where nothing is lost by it.

A model that knows another program calls ``Edit`` where this session has
``apply_edit``. The call is taken when the session offers a tool that does the
same (one canonical operation, one effect) and says all that the call said.
Then it is a call of that tool, with its rules and approvals. Everything else
stays an unknown tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any

from adapter.core.errors import FormatError, ToolError
from adapter.core.events import Json, JsonObject
from adapter.dialects import Dialect, dialect_names, get_dialect
from adapter.dialects.tool_class import normalized_key
from adapter.tools.call_resolution import ResolvedCall, match_parameter, normalize_call, resolve_call
from adapter.tools.call_shapes import parse_arguments
from adapter.tools.operations import (
    Delete,
    FileAction,
    FileEdit,
    Move,
    Operation,
    ParameterNames,
    PatchFiles,
    PatchText,
    WriteText,
)
from adapter.tools.tool import Tool, ToolSet


def translate_call(
    name: str, arguments: Mapping[str, Json] | str, tools: ToolSet, active: Dialect | None = None
) -> ResolvedCall | None:
    """The call of one of ``tools`` that a foreign call means; None when there is none, or more than one."""
    meant = list(_meanings(name, arguments, tools, active))
    first = meant[0] if meant else None
    if first is None or any(other is None or _plain(other) != _plain(first) for other in meant):
        return None
    return first


def _meanings(
    name: str, arguments: Mapping[str, Json] | str, tools: ToolSet, active: Dialect | None
) -> Iterator[ResolvedCall | None]:
    """For every dialect in which this is a call, the same call with the tools of the session, if they can make it."""
    for dialect, tool in _homes(name, active):
        call = _whole_call(tool, arguments)
        if call is None:
            continue
        if isinstance(_operation(call), PatchFiles):
            yield replace(call, notes=(f"{name} is a tool of {dialect.title}; it was done as the edits that it holds",))
            continue
        same = [taken for own in tools.values() if own.effect == tool.effect and (taken := _taken(call, own))]
        if not same:
            yield None
            continue
        taken = min(same, key=lambda each: _distance(each, call))
        note = f"{name} is a tool of {dialect.title}; it was taken as {taken.tool.name}"
        yield replace(taken, notes=(note, *taken.notes))


def tools_for_effect(edit: FileEdit, tools: ToolSet, called: str) -> list[Tool]:
    """The session's tools that do what a patch wants done to one file, ``called`` if it is one of them.

    Raises ToolError when there is none.
    """
    by_call = sorted(tools.values(), key=lambda tool: tool.name != called)
    wanted: list[tuple[type, str]] = [(Move, "moves")] if edit.moved_to else []
    if edit.action != "update" or edit.patches:
        wanted.append(_ACTS[edit.action])
    acting = []
    for kind, does in wanted:
        found = next((tool for tool in by_call if isinstance(_shown(tool), kind)), None)
        if found is None:
            raise ToolError(f"this session has no tool that {does} files; leave {edit.path} out of the patch")
        acting.append(found)
    return acting


_ACTS: dict[FileAction, tuple[type, str]] = {
    "update": (PatchText, "edits"),
    "add": (WriteText, "writes"),
    "delete": (Delete, "deletes"),
}


def _shown(tool: Tool) -> Operation | None:
    """What the tool's example asks for."""
    return tool.validate(tool.example).operation() if tool.validate is not None and tool.example else None


def extract_apply_patch(arguments: Mapping[str, Json] | str) -> str | None:
    """The patch that a command gives to ``apply_patch``, a program that only codex has; None for other commands.

    Models trained with codex write ``["apply_patch", PATCH]``, ``["bash", "-lc", LINE]`` or the LINE alone, in which
    the patch is a here-document.
    """
    try:
        given, _ = parse_arguments(arguments if isinstance(arguments, str | dict) else dict(arguments))
    except FormatError:
        return None
    match given.get("command", given.get("cmd")):
        case ["apply_patch" | "applypatch", str(patch)]:
            return patch
        case [_, "-c" | "-lc", str(line)] | str(line):
            found = _HERE_DOCUMENT.fullmatch(line)
            return found["patch"] if found else None
    return None


_HERE_DOCUMENT = re.compile(
    r"""\s*apply_?patch\s*<<-?\s*(?P<quote>['"]?)(?P<end>\w+)(?P=quote)[ \t]*\n(?P<patch>.*)\n(?P=end)\s*""", re.DOTALL
)


def _homes(name: str, active: Dialect | None) -> list[tuple[Dialect, Tool]]:
    """The other dialects that have the tool: those whose document names it, or else those that know it by an alias."""
    others = [dialect for dialect in map(get_dialect, dialect_names()) if active is None or dialect.name != active.name]
    found = [
        (dialect, tool)
        for dialect in others
        if (tool := ToolSet(kind.tool() for kind in dialect.classes).match(name)) is not None
    ]
    return [(dialect, tool) for dialect, tool in found if name in dialect.tool_names(aliases=True)] or found


def _whole_call(tool: Tool, arguments: Mapping[str, Json] | str) -> ResolvedCall | None:
    """The call of that tool, if it takes every argument."""
    try:
        given, _ = parse_arguments(arguments if isinstance(arguments, str | dict) else dict(arguments))
        _, named, _ = normalize_call(tool.name, given, ToolSet([tool]))
        if named.keys() - {*tool.properties, *tool.unlisted}:
            return None
        return resolve_call(tool.name, named, ToolSet([tool]))
    except (FormatError, ToolError):
        return None


def _taken(call: ResolvedCall, own: Tool) -> ResolvedCall | None:
    """The foreign call with the names of ``own``, if that asks for the same."""
    wanted = _operation(call)
    said = {key: value for key, value in call.arguments.items() if _without(call, key) != wanted}
    named: JsonObject = {}
    unnamed = []
    for key, value in said.items():
        parameter = _parameter(key, call.tool, own)
        if parameter is None:
            unnamed.append(key)  # it may be what this tool always does
            continue
        if parameter in named:
            return None
        named[parameter] = value
    try:
        taken = resolve_call(own.name, named, ToolSet([own]))
    except ToolError:
        return None
    return taken if _asks_the_same(_operation(taken), wanted, None if unnamed else _least(call)) else None


def _parameter(key: str, foreign: Tool, own: Tool) -> str | None:
    """What ``own`` calls the parameter ``key`` of ``foreign``, by the names that either accepts."""
    known = (*own.properties, *own.unlisted)
    if key in known:
        return key
    spellings = {normalized_key(alias) for alias in foreign.argument_aliases.get(key, ())}
    others = [name for name in known if normalized_key(name) in spellings]
    return match_parameter(key, own) or (others[0] if len(others) == 1 else None)


def _asks_the_same(own: Operation | None, wanted: Operation | None, least: Operation | None) -> bool:
    """Whether the operations differ at most where nothing was said, in what each dialect has for a default."""
    if own is None or wanted is None or type(own) is not type(wanted):
        return False
    if isinstance(wanted, Delete):
        least = None  # what is removed is never more than was said
    if isinstance(own, PatchText) and isinstance(wanted, PatchText):
        if len(own.patches) > 1 and own.basis != wanted.basis:
            return False
        # An edit that must be exact may be so here, too, or be helped; old and new text are what was said.
        own, wanted = _loosely(own), _loosely(wanted)
        least = _loosely(least) if isinstance(least, PatchText) else least
    for field in fields(own):
        said, here = getattr(wanted, field.name), getattr(own, field.name)
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        if said != here and not (has_default and type(least) is type(wanted) and getattr(least, field.name) == said):
            return False
    return True


def _distance(one: ResolvedCall, other: ResolvedCall) -> int:
    """In how many fields two calls of one operation differ."""
    own, wanted = _plain(one), _plain(other)
    return sum(getattr(own, field.name) != getattr(wanted, field.name) for field in fields(own))


def _loosely(patch: PatchText) -> PatchText:
    return replace(patch, patches=tuple(replace(one, exact=False) for one in patch.patches), names=ParameterNames())


def _plain(call: ResolvedCall) -> Any:
    operation = _operation(call)
    return _loosely(operation) if isinstance(operation, PatchText) else operation


def _operation(call: ResolvedCall) -> Operation | None:
    return call.validated.operation() if call.validated is not None else None


def _without(call: ResolvedCall, *left_out: str) -> Operation | None:
    """What the call would ask for without these arguments; None when it could not be made."""
    given = {key: value for key, value in call.arguments.items() if key not in left_out}
    try:
        return _operation(resolve_call(call.tool.name, given, ToolSet([call.tool])))
    except ToolError:
        return None


def _least(call: ResolvedCall) -> Operation | None:
    """What it would ask for with no more than it must."""
    return _without(call, *(key for key in call.arguments if key not in call.tool.required))
