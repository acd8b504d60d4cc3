"""Find tags around calls that no format defines, such as ``<actions>`` or ``<foo:function_calls>``.

::

    <actions>
    <tool_call>{"name": "search", "arguments": {"query": "a"}}</tool_call>
    </actions>

Such tags are ordinary words, so they are markup only at the start of a line and before a call that can be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from adapter.parsing.format import BodySource
from adapter.parsing.marker_patterns import build_first_two
from adapter.parsing.marker_set import MarkerSet, WeakMarker, WeakMarkerSet
from adapter.parsing.stream_buffer import SPACE, Reader, StreamBuffer
from adapter.tools.tool_set import ToolSet

LINE_START, TAG_START = "\n", "\n<"

_NAME = r"[A-Za-z_][\w.-]{0,30}+(?::[\w.-]{0,30}+)?+"
_TAG = re.compile(rf"<({_NAME})>")
_TAG_BEGINNING = re.compile(rf"<(?:{_NAME})?\Z")
_TAG_LIMIT = 64
_NAMESPACED = r"[A-Za-z_][\w.-]{0,30}+:(?=invoke[ \t\n])"
_NAMESPACE = re.compile(f"<({_NAMESPACED})")
_NAMESPACE_BEGINNING = re.compile(r"<(?:[A-Za-z_][\w.-]{0,30}+(?::i?n?v?o?k?e?)?)?\Z")
_QUOTES = re.compile(r"code|pre|.*(?:example|sample|quote|result|response|output|document)s?", re.IGNORECASE)
"""Matches names of tags around quoted text. Calls in such tags are not the model's own."""
_CALLS = re.compile(r"[\w:.-]*?(?:call|tool|func|action|invo|command)", re.IGNORECASE)
"""Matches names of tags and code fences that announce calls, even without markers."""
ANNOUNCING_WORD = rf"(?i:{_CALLS.pattern})[\w:.-]*+"
MAX_DEPTH = 3
"""Maximum number of wrapper tags around a call."""


def build_tag_pattern(openers: Iterable[str]) -> str:
    """Return a pattern for the text after `TAG_START` where a tag before a call, or another ``<``, may begin."""
    call = rf"{build_first_two(openers)}|<[A-Za-z_]|\Z"
    return rf"(?=<|\Z|{_NAME}(?:\Z|>[{SPACE}]*+(?:{call}))|{ANNOUNCING_WORD}>|{_NAMESPACED})"


@lru_cache(maxsize=64)
def with_closing_tags(markers: WeakMarkerSet) -> WeakMarkerSet:
    """Return the markers to search for after a call in wrapper tags: ``markers``, and `TAG_START` before a closing tag
    as well."""
    pattern = rf"(?:/(?:\Z|{_NAME}(?:\Z|>))|{markers.weak[TAG_START].pattern})"
    return markers.with_weak_marker(TAG_START, WeakMarker(pattern))


def consume_wrapper(source: BodySource, openers: MarkerSet, has_namespaces: bool) -> Reader[str]:
    """Consume and return the wrapper tags at the current position, with whitespace, if a call follows them. Otherwise,
    consume nothing and return "".

    ``openers`` are the opening markers of calls. ``has_namespaces``: whether ``<NAMESPACE:invoke`` also begins a call.
    """
    taken: list[str] = []
    for _ in range(MAX_DEPTH):
        tag = yield from source.peek_match(_TAG, _TAG_LIMIT, _TAG_BEGINNING.match)
        if tag is None or _QUOTES.fullmatch(tag[1]):
            break
        taken.append(tag[0])
        source.position += len(tag[0])
        yield from source.skip_space(taken)
        _, marker = yield from source.peek_after_space(openers)
        is_parameter = names_tool(marker, source.tools) and not announces_calls(tag[1])
        if (marker and not is_parameter) or (has_namespaces and (yield from peek_namespace(source))):
            return "".join(taken)
    source.push_back("".join(taken))
    return ""


def names_tool(marker: str, tools: ToolSet) -> bool:
    """Return whether ``marker`` is a tag named after a tool, such as ``<search>``. Inside a tag that does not announce
    calls, it may be a parameter of an unknown tool."""
    return tools.match(marker.strip("<>{\n /")) is not None


def peek_namespace(source: StreamBuffer) -> Reader[str]:
    """Return the namespace, with its colon, if ``<NAMESPACE:invoke`` begins here, or ""."""
    match = yield from source.peek_match(_NAMESPACE, _TAG_LIMIT, _NAMESPACE_BEGINNING.match)
    return match[1] if match else ""


def announces_calls(word: str) -> bool:
    """Return whether a tag or code fence called ``word`` contains calls, even without markers."""
    return _CALLS.match(word) is not None and not _QUOTES.fullmatch(word)


def peek_announcing_tag(source: StreamBuffer) -> Reader[str]:
    """Return the name of the tag at the current position if it announces calls, or ""."""
    tag = yield from source.peek_match(_TAG, _TAG_LIMIT, _TAG_BEGINNING.match)
    return tag[1] if tag and announces_calls(tag[1]) else ""


def is_tag(text: str) -> bool:
    """Return whether ``text`` is an opening tag, apart from whitespace after it."""
    return _TAG.fullmatch(text.rstrip(SPACE)) is not None


def find_tag_names(text: str) -> set[str]:
    """Return the names of the opening tags in ``text``, in lower case."""
    return {name.lower() for name in _TAG.findall(text)}
