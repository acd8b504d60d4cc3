"""Translate calls to another dialect's tools into calls to the session's tools.

A model that knows another program may call ``Edit`` in a session that has ``apply_edit``. The call is translated if one
of the session's tools has the same operation and effect, and can express the whole call. That tool's rules and
approvals then apply. Otherwise, the called tool is reported as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import MISSING, fields, replace
from typing import Any

from adapter.core.errors import FormatError, ToolError
from adapter.core.events import Json, JsonObject
from adapter.dialects import Dialect, get_dialect, list_dialect_names
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import normalize_key
from adapter.tools.call_normalization import match_parameter, normalize_call
from adapter.tools.call_validation import MatchedCall, validate_call
from adapter.tools.decoded_json_calls import parse_arguments
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet


def translate_call(
    name: str, arguments: Mapping[str, Json] | str, tools: ToolSet, active: Dialect | None = None
) -> MatchedCall | None:
    """Translate a call to a foreign tool (another dialect's) into a call to one of ``tools``. Return None if there is
    no unambiguous translation. ``active``: the session's dialect, whose tools are not foreign."""
    translations = list(_find_translations(name, arguments, tools, active))
    operations = [call and _to_comparable(_build_operation(call)) for call in translations]
    is_unambiguous = None not in operations and all(each == operations[0] for each in operations)
    return translations[0] if translations and is_unambiguous else None


def _find_translations(
    name: str, arguments: Mapping[str, Json] | str, tools: ToolSet, active: Dialect | None
) -> Iterator[MatchedCall | None]:
    """Yield a translation for each dialect that has the called tool, or None if no session tool fits."""
    for dialect, tool in _find_foreign_tools(name, active):
        call = _validate_exactly(tool, arguments)
        if call is None:
            continue
        if isinstance(_build_operation(call), ops.PatchFiles):
            yield replace(call, notes=(f"{name} is a tool from {dialect.title}; its edits were applied",))
            continue
        candidates = [_translate_to(call, each) for each in tools.values() if each.effect == tool.effect]
        same = [translated for translated in candidates if translated is not None]
        if not same:
            yield None
            continue
        translated = min(same, key=lambda each: _count_differing_fields(each, call))
        note = f"{name} is a tool from {dialect.title}; it was run as {translated.tool.name}"
        yield replace(translated, notes=(note, *translated.notes))


def find_tools_for_effect(edit: ops.FileEdit, tools: ToolSet, called: str) -> list[Tool]:
    """Return the tools that apply one file's part of a patch. If several tools fit, the tool that the model ``called``
    is chosen. Raises ToolError if no tool fits."""
    by_call = sorted(tools.values(), key=lambda tool: tool.name != called)
    needed: list[tuple[type, str]] = [(ops.Move, "moves")] if edit.moved_to else []
    if edit.action != "update" or edit.patches:
        needed.append(_ACTIONS[edit.action])
    chosen = []
    for kind, verb in needed:
        found = next((tool for tool in by_call if isinstance(_build_example_operation(tool), kind)), None)
        if found is None:
            raise ToolError(f"this session has no tool that {verb} files; remove {edit.path} from the patch")
        chosen.append(found)
    return chosen


_ACTIONS: dict[ops.FileAction, tuple[type, str]] = {
    "update": (ops.PatchText, "edits"),
    "add": (ops.WriteText, "writes"),
    "delete": (ops.Delete, "deletes"),
}


def _build_example_operation(tool: Tool) -> ops.Operation | None:
    """Return the operation of the tool's example, or None if it has no example or no class."""
    return tool.validate(tool.example).to_operation() if tool.validate is not None and tool.example else None


def extract_apply_patch(arguments: Mapping[str, Json] | str) -> str | None:
    """Return the patch in a command that runs ``apply_patch``, a program of Codex, or None for other commands.

    Models trained with Codex write ``["apply_patch", PATCH]``, ``["bash", "-lc", LINE]`` or only LINE, which contains
    the patch as a here-document.
    """
    try:
        given, _ = parse_arguments(arguments)
    except FormatError:
        return None
    match given.get("command", given.get("cmd")):
        case ["apply_patch" | "applypatch", str(patch)]:
            return patch
        case [_, "-c" | "-lc", str(line)] | str(line):
            match = _HERE_DOCUMENT.fullmatch(line)
            return match["patch"] if match else None
    return None


_HERE_DOCUMENT = re.compile(
    r"""\s*apply_?patch\s*<<-?\s*(?P<quote>['"]?)(?P<end>\w+)(?P=quote)[ \t]*\n(?P<patch>.*)\n(?P=end)\s*""", re.DOTALL
)


def _find_foreign_tools(name: str, active: Dialect | None) -> list[tuple[Dialect, Tool]]:
    """Return the foreign tools whose documented name is ``name``. If there are none, return the tools with this
    alias."""
    foreign = [
        (dialect, tool)
        for dialect in map(get_dialect, list_dialect_names())
        if active is None or dialect.name != active.name
        if (tool := ToolSet(kind.build_tool() for kind in dialect.classes).match(name)) is not None
    ]
    return [(dialect, tool) for dialect, tool in foreign if name in dialect.list_tool_names(aliases=True)] or foreign


def _validate_exactly(tool: Tool, arguments: Mapping[str, Json] | str) -> MatchedCall | None:
    """Validate a call to ``tool``. Return None unless it is valid and the tool accepts every argument."""
    try:
        given, _ = parse_arguments(arguments)
        _, named, _ = normalize_call(tool.name, given, ToolSet([tool]))
        if named.keys() - {*tool.properties, *tool.unlisted}:
            return None
        return validate_call(tool.name, named, ToolSet([tool]))
    except (FormatError, ToolError):
        return None


def _translate_to(call: MatchedCall, target: Tool) -> MatchedCall | None:
    """Translate a foreign call into a call to ``target``, or return None if this would change the operation."""
    wanted = _build_operation(call)
    named: JsonObject = {}
    minimal = _build_operation_without(call, call.arguments.keys() - set(call.tool.required))
    for key, value in call.arguments.items():
        if _build_operation_without(call, {key}) == wanted:
            continue
        parameter = _match_parameter(key, call.tool, target)
        if parameter is None:
            minimal = None  # the argument may request the default of ``target``
        elif parameter in named:
            return None
        else:
            named[parameter] = value
    try:
        translated = validate_call(target.name, named, ToolSet([target]))
    except ToolError:
        return None
    return translated if _is_same_operation(_build_operation(translated), wanted, minimal) else None


def _match_parameter(key: str, foreign: Tool, target: Tool) -> str | None:
    """Return the parameter of ``target`` for the foreign parameter ``key``, by the names that either tool accepts."""
    known = (*target.properties, *target.unlisted)
    if key in known:
        return key
    spellings = {normalize_key(alias) for alias in foreign.argument_aliases.get(key, ())}
    others = [name for name in known if normalize_key(name) in spellings]
    return match_parameter(key, target) or (others[0] if len(others) == 1 else None)


def _is_same_operation(one: ops.Operation | None, wanted: ops.Operation | None, minimal: ops.Operation | None) -> bool:
    """Return whether two operations are equal, ignoring optional fields that the call does not set.

    ``minimal``: the operation of the same call without its optional arguments. A field in which it equals ``wanted``
    counts as not set. If ``minimal`` is None, all fields must be equal.
    """
    if one is None or wanted is None or type(one) is not type(wanted):
        return False
    if isinstance(wanted, ops.Delete):
        minimal = None  # a deletion must not exceed the request
    if isinstance(one, ops.PatchText) and isinstance(wanted, ops.PatchText):
        has_same_basis = len(one.patches) <= 1 or one.basis == wanted.basis
        if not has_same_basis:
            return False
    one, wanted, minimal = map(_to_comparable, (one, wanted, minimal))
    for field in fields(one):
        requested = getattr(wanted, field.name)
        is_optional = field.default is not MISSING or field.default_factory is not MISSING
        is_unset = is_optional and type(minimal) is type(wanted) and getattr(minimal, field.name) == requested
        if getattr(one, field.name) != requested and not is_unset:
            return False
    return True


def _count_differing_fields(one: MatchedCall, other: MatchedCall) -> int:
    """Return the number of fields in which two calls with the same operation differ."""
    left, right = _to_comparable(_build_operation(one)), _to_comparable(_build_operation(other))
    return sum(getattr(left, field.name) != getattr(right, field.name) for field in fields(left))


def _to_comparable(operation: ops.Operation | None) -> Any:
    """Return an operation for comparison. An edit's patches become tolerant, because the two tools may differ in
    this."""
    if not isinstance(operation, ops.PatchText):
        return operation
    patches = tuple(replace(each, exact=False) for each in operation.patches)
    return replace(operation, patches=patches, names=ops.ParameterNames())


def _build_operation(call: MatchedCall) -> ops.Operation | None:
    return call.validated.to_operation() if call.validated is not None else None


def _build_operation_without(call: MatchedCall, omitted: Set[str]) -> ops.Operation | None:
    """Return the call's operation without the arguments ``omitted``, or None if the call is then invalid."""
    given = {key: value for key, value in call.arguments.items() if key not in omitted}
    try:
        return _build_operation(validate_call(call.tool.name, given, ToolSet([call.tool])))
    except ToolError:
        return None
