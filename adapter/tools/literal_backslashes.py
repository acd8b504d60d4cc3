r"""Restore backslashes that were decoded as escapes: in LaTeX (``\theta``), and in Windows paths (``C:\temp\new``).

Models forget to double backslashes. JSON and Python then decode ``\theta`` as a tab and ``heta``, without an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapter.core.events import Json
from adapter.core.json.strict import LATEX_COMMANDS, SHORT_LATEX_COMMANDS

LONG = 10_000
"""Maximum length of a string, in characters, that is searched. A longer one almost always has an escape that is
invalid, which shows the fault."""

_AS_WRITTEN = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"})

_FOLDERS = (
    "temp", "tmp", "test", "tests", "testing", "tool", "tools", "template", "templates", "target", "train", "training",
    "task", "tasks", "new", "node", "nodes", "node_modules", "note", "notes", "nginx", "network", "repo", "repos",
    "repository", "report", "reports", "readme", "resource", "resources", "result", "results", "release", "releases",
    "root", "runtime", "raw",
)  # fmt: skip
"""Usual names of folders and files that begin with an escape."""

_CONTROL = {"t": "\t", "n": "\n", "r": "\r"}
_RESTS = {
    letter: [word[1:] for word in (*LATEX_COMMANDS, *SHORT_LATEX_COMMANDS, *_FOLDERS) if word[0] == letter]
    for letter in _CONTROL
}
_END = r"(?:(?<=\{)|(?![A-Za-z]))"


def _build_pattern(words: Iterable[str]) -> str:
    """Return a pattern for ``words``, each with its backslash and first letter decoded as an escape."""
    return "|".join(_CONTROL[word[0]] + re.escape(word[1:]) for word in words)


_SHORT = _build_pattern(SHORT_LATEX_COMMANDS)
_LATEX = re.compile(rf"(?:{_build_pattern(LATEX_COMMANDS)}|(?<![^ $({{])(?:{_SHORT})){_END}")
_NEXT_LATEX = re.compile(rf"(?:{_SHORT}|\n(?:e|i|u|ot)){_END}")
"""Matches a command that counts next to another one."""
_FOLDER = rf"(?:{_build_pattern(_FOLDERS)})(?![A-Za-z\d])"
_NEXT_FOLDER = re.compile(rf"(?<=[\s\"']){_FOLDER}")
"""Matches a folder that counts next to a path."""
_CANDIDATES = {
    _CONTROL[letter]: re.compile(
        f"{_CONTROL[letter]}(?=[{''.join({rest[0] for rest in rests})}])(?:{'|'.join(map(re.escape, rests))}){_END}"
    )
    for letter, rests in _RESTS.items()
}
"""Maps a control character to a pattern for the words that may begin with it. Few texts have one, and a search for a
character is fast."""


def _build_growing_pattern(letter: str) -> str:
    starts = {re.escape(rest[:end]) for rest in _RESTS[letter] for end in range(len(rest))}
    wholes = "|".join(map(re.escape, _RESTS[letter]))
    return rf"(?:\\{letter}|{_CONTROL[letter]})(?:(?:{'|'.join(starts)})\Z|(?:{wholes}){_END})"


MAY_BE_LITERAL = "|".join(map(_build_growing_pattern, _CONTROL))
"""Pattern for an escape in JSON, or a control character, that may belong to a LaTeX command or a path. At the end of
the text, the command may be incomplete."""

_PATH = re.compile(
    r"(?:(?<!\w)[A-Za-z]:|\\\\[\w.-]{1,80}|(?<![\w.])\.{1,2}|%\w{1,80}%)(?:[\\\t\n\r][\w.$~@+-]{1,80}){0,12}"
    rf"(?<![\\\t\n\r]){_FOLDER}(?:[\w.$~@+-]{{0,80}}[\\\t\r](?=\w)){{0,12}}"
)
"""Matches a path with a drive, server or other prefix, up to a usual name in it."""
_RELATIVE_PATH = re.compile(
    rf"[\w.-]{{1,80}}(?:\\[\w.-]{{1,80}}|{_FOLDER}[\w.-]{{0,80}}){{1,12}}(?<=[\w-]\.\w)\w{{0,4}}"
)
_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/\n\t\r\x08\f][^\"<>|?*]*")
_PATH_WORDS = ("path", "file", "dir", "folder", "cwd")


def restore_backslashes(key: str, value: Json) -> tuple[Json, tuple[str, ...]]:
    """Restore the backslashes in the strings in ``value``, the argument ``key``. Return the value and the repairs."""
    match value:
        case str():
            return _restore(key, value)
        case dict():
            members = {name: restore_backslashes(name, item) for name, item in value.items()}
            fixes = dict.fromkeys(fix for _, more in members.values() for fix in more)
            return ({name: item for name, (item, _) in members.items()} if fixes else value), (*fixes,)
        case list():
            items = [restore_backslashes(key, item) for item in value]
            fixes = dict.fromkeys(fix for _, more in items for fix in more)
            return (type(value)(item for item, _ in items) if fixes else value), (*fixes,)
        case _:
            return value, ()


def _restore(key: str, value: str) -> tuple[str, tuple[str, ...]]:
    if value[1:2] == ":" and _WINDOWS_PATH.fullmatch(value) and any(word in key.lower() for word in _PATH_WORDS):
        path = value.translate(_AS_WRITTEN)
        return path, (("windows-path",) if path != value else ())
    if len(value) > LONG:
        return value, ()
    for char, pattern in _CANDIDATES.items():
        if char in value and pattern.search(value):
            break
    else:
        return value, ()
    if _RELATIVE_PATH.fullmatch(value):
        return value.translate(_AS_WRITTEN), ("windows-path",)
    restored, paths = _PATH.subn(_translate, value)
    if paths:
        restored = _NEXT_FOLDER.sub(_translate, restored)
    restored, commands = _LATEX.subn(_translate, restored)
    if commands:
        restored = _NEXT_LATEX.sub(_translate, restored)
    return restored, (*(["windows-path"] if paths else []), *(["invalid-escape"] if commands else []))


def _translate(match: re.Match[str]) -> str:
    return match.group().translate(_AS_WRITTEN)
