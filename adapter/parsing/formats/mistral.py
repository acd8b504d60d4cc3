"""Mistral: ``[TOOL_CALLS]`` and then a JSON array, or a name and its arguments.

Format: the encoders of mistral-common (``tokens/tokenizers/instruct.py``) and the chat templates of the releases::

    [TOOL_CALLS] [{"name": N, "arguments": {...}}, ...]                 v3 to v7
    [TOOL_CALLS]N[CALL_ID]123456789[ARGS]{...}[TOOL_CALLS]N[ARGS]...    v11; v13 has no call id

A call has no closing marker and ends with its JSON. Magistral writes reasoning between ``[THINK]`` markers; its first
release writes it between ``<think>`` tags.
"""

from __future__ import annotations

import re
from functools import partial

from adapter.parsing.bodies import arrow_call
from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_arguments
from adapter.parsing.format import CUT, CUT_OFF, TEXT, BodyResult, BodySource, CallOpener, Format, try_readers
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.tools.tool_set import ToolSet

OPEN, CLOSE, ARGUMENTS, CALL_ID = "[TOOL_CALLS]", "[/TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
END = "</s>"

_ENDS = (OPEN, CLOSE, END)
_NAME = re.compile(r"[\w.:/-]+")
_DAMAGED_NAME = re.compile(r"([\w.:/-]+)[^\w\s]+(?:ARGS[^\w\s]*)?")
"""Matches a name and a damaged marker, or stray punctuation before the marker."""
_STRIPPED = re.compile(rf"\s*([\w.-]{{1,100}}){re.escape(ARGUMENTS)}(?=\{{)")
_MAY_BE_STRIPPED = re.compile(r"\s*+(?:[\w.-]++(?:\[(?:A|AR|ARG|ARGS|ARGS\])?)?)?")
_again = MarkerSet(OPEN)
_after_name = MarkerSet(ARGUMENTS, CALL_ID, "{", *_ENDS, "\n")
_after_id = MarkerSet(ARGUMENTS, "{", *_ENDS, "\n")
_read_list = UntaggedJson("arguments", after_marker=True, ends=_ENDS)


def read_tool_calls(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the body after ``[TOOL_CALLS]``, in the notation of any release."""
    fixes: list[str] = []
    while True:
        char = yield from source.skip_space(consumed)
        if char != OPEN[0] or not (yield from source.consume_marker(_again, consumed)):
            break
        fixes.append("text-in-tag")  # the marker is doubled
    if not char:
        return CUT
    if char in "{[":
        return (yield from _read_list(source, consumed)).with_repairs(*fixes)
    head: list[str] = []
    marker = yield from _consume_head(source, _after_name, head)
    consumed.extend(head)
    name = "".join(head).strip()
    if (damaged := _DAMAGED_NAME.fullmatch(name)) and source.tools.match(damaged[1]):
        name, fixes = damaged[1], [*fixes, "misspelt-inner-tag"]
    if not _NAME.fullmatch(name):
        source.push_back(marker)
        return TEXT
    if marker.upper() == CALL_ID:
        consumed.append(marker)
        marker = yield from _consume_head(source, _after_id, consumed)
    if marker == "\n" and (not source.tools or source.tools.match(name)):
        consumed.append(marker)
        marker = "{" if (yield from source.skip_space(consumed)) == "{" else ""
        source.position += len(marker)
    if marker.upper() == ARGUMENTS:
        consumed.append(marker)
    elif marker == "{":
        source.push_back(marker)
        fixes.append("missing-inner-tag")
    else:
        source.push_back(marker)
        return CUT if source.final and source.is_empty else TEXT
    arguments = UntaggedJson("arguments", after_marker=True, name=name, ends=_ENDS)
    result = yield from arguments(source, consumed)
    if result.not_a_call:
        cut = source.final and source.is_empty
        return BodyResult(error=CUT_OFF if cut else f"after {OPEN}{name}{ARGUMENTS} must come one JSON object")
    return result.with_repairs(*fixes)


def read_stripped(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse ``NAME[ARGS]{...}`` for a known tool at the start of an answer, after the server stripped
    ``[TOOL_CALLS]``."""
    may_continue = partial(_may_be_stripped, tools=source.tools)
    match = yield from source.peek_call(_STRIPPED, NAME_LIMIT, may_continue)
    if match is None:
        return TEXT
    source.consume_match(match, consumed)
    read = UntaggedJson("arguments", after_marker=True, name=match[1], ends=_ENDS)
    return (yield from read(source, consumed)).with_repairs("missing-open-tag")


def read_singular(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse ``NAME[ARGS]{...}`` for a known tool after ``[TOOL_CALL]``, which is also the marker of `arrow_call`."""
    source.may_be_text, start = True, len(consumed)
    result = yield from read_stripped(source, consumed)
    following, _ = yield from source.peek_after_space(_again)
    if not result.calls or following not in ("", OPEN[0]):
        source.give_back(consumed, start)
        return TEXT  # a sentence about the marker
    return result.with_repairs("misspelt-open-tag")


def _may_be_stripped(ahead: str, tools: ToolSet) -> bool:
    """Return whether ``ahead`` may be the start of a known tool's name and the marker after it."""
    word = ahead.strip().partition("[")[0]
    return _MAY_BE_STRIPPED.fullmatch(ahead) is not None and tools.has_prefix(word)


def _consume_head(source: StreamBuffer, markers: MarkerSet, head: list[str]) -> Reader[str]:
    """Consume a short text and the marker after it. Return the marker, or "" if there is none."""
    if not (yield from source.peek_marker(markers, NAME_LIMIT)):
        head.append(source.consume_rest() if source.final and len(source.text) - source.position < NAME_LIMIT else "")
        return ""
    return (yield from source.read_until(markers, head))


FORMAT = Format(
    name="mistral",
    aliases=("mixtral", "ministral", "magistral", "devstral", "mistral_common", "ministral3"),
    openers=(
        CallOpener(OPEN, read_tool_calls, keeps_space=True),
        CallOpener(arrow_call.OPEN, try_readers(read_singular, arrow_call.read_arrow_call)),
    ),
    read_stripped_start=read_stripped,
    encode_calls=build_calls_encoder(encode_json_arguments, f"{OPEN}{{name}}{ARGUMENTS}"),
    encode_result=build_result_encoder("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    result_markers=("[TOOL_RESULTS]",),
    reasoning={"[THINK]": "[/THINK]"},
    stray_closers=(CLOSE,),
    end_tokens=(END,),
    stop_sequences=(END,),
    special_tokens=(OPEN, ARGUMENTS, CALL_ID, "[THINK]", "[/THINK]"),
    model_patterns=(r"(?:mi|mini|magi|math|dev|pix|code|vox)stral", r"mixtral"),
    template_fingerprints=(OPEN,),
)
