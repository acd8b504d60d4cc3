"""Check and repair the text that a model writes as a whole file.

Small models wrap the text in a code fence, copy displayed line numbers, or escape it twice. These additions are removed
if the file parses only without them. Two are always removed: a code fence around source code, and the escapes in a text
whose line breaks are all escaped, including the final one. A patch, or a part of the file, is refused.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from adapter.core.errors import EditError
from adapter.core.text.lines import to_lf
from adapter.editing.document import is_prose_file
from adapter.editing.notations.whole_file import find_fences
from adapter.editing.repairs.diff_markers import strip_line_numbers
from adapter.editing.repairs.omission_markers import find_lossy_omission
from adapter.editing.syntax_check import UncheckableError, find_new_syntax_error, find_syntax_error

_PATCH = re.compile(
    r"\s*(?:```[^\n]*\n)?(?:\*{3} Begin Patch|<{5,9} ?(?:SEARCH|ORIGINAL)\b|diff --git |--- \S.*\n\+{3} \S|@@ )"
)
_FENCE_NOTE = "the code fence around the content was removed"
_ESCAPES_NOTE = "backslash escapes in the content were undone"
_ESCAPED = re.compile(r"[^\n]*\\n[^\n]*\\n")


class FileContent(NamedTuple):
    """The text to write, and notes for the model: repairs, and the first syntax error."""

    text: str
    notes: tuple[str, ...]


def prepare_file_content(text: str, path: str, before: str = "") -> FileContent:
    """Return the content that a model intends for the file at ``path`` if it writes ``text``.

    ``before`` is the file's current text. Raises EditError if ``text`` is a patch, or only a part of the file.
    """
    is_code = "." in path.rpartition("/")[2] and not is_prose_file(path)
    if is_code and before.strip() and _PATCH.match(to_lf(text)):
        raise EditError(f"{path} was not overwritten, because the content is a patch; use the tool for edits")
    if omission := find_lossy_omission(before, text, is_prose_file(path)):
        raise EditError(
            f"{path} was not overwritten, because the content has {omission[:80]!r} instead of real lines; write every "
            "line of the file, or edit only the lines to change"
        )
    text, repairs = _repair(text, path, is_code)
    notes = [*repairs]
    if problem := find_new_syntax_error(before, text, path):
        notes.append(str(problem))
    elif not before.strip() and (reason := _describe_syntax_error(text, path)):
        notes.append(reason)
    return FileContent(text, tuple(notes))


def _describe_syntax_error(text: str, path: str) -> str:
    """Describe a new file's first syntax error, or return "". Errors without a reason from the parser are not reported,
    because the parser may be wrong."""
    with suppress(UncheckableError):
        problem = find_syntax_error(text, path)
        if problem and problem.reason:
            return f"line {problem.line} does not parse: {problem.reason}"
    return ""


def _repair(text: str, path: str, is_code: bool) -> tuple[str, Sequence[str]]:
    """Return the text without code fences, line numbers and escapes around it, and a note about each of them."""
    ways: list[tuple[str, tuple[str, ...]]] = [(text, ())]
    for outer, notes in ways:
        ways += [(inner, (*notes, note)) for inner, note in _list_unwrapped(outer) if note not in notes]
    if len(ways) == 1:
        return ways[0]
    with suppress(UncheckableError):
        if valid := next((way for way in ways if find_syntax_error(way[0], path) is None), None):
            return valid
    certain = {*[_FENCE_NOTE] * is_code, *[_ESCAPES_NOTE] * bool(_ESCAPED.fullmatch(text))}
    return max((way for way in ways if certain.issuperset(way[1])), key=lambda way: len(way[1]))


def _list_unwrapped(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text without its code fence, without line numbers, and without escapes, each with a note. Repairs that
    do not apply are skipped."""
    lines = to_lf(text).strip().split("\n")
    fences = find_fences(lines) if lines[0][:3] in ("```", "~~~") else []
    if fences == [(1, len(lines) - 1)]:
        yield "".join(f"{line}\n" for line in lines[1:-1]), _FENCE_NOTE
    for numbered in strip_line_numbers(to_lf(text)).values():
        yield numbered, "line numbers were removed from the content"
    if "\n" not in text.strip() and "\\n" in text:
        with suppress(ValueError):
            yield json.loads(f'"{text.strip()}"'), _ESCAPES_NOTE
    if (unescaped := html.unescape(text)) != text:
        yield unescaped, "HTML entities in the content were unescaped"
