"""Glob patterns matched in linear space and polynomial time, whatever the pattern.

``*`` and ``?`` stay within a name, ``**`` as a whole component crosses
directories, ``[a-z]`` and ``[!a-z]`` are sets, ``{a,b}`` are alternatives. The
module translates nothing into a backtracking regular expression: ``*a*a*a*b``
would take such a matcher exponential time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapter.errors import ToolError

MAX_PATTERN = 500
"""Characters of a glob."""
MAX_ALTERNATIVES = 64
"""Of all braces of a glob, multiplied."""

_TOKEN = re.compile(r"\*+|\?|\[[!^]?\]?[^\]]*\]|\\.|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Set:
    """A character set; ``ranges`` are inclusive."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool

    def __contains__(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) != self.negated


_Token: TypeAlias = str | _Set
"""``*`` any run, ``?`` any one, a set, or ``=c`` the character c."""


class GlobMatcher:
    """Compiled once, asked for many paths. Raises ToolError for patterns it cannot take."""

    def __init__(self, pattern: str, case_sensitive: bool = False) -> None:
        _check(pattern)
        self._fold = not case_sensitive
        plain = self._folded(pattern.removeprefix("./").lstrip("/"))
        self._alternatives = [
            [None if part == "**" else _tokens(part) for part in alternative.split("/") if part]
            for alternative in _alternatives(plain)
        ]

    def matches(self, path: str) -> bool:
        """Whether the relative ``path`` with ``/`` matches as a whole."""
        names = self._folded(path).split("/")
        return any(_match_path(parts, names) for parts in self._alternatives)

    def _folded(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text)
        return text.casefold() if self._fold else text


def _check(pattern: str) -> None:
    if not pattern.strip("/"):
        raise ToolError("the glob pattern is empty; give one such as **/*.py")
    if len(pattern) > MAX_PATTERN:
        raise ToolError(f"the glob pattern has {len(pattern)} characters; at most {MAX_PATTERN} are possible")
    if ".." in pattern.split("/"):
        raise ToolError(f"the glob pattern {pattern!r} contains '..'; give the directory as path instead")


def _alternatives(pattern: str) -> list[str]:
    """Every spelling of the ``{a,b}`` groups, innermost first. Unpaired braces stand for themselves."""
    done: list[str] = []
    pending = [pattern]
    while pending:
        if len(done) + len(pending) > MAX_ALTERNATIVES:
            raise ToolError(f"the glob pattern has more than {MAX_ALTERNATIVES} alternatives; use fewer braces")
        text = pending.pop()
        group = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if group is None:
            done.append(text)
            continue
        pending += [text[: group.start()] + choice + text[group.end() :] for choice in group[1].split(",")]
    return done


def _tokens(part: str) -> list[_Token]:
    tokens: list[_Token] = []
    for match in _TOKEN.finditer(part):
        text = match[0]
        if text[0] == "*":
            tokens.append("*")
        elif text == "?":
            tokens.append("?")
        elif text[0] == "[" and len(text) > 2:
            tokens.append(_set(text[1:-1]))
        else:
            tokens.append("=" + text[-1])
    return tokens


def _set(body: str) -> _Set:
    negated = body[0] in "!^"
    body = body[negated:]
    ranges = [(m[1], m[2]) if m[2] else (m[0], m[0]) for m in re.finditer(r"(.)-(.)|.", body, re.DOTALL)]
    return _Set(tuple(ranges), negated)


def _match_path(parts: Sequence[Sequence[_Token] | None], names: Sequence[str]) -> bool:
    """Components against components; ``reached`` holds how many names each prefix of parts can cover."""
    reached = {0}
    for part in parts:
        if not reached:
            return False
        if part is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {count + 1 for count in reached if count < len(names) and _match_name(part, names[count])}
    return len(names) in reached


def _match_name(tokens: Sequence[_Token], name: str) -> bool:
    """The classic two-pointer wildcard match: on a mismatch only the last ``*`` takes one more."""
    token = position = 0
    star = resume = -1
    while position < len(name):
        if token < len(tokens) and tokens[token] == "*":
            star, resume = token, position
            token += 1
        elif token < len(tokens) and _fits(tokens[token], name[position]):
            token += 1
            position += 1
        elif star >= 0:
            resume += 1
            token, position = star + 1, resume
        else:
            return False
    return all(rest == "*" for rest in tokens[token:])


def _fits(token: _Token, character: str) -> bool:
    if isinstance(token, _Set):
        return character in token
    return token == "?" or token == "=" + character
