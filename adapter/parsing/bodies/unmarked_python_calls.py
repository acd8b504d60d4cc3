"""Parse an answer that consists of Python calls without markers: ``get_weather(city="Oslo")``.

Granite and small models write such calls. A line like this may also be an answer about code. It is accepted as a call
only if the answer contains nothing but calls of the session's tools that only read, with named literals for all
required parameters.
"""

from __future__ import annotations

import re
from functools import partial

from adapter.core.errors import FormatError
from adapter.parsing.bodies.python_parser import read_calls
from adapter.parsing.bodies.python_scanner import consume_balanced
from adapter.parsing.call_events import is_placeholder
from adapter.parsing.format import TEXT, BodyResult, BodySource
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader
from adapter.tools.json_call_extraction import DecodedCall
from adapter.tools.tool import ToolSet

_HEAD = re.compile(r"([^\W\d][\w.-]*?)(?:\.call)?\(\s*(?:\)|\w+\s*=(?!=))")
_MAY_BE_HEAD = re.compile(r"([\w.-]*+)(\(\s*+(?:\w++\s*+=?)?)?")


def read_unmarked_calls(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the rest of the text if it consists of calls. If it does not, consume nothing and return `TEXT`."""
    start, has_call = len(consumed), False
    may_continue = partial(_may_be_head, tools=source.tools)
    yield from source.skip_space(consumed)
    while (yield from source.peek_call(_HEAD, NAME_LIMIT, may_continue)) is not None:
        source.may_be_text = has_call = True
        yield from consume_balanced(source, consumed)
        if not (yield from source.skip_space(consumed)):
            break
    result = TEXT
    if has_call and source.is_empty and not source.was_cut:
        result = _read(consumed, start, source.tools)
    if result is TEXT:
        source.give_back(consumed, start)
    return result


def _may_be_head(ahead: str, tools: ToolSet) -> bool:
    """Return whether ``ahead`` may be the start of a known tool's name and an argument."""
    match = _MAY_BE_HEAD.fullmatch(ahead)
    return match is not None and any(
        match[1] in (name, f"{name}.call") if match[2] else f"{name}.call".startswith(match[1]) for name in tools
    )


def _read(consumed: list[str], start: int, tools: ToolSet) -> BodyResult:
    try:
        result = read_calls("".join(consumed[start:]), tools, sum(map(len, consumed[:start])))
    except FormatError:
        return TEXT
    is_answer = not result.fixes and result.error is None and all(_is_certain(call, tools) for call in result.calls)
    return result.with_repairs("no-markers") if is_answer else TEXT


def _is_certain(call: DecodedCall, tools: ToolSet) -> bool:
    tool = tools.get(call.name)
    return (
        tool is not None
        and tool.effect == "read"
        and {*tool.required} <= call.arguments.keys() <= tool.properties.keys()
        and not any(isinstance(value, str) and is_placeholder(key, value) for key, value in call.arguments.items())
    )
