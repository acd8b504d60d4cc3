"""Compile regular expressions written by models, within limits. Error messages give the position of a mistake."""

from __future__ import annotations

import re
from functools import lru_cache

import regex

from adapter.core.errors import ToolError

MAX_PATTERN = 1_000
"""Maximum length of a regular expression, in characters."""
MAX_REPEATS = 20_000
"""Maximum product of nested repeat counts ``{n,m}``. The regex package unrolls them during compilation, which has no
timeout: ``((a{1000}){1000}){10}`` took 10 s and over 2 GB."""

OCCURS_SECONDS = 0.2
"""Maximum duration of a search for a JSON Schema's pattern, in seconds."""
MAX_CAPTURING = 20
"""Maximum number of groups in a pattern with back-references. The regex package stores every repetition of every group:
nine nested groups took 700 MB on a line of 3 MB."""
MAX_CAPTURED = 100_000
"""Maximum length, in characters, of the text that is searched with back-references."""


def compile_pattern(pattern: str, ignore_case: bool = False) -> regex.Pattern[str]:
    """Compile a pattern for searching single lines. Raises ToolError, with the position of the mistake and a
    correction, if the pattern is invalid or exceeds a limit."""
    if not pattern:
        raise ToolError("the pattern is empty; pass the text or regular expression to search for")
    if len(pattern) > MAX_PATTERN:
        raise ToolError(
            f"the pattern has {len(pattern)} characters; the maximum is {MAX_PATTERN}; use a shorter pattern"
        )
    if _count_repeats(pattern) > MAX_REPEATS:
        raise ToolError(f"the pattern repeats more than {MAX_REPEATS} times; use smaller counts, or * and +")
    if _RECURSION.search(pattern):
        raise ToolError(
            f"{pattern!r} contains recursion, (?R) or (?1), which is not supported; "
            "repeat the group for each level of nesting"
        )
    flags = regex.IGNORECASE if ignore_case else 0
    try:
        compiled = regex.compile(pattern, flags)
        if compiled.groups and not _NEEDS_CAPTURES.search(pattern):
            return regex.compile(_remove_captures(pattern), flags)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ToolError(_explain_error(pattern, error)) from None
    if compiled.groups > MAX_CAPTURING:
        raise ToolError(
            f"the pattern has back-references and {compiled.groups} groups; the maximum is {MAX_CAPTURING}; "
            "write (?:...) for groups without a back-reference"
        )
    return compiled


def occurs(pattern: str, text: str) -> bool | None:
    """Return whether a JSON Schema's pattern occurs in ``text``, or None if the search takes too long. An invalid
    pattern counts as occurring everywhere."""
    compiled = _compile_if_safe(pattern)
    if compiled is None:
        return True
    try:
        return compiled.search(clip_searched_part(compiled, text), timeout=OCCURS_SECONDS) is not None
    except TimeoutError:
        return None


@lru_cache(maxsize=256)
def _compile_if_safe(pattern: str) -> regex.Pattern[str] | None:
    try:
        return compile_pattern(pattern)
    except ToolError:
        return None


def clip_searched_part(pattern: regex.Pattern[str], text: str) -> str:
    """Return the part of ``text`` to search: its first `MAX_CAPTURED` characters if the pattern captures groups, or
    else all of it."""
    return text[:MAX_CAPTURED] if pattern.groups else text


_RECURSION = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:R|[-+]?\d|&|P>)")
"""Matches recursion and subroutine calls, which take hundreds of megabytes within any time limit."""
_NEEDS_CAPTURES = re.compile(r"\\[1-9g]|\(\?(?:P=|\(|\||[A-Za-z]*[xV])|\(\*|\[\[")
"""Matches syntax that needs captures or changes the pattern syntax (``(?x)``, ``(?V1)``, ``[[a]--[b]]``)."""
_OPENS = re.compile(r"\((?:\?P?<[A-Za-z_]\w*>|(?!\?))")


def _remove_captures(pattern: str) -> str:
    """Make capturing groups non-capturing, because no caller uses the captured text."""
    parts, position = [], 0
    while position < len(pattern):
        opening = _OPENS.match(pattern, position)
        token = opening or _TOKEN.match(pattern, position)
        parts.append("(?:" if opening else pattern[position : token.end()] if token else pattern[position])
        position = token.end() if token else position + 1
    return "".join(parts)


# Syntax with another meaning in multi-line text than in a single line: anchors to the ends of the text, lookaround, and
# possessive matching.
_NEEDS_LINES = re.compile(r"\\[AZzGKRXNmM]|\(\?(?!:|P<)|[*+?}]\+|\(\*")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)
_SPELLED = re.compile(r"\\[xuUNpPkgL0-9]|\[:|\{[^\d,}]")
"""Matches escapes and classes that do not match their own text: code points, references, ``[:alpha:]``, ``{e<=1}``."""


def compile_for_text(pattern: str, ignore_case: bool = False) -> regex.Pattern[str] | None:
    """Compile ``pattern``, which is meant for single lines, for a fast search through multi-line text. Return None if
    its syntax does not allow that.

    From any position, the first match is at or before the first line that ``pattern`` matches. It may also be in
    another line, so the caller must check each line with ``pattern``.
    """
    if _NEEDS_LINES.search(pattern):
        return None
    if regex.compile(pattern).groups:
        if _NEEDS_CAPTURES.search(pattern):
            return None
        pattern = _remove_captures(pattern)
    return regex.compile(pattern, regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0))


def find_required_texts(pattern: str) -> tuple[str, ...]:
    """Return strings such that every match of ``pattern`` contains at least one of them, or () if none are known."""
    if _NEEDS_LINES.search(pattern) or _SPELLED.search(pattern):
        return ()
    alternatives = [[""]]
    depth = 0
    for match in _TOKEN.finditer(pattern):
        token, runs = match[0], alternatives[-1]
        if token == "(" or token == ")":
            depth += 1 if token == "(" else -1
            runs.append("")
        elif depth:
            continue
        elif token == "|":
            alternatives.append([""])
        elif token in ("?", "*") or (token[0] == "{" and len(token) > 1):
            runs[-1] = runs[-1][:-1]  # a repeated item may occur zero times
            runs.append("")
        elif token in (".", "^", "$", "+") or token[0] == "[" or (token[0] == "\\" and token[-1].isalnum()):
            runs.append("")
        else:
            runs[-1] += token[-1]
    longest = [max(runs, key=len) for runs in alternatives]
    return tuple(longest) if all(longest) else ()


def _explain_error(pattern: str, error: Exception) -> str:
    position = getattr(error, "pos", None)
    where = "" if position is None else f" at position {position + 1}"
    reason = getattr(error, "msg", str(error))
    escaped = regex.escape(pattern, special_only=True, literal_spaces=True)
    return (
        f"{pattern!r} is not a valid regular expression: {reason}{where}; to search for the literal text, use {escaped}"
    )


def _count_repeats(pattern: str) -> int:
    """Return the largest product of nested counted repeats."""
    products = [1]
    previous = largest = 1
    for token in re.finditer(r"\{(\d+)(?:,(\d*))?\}|\\?.", pattern, re.DOTALL):
        if token[1]:
            previous *= max(int(token[2] or token[1]), 1)
            largest = max(largest, previous)
        elif token[0] == ")" and len(products) > 1:
            previous = products.pop()
        else:
            previous = 1
        if token[0] == "(":
            products.append(1)
        products[-1] = max(products[-1], previous)
    return largest
