"""Parse edits from mappings, from JSON, or from text in any known edit format.

The JSON value may be an edit, a list of edits, or an object with the list under ``edits`` or a similar key. It may be
the whole text or be in a code fence. The names that other tools have for the keys are also accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.core.json.decode import decode_json
from adapter.editing.notations.apply_patch import is_apply_patch
from adapter.editing.notations.filename_detection import find_path_above
from adapter.editing.notations.parsed_edit import TWO_FORMATS, ParsedEdit
from adapter.editing.notations.registry import is_known_notation, parse_notation, require_single_file
from adapter.editing.notations.search_replace import has_blocks_or_hunks
from adapter.editing.notations.whole_file import find_fences
from adapter.tools.argument_synonyms import NEW_TEXT, OLD_TEXT, PATH, normalize_key
from adapter.tools.operations import FileEdit, Patch

T = TypeVar("T")

_TEXT_FIELDS = ("old_text", "new_text")
_LINE_FIELDS = ("start_line", "end_line")
_REPLACE_ALL = "replace_all"
_FIELDS = (*_TEXT_FIELDS, *_LINE_FIELDS, _REPLACE_ALL)
_LISTS = ("patches", "edits", "changes", "replacements", "files", "modifications", "updates")
_NESTED = ("patch", "diff", "input")
_CERTAIN_REPAIRS = (
    "comment", "curly-quotes", "python-literal", "raw-control-character", "single-quotes", "trailing-comma",
    "unquoted-key",
)  # fmt: skip
"""Repairs of JSON that do not change the texts of an edit."""
_IGNORED = {"description", "explanation", "reason", "comment", "title"}
"""Keys of explanations that models add to an edit."""


_SPELLINGS = {
    "old_text": (*OLD_TEXT, "find", "search_text", "original", "original_text"),
    "new_text": (*NEW_TEXT, "replacement", "replace_text", "replace_with", "updated_text"),
    **{name: (name,) for name in (*_LINE_FIELDS, _REPLACE_ALL)},
    "path": PATH,
}
_FIELD_NAMES = {normalize_key(name): field for field, names in _SPELLINGS.items() for name in names}


def parse_patches(text: str) -> tuple[Patch, ...]:
    """Return the patches in ``text``, which may be in any edit format. Raises FormatError if the format is unknown or
    the patches are not for a single file."""
    return tuple(require_single_file(parse_edits(text)))


def parse_file_edits(text: str) -> tuple[FileEdit, ...]:
    """Return the edits in ``text``, which may edit several files. Raises FormatError if an edit has no path."""
    edits = parse_edits(text)
    if any(edit.path is None for edit in edits):
        raise FormatError("an edit has no path; name the file in each edit, or pass the file instead of its directory")
    return tuple(
        FileEdit(edit.path, edit.action, tuple(edit.patches), edit.content, edit.moved_to)
        for edit in edits
        if edit.path
    )


def parse_edits(text: str) -> list[ParsedEdit]:
    """Return the edits of ``text`` in order. Raises FormatError if its format is unknown."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = _decode(text)
        except FormatError as error:
            if not is_known_notation(text):
                raise FormatError(f"neither valid JSON nor a known edit format: {error}") from error
        else:
            return _parse_json_edits(value)
    in_fences, outside = _parse_fenced_edits(text)
    if in_fences and (is_apply_patch(outside) or has_blocks_or_hunks(outside)):
        raise FormatError(TWO_FORMATS)
    return in_fences or parse_notation(text)


def _parse_fenced_edits(text: str) -> tuple[list[ParsedEdit], list[str]]:
    """Return the edits in JSON fences that have an old and a new text, and the lines outside these fences. Any other
    JSON may be the content of a file."""
    lines = text.split("\n")
    edits: list[ParsedEdit] = []
    outside: list[str] = []
    position = 0
    for start, end in find_fences(lines):
        body = "\n".join(lines[start:end]).strip()
        if body[:1] not in ("{", "["):
            continue
        try:
            value = _decode(body)
        except FormatError:
            continue
        if _is_edit_json(value):
            path_above = find_path_above(lines, start - 1)
            edits += (replace(edit, path=edit.path or path_above) for edit in _parse_json_edits(value))
            outside += lines[position:start]
            position = end
    return edits, [*outside, *lines[position:]]


def _decode(text: str) -> Json:
    """Decode JSON. Raises FormatError if it needs a repair that could change a text, or if text follows it."""
    decoded = decode_json(text, len(text) - len(text.lstrip()))
    uncertain = [fix for fix in decoded.fixes if fix not in _CERTAIN_REPAIRS]
    if uncertain or text[decoded.end :].strip():
        raise FormatError(f"the JSON is damaged ({', '.join(uncertain) or 'more text follows it'})")
    return decoded.value


