"""Find calls without control tokens in untrusted text, for `escaping`, which inserts `MARK` into them.

Each function yields offsets at which the mark is inserted. They are recognized in the same way as by the parsers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import merge
from itertools import chain

from adapter.core.errors import FormatError
from adapter.core.json.decode import decode_json
from adapter.parsing.bodies.python_scanner import read_list
from adapter.parsing.bracket_delimited_json import CALL_KEYS, MAX_OPENING, names_tool_later
from adapter.parsing.format import BodySource
from adapter.parsing.json_calls import MAX_ATTEMPTS, scan_json_value
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import SPACE, Reader, T
from adapter.parsing.unmarked_call_shapes import is_unmarked_call, names_tool
from adapter.tools.tool_set import ToolSet

MARK = "¤"
"""The character that is inserted into calls and control tokens, after their first character."""

_LINE_SPACE = re.escape(SPACE.replace("\n", ""))
_BARE = re.compile(
    rf"(?:\A|\n)[{_LINE_SPACE}]*+(?=[\[{{])(?:"
    rf"(?P<json>(?:[\[{{][{re.escape(SPACE)}]*+){{1,{MAX_OPENING}}}+[\"'“](?P<key>[^\"'”]{{1,64}})[\"'”])"
    rf"|(?P<list>\[\s*+[^\W\d][\w.-]*+\s*+\())"
)
"""Matches the start of a possible bare call (a call without markers), up to its first key or parenthesis."""

_PYTHON_CALL = rf"[{_LINE_SPACE}*#@]*+([^\W\d][\w.-]*+)\s*+\((?=\s*+(?:[){{]|\w++\s*+=(?!=)))"
_FIRST_PYTHON_CALL, _LATER_PYTHON_CALL = re.compile(_PYTHON_CALL), re.compile(rf"\n{_PYTHON_CALL}")
_MARKED_PARENTHESIS = re.compile(rf"\((?={MARK})")

_HEAD = re.compile(
    r"(?:\A|(?<=\n))[ \t]*+(?:([\w.:/-]++)\r?\n\{"
    r"|(?:(?:commentary|analysis) )?to=(?:functions\.)?([\w.-]++)[^\n{<]{0,60}+\s*+\{"
    r"|call:([\w.:-]++)\s*+\{|(?:default_api[.:])?([\w.-]++)\{(?=\s*+\w++\s*+:))"
)
"""Matches the start of a call without its control tokens: a name on a line above the arguments (GLM 4, and Functionary
after ``>>>``), or a header of gpt-oss or Gemma."""

_BROKEN_FUNCTION = re.compile(
    r"(?:\A|\n)[ \t]*+(?:(?:function)?=)?([\w.:-]++)[\"']?>(?=\s*+(?:<parameter[ =]|parameter=|</function>))",
    re.IGNORECASE,
)
"""Matches Qwen's tag ``<function=NAME>`` without its first bracket."""

_NAME_BEFORE_BRACE = re.compile(r"(?<![\w.-])(?:default_api\.)?([\w.-]{1,64}+)\{")
_TOKENS = get_marker_set('"', "'", "{", "[", "}", "]")


def find_broken_functions(text: str, tools: ToolSet) -> Iterator[int]:
    """Yield the positions at which to insert `MARK` in Qwen's tag ``<function=NAME>`` without its first bracket."""
    return (match.end() for match in _BROKEN_FUNCTION.finditer(text) if not tools or tools.match(match[1]))


def find_heads(text: str, tools: ToolSet) -> Iterator[int]:
    """Yield the positions at which to insert `MARK` in calls that begin with a tool's name on a separate line.

    Calls may also begin with a header that contains the name (see `_HEAD`). Without tools, any name at the start of the
    text counts as a tool's name.
    """
    has_head = any(part in text for part in ("\n{", "to=", "call:"))
    has_head = has_head or any(found[1] in tools for found in _NAME_BEFORE_BRACE.finditer(text))
    for head in _HEAD.finditer(text) if has_head else ():
        if head[head.lastindex or 1] in tools or not (tools or head.start()):
            yield head.end()


def find_python_calls(text: str, tools: ToolSet) -> Iterator[int]:
    """Yield the positions at which to insert `MARK` in Python calls: after the opening parenthesis.

    A call must begin a line, and have only named arguments, an object or nothing. Each parenthesis that already
    precedes a `MARK` also counts.
    """
    first = _FIRST_PYTHON_CALL.match(text)
    calls = chain([first] if first is not None else (), _LATER_PYTHON_CALL.finditer(text))
    known = (call for call in calls if call[1] in tools or call[1].removesuffix(".call") in tools)
    marked = (match.end() for match in _MARKED_PARENTHESIS.finditer(text))
    yield from merge((call.end() for call in known), marked)


def find_bare_calls(text: str, tools: ToolSet) -> Iterator[int]:
    """Yield the positions at which to insert `MARK` in bare calls (calls without markers): after the first
    bracket."""
    budget = 4 * len(text) + 10_000
    for found in _match_lines(text):
        start = found.start("json") if found["json"] else found.start("list")
        is_named = found["list"] or found["key"] in CALL_KEYS or found["key"] in tools
        if not is_named and not names_tool_later(text, start, tools):
            continue
        # Beyond the budget, anything that looks like a call is escaped, because parsing it could take quadratic time.
        is_call, size = _is_call(text, start, tools) if budget > 0 else (True, 0)
        budget -= size
        if is_call:
            yield start + 1


def _match_lines(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `_BARE` in ``text``. Each begins at the start of a line."""
    at = 0
    while at >= 0:
        match = _BARE.match(text, at)
        if match is not None:
            yield match
        at = text.find("\n", max(at + 1, match.end()) if match is not None else at + 1)


def _is_call(text: str, start: int, tools: ToolSet) -> tuple[bool, int]:
    """Return whether a bare call begins at ``start``, and the number of characters that were parsed to find out."""
    source, consumed, piece = BodySource(tools, text=text, final=True), list[str](), list[str]()
    source.position = start
    if _run(read_list(source, consumed)).calls:
        return True, sum(map(len, consumed))
    source.position = start
    for attempt in range(1, MAX_ATTEMPTS + 1):
        bracket = _run(scan_json_value(source, piece, _TOKENS))
        size = attempt * (source.position - start)
        try:
            value = decode_json("".join(piece), closed=False).value
        except FormatError:
            if not bracket:
                return names_tool("".join(piece), tools), size  # the parser adds missing brackets
            continue  # a stray quote: the brackets may balance later
        return is_unmarked_call(value, tools), size
    return False, size


def _run(reader: Reader[T]) -> T:
    """Run a parser's reader (a generator) on complete text, and return its result."""
    try:
        next(reader)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("a reader requested more text after the end")
