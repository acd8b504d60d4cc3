"""Tells a marker that prose only names from one that is meant: by where it stands, or once its reader has failed.

``Put the call in <tool_call>.`` and ``[TOOL_CALLS]NAME{...} is the old form`` stand in a sentence
and hold nothing of a call; what stands at the beginning of a line was meant, however broken it is.
"""

from __future__ import annotations

import re

from adapter.parsing.format import BodyResult, ReadContext
from adapter.parsing.parse_state import ParseState
from adapter.parsing.stream_buffer import Reader, StreamBuffer, skip_space

LIMIT = 400
"""Characters that a failed reader may have taken of what is prose: they are read again."""

_BEGINS_JSON = re.compile(r"\s*[{\[]\s*[\"'\w{\[“]")
_INNER_TOKEN = re.compile(r"</|<[|｜]|[|｜]>|<\w+[=>]|\[\w+\]")
_WORD = re.compile(r"[\w.-]+")


def is_mere_mention(raw: str, marker: str, reading: BodyResult, context: ReadContext, *, is_glued: bool) -> bool:
    """Whether ``raw`` is a ``marker`` named within a line and the rest of a sentence.

    ``is_glued``: no white space stands before it.
    """
    if context.at_line_start or len(raw) - len(marker) > LIMIT:
        return False
    body, tools = raw[len(marker) :], context.tools
    if is_glued and not body.strip():
        return False
    if reading.calls:
        return "missing-close-tag" in reading.fixes and all(
            not call.arguments and (tools.match(call.name) is None) for call in reading.calls
        )
    if reading.error is None:
        return False
    body = body.replace(marker, " ")
    if _BEGINS_JSON.match(body) or _INNER_TOKEN.search(body):
        return False
    return not any(tools.match(word) for word in _WORD.findall(body))


def is_stray_closer(source: StreamBuffer, state: ParseState) -> Reader[bool]:
    """Whether a closing marker, just taken, begins a line, or is glued to the last word of the text."""
    line = state.line
    if line.is_blank or line.is_quote or any(state.space):
        return line.is_blank
    ahead: list[str] = []
    following = yield from skip_space(source, ahead)
    source.push_back("".join(ahead))
    return not following


def begins_block(source: StreamBuffer) -> Reader[bool]:
    """Whether a marker, just taken, begins something and is not a word in a sentence."""
    while source.is_empty and not source.final:
        yield
    return not source.is_empty and source.text[source.position] in "\r\n<"