def _is_edit_json(value: Json) -> bool:
    if isinstance(value, list):
        return bool(value) and all(map(_is_edit_json, value))
    if not isinstance(value, Mapping):
        return False
    fields = {_FIELD_NAMES.get(normalize_key(key)) for key in value}
    return set(_TEXT_FIELDS) <= fields or any(
        _is_edit_json(value[key]) for key in _LISTS if isinstance(value.get(key), list)
    )


def _parse_json_edits(value: Json) -> list[ParsedEdit]:
    """Return the edits of a JSON value. Consecutive edits of the same file are merged. Raises FormatError."""
    edits: list[ParsedEdit] = []
    for number, (item_path, item) in enumerate(_iter_items(value, None), start=1):
        if isinstance(item, ParsedEdit):
            edits.append(item)
            continue
        try:
            patch = convert_mapping_to_patch(item)
        except FormatError as error:
            raise FormatError(f"patch {number}: {error}") from None
        if edits and edits[-1].path == item_path and edits[-1].action == "update":
            edits[-1].patches.append(patch)
        else:
            edits.append(ParsedEdit(item_path, patches=[patch]))
    if not edits:
        raise FormatError("expected a list of patches, or an object with patches")
    return edits


def _iter_items(value: Json, path: str | None) -> Iterator[tuple[str | None, Json | ParsedEdit]]:
    """Yield each edit with the path of its file. A list or an edit may be encoded as JSON a second time."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = _decode(value)
        except FormatError as error:
            raise FormatError(f"expected edits, got a text that is not valid JSON ({error}): {value[:60]!r}") from error
    if isinstance(value, list):
        for item in value:
            yield from _iter_items(item, path)
        return
    if isinstance(value, Mapping):
        if isinstance(value.get("arguments"), Mapping):
            value = value["arguments"]
            assert isinstance(value, Mapping)
        own_path = next((value[key] for key in value if _FIELD_NAMES.get(normalize_key(key)) == "path"), None)
        path = own_path if isinstance(own_path, str) else path
        listed = next((value[key] for key in _LISTS if _is_listed(value.get(key))), None)
        if listed is not None:
            yield from _iter_items(listed, path)
            own_fields = {key: each for key, each in value.items() if _FIELD_NAMES.get(normalize_key(key)) in _FIELDS}
            if any(own_fields[key] for key in own_fields if _FIELD_NAMES[normalize_key(key)] in _TEXT_FIELDS):
                yield path, own_fields  # models used to a single-edit tool give one edit outside the list
            return
        nested = next((value[key] for key in _NESTED if isinstance(value.get(key), str)), None)
        if isinstance(nested, str):
            yield from ((edit.path, replace(edit, path=path or edit.path)) for edit in parse_notation(nested))
            return
    yield path, value


def _is_listed(value: Json) -> bool:
    """Return whether ``value``, found under a key such as ``edits``, has edits and is not the text of a file."""
    return isinstance(value, list | Mapping) or (isinstance(value, str) and value.lstrip()[:1] in ("{", "["))


def convert_mapping_to_patch(mapping: Json) -> Patch:
    """Convert a mapping to a patch. Raises FormatError if the mapping is invalid."""
    if not isinstance(mapping, Mapping):
        raise FormatError(f"expected an object with old_text and new_text, got {str(mapping)[:60]!r}")
    fields: dict[str, Json] = {}
    for key, value in mapping.items():
        field_name = _FIELD_NAMES.get(normalize_key(str(key)))
        if field_name is None and key not in _IGNORED:
            raise FormatError(f"unknown key {key!r}; expected {', '.join(_FIELDS)}")
        if field_name in fields:
            raise FormatError(f"{key} and another key both set {field_name}; give it once")
        if field_name is not None:
            fields[field_name] = value
    old, new = (_get_field(fields, key, str, "a text") for key in _TEXT_FIELDS)
    start, end = (_get_field(fields, key, int, "a line number") for key in _LINE_FIELDS)
    replace_all = _get_field(fields, _REPLACE_ALL, bool, "true or false")
    assert old is not None
    assert new is not None
    return Patch(old, new, start, end, bool(replace_all))


def _get_field(fields: Mapping[str, Json], key: str, kind: type[T], expected: str) -> T | None:
    """Return the value of ``key``. Raises FormatError if a text is missing or a value has the wrong type."""
    value = fields.get(key)
    if key not in fields and key in _TEXT_FIELDS:
        raise FormatError(f"{key} is missing")
    if (value is None and key in _LINE_FIELDS) or (key not in fields):
        return None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise FormatError(f"{key} must be {expected}, got {str(value)[:60]!r}")
    return value
