"""Parse a call in a ``<call:`` tag, which Gemma and Gemini write if they do not produce their own tokens.

::

    <call:default_api:NAME{key:value,...}/>        as in `gemma_call`; may also end with > or </call>
    <call:default_api:NAME>{JSON}</call>           the closing tag may contain the name

The tag is only accepted at the start of a line, and for one of the session's tools.
"""

from __future__ import annotations

import re

from adapter.parsing.bodies.gemma_call import GemmaCall
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader
from adapter.parsing.tagged_json import TaggedJson

OPEN = "<call:"

_NAME = re.compile(r"([\w.:-]+)\s*([{>])")
_MAY_BE_NAME = re.compile(r"[\w.:-]*+\s*+")
_read_pairs = GemmaCall(OPEN, "/>", '<|"|>')


def read_call_element(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the body after ``<call:``."""
    if not (source.at_line_start or source.after_call):
        return TEXT
    source.may_be_text = True
    name_match = yield from source.peek_match(_NAME, NAME_LIMIT, _MAY_BE_NAME.fullmatch)
    if name_match is None or source.tools.match(name_match[1]) is None:
        return TEXT
    if name_match[2] == "{":
        result = yield from _read_pairs(source, consumed)
        if "missing-close-tag" in result.fixes:
            yield from source.consume_marker(get_marker_set(">", "</call>", f"</call:{name_match[1]}>"), consumed)
    else:
        source.consume_match(name_match, consumed)
        if (yield from source.skip_space(consumed)) != "{":
            return TEXT
        tag = f"call:{name_match[1]}>"
        result = yield from TaggedJson(f"<{tag}", f"</{tag}", name=name_match[1])(source, consumed)
    return result.with_fixes("misspelt-open-tag")


OPENER = CallOpener(OPEN, read_call_element)
