"""Parse the XML functions of `xml_function` without ``<tool_call>`` around them, or with a broken opening tag.

::

    <function=NAME>...</function>                  <tool_call> is missing
    function=NAME><parameter=KEY>...</function>    the first bracket is also missing
    =NAME><parameter=KEY>...</function>            the word is also missing, at the start of an answer
    NAME><parameter=KEY>...</function>             the equals sign is also missing
"""

from __future__ import annotations

import re
from collections.abc import Callable

from adapter.parsing.bodies.xml_function import consume_tag_name, read_xml_function
from adapter.parsing.fallback_readers import read_call_or_text
from adapter.parsing.format import TEXT, BodyResult, BodySource
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer

_INSIDE = r"\s*(?=<parameter[ =]|parameter=|</function>)"
_BROKEN_NAME = re.compile(rf"([\w.:-]+)[\"']?>{_INSIDE}", re.IGNORECASE)
_BROKEN_OPENER = re.compile(rf"\s*=?{_BROKEN_NAME.pattern}", re.IGNORECASE)
_MAY_END_BROKEN_NAME = r"(?:[\"']?(?:>\s*+[</\w]*+)?)"
_MAY_BE_BROKEN_NAME = re.compile(rf"[\w.:-]*+{_MAY_END_BROKEN_NAME}")
_MAY_BE_BROKEN_OPENER = re.compile(rf"\s*+(=?)([\w.:-]*+){_MAY_END_BROKEN_NAME}")


def read_unwrapped_function(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call after ``<function=`` without ``<tool_call>``, which Qwen3-Coder often omits. Llama 3.1's custom tool
    calls, ``<function=NAME>{JSON}</function>``, never have ``<tool_call>``."""
    if not source.at_line_start and not (yield from _begins_block(source)):
        return TEXT
    start = len(consumed)
    result = yield from read_xml_function(source, consumed)
    body = "".join(consumed[start:]).partition(">")[2]
    if not source.was_cut and not any(tag in body.lower() for tag in ("<parameter", "</function>", "{")):
        return TEXT  # the tag was only mentioned
    return result.with_repairs("missing-open-tag") if result.calls and not body.lstrip().startswith("{") else result


def read_broken_opener(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call after ``function=``, whose bracket is missing: ``function=NAME><parameter=KEY>...``.

    Prose may contain this word, so it counts only at the start of a line, for one of the session's tools, and before a
    parameter or the closing tag.
    """
    if not (source.at_line_start or source.after_call):
        return TEXT
    return (yield from _read_broken(source, consumed, _BROKEN_NAME, _MAY_BE_BROKEN_NAME.fullmatch))


def read_unopened(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call at the start of an answer with only the end of its opening tag: ``=NAME><parameter=KEY>...``."""

    def may_continue(ahead: str) -> bool:
        match = _MAY_BE_BROKEN_OPENER.fullmatch(ahead)
        return match is not None and (match[1] == "=" or source.tools.has_prefix(match[2]))

    return (yield from _read_broken(source, consumed, _BROKEN_OPENER, may_continue))


def _read_broken(
    source: BodySource,
    consumed: list[str],
    pattern: re.Pattern[str],
    may_continue: Callable[[str], object],
) -> Reader[BodyResult]:
    match = yield from source.peek_call(pattern, NAME_LIMIT, may_continue)
    if match is None:
        return TEXT
    consumed.append(source.text[source.position : source.position + match.start(1)])
    source.position += match.start(1)
    return (yield from read_call_or_text(read_xml_function, source, consumed)).with_fixes("misspelt-open-tag")


def _begins_block(source: StreamBuffer) -> Reader[bool]:
    """Return whether ``NAME>`` comes next, and a line break or JSON after it, as in a call but not in a sentence.
    Nothing is consumed."""
    ahead: list[str] = []
    name = yield from consume_tag_name(source, ahead)
    yield from source.wait_for_character()
    following = source.text[source.position : source.position + 1]
    source.push_back("".join(ahead))
    return name is not None and following != "" and following in "\r\n{"
