"""Parse pairs of an old and a new text, in elements or below labels.

::

    <path>a.py</path>                In `a.py`, replace:         SEARCH:
    <old_text line=12>               ```python                   old
    old                              old                         REPLACE:
    </old_text>                      ```                         new
    <new_text>                       with:
    new                              ```python
    </new_text>                      new
                                     ```

Models write pairs if no format is prescribed; Zed prescribes the elements. Elements are named like the fields in JSON.
All code fences in a text must belong to pairs, because any other fence may be an explanation or a file. Labels without
fences are words in capitals on separate lines. After a blank line in an unfenced new text, other text may begin. Each
further paragraph must therefore be indented, or repeat a line of the old text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from adapter.core.errors import FormatError
from adapter.editing.notations.filename_detection import FENCE, find_path, find_path_above
from adapter.editing.notations.parsed_edit import ParsedEdit, close_lines
from adapter.editing.notations.whole_file import find_fences
from adapter.tools.operations import Hunk, Patch

_Pair: TypeAlias = tuple[str | None, Patch]
"""The path that precedes a pair, or None, and the pair."""

_KINDS = r"(?:_(?:text|str|string|content|code))?"
_OLD = rf"old{_KINDS}|search|find|original{_KINDS}|before"
_NEW = rf"new{_KINDS}|replace(?:ment)?|updated{_KINDS}|modified{_KINDS}|after"
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>(?P<old>{_OLD})|(?:{_NEW}))(?P<attributes>(?:\s[^<>\n]{{0,200}})?)>", re.I)
_LINE = re.compile(r"\b(?:start_)?line\s*=\s*[\"']?(\d+)")
_PATH_KEY = r"(?:path|file|file_?path|file_?name)"
_PATH = re.compile(rf"<{_PATH_KEY}>([^<>]+)</|\s{_PATH_KEY}=[\"']([^\"'\n]+)", re.I)
_MARGIN = re.compile(r"\n[ \t]*\Z")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")

_OLD_LABEL = re.compile(
    r"\b(?:replace|change|find|search|original|before|old|existing|current|update|modify)\b[^.!?]{0,200}+\W*+\Z", re.I
)
_NEW_LABEL = re.compile(
    r"\W*(?:(?:and |then )?(?:replace|change|update|swap)?(?:d| it| this| them)? ?(?:with|to|by|into)"
    r"|after|new|updated|modified|replacement)\b[^.!?]{0,80}\W*",
    re.I,
)
_UNIT = r"(?: (?:TEXT|CODE|BLOCK|LINES))?:?[*\s]*"
_OLD_WORD = re.compile(rf"[#*\s]*(?:SEARCH|FIND|OLD|ORIGINAL|BEFORE|REPLACE){_UNIT}")
_NEW_WORD = re.compile(rf"[#*\s]*(?:REPLACE(?: WITH|MENT)?|WITH|NEW|UPDATED|AFTER){_UNIT}")


def has_text_pairs(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` contain an old and a new text in elements, or only pairs below labels."""
    names = [(match["close"], match["old"] is not None) for match in _TAG.finditer("\n".join(lines))]
    return {("", True), ("", False)} <= {*names} or bool(_parse_labeled_pairs(lines))


def parse_text_pairs(lines: Sequence[str]) -> list[ParsedEdit]:
    """Return the edits of all pairs, grouped by file. Raises FormatError if an element is not closed, or if a text
    contains the tags around it."""
    edits: dict[str | None, ParsedEdit] = {}
    path: str | None = None
    for own_path, patch in _parse_labeled_pairs(lines) or _parse_elements("\n".join(lines)):
        path = own_path or path
        edits.setdefault(path, ParsedEdit(path)).patches.append(patch)
    return list(edits.values())


def _parse_elements(text: str) -> Iterator[_Pair]:
    tags, end = list(_TAG.finditer(text)), 0
    while tags:
        old_open, old_close = _take_element(tags, is_old=True)
        new_open, new_close = _take_element(tags, is_old=False)
        if text[old_close.end() : new_open.start()].strip():
            raise FormatError(f"there is text between {old_close.group()} and {new_open.group()}; remove it")
        old, new = text[old_open.end() : old_close.start()], text[new_open.end() : new_close.start()]
        is_block = new.startswith("\n")
        old, new = (_strip_margins(part) for part in (old, new))
        if is_block and not old.endswith("\n"):
            new = new.removesuffix("\n")
        line = _LINE.search(old_open["attributes"])
        above = text[end : old_open.end()]
        paths = [(element or attribute).strip() for element, attribute in _PATH.findall(above)]
        outside = above.split("\n")[:-1]
        path = paths[-1] if paths else find_path_above(outside, len(outside))
        yield path, Patch(old, new, int(line[1]) if line else None)
        end = new_close.end()


