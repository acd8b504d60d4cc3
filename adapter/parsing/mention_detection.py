"""Distinguish markers that open or close a call from markers that prose only mentions, by the text around them.

``Put the call in <tool_call>.`` and ``[TOOL_CALLS]NAME{...} is the old form`` contain no call. A marker at the start of
a line counts, even if its body is malformed.
"""

from __future__ import annotations

import re

from adapter.parsing.format import BodyResult
from adapter.parsing.marker_tables import MarkerTables
from adapter.parsing.parse_state import ParseState
from adapter.parsing.stream_buffer import Reader, StreamBuffer
from adapter.tools.tool_set import ToolSet

LIMIT = 400
"""Maximum number of characters after a marker that is only mentioned. They are parsed again as prose."""

REST_LIMIT = 80
"""Number of characters after a call that show whether a sentence continues."""

_BEGINS_JSON = re.compile(r"\s*[{\[]\s*[\"'\w{\[“]")
_INNER_TOKEN = re.compile(r"</|<[|｜]|[|｜]>|<\w+[=>]|\[\w+\]")
_WORD = re.compile(r"[\w.-]+")
_CONTINUATION = re.compile(r"(?:[,;.:!?)]++[ \t]++|[ \t]++)(?P<word>[^\W\d_]++)(?:[,;.:!?)]|[ \t]++\S)")
_MAY_CONTINUE = re.compile(r"[,;.:!?)]*+[ \t]*+[^\W\d_]*+[ \t]*+")
"""Match the rest of a sentence after a call, with at least two words on the same line, and any start of such a rest."""


def is_mere_mention(raw: str, marker: str, result: BodyResult, tools: ToolSet, *, is_glued: bool) -> bool:
    """Return whether ``raw``, which begins with ``marker`` in the middle of a line, is the rest of a sentence about the
    marker. ``is_glued``: whether no whitespace precedes the marker."""
    if len(raw) - len(marker) > LIMIT:
        return False
    body = raw[len(marker) :]
    if is_glued and not body.strip():
        return False
    if result.calls:
        return not {"missing-close-tag", "text-in-tag"}.isdisjoint(result.fixes) and all(
            not call.arguments and (tools.match(call.name) is None) for call in result.calls
        )
    if result.error is None:
        return False
    body = body.replace(marker, " ")
    if _BEGINS_JSON.match(body) or _INNER_TOKEN.search(body):
        return False
    return not any(tools.match(word) for word in _WORD.findall(body))


def consume_mentioned_closers(
    source: StreamBuffer, tables: MarkerTables, result: BodyResult, tools: ToolSet, *, in_sentence: bool, is_glued: bool
) -> Reader[str | None]:
    """Consume and return the closing markers after calls that are part of a sentence. Otherwise, consume nothing and
    return None.

    Complete calls in the middle of a line are part of a sentence if text follows on the same line and no call names a
    known tool. Calls to known tools are so only in a sentence that begins before them (``in_sentence``) and continues
    after them, as in ``I must not send ..., so I stop``; if they have arguments, there must also be whitespace before
    them (``is_glued`` is false) and several words after them.
    """
    is_known = any(tools.match(call.name) for call in result.calls)
    has_arguments = is_known and any(call.arguments for call in result.calls)
    if not tools or not result.calls or (is_known and not in_sentence) or (has_arguments and is_glued):
        return None
    taken, ahead = "", list[str]()
    while (following := (yield from source.skip_space(ahead))) and (
        yield from source.consume_marker(tables.all_closers, ahead)
    ):
        taken = "".join(ahead)
    space = "".join(ahead)[len(taken) :]
    is_mentioned = following != "" and "\n" not in space and not (is_known and following.isupper())
    is_mentioned = is_mentioned and not (yield from source.is_next(tables.text_markers))
    if is_mentioned and has_arguments:
        source.push_back(space)
        rest = yield from source.peek_match(_CONTINUATION, REST_LIMIT, _MAY_CONTINUE.fullmatch)
        is_mentioned = rest is not None and not rest["word"][:1].isupper()
        source.position += len(space)
    source.push_back(space if is_mentioned else taken + space)
    return taken if is_mentioned else None


def is_stray_closer(kind: str, source: StreamBuffer, state: ParseState) -> Reader[bool]:
    """Return whether a closing marker without an opening marker is markup. It is markup if it begins a line or ends the
    text directly after a word, unless it closes an element in the content. ``kind`` is the marker in lower case, which
    was just consumed."""
    line = state.line
    if state.has_opened(kind):
        return False
    if line.is_blank or line.is_quote or any(state.space):
        return line.is_blank
    ahead: list[str] = []
    following = yield from source.skip_space(ahead)
    source.push_back("".join(ahead))
    return not following
