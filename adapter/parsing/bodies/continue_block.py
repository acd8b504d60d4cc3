"""Parse the block that Continue teaches to models without native tool calling. Its code fence may be missing.

Source: core/tools/systemMessageTools/toolCodeblocks of continuedev/continue::

    ```tool
    TOOL_NAME: read_file
    BEGIN_ARG: filepath
    "src/a.py"
    END_ARG
    ```

A value is JSON or unescaped text, on lines of its own.
"""

from __future__ import annotations

from adapter.core.errors import FormatError
from adapter.core.json.decode import decode_json
from adapter.parsing.bodies.tagged_arguments import PendingCall
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer

OPEN = "TOOL_NAME:"

_begin, _end = get_marker_set("BEGIN_ARG:"), get_marker_set("\nEND_ARG", "\r\nEND_ARG")


def read_labeled_block(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the body after ``TOOL_NAME:`` at the start of a line, if it calls one of the session's tools."""
    if not source.at_line_start:
        return TEXT
    source.may_be_text = True
    line: list[str] = []
    tool = source.tools.match((yield from _consume_line(source, line)))
    if tool is None:
        source.push_back("".join(line))
        return TEXT
    consumed.extend(line)
    call = PendingCall(tool.name, tool)
    call.fix("misspelt-open-tag")
    while True:
        gap: list[str] = []
        char = yield from source.skip_space(gap)
        begins = yield from source.consume_marker(_begin)
        if not begins:
            if source.was_cut and (not char or _begin.may_start_with(source.text[source.position :])):
                consumed.extend([*gap, source.consume_rest()])
                return CUT
            source.push_back("".join(gap))
            is_call = call.arguments or (char == "`" and not tool.required)
            return call.build_result() if is_call else TEXT
        consumed.extend([*gap, begins])
        key = yield from _consume_line(source, consumed)
        value, ends = yield from source.consume_through(_end, consumed)
        if not key or not ends:
            return TEXT if ends else CUT
        _add(call, key, value.removeprefix("\n"))


def _consume_line(source: StreamBuffer, consumed: list[str]) -> Reader[str]:
    """Consume the rest of the line and return it without surrounding whitespace, or "" if it is too long."""
    line: list[str] = []
    text = yield from source.consume_until("\n", NAME_LIMIT, line)
    if text is None:
        return ""
    source.push_back("\n")
    consumed.append(text)
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


OPENER = CallOpener(OPEN, read_labeled_block)
