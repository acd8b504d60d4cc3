"""Parse the ``<tool_calls>`` section, which several model families share. The bodies differ.

::

    <tool_calls>[{"name": ..., "arguments": {...}}, ...]</tool_calls>      Hunyuan A13B, Jamba, Apriel
    <tool_calls>                                                           MiniMax M1: one object per line
    {"name": ..., "arguments": {...}}
    </tool_calls>
    <tool_calls>                                                           Hunyuan 3: see `tool_call_tag`
    <tool_call>NAME ... </tool_call>
    </tool_calls>

All bodies are parsed, whichever of these formats is expected, because the start of a body shows its family.
"""

from __future__ import annotations

from adapter.parsing.bodies.tool_call_tag import OPEN as CALL_OPEN
from adapter.parsing.bodies.tool_call_tag import read_tool_call
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson, require_json

OPEN, CLOSE = "<tool_calls>", "</tool_calls>"

_read_json = require_json(TaggedJson(OPEN, CLOSE, may_list=True), CLOSE)
_call = MarkerSet(CALL_OPEN)


def read_tool_calls(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the body after ``<tool_calls>``: JSON up to the closing tag, or the first call with its own tags."""
    yield from source.skip_space(consumed)
    if (yield from source.consume_marker(_call, consumed)):
        return (yield from read_tool_call(source, consumed))
    if source.consume_cut_marker(CALL_OPEN, consumed):
        return CUT
    if source.at_line_start and (yield from source.is_next(source.openers)):
        return TEXT  # the section is only a wrapper around another family's call
    return (yield from _read_json(source, consumed))


OPENERS = (CallOpener(OPEN, read_tool_calls),)
