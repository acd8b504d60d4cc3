"""Parse calls written as Python without markers, which are the whole answer: ``get_weather(city="Oslo")``.

Granite and small models write them. Such a line may also be an answer about code. It is a call only if nothing but such
calls is in the answer, each of a tool of the session that only reads, with named literals for all required parameters.
"""

from __future__ import annotations

import re
from functools import partial

from adapter.core.errors import FormatError
from adapter.parsing.bodies.python_parser import read_calls
from adapter.parsing.bodies.python_scanner import take_balanced
from adapter.parsing.call_events import is_placeholder
from adapter.parsing.format import TEXT, BodyResult, ReadContext, peek_call
from adapter.parsing.stream_buffer import Reader, StreamBuffer, give_back, skip_space
from adapter.tools.call_shapes import DecodedCall
from adapter.tools.tool import ToolSet

HEAD_LIMIT = 200
"""Maximum number of characters of a name and the name of its first argument."""

_HEAD = re.compile(r"([^\W\d][\w.-]*+)\(\s*(?:\)|\w+\s*=(?!=))")
_MAY_BE_HEAD = re.compile(r"([\w.-]*+)(\(\s*+(?:\w++\s*+=?)?)?")


def read_answer(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """Parse the rest of the text if it consists of calls. Otherwise take nothing and return `TEXT`."""
    start, has_call = len(span), False
    may_continue = partial(_may_be_head, context=context)
    yield from skip_space(source, span)
    while (yield from peek_call(source, context, _HEAD, HEAD_LIMIT, may_continue)) is not None:
        context.may_be_text = has_call = True
        yield from take_balanced(source, span)
        if not (yield from skip_space(source, span)):
            break
    result = TEXT
    if has_call and source.is_empty and not source.was_cut:
        result = _read(span, start, context)
    if result is TEXT:
        give_back(source, span, start)
    return result


def _may_be_head(ahead: str, context: ReadContext) -> bool:
    """Return whether ``ahead`` may be the beginning of a known tool's name and an argument."""
    match = _MAY_BE_HEAD.fullmatch(ahead)
    return match is not None and any(
        name == match[1] if match[2] else name.startswith(match[1]) for name in context.tools
    )


def _read(span: list[str], start: int, context: ReadContext) -> BodyResult:
    try:
        result = read_calls("".join(span[start:]), context, sum(map(len, span[:start])))
    except FormatError:
        return TEXT
    is_answer = not result.fixes and all(_is_certain(call, context.tools) for call in result.calls)
    return result.adding("no-markers") if is_answer else TEXT


def _is_certain(call: DecodedCall, tools: ToolSet) -> bool:
    tool = tools.get(call.name)
    return (
        tool is not None
        and tool.effect == "read"
        and {*tool.required} <= call.arguments.keys() <= tool.properties.keys()
        and not any(isinstance(value, str) and is_placeholder(key, value) for key, value in call.arguments.items())
    )
