"""Match glob patterns in linear space and polynomial time.

``*`` and ``?`` match within a name, and a component ``**`` matches any number of directories. ``[a-z]`` and ``[!a-z]``
are character sets, ``{a,b}`` are alternatives. Names are matched without backtracking: an ordinary regular expression
would take exponential time for ``*a*a*a*b``.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from adapter.core.errors import ToolError

MAX_PATTERN = 500
"""Maximum length of a glob, in characters."""
MAX_ALTERNATIVES = 64
"""Maximum number of alternatives after the braces of a glob are expanded."""

_Part: TypeAlias = re.Pattern[str] | None
"""Pattern of one path component; None for ``**``."""


class GlobMatcher:
    """A compiled glob. Raises ToolError for an invalid pattern."""

    def __init__(self, pattern: str, case_sensitive: bool = False) -> None:
        _check(pattern)
        self._fold = not case_sensitive
        plain = self._fold_case(pattern.removeprefix("./").lstrip("/"))
        self._alternatives: list[list[_Part]] = [
            [None if part == "**" else _compile_name(part) for part in alternative.split("/") if part]
            for alternative in _expand_alternatives(plain)
        ]
        self._last = _join_patterns(parts[-1] if parts else None for parts in self._alternatives)

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches the whole relative path."""
        names = self._fold_case(path).split("/")
        if self._last is not None and not self._last.fullmatch(names[-1]):
            return False  # the name alone rules out most paths
        return any(_match_path(parts, names) for parts in self._alternatives)

    def may_match(self, name: str) -> bool:
        """Return False only if no path ending in ``name`` matches."""
        return self._last is None or self._last.fullmatch(self._fold_case(name)) is not None

    def _fold_case(self, text: str) -> str:
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        return text.casefold() if self._fold else text


def _check(pattern: str) -> None:
    if not pattern.strip("/"):
        raise ToolError("the glob pattern is empty; give one such as **/*.py")
    if len(pattern) > MAX_PATTERN:
        raise ToolError(f"the glob pattern has {len(pattern)} characters; the maximum is {MAX_PATTERN}. Shorten it")
    if ".." in pattern.split("/"):
        raise ToolError(f"the glob pattern {pattern!r} contains '..'; give the directory as path instead")


def _expand_alternatives(pattern: str) -> list[str]:
    """Expand the ``{a,b}`` groups, innermost first. Unpaired braces are literal."""
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


def _compile_name(part: str) -> re.Pattern[str]:
    """Compile the pattern of one name. `fnmatch` translates ``*`` to atomic groups, which never backtrack. It does not
    know ``[^a]`` and ``\\*``, which therefore become ``[!a]`` and ``[*]``."""
    plain = re.sub(r"\\(.)", lambda match: f"[{match[1]}]" if match[1] in "*?[" else match[1], part)
    return re.compile(fnmatch.translate(plain.replace("[^", "[!")))


def _join_patterns(parts: Iterable[_Part]) -> _Part:
    """Join the patterns of several components into one; None if one of them is ``**``."""
    patterns: list[str] = []
    for part in parts:
        if part is None:
            return None
        patterns.append(part.pattern)
    return re.compile("|".join(patterns), re.DOTALL)


def _match_path(parts: Sequence[_Part], names: Sequence[str]) -> bool:
    """Return whether the pattern's parts match all names of the path."""
    reached = {0}
    for part in parts:
        if not reached:
            return False
        if part is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {count + 1 for count in reached if count < len(names) and part.fullmatch(names[count])}
    return len(names) in reached
