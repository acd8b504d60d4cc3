"""Split shell command lines into words, for permission rules.

A rule can *allow* a line only if it is one simple command of plain words. Lines that a shell could expand, chain or
redirect are rejected, so that the compared command is the one that runs. To *deny* a line, every position at which a
command could begin is checked, even in quotes, because a false refusal is better than a missed command.

On Windows, the shell is cmd.exe, and only words of its syntax are parsed. A line with other syntax, such as ``%``,
``^`` or ``&``, is never allowed by a rule, and needs approval if rules deny commands. Each word of a line may be a
command. Letter case and extensions such as ``.exe`` make no difference.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import pairwise

Words = tuple[str, ...]

IS_WINDOWS: bool = sys.platform == "win32"
MAX_WORDS = 200
"""Maximum number of words checked in a command. A longer command always needs approval."""

_PLAIN = r"[A-Za-z0-9_@%+=:,./-]"
_WORD = rf"""(?:{_PLAIN}|'[^'\n]*'|"[^"$`\\!\n]*")+"""
_SIMPLE = re.compile(rf"[ \t]*{_WORD}(?:[ \t]+{_WORD})*[ \t]*")
_WORDS = re.compile(_WORD)
_QUOTED = re.compile("""'([^'\n]*)'|"([^"\n]*)\"""")
_QUOTES = re.compile("['\"\\\\]")
_BREAKS = re.compile(r"\|\||&&|[;&|()\n`{}<>]|\$\(|\s-(?:exec|ok)(?:dir)?\s")
_EXPANSION = re.compile(r"[$`*?~\[\\]|<\(|>\(|<<|\{[^{}\s]*[,.]|\beval\b|\bsource\b|\balias\b|(?:^|[\s;&|])\.\s")
"""Matches syntax that a shell may expand to other words."""
_ASSIGNMENT = re.compile(r"\w+\+?=")
_WRAPPERS = {
    *("sudo", "doas", "env", "command", "time", "nohup", "exec", "xargs", "nice", "ionice", "timeout", "stdbuf"),
    *("setsid", "builtin", "then", "do", "else", "if", "while", "until", "!"),
    *("sh", "bash", "dash", "zsh", "ksh", "busybox"),
}
"""Words that may precede the actual command."""
_INTERPRETER = re.compile(
    r"\.|source|(?:ba|da|k|z|fi)?sh|busybox|g?awk|(?:python|pypy)[\d.]*w?|node|nodejs|deno|bun|tsx|ruby|perl|php|lua\w*"
    r"|Rscript|julia|java|osascript|pwsh|uv"
)
"""Matches programs that run the files in their arguments."""
_PROJECT_FILES = {
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("pytest", "tox", "nox"), ("conftest.py", "tox.ini", "noxfile.py", "pyproject.toml")),
    "just": ("justfile", "Justfile"),
    "rake": ("Rakefile",),
    "ninja": ("build.ninja",),
}
"""Files that a program runs automatically, in the current directory or in one that its arguments name."""
_CODE = re.compile(
    r".*\.(?:py|pyw|sh|bash|zsh|fish|[cm]?[jt]sx?|rb|pl|php|lua|r|jl|go|rs|java|jar|kts?|groovy|gradle|scala|cs|fsx|ps1"
    r"|bat|cmd|mk|cmake|awk|sed|tcl|exp|sql|ipynb|tf|nix)",
    re.IGNORECASE,
)
"""Matches names of files that contain code, such as ``main.go`` in ``go run main.go``."""

_CMD_PLAIN = r"[A-Za-z0-9_@+:./\\-]"
_CMD_WORD = rf"""(?:{_CMD_PLAIN}|"(?:{_CMD_PLAIN}|[ ])*")+"""
_CMD_SIMPLE = re.compile(rf"(?!.*\\\")[ ]*{_CMD_WORD}(?:[ ]+{_CMD_WORD})*[ ]*")
r"""Matches a line of plain words without an escaped quote (``\"``), which programs treat as part of a word."""
_CMD_GLUE = re.compile("[/.:+@]")
_CMD_SHELLS = frozenset(["cmd", "powershell", "pwsh", "wsl", "bash", "sh"])
_CMD_ENDING = re.compile(r"\.(?:com|exe|bat|cmd|ps1|vbs|js|wsf|msc)$")


