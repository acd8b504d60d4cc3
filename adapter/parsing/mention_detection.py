"""Distinguish a marker that prose only mentions from an effective one, by its position or by its body.

``Put the call in <tool_call>.`` and ``[TOOL_CALLS]NAME{...} is the old form`` are parts of a sentence without a call; a
marker at the beginning of a line is effective, however broken its body is.
"""

from __future__ import annotations

import re

from adapter.parsing.format import BodyResult, ReadContext
from adapter.parsing.parse_state import ParseState
from adapter.parsing.stream_buffer import Reader, StreamBuffer, skip_space, wait_for_character

LIMIT = 400
"""Maximum number of characters that a failed reader may have taken of prose; they are parsed again."""

_BEGINS_JSON = re.compile(r"\s*[{\[]\s*[\"'\w{\[“]")
_INNER_TOKEN = re.compile(r"</|<[|｜]|[|｜]>|<\w+[=>]|\[\w+\]")
_WORD = re.compile(r"[\w.-]+")


def is_mere_mention(raw: str, marker: str, result: BodyResult, context: ReadContext, *, is_glued: bool) -> bool:
    """Return whether ``raw`` is a ``marker`` mentioned within a line and the rest of a sentence.

    ``is_glued``: no whitespace precedes it.
    """
    if context.at_line_start or len(raw) - len(marker) > LIMIT:
        return False
    body, tools = raw[len(marker) :], context.tools
    if is_glued and not body.strip():
        return False
    if result.calls:
        return "missing-close-tag" in result.fixes and all(
            not call.arguments and (tools.match(call.name) is None) for call in result.calls
        )
    if result.error is None:
        return False
    body = body.replace(marker, " ")
    if _BEGINS_JSON.match(body) or _INNER_TOKEN.search(body):
        return False
    return not any(tools.match(word) for word in _WORD.findall(body))


def is_stray_closer(source: StreamBuffer, state: ParseState) -> Reader[bool]:
    """Return whether a closing marker, just taken, begins a line or is glued to the last word of the text."""
    line = state.line
    if line.is_blank or line.is_quote or any(state.space):
        return line.is_blank
    ahead: list[str] = []
    following = yield from skip_space(source, ahead)
    source.push_back("".join(ahead))
    return not following


def begins_block(source: StreamBuffer) -> Reader[bool]:
    """Return whether a marker, just taken, is followed by a line break or a tag and not by a sentence."""
    yield from wait_for_character(source)
    return not source.is_empty and source.text[source.position] in "\r\n<"
