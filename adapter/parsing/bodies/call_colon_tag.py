"""Parse a call in a ``<call:`` tag, which Gemma and Gemini write if they do not produce their own tokens.

::

    <call:default_api:NAME{key:value,...}/>        as in `gemma_call`; may also end with > or </call>
    <call:default_api:NAME>{JSON}</call>           the closing tag may contain the name
    <tool_call:NAME{key:value,...}<tool_call|>     the word of Gemma's token; may end like the others
    <function:NAME>{JSON}</function>               Llama's misspelling of its own tag

The tag counts only at the start of a line, and for one of the session's tools.
"""

from __future__ import annotations

import re

from adapter.parsing.bodies.gemma_call import GemmaCall
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader
from adapter.parsing.tagged_json import TaggedJson

_NAME = re.compile(r"([\w.:-]+)\s*([{>])")
_MAY_BE_NAME = re.compile(r"[\w.:-]*+\s*+")


class _CallElement:
    """Parses a call after ``<WORD:``. ``closing`` is the text after the braces with the arguments. An instance is a
    `BodyReader`."""

    def __init__(self, word: str, closing: str) -> None:
        self.word = word
        self._read_pairs = GemmaCall(f"<{word}:", closing, '<|"|>')

    def __call__(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        if not (source.at_line_start or source.after_call):
            return TEXT
        source.may_be_text = True
        match = yield from source.peek_match(_NAME, NAME_LIMIT, _MAY_BE_NAME.fullmatch)
        if match is None or source.tools.match(match[1]) is None:
            return TEXT
        tag = f"{self.word}:{match[1]}>"
        if match[2] == "{":
            result = yield from self._read_pairs(source, consumed)
            if "missing-close-tag" in result.fixes:
                yield from source.consume_marker(get_marker_set(">", "/>", f"</{self.word}>", f"</{tag}"), consumed)
        else:
            source.consume_match(match, consumed)
            if (yield from source.skip_space(consumed)) != "{":
                return TEXT
            result = yield from TaggedJson(f"<{tag}", f"</{tag}", name=match[1])(source, consumed)
        return result.with_fixes("misspelt-open-tag")


OPENERS = (
    CallOpener("<call:", _CallElement("call", "/>")),
    CallOpener("<tool_call:", _CallElement("tool_call", "<tool_call|>")),
    CallOpener("<function:", _CallElement("function", "</function>")),
)
