"""Parse calls written with ``=>`` and ``--KEY``, which MiniMax M2 and others write if their own tags are stripped.

::

    [TOOL_CALL]
    {tool => "NAME", args => {
      --KEY "value"
      --KEY [1, 2]
    }}
    [/TOOL_CALL]

A value is JSON, or words without quotes. The arguments may also be one JSON object, or ``KEY => value``. The marker is
plain text, so it counts only at the start of a line and before a call to one of the session's tools.
"""

from __future__ import annotations

import re

from adapter.core.errors import FormatError
from adapter.core.json.decode import decode_json
from adapter.core.json.strict import decode_strict, quote_excerpt
from adapter.parsing.bodies.tagged_arguments import PendingCall
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource, CallOpener
from adapter.parsing.json_calls import BRACKETS, scan_json_value
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson

OPEN, CLOSE = "[TOOL_CALL]", "[/TOOL_CALL]"

_HEAD = re.compile(
    r"\{\s*[\"']?(?:tool|tool_name|name)[\"']?\s*(=>|:)\s*[\"']([\w.:/-]+)[\"']\s*,?\s*"
    r"[\"']?(?:args|arguments|parameters|input)[\"']?\s*(?:=>|:)\s*(?=\{)"
)
_ITEM = re.compile(r"\s*+(?:,\s*+)?+(?:--([\w.-]+)(?:\s*(?:=>|[=:])|(?=[\s}]))|[\"']?([\w.-]+)[\"']?\s*(?:=>|:))\s*")
_NEXT = re.compile(r",?\s*(?:--[\w.-]+[\s=:}]|\})")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_WORD = re.compile(r"[^\s,{}\[\]\"']+")
_END = re.compile(r"\s*+(?:,\s*+)?+\}")
_tokens = get_marker_set(CLOSE, '"', *BRACKETS)
_close, _brace = get_marker_set(CLOSE), get_marker_set("}")
_read_json = TaggedJson(OPEN, CLOSE, may_list=True)


def read_arrow_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the body after ``[TOOL_CALL]``."""
    if not source.at_line_start or (yield from source.skip_space(consumed)) != "{":
        return TEXT
    source.may_be_text = True
    head = yield from source.peek_match(_HEAD, NAME_LIMIT, lambda ahead: "}" not in ahead)
    if head is None:
        result = yield from _read_json(source, consumed)
        return result.with_repairs("misspelt-open-tag") if result.calls_known_tools(source.tools) else TEXT
    tool = source.tools.match(head[2])
    if tool is None:
        return TEXT
    source.consume_match(head, consumed)
    body: list[str] = []
    bracket = yield from scan_json_value(source, body, _tokens)
    consumed.extend([*body, *([] if bracket in BRACKETS else [bracket])])
    if not bracket:
        return CUT
    is_closed = yield from _consume_end(source, consumed)
    if not is_closed and source.was_cut and source.is_empty:
        return CUT
    call = PendingCall(tool.name, tool)
    call.fix("misspelt-open-tag")
    try:
        _add_arguments(call, "".join(body))
    except FormatError as error:
        example = f'{OPEN}{{tool => "{tool.name}", args => {{--NAME "value"}}}}{CLOSE}'
        return BodyResult(error=f"the call of {tool.name!r} cannot be read: {error}. Write it as {example}")
    return call.build_result() if is_closed else call.build_result("missing-close-tag")


def _consume_end(source: StreamBuffer, consumed: list[str]) -> Reader[bool]:
    """Consume the closing braces and the closing marker. Return whether the marker is present."""
    gap: list[str] = []
    while True:
        yield from source.skip_space(gap)
        if not (yield from source.consume_marker(_brace, gap)):
            break
    closing = yield from source.consume_marker(_close, gap)
    if not closing:
        source.consume_cut_marker(CLOSE.lower(), gap)
    text = "".join(gap)
    consumed.append(text if closing or source.is_empty else text.rstrip())
    source.push_back(text[len(consumed[-1]) :])
    return bool(closing)


def _add_arguments(call: PendingCall, text: str) -> None:
    """Add the arguments in ``text``, which begins with their opening brace. Raises FormatError if they are invalid."""
    whole = decode_strict(text)
    if whole is not None and isinstance(whole.value, dict):
        call.arguments = whole.value
        call.fix(*whole.fixes)
        return
    position = 1
    while not _END.match(text, position):
        item = _ITEM.match(text, position)
        if item is None:
            raise FormatError(f"expected --NAME and a value, got {quote_excerpt(text, position)}")
        position = _add(call, item[1] or item[2], text, item.end())


def _add(call: PendingCall, key: str, text: str, position: int) -> int:
    """Add the value of ``key`` at ``position`` in ``text`` to ``call``, and return the value's end. An option without a
    value is true. Raises FormatError for an invalid value."""
    if _NEXT.match(text, position):
        call.add_value(key, True)
        return position
    if string := _STRING.match(text, position):
        value = decode_json(string.group())
    elif text.startswith(("[", "{"), position):
        value = decode_json(text[position:], closed=False)
    elif word := _WORD.match(text, position):
        call.add_text(key, word.group())
        return word.end()
    else:
        raise FormatError(f"expected a value, got {quote_excerpt(text, position)}")
    call.fix(*value.fixes)
    call.add_value(key, value.value)
    return position + value.end


OPENER = CallOpener(OPEN, read_arrow_call)
