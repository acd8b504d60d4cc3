"""The words of a command line, for rules about commands.

To *allow*, a line must be one simple command of plain words: whatever a shell
could expand, chain or redirect is refused, so that what was compared is what
will run. To *deny*, every place where a command could begin is looked at,
quoted ones too: it is better to refuse once too often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Words = tuple[str, ...]

MAX_WORDS = 200
"""Of one command that are looked at; what has more is not known well enough to be allowed unasked."""

_PLAIN = r"[A-Za-z0-9_@%+=:,./-]"
_WORD = rf"""(?:{_PLAIN}|'[^'\n]*'|"[^"$`\\!\n]*")+"""
_SIMPLE = re.compile(rf"[ \t]*{_WORD}(?:[ \t]+{_WORD})*[ \t]*")
_WORDS = re.compile(_WORD)
_QUOTED = re.compile("""'([^'\n]*)'|"([^"\n]*)\"""")
_QUOTES = re.compile("['\"\\\\]")
_BREAKS = re.compile(r"\|\||&&|[;&|()\n`{}<>]|\$\(|\s-(?:exec|ok)(?:dir)?\s")
_UNKNOWABLE = re.compile(r"[$`*?~\[\\]|<\(|>\(|<<|\{[^}\s]*[,.]|\beval\b|\bsource\b|\balias\b|(?:^|[\s;&|])\.\s")
"""What a shell turns into other words than are written."""
_ASSIGNMENT = re.compile(r"\w+\+?=")
_WRAPPERS = frozenset(
    [
        *("sudo", "doas", "env", "command", "time", "nohup", "exec", "xargs", "nice", "ionice", "timeout", "stdbuf"),
        *("setsid", "builtin", "then", "do", "else", "if", "while", "until", "!"),
        *("sh", "bash", "dash", "zsh", "ksh", "busybox"),
    ]
)
"""Words behind which the command that matters may stand."""


def simple_command(line: str) -> Words | None:
    """The words of a line that is one command and nothing else, quotes removed; None for any other line."""
    if not _SIMPLE.fullmatch(line):
        return None
    words = tuple(_QUOTED.sub(lambda match: match[1] or match[2] or "", word) for word in _WORDS.findall(line))
    return None if "=" in words[0] else words


def possible_commands(line: str) -> Iterator[Words]:
    """What the line may run, as far as it can be read: each with its folder and the words before it taken off."""
    for part in _BREAKS.split(line):
        words = _QUOTES.sub("", part).split(maxsplit=MAX_WORDS)[:MAX_WORDS]
        for start, word in enumerate(words):
            yield (word.rpartition("/")[2], *words[start + 1 :])
            if not _passes_on(word):
                break


def is_dynamic(line: str) -> bool:
    """Whether a shell could make other commands of the line than `possible_commands` gives."""
    return _UNKNOWABLE.search(line) is not None or any(len(part.split()) > MAX_WORDS for part in _BREAKS.split(line))


def _passes_on(word: str) -> bool:
    """``FOO=1``, ``-n``, ``5`` and ``sudo`` may stand before the command."""
    name = word.rpartition("/")[2]
    return bool(_ASSIGNMENT.match(word)) or word.startswith("-") or word.isdecimal() or name in _WRAPPERS


def rule_covers_command(rule: Words, command: Words) -> bool:
    """Whether ``command`` begins with the rule's words; then further words that are options (``-x``) are covered only
    by a rule that ends in ``*``: ``git log`` covers ``git log src``, not ``git log --output=f``."""
    is_open = rule[-1:] == ("*",)
    prefix = rule[:-1] if is_open else rule
    rest = command[len(prefix) :]
    return command[: len(prefix)] == prefix and (is_open or not any(word.startswith("-") for word in rest))


def may_match_command(rule: Words, command: Words) -> bool:
    """Whether the command is the rule's, and its other words follow somewhere in their order: ``git -C d push``
    may be ``git push``."""
    rest = iter(command[1:])
    words = rule[:-1] if rule[-1:] == ("*",) else rule
    return words[:1] in ((), command[:1]) and all(word in rest for word in words[1:])
