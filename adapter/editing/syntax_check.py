"""Check that a file still parses after an edit.

If the model's own text breaks the file, a note reports it. If the text was repaired, reindented or merged first, that
adaptation may be the cause, and the edit is rejected. The standard library parses Python, JSON and TOML; tree-sitter
parses all other languages if the extra ``index`` is installed.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable
from typing import NamedTuple

MAX_CHARACTERS = 300_000
"""Maximum length of a file that is parsed. Parsing it takes about 0.2 s."""
MAX_SECONDS = 0.5
"""Time limit for tree-sitter, in seconds."""
_FILE_NAME = "edited-text"
warnings.filterwarnings("ignore", module=_FILE_NAME)  # invalid escapes in a file that is only checked


class SyntaxProblem(NamedTuple):
    """The first syntax error of a file; ``line`` is 1-based."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line} no longer parses{': ' if self.reason else ''}{self.reason}"


class _Unknown(Exception):
    """It is unknown whether the text is valid."""


def find_new_syntax_error(before: str, after: str, path: str) -> SyntaxProblem | None:
    """Return the first syntax error of ``after`` if ``before`` had none. Returns None if they cannot be checked."""
    find = _checker_for(path)
    if find is None or max(len(before), len(after)) > MAX_CHARACTERS or not before.strip():
        return None
    try:
        problem = find(after.removeprefix("\ufeff"))
        return problem if problem is not None and find(before.removeprefix("\ufeff")) is None else None
    except (_Unknown, RecursionError, MemoryError):
        return None


def _checker_for(path: str) -> Callable[[str], SyntaxProblem | None] | None:
    extension = path.rpartition("/")[2].rpartition(".")[2].lower()
    known = _FINDERS.get(extension)
    if known is not None:
        return known
    return (lambda text: _find_with_tree_sitter(text, path)) if "." in path else None


def _find_python_error(text: str) -> SyntaxProblem | None:
    try:
        compile(text, _FILE_NAME, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return SyntaxProblem(error.lineno or 1, error.msg or "")
    except ValueError:
        raise _Unknown from None
    return None


def _find_json_error(text: str) -> SyntaxProblem | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return SyntaxProblem(error.lineno, error.msg)
    return None


def _find_toml_error(text: str) -> SyntaxProblem | None:
    import tomllib

    try:
        tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        reason, _, location = str(error).partition(" (at ")
        line = location.removeprefix("line ").partition(",")[0]
        return SyntaxProblem(int(line) if line.isdecimal() else text.count("\n") + 1, reason)
    return None


_FINDERS: dict[str, Callable[[str], SyntaxProblem | None]] = {
    "py": _find_python_error,
    "pyi": _find_python_error,
    "json": _find_json_error,
    "toml": _find_toml_error,
}


def _find_with_tree_sitter(text: str, path: str) -> SyntaxProblem | None:
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
