"""OLMo 3: Python calls, a line each, in ``<function_calls>`` tags.

Format: that of allenai/Olmo-3-7B-Instruct and Olmo-3-7B-Think by vLLM's parser; values are JSON::

    <function_calls>get_weather(city="Oslo", days=2, exact=true)
    get_time()</function_calls>

Results go back under the role ``environment``. Anthropic's prompts open their section with the same
tag: `invoke_tags` reads what continues it.
"""

from __future__ import annotations

import json
import re

from adapter.core.events import JsonObject
from adapter.parsing.bodies.invoke_tags import OPENERS
from adapter.parsing.bodies.python_scanner import python_or_json
from adapter.parsing.encoding import calls_encoder
from adapter.parsing.format import CUT_OFF, TEXT, BodyResult, CallOpener, Format, ReadContext
from adapter.parsing.stream_buffer import Reader, StreamBuffer, skip_space

OPEN, CLOSE = "<function_calls>", "</function_calls>"

NAME_LIMIT = 200
"""Characters of a call's name; more is prose after the tag."""

_read_invokes = next(opener.read for opener in OPENERS if opener.marker == OPEN)
_read_calls = python_or_json(OPEN, CLOSE)
_CALL_BEGINS = re.compile(r"\[?\s*([^\W\d][\w.-]*+)\s*\(")
_CALL_MAY_BEGIN = re.compile(r"\[?\s*+(?:[^\W\d][\w.-]*+\s*+)?")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def read_calls(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """What follows ``<function_calls>``: Python or JSON, else elements, or a word in a sentence."""
    ahead: list[str] = []
    char = yield from skip_space(source, ahead)
    source.push_back("".join(ahead))
    if not char:
        span.append(source.rest())
        return BodyResult(error=CUT_OFF) if context.at_line_start or source.was_cut else TEXT
    if char == "<" or not (yield from _begins_call(source, context, "".join(ahead))):
        return (yield from _read_invokes(source, span, context))
    reading = yield from _read_calls(source, span, context)
    # JSON's true, false and null are this format's own.
    return reading.without_fix("json-literal")


def _begins_call(source: StreamBuffer, context: ReadContext, space: str) -> Reader[bool]:
    """Whether a call or a JSON object comes after ``space``: within a line only one of a tool of this session."""
    while True:
        start = source.position + len(space)
        ahead = source.text[start : start + NAME_LIMIT]
        if ahead.startswith("{"):
            return True
        found = _CALL_BEGINS.match(ahead)
        if found is not None:
            return context.at_line_start or context.tools.match(found.group(1)) is not None
        if re.match(r"\[\s*\{", ahead):
            return True
        if source.final or len(ahead) == NAME_LIMIT or not _CALL_MAY_BEGIN.fullmatch(ahead):
            return False
        yield


def encode_call(name: str, arguments: JsonObject) -> str:
    if all(_IDENTIFIER.fullmatch(key) for key in arguments):
        written = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    else:
        written = f"**{json.dumps(arguments, ensure_ascii=False)}"
    return f"{name}({written})"


FORMAT = Format(
    name="olmo3",
    aliases=("olmo", "olmo3_think"),
    openers=(CallOpener(OPEN, read_calls),),
    encode_calls=calls_encoder(encode_call, between="\n", opening=OPEN, closing=CLOSE),
    stray_closers=(CLOSE,),
    stop_sequences=("<|im_end|>",),
    special_tokens=(OPEN, CLOSE, "<think>", "</think>"),
    model_patterns=(r"olmo-?_?[3-9]",),
    template_fingerprints=(OPEN,),
)
