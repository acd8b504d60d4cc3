"""Whether a file still parses after an edit: the last check of what was adapted.

What a model wrote is its own affair, and is said when it breaks the file. But a text that was
read, moved or merged here may break a file that parsed only because of that; such an edit
is not made. Python, JSON and TOML are read by the standard library, other languages by
their grammars where the extra ``index`` is installed.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable
from typing import NamedTuple

MAX_CHARACTERS = 300_000
"""Of a file that is parsed: some 0.2 s."""
MAX_SECONDS = 0.5
"""For reading a file by a grammar."""
_FILE_NAME = "edited-text"
warnings.filterwarnings("ignore", module=_FILE_NAME)  # of a doubtful escape in a file that is only looked at


class SyntaxProblem(NamedTuple):
    """Where a text stops being what its file name says; ``line`` is 1-based."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line} no longer parses{': ' if self.reason else ''}{self.reason}"


class _Unknown(Exception):
    """Nothing can be said of the text."""


def find_new_syntax_error(before: str, after: str, path: str) -> SyntaxProblem | None:
    """The first mistake of ``after``, if ``before`` had none. None also where nothing can be said."""
    find = _finder(path)
    if find is None or max(len(before), len(after)) > MAX_CHARACTERS or not before.strip():
        return None
    try:
        mistake = find(after.removeprefix("\ufeff"))
        return mistake if mistake is not None and find(before.removeprefix("\ufeff")) is None else None
    except (_Unknown, RecursionError, MemoryError):
        return None


def _finder(path: str) -> Callable[[str], SyntaxProblem | None] | None:
    extension = path.rpartition("/")[2].rpartition(".")[2].lower()
    known = _FINDERS.get(extension)
    if known is not None:
        return known
    return (lambda text: _by_grammar(text, path)) if "." in path else None


def _python(text: str) -> SyntaxProblem | None:
    try:
        compile(text, _FILE_NAME, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return SyntaxProblem(error.lineno or 1, error.msg or "")
    except ValueError:
        raise _Unknown from None
    return None


def _json(text: str) -> SyntaxProblem | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return SyntaxProblem(error.lineno, error.msg)
    return None


def _toml(text: str) -> SyntaxProblem | None:
    import tomllib

    try:
        tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).partition(" (at ")
        line = place.removeprefix("line ").partition(",")[0]
        return SyntaxProblem(int(line) if line.isdecimal() else text.count("\n") + 1, reason)
    return None


_FINDERS: dict[str, Callable[[str], SyntaxProblem | None]] = {
    "py": _python,
    "pyi": _python,
    "json": _json,
    "toml": _toml,
}


def _by_grammar(text: str, path: str) -> SyntaxProblem | None:
    from adapter.core.errors import ToolError
    from adapter.outline.languages import language_of
    from adapter.outline.syntax import first_syntax_error

    language = language_of(path, text)
    if language is None:
        raise _Unknown
    try:
        line = first_syntax_error(text, language, MAX_SECONDS)
    except ToolError:  # no grammar here, or it takes too long
        raise _Unknown from None
    return None if line is None else SyntaxProblem(line, "")