def parse_simple_command(line: str) -> Words | None:
    """Return the unquoted words of a line that is one simple command, or None for other lines."""
    if IS_WINDOWS and not _CMD_SIMPLE.fullmatch(line):
        return None
    if IS_WINDOWS:
        line = line.replace("\\", "/")
    if not _SIMPLE.fullmatch(line):
        return None
    words = tuple(_QUOTED.sub(lambda match: match[1] or match[2] or "", word) for word in _WORDS.findall(line))
    return None if "=" in words[0] else words


def iter_possible_commands(line: str) -> Iterator[Words]:
    """Yield the commands that the line may run, without their directory and without words such as ``sudo`` before
    them."""
    for program, *rest in _iter_commands(line):
        for name in _iter_names(program):
            yield _fold((name, *rest))


def iter_possible_programs(line: str) -> Iterator[str]:
    """Yield the names and paths of the programs and scripts that the line may run."""
    for words in _iter_commands(line):
        yield from iter_programs(words)


def iter_programs(words: Words) -> Iterator[str]:
    """Yield the names and paths of the programs and scripts that one command may run."""
    program, *rest = words
    yield program
    name = _fold((program.rpartition("/")[2],))[0]
    named = [part for word in rest for part in (word, word.partition("=")[2]) if part and not part.startswith("-")]
    files = _PROJECT_FILES.get(name, ())
    yield from (f"{directory}{file}" for directory in ("", *(f"{part}/" for part in named)) for file in files)
    if files or _INTERPRETER.fullmatch(name):
        yield from named
    else:
        yield from (part for part in named if _CODE.fullmatch(part))
    for option, module in pairwise(rest):
        if option == "-m":
            path = module.replace(".", "/")
            yield from (f"{path}.py", f"{path}/__init__.py", f"{path}/__main__.py")


def _iter_names(program: str) -> Iterator[str]:
    """Yield the names that a program may have. On Windows, cmd.exe runs ``del`` for ``del/q`` and ``@del``."""
    yield program.rpartition("/")[2]
    if IS_WINDOWS:
        yield from filter(None, _CMD_GLUE.split(program))


def _fold(command: Words) -> Words:
    """On Windows, return the command in lower case and without the program's extension."""
    if not IS_WINDOWS:
        return command
    name, *rest = (word.lower() for word in command)
    return (_CMD_ENDING.sub("", name), *rest)


def _iter_commands(line: str) -> Iterator[Words]:
    if IS_WINDOWS:
        line = line.replace("\\", "/")
    for part in _BREAKS.split(line):
        words = tuple(_QUOTES.sub("", part).split(maxsplit=MAX_WORDS)[:MAX_WORDS])
        for start, word in enumerate(words):
            yield words[start:]
            if not _precedes_command(word):
                break


def is_dynamic(line: str) -> bool:
    """Return whether a shell could run commands that `iter_possible_commands` does not yield."""
    if IS_WINDOWS:
        words = line.split()
        runs_shell = any(command[0] in _CMD_SHELLS for command in iter_possible_commands(line))
        return runs_shell or _CMD_SIMPLE.fullmatch(line) is None or len(words) > MAX_WORDS
    return _EXPANSION.search(line) is not None or any(len(part.split()) > MAX_WORDS for part in _BREAKS.split(line))


def _precedes_command(word: str) -> bool:
    """Return whether ``word`` may precede a command: ``FOO=1``, ``-n``, ``5`` or ``sudo``; on Windows, any word."""
    if IS_WINDOWS:
        return True
    name = word.rpartition("/")[2]
    return bool(_ASSIGNMENT.match(word)) or word.startswith("-") or word.isdecimal() or name in _WRAPPERS


def rule_covers_command(rule: Words, command: Words) -> bool:
    """Return whether ``command`` begins with the rule's words. The command may have more words, but options (``-x``)
    among them only if the rule ends in ``*``: ``git log`` covers ``git log src``, but not ``git log --output=f``."""
    is_open = rule[-1:] == ("*",)
    prefix = rule[:-1] if is_open else rule
    rest = command[len(prefix) :]
    return command[: len(prefix)] == prefix and (is_open or not any(word.startswith("-") for word in rest))


def may_match_command(rule: Words, command: Words) -> bool:
    """Return whether ``command`` runs the rule's program and contains the rule's other words in order. For example,
    ``git -C d push`` may be ``git push``."""
    rest = iter(command[1:])
    words = rule[:-1] if rule[-1:] == ("*",) else rule
    words = _fold(words) if words else words
    return words[:1] in ((), command[:1]) and all(word in rest for word in words[1:])
