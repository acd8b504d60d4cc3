"""Check that a file still parses after an edit.

If the model's text breaks the file as written, a note reports this. If the text was repaired, reindented or merged
first, that may be the cause, and the edit is rejected. The standard library parses Python, JSON and TOML; tree-sitter
parses all other languages if the ``index`` extra is installed.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

MAX_CHARACTERS = 300_000
"""Maximum length of a parsed file, in characters. Parsing such a file takes about 0.2 s."""
MAX_SECONDS = 0.5
"""Time limit for tree-sitter, in seconds."""
NO_LONGER_PARSES = "no longer parses"
_FILE_NAME = "edited-text"
warnings.filterwarnings("ignore", module=_FILE_NAME)  # invalid escapes in a file that is only checked


class SyntaxProblem(NamedTuple):
    """The first syntax error of a file; ``line`` is 1-based."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line} {NO_LONGER_PARSES}{': ' if self.reason else ''}{self.reason}"


_Finder: TypeAlias = Callable[[str], SyntaxProblem | None]


class UncheckableError(Exception):
    """Raised for a text that cannot be checked."""


def find_new_syntax_error(before: str, after: str, path: str) -> SyntaxProblem | None:
    """Return the first syntax error of ``after`` if ``before`` had none. Return None if the texts cannot be checked."""
    if max(len(before), len(after)) > MAX_CHARACTERS or not before.strip():
        return None
    for find in _choose_finders(path):
        try:
            problem = find(after.removeprefix("\ufeff"))
            if problem is None or find(before.removeprefix("\ufeff")) is None:
                return problem
        except (UncheckableError, RecursionError, MemoryError):
            return None
    return None


def find_syntax_error(text: str, path: str) -> SyntaxProblem | None:
    """Return the first syntax error that the most lenient check for the file type finds in ``text``, or None.

    Raises UncheckableError if the text cannot be checked.
    """
    finders = _choose_finders(path)
    if not finders or len(text) > MAX_CHARACTERS:
        raise UncheckableError
    try:
        return finders[-1](text.removeprefix("\ufeff"))
    except (RecursionError, MemoryError):
        raise UncheckableError from None


def _choose_finders(path: str) -> Sequence[_Finder]:
    """Return the checks for a file, the strictest first. The first that the old file passed decides."""
    extension = path.rpartition("/")[2].rpartition(".")[2].lower()
    known = next((finders for extensions, finders in _FINDERS.items() if extension in extensions.split()), None)
    if known is not None:
        return known
    return (partial(_find_with_tree_sitter, path=path),) if "." in path else ()


def _find_python_error(text: str) -> SyntaxProblem | None:
    try:
        compile(text, _FILE_NAME, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return SyntaxProblem(error.lineno or 1, error.msg or "")
    except ValueError:
        raise UncheckableError from None
    return None


def _find_json_error(text: str) -> SyntaxProblem | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return SyntaxProblem(error.lineno, error.msg)
    except ValueError:  # a number with thousands of digits
        raise UncheckableError from None
    return None


_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')


def _find_commented_json_error(text: str) -> SyntaxProblem | None:
    """Find an error in JSON with comments and trailing commas, as in VS Code's and TypeScript's files."""
    plain = _STRING_OR_COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(r"\S", " ", found[0]), text)
    return _find_json_error(_LAST_COMMA.sub(lambda found: found[1] or " ", plain))


def _find_json_lines_error(text: str) -> SyntaxProblem | None:
    problems = (
        (number, _find_json_error(line)) for number, line in enumerate(text.split("\n"), start=1) if line.strip()
    )
    return next((problem._replace(line=number) for number, problem in problems if problem), None)


def _find_toml_error(text: str) -> SyntaxProblem | None:
    import tomllib

    try:
        tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        reason, _, location = str(error).partition(" (at ")
        line = location.removeprefix("line ").partition(",")[0]
        return SyntaxProblem(int(line) if line.isdecimal() else text.count("\n") + 1, reason)
    return None


_LINE_END_IN_RUNE = re.compile(r"'\r?\n'")


def _find_go_error(text: str) -> SyntaxProblem | None:
    """Find an error in Go. The grammar of tree-sitter accepts a line end between single quotes, which Go does not."""
    if found := _LINE_END_IN_RUNE.search(text):
        return SyntaxProblem(text.count("\n", 0, found.start()) + 1, "newline in rune literal")
    return _find_with_tree_sitter(text, "x.go")


_FINDERS: dict[str, tuple[_Finder, ...]] = {
    "py pyi pyw": (_find_python_error,),
    "json geojson topojson jsonld ipynb webmanifest har map avsc": (_find_json_error, _find_commented_json_error),
    "jsonc code-workspace": (_find_commented_json_error,),
    "jsonl ndjson": (_find_json_lines_error,),
    "toml": (_find_toml_error,),
    "go": (_find_go_error,),
}
"""The checks for each group of file extensions, the strictest first."""


def _find_with_tree_sitter(text: str, path: str) -> SyntaxProblem | None:
    from adapter.core.errors import ToolError
    from adapter.outline.languages import find_language
    from adapter.outline.syntax import find_first_syntax_error

    language = find_language(path, text)
    if language is None:
        raise UncheckableError
    try:
        line = find_first_syntax_error(text, language, MAX_SECONDS)
    except ToolError:  # no grammar here, or it takes too long
        raise UncheckableError from None
    return None if line is None else SyntaxProblem(line, "")
