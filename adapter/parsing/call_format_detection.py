"""Detect the format of the first call in a model's answer."""

from __future__ import annotations

from functools import lru_cache

from adapter.core.events import InvalidToolCall, ToolCall
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS

UNMARKED = "unmarked"
"""The result of `detect_call_format` for calls in JSON without markers."""


def detect_call_format(turn: Turn, names: tuple[str, ...], fixed_format: Format | None = None) -> str:
    """Return the name of the format of the first call in ``turn``, or "" if there is no call.

    If several formats share the opening marker, return the one with the longest prefix in common with the call. For a
    call without a marker, return the name of ``fixed_format`` or, if that is None, `UNMARKED`. ``names`` are the
    session's tools, which some formats use as markers.
    """
    first = next((event for event in turn.events if isinstance(event, ToolCall | InvalidToolCall)), None)
    if first is None:
        return ""
    return _match_prefix(_find_call_prefix(first.raw, first.name or ""), names, fixed_format)


MAX_PREFIX = 80
"""Maximum number of non-whitespace characters before a call's name. All formats but one have at most 60."""
_PROBE = "zqname"


def _find_call_prefix(raw: str, name: str) -> str:
    """Return the text before a call's name, in lower case and without whitespace."""
    before = raw[:200].partition(name)[0] if name else raw[:200]
    return "".join(before.split()).lower()[:MAX_PREFIX]


@lru_cache(maxsize=4096)
def _match_prefix(prefix: str, names: tuple[str, ...], fixed_format: Format | None) -> str:
    found, best = fixed_format.name if fixed_format else UNMARKED, (0, 0)
    for entry in (*([fixed_format] if fixed_format else ()), *FORMATS.all):
        openers = (*entry.openers, *(entry.build_tool_openers(names) if entry.build_tool_openers else ()))
        markers = ("".join(opener.marker.split()).lower() for opener in openers)
        marker_length = max((len(marker) for marker in markers if marker and prefix.startswith(marker)), default=0)
        if marker_length and (score := (_score_shared_prefix(prefix, _format_prefix(entry)), marker_length)) > best:
            found, best = entry.name, score
    return found


@lru_cache(maxsize=256)
def _format_prefix(entry: Format) -> str:
    return _find_call_prefix(entry.encode_calls([(_PROBE, {})]), _PROBE)


def _score_shared_prefix(one: str, other: str) -> int:
    """Return the length of the common prefix, or a number above `MAX_PREFIX` if the strings are equal."""
    if one == other:
        return MAX_PREFIX + 1
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
