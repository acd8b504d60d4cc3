"""Reads the block in which Continue teaches models without tools of their own to call, with its code fence or without.

Format: core/tools/systemMessageTools/toolCodeblocks of continuedev/continue::

    ```tool
    TOOL_NAME: read_file
    BEGIN_ARG: filepath
    "src/a.py"
    END_ARG
    ```

A value is JSON or text as it is, on lines of its own.
"""

from __future__ import annotations

from adapter.core.errors import FormatError
from adapter.core.json.decode import decode_json
from adapter.parsing.bodies.argument_collection import PendingCall
from adapter.parsing.format import CUT_OFF, TEXT, BodyResult, CallOpener, ReadContext
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import Reader, StreamBuffer, read_until, skip_space, take_marker, take_until

OPEN = "TOOL_NAME:"

LINE_LIMIT = 200
"""Characters of a label's line; more is prose."""

_begin, _end = markers_for("BEGIN_ARG:"), markers_for("\nEND_ARG")


def read_labelled_block(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """What follows ``TOOL_NAME:`` at the beginning of a line: a call of a tool of the session."""
    if not context.at_line_start:
        return TEXT
    context.may_be_text = True
    line: list[str] = []
    tool = context.tools.match((yield from _take_line(source, line)))
    if tool is None:
        source.push_back("".join(line))
        return TEXT
    span.extend(line)
    call = PendingCall(tool.name, tool)
    call.fix("misspelt-open-tag")
    while True:
        gap: list[str] = []
        char = yield from skip_space(source, gap)
        begins = yield from take_marker(source, _begin)
        if not begins:
            if source.was_cut and (not char or _begin.may_start_with(source.text[source.position :])):
                span.extend([*gap, source.rest()])
                return BodyResult(error=CUT_OFF)
            source.push_back("".join(gap))
            is_call = call.arguments or (char == "`" and not tool.required)
            return call.result() if is_call else TEXT
        span.extend([*gap, begins])
        key = yield from _take_line(source, span)
        value: list[str] = []
        ends = yield from read_until(source, _end, value)
        span.extend([*value, ends])
        if not key or not ends:
            return TEXT if ends else BodyResult(error=CUT_OFF)
        _add(call, key, "".join(value).removeprefix("\n"))


def _take_line(source: StreamBuffer, span: list[str]) -> Reader[str]:
    """Take the rest of the line, which is returned without the space around it, but not its end; "" when there is
    none in reach."""
    line: list[str] = []
    text = yield from take_until(source, "\n", LINE_LIMIT, line)
    if text is None:
        return ""
    source.push_back("\n")
    span.append(text)
    return text.strip()


def _add(call: PendingCall, key: str, text: str) -> None:
    bare = text.strip()
    try:
        value = decode_json(bare) if len(bare) > 1 and bare[0] == bare[-1] == '"' else None
    except FormatError:
        value = None
    if value is None or value.end != len(bare):
        call.add_text(key, text)
    else:
        call.fix(*value.fixes)
        call.add_value(key, value.value)


OPENER = CallOpener(OPEN, read_labelled_block)
