"""Regular expressions from a model: compiled within bounds, refused with the place of the mistake."""

from __future__ import annotations

import re

import regex

from adapter.core.errors import ToolError

MAX_PATTERN = 1_000
"""Characters of a regular expression."""
MAX_REPEATS = 20_000
"""Product of nested ``{n,m}``. The regex package unrolls them while compiling, where no
timeout applies: ``((a{1000}){1000}){10}`` took 10 s and over 2 GB."""

MAX_CAPTURING = 20
"""Groups of a pattern that refers back to what they took. The regex package keeps each repetition of each group: with
nine around one another a line of 3 MB took 700 MB."""
MAX_CAPTURED = 100_000
"""Characters of a text that such a pattern is tried on."""

_COUNTED = re.compile(r"\{(\d+)(?:,(\d*))?\}")


def compile_pattern(pattern: str, ignore_case: bool = False) -> regex.Pattern[str]:
    """The pattern for searching one line. Raises ToolError that names the position and a way out."""
    if not pattern:
        raise ToolError("the pattern is empty; give the text or regular expression to look for")
    if len(pattern) > MAX_PATTERN:
        raise ToolError(f"the pattern has {len(pattern)} characters; at most {MAX_PATTERN} are possible")
    if _repeats(pattern) > MAX_REPEATS:
        raise ToolError(f"the pattern repeats more than {MAX_REPEATS} times; use smaller counts or * and +")
    if _CALLS.search(pattern):
        raise ToolError(
            f"{pattern!r} calls itself or a group, (?R) or (?1), which is not possible here; "
            "write the group out as often as it is nested"
        )
    flags = regex.IGNORECASE if ignore_case else 0
    try:
        compiled = regex.compile(pattern, flags)
        if compiled.groups and _may_forget(pattern):
            return regex.compile(_without_captures(pattern), flags)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ToolError(_explanation(pattern, error)) from None
    if compiled.groups > MAX_CAPTURING:
        raise ToolError(
            f"the pattern refers back to groups and has {compiled.groups}; at most {MAX_CAPTURING} are possible then. "
            "Write (?:...) for those that nothing refers to"
        )
    return compiled


def search_with_limits(pattern: regex.Pattern[str], text: str) -> str:
    """As much of ``text`` as the pattern is tried on: all, unless it keeps what its groups took."""
    return text[:MAX_CAPTURED] if pattern.groups else text


_CALLS = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:R|[-+]?\d|&|P>)")
"""Recursion and calls of groups. They take hundreds of megabytes within any time limit."""
_REFERS = re.compile(r"\\[1-9g]|\(\?(?:P=|\(|\||[A-Za-z]*[xV])|\(\*|\[\[")
"""What needs the groups, or spells patterns otherwise (``(?x)``, ``(?V1)``, ``[[a]--[b]]``)."""
_OPENS = re.compile(r"\((?:\?P?<[A-Za-z_]\w*>|(?!\?))")


def _may_forget(pattern: str) -> bool:
    """Whether nothing in it depends on what a group took."""
    return not _REFERS.search(pattern)


def _without_captures(pattern: str) -> str:
    """The same pattern, whose groups keep nothing: what they took is never asked for here."""
    written, position = [], 0
    while position < len(pattern):
        opening = _OPENS.match(pattern, position)
        token = opening or _TOKEN.match(pattern, position)
        written.append("(?:" if opening else pattern[position : token.end()] if token else pattern[position])
        position = token.end() if token else position + 1
    return "".join(written)


# What means something else in a whole text than in each of its lines: ends of the text,
# looking around, and whatever does not give back what it has taken.
_NEEDS_LINES = re.compile(r"\\[AZzGKRXNmM]|\(\?(?!:|P<)|[*+?}]\+|\(\*")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)
_SPELLED = re.compile(r"\\[xuUNpPkgL0-9]|\[:|\{[^\d,}]")
"""What is not the text it looks like: code points, references, ``[:alpha:]``, ``{e<=1}``."""


def compile_for_text(pattern: str, ignore_case: bool = False) -> regex.Pattern[str] | None:
    """The pattern for a whole text of lines: it matches at or before every line that ``pattern`` matches
    (and perhaps elsewhere). None when it cannot be known to."""
    if _NEEDS_LINES.search(pattern):
        return None
    if regex.compile(pattern).groups:
        if not _may_forget(pattern):
            return None
        pattern = _without_captures(pattern)
    return regex.compile(pattern, regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0))


def required_texts(pattern: str) -> tuple[str, ...]:
    """Plain texts of which one stands in everything that ``pattern`` matches; empty when nothing is known."""
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
            runs[-1] = runs[-1][:-1]  # what is repeated may be absent
            runs.append("")
        elif token in (".", "^", "$", "+") or token[0] == "[" or (token[0] == "\\" and token[-1].isalnum()):
            runs.append("")
        else:
            runs[-1] += token[-1]
    longest = [max(runs, key=len) for runs in alternatives]
    return tuple(longest) if all(longest) else ()


def _explanation(pattern: str, error: Exception) -> str:
    position = getattr(error, "pos", None)
    where = "" if position is None else f" at position {position + 1}"
    reason = getattr(error, "msg", str(error))
    escaped = regex.escape(pattern, special_only=True, literal_spaces=True)
    return (
        f"{pattern!r} is not a regular expression: {reason}{where}. To search for this very text, escape it: {escaped}"
    )


def _repeats(pattern: str) -> int:
    """The largest product of counted repeats that are nested in one another."""
    products = [1]
    previous = largest = position = 1
    position = 0
    while position < len(pattern):
        character = pattern[position]
        counted = _COUNTED.match(pattern, position) if character == "{" else None
        if counted:
            previous *= max(int(counted[2] or counted[1]), 1)
            products[-1] = max(products[-1], previous)
            largest = max(largest, previous)
            position = counted.end()
            continue
        previous = 1
        if character == "(":
            products.append(1)
        elif character == ")" and len(products) > 1:
            previous = products.pop()
            products[-1] = max(products[-1], previous)
        position += 2 if character == "\\" else 1
    return largest