def _strip_margins(text: str) -> str:
    """Return ``text`` without the line ends next to tags on separate lines."""
    return _MARGIN.sub("\n", text).removeprefix("\n") if text.startswith("\n") else text


def _take_element(tags: list[re.Match[str]], *, is_old: bool) -> tuple[re.Match[str], re.Match[str]]:
    """Remove and return the first two tags. Raises FormatError unless they open and close an old or new text."""
    kind = "old" if is_old else "new"
    opening = tags.pop(0) if tags else None
    if opening is None or opening["close"] or (opening["old"] is not None) != is_old:
        got = opening.group() if opening is not None else "the end"
        raise FormatError(
            f"expected the opening tag of the {kind} text, got {got}; write each new text after its old one"
        )
    closing = tags.pop(0) if tags else None
    if closing is None or not closing["close"] or closing["name"].lower() != opening["name"].lower():
        raise FormatError(
            f"expected </{opening['name']}> after {opening.group()}; if the {kind} text itself contains such tags, "
            "give old_text and new_text in JSON"
        )
    return opening, closing


def _parse_labeled_pairs(lines: Sequence[str]) -> list[_Pair]:
    """Return the pairs below labels. Return an empty list if the text has anything else that may be an edit, or if the
    labels are in elements."""
    tag = next((number for number, line in enumerate(lines) if _TAG.search(line)), len(lines))
    if tag < len(lines) and not any(_OLD_WORD.fullmatch(line) or FENCE.fullmatch(line) for line in lines[:tag]):
        return []
    fences = find_fences(lines)
    return _parse_fenced_pairs(lines, fences) if fences else _parse_worded_pairs(lines)


def _parse_fenced_pairs(lines: Sequence[str], fences: Sequence[tuple[int, int]]) -> list[_Pair]:
    pairs: list[_Pair] = []
    end = 0
    for old, new in zip(fences[::2], fences[1::2], strict=False):
        label = next((number for number in range(old[0] - 2, end - 1, -1) if lines[number].strip()), None)
        between = [line for line in lines[old[1] + 1 : new[0] - 1] if line.strip()]
        is_pair = old[0] < old[1] and len(between) == 1 and _NEW_LABEL.fullmatch(between[0]) is not None
        if label is None or not is_pair or not _OLD_LABEL.search(lines[label]) or _NEW_LABEL.fullmatch(lines[label]):
            return []
        path = find_path(lines[label]) or find_path_above(lines[end:label], label - end)
        pairs.append((path, _build_hunk(lines[slice(*old)], lines[slice(*new)])))
        end = new[1] + 1
    return [] if len(fences) % 2 else pairs


def _parse_worded_pairs(lines: Sequence[str]) -> list[_Pair]:
    labels: list[int] = []
    for number, line in enumerate(lines):
        if (_NEW_WORD if len(labels) % 2 else _OLD_WORD).fullmatch(line):
            labels.append(number)
    pairs: list[_Pair] = []
    for old, new, end in zip(labels[::2], labels[1::2], [*labels[2::2], len(lines)], strict=False):
        texts = (_strip_blank_lines(lines[old + 1 : new]), _strip_blank_lines(lines[new + 1 : end]))
        if not all(texts) or _is_ambiguous(*texts):
            return []
        pairs.append((find_path_above(lines[:old], old) if not pairs else None, _build_hunk(*texts)))
    return [] if len(labels) % 2 else pairs


def _is_ambiguous(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether the texts contain a label, or other text may follow the new one."""
    if any(_OLD_WORD.fullmatch(line) or _NEW_WORD.fullmatch(line) for line in (*old, *new)):
        return True
    paragraphs = _BLANK_LINES.split("\n".join(new))[1:]
    return any(not text[0].isspace() and not {*old}.intersection(text.split("\n")) for text in paragraphs)


def _strip_blank_lines(lines: Sequence[str]) -> Sequence[str]:
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else ()


def _build_hunk(old: Sequence[str], new: Sequence[str]) -> Hunk:
    return Hunk(close_lines(old), close_lines(new))
