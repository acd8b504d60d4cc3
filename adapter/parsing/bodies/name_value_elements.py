"""Parse an XML function's parameter whose name and value are elements, as the ZAYA models write it.

::

    <parameter>
    <name>KEY</name>
    <type>string</type>                                         often omitted
    <value>value, unescaped</value>
    </parameter>
"""

from __future__ import annotations

import re

from adapter.parsing.bodies.tagged_arguments import BodyError, PendingCall
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import HEAD_LIMIT, Reader, StreamBuffer

_OPEN = "<parameter>"
_HEAD = re.compile(rf"{_OPEN}\s*<name>\s*([\w.:-]+)\s*</name>\s*(?:<type>[^<>]*</type>\s*)?<value>", re.IGNORECASE)
_value_close, _close = MarkerSet("</value>"), MarkerSet("</parameter>")


def read_named_value(source: StreamBuffer, consumed: list[str], call: PendingCall) -> Reader[bool]:
    """Parse the parameter at the current position and add it to ``call``. If there is none, consume nothing and return
    False. ``</value>`` ends the value only before ``</parameter>``. Raises BodyError if the value has no end."""
    head = yield from source.peek_match(_HEAD, HEAD_LIMIT, lambda ahead: _OPEN.startswith(ahead[: len(_OPEN)].lower()))
    if head is None:
        return False
    source.consume_match(head, consumed)
    value: list[str] = []
    while marker := (yield from source.read_until(_value_close, value)):
        ahead = [marker]
        yield from source.skip_space(ahead)
        if (yield from source.consume_marker(_close, ahead)):
            consumed.extend([*value, *ahead])
            call.fix("misspelt-inner-tag")
            call.add_text(head[1], "".join(value))
            return True
        value.extend(ahead)
    consumed.extend(value)
    raise BodyError
