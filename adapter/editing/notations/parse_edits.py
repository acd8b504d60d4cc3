"""Edits as they are given: mappings, JSON, or a text in any notation that models write.

JSON may be one edit, a list, or an object with the list under ``edits`` and the like; by itself, or in
a fence with words around it. Its keys have the names that models know from other tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.editing.notations.filename_detection import find_path_above
from adapter.editing.notations.parsed_edit import ParsedEdit
from adapter.editing.notations.registry import is_known_notation, parse_notation, require_single_file
from adapter.editing.notations.whole_file import find_fences
from adapter.tools.argument_synonyms import NEW_TEXT, OLD_TEXT, PATH
from adapter.tools.operations import FileEdit, Patch

T = TypeVar("T")

_TEXTS = ("old_text", "new_text")
_HINTS = ("start_line", "end_line")
_SWITCH = "replace_all"
_KNOWN = (*_TEXTS, *_HINTS, _SWITCH)
_LISTS = ("patches", "edits", "changes", "replacements", "files", "modifications", "updates")
_NESTED = ("patch", "diff", "input")
_SAID = {"description", "explanation", "reason", "comment", "title"}
"""What models write beside an edit for the reader."""


def _spelling(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


_MEANT = {
    **{_spelling(name): "old_text" for name in (*OLD_TEXT, "find", "search_text", "original", "original_text")},
    **{
        _spelling(name): "new_text"
        for name in (*NEW_TEXT, "replacement", "replace_text", "replace_with", "updated_text")
    },
    **{_spelling(name): name for name in (*_HINTS, _SWITCH)},
    **{_spelling(name): "path" for name in PATH},
}


def parse_patches(text: str) -> tuple[Patch, ...]:
    """The patches that a text holds for one file, in any notation. Raises FormatError for anything else."""
    return tuple(require_single_file(parse_edits(text)))


def parse_file_edits(text: str) -> tuple[FileEdit, ...]:
    """The edits of several files that a text holds. Raises FormatError when one does not name its file."""
    edits = parse_edits(text)
    for edit in edits:
        if edit.path is None:
            raise FormatError("an edit names no file; name each one, or give the file instead of its directory")
    return tuple(
        FileEdit(edit.path, edit.action, tuple(edit.patches), edit.content, edit.moved_to)
        for edit in edits
        if edit.path
    )


def parse_edits(text: str) -> list[ParsedEdit]:
    """The edits that ``text`` describes, in its order. Raises FormatError for text in no known notation."""
    try:
        return _read_edits(text)
    except RecursionError as error:
        raise FormatError("the JSON is nested too deeply to be edits") from error


def _read_edits(text: str) -> list[ParsedEdit]:
    if text.lstrip()[:1] in ("{", "["):
        try:
            given = json.loads(text)
        except ValueError as error:
            if not is_known_notation(text):
                raise FormatError(f"neither JSON nor a notation of edits: {error}") from error
        else:
            return _edits(given)
    in_fences = list(_fenced_edits(text))
    return in_fences or parse_notation(text)


def _fenced_edits(text: str) -> Iterator[ParsedEdit]:
    """The edits in fences of JSON that speak of old and new text; other JSON may be a file."""
    lines = text.split("\n")
    for start, end in find_fences(lines):
        body = "\n".join(lines[start:end]).strip()
        if body[:1] not in ("{", "["):
            continue
        try:
            given = json.loads(body)
        except ValueError:
            continue
        if _speaks_of_texts(given):
            above = find_path_above(lines, start - 1)
            yield from (replace(edit, path=edit.path or above) for edit in _edits(given))


def _speaks_of_texts(given: Json) -> bool:
    if isinstance(given, list):
        return bool(given) and all(map(_speaks_of_texts, given))
    if not isinstance(given, Mapping):
        return False
    named = {_MEANT.get(_spelling(key)) for key in given}
    return set(_TEXTS) <= named or any(
        _speaks_of_texts(given[key]) for key in _LISTS if isinstance(given.get(key), list)
    )


def _edits(given: Json, path: str | None = None) -> list[ParsedEdit]:
    """The edits of a JSON value, joined by file. Raises FormatError."""
    asked: list[ParsedEdit] = []
    for number, (named, item) in enumerate(_items(given, path), start=1):
        if isinstance(item, ParsedEdit):
            asked.append(item)
            continue
        try:
            patch = patch_from_mapping(item)
        except FormatError as error:
            raise FormatError(f"patch {number}: {error}") from None
        if asked and asked[-1].path == named and asked[-1].action == "update":
            asked[-1].patches.append(patch)
        else:
            asked.append(ParsedEdit(named, patches=[patch]))
    if not asked:
        raise FormatError("expected a list of patches, or an object with patches")
    return asked


def _items(given: Json, path: str | None) -> Iterator[tuple[str | None, Json | ParsedEdit]]:
    """Each edit with its file."""
    if isinstance(given, list):
        for item in given:
            yield from _items(item, path)
        return
    if isinstance(given, Mapping):
        if isinstance(given.get("arguments"), Mapping):
            given = given["arguments"]
            assert isinstance(given, Mapping)
        named = next((given[key] for key in given if _MEANT.get(_spelling(key)) == "path"), None)
        path = named if isinstance(named, str) else path
        listed = next((given[key] for key in _LISTS if isinstance(given.get(key), list | Mapping)), None)
        if listed is not None:
            yield from _items(listed, path)
            beside = {key: value for key, value in given.items() if _MEANT.get(_spelling(key)) in _KNOWN}
            if any(beside[key] for key in beside if _MEANT[_spelling(key)] in _TEXTS):
                yield path, beside  # models that know a tool of one edit give that one so
            return
        nested = next((given[key] for key in _NESTED if isinstance(given.get(key), str)), None)
        if isinstance(nested, str):
            yield from ((edit.path, replace(edit, path=path or edit.path)) for edit in parse_notation(nested))
            return
    yield path, given


def patch_from_mapping(given: Json) -> Patch:
    """Return the patch that a mapping describes. Raises FormatError."""
    if not isinstance(given, Mapping):
        raise FormatError(f"expected an object with old_text and new_text, got {str(given)[:60]!r}")
    named: dict[str, Json] = {}
    for key, value in given.items():
        meant = _MEANT.get(_spelling(str(key)))
        if meant is None and key not in _SAID:
            raise FormatError(f"unknown key {key!r}; expected {', '.join(_KNOWN)}")
        if meant in named:
            raise FormatError(f"{key} and another key both give {meant}; give it once")
        if meant is not None:
            named[meant] = value
    old, new = (_checked(named, key, str, "a text") for key in _TEXTS)
    start, end = (_checked(named, key, int, "a line number") for key in _HINTS)
    every = _checked(named, _SWITCH, bool, "true or false")
    assert old is not None
    assert new is not None
    return Patch(old, new, start, end, bool(every))


def _checked(named: Mapping[str, Json], key: str, kind: type[T], expected: str) -> T | None:
    """The value of ``key``; lines may be missing or null. Raises FormatError for one of another kind."""
    value = named.get(key)
    if key not in named and key in _TEXTS:
        raise FormatError(f"{key} is missing")
    if (value is None and key in _HINTS) or (key not in named):
        return None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise FormatError(f"{key} must be {expected}, got {str(value)[:60]!r}")
    return value
