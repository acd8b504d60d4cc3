"""Code World Model: the tool's name in a tag, and its arguments by position, one per line.

Format: the model card of facebook/cwm. The system prompt shows how the model must write a call to each tool::

    <tool: bash>                   <tool: create>
    [command(s)]                   [path]
    </tool>                        [content]
                                   </tool>

Each line is the next required parameter of the tool, and the last parameter gets all remaining lines. If the tool has
no required parameters, the text is its first parameter. Results are returned in a message with the ``tool: NAME`` role.
"""

from __future__ import annotations

import re

from adapter.core.events import JsonObject
from adapter.parsing.bodies.tagged_arguments import PendingCall
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_arguments
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.tool import Tool

OPEN, CLOSE, END = "<tool:", "</tool>", "<|eot_id|>"

_NAME = re.compile(r"[ \t]*([\w.:-]+)[ \t]*>")
_MAY_BE_NAME = re.compile(r"[ \t]*+[\w.:-]*+[ \t]*+")
_JSON = re.compile(r"\s*\{\s*[\"}]")
_MAY_BE_JSON = re.compile(r"\s*+(?:\{\s*+)?+")
_closing = MarkerSet(CLOSE)


def read_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the call after ``<tool:``."""
    if not (source.at_line_start or source.after_call):
        return TEXT
    source.may_be_text = True
    found = yield from source.peek_match(_NAME, NAME_LIMIT, _MAY_BE_NAME.fullmatch)
    tool = source.tools.match(found[1]) if found else None
    if found is None or (tool is None and source.tools):
        return TEXT
    source.consume_match(found, consumed)
    source.may_be_text = False
    if (yield from source.peek_match(_JSON, NAME_LIMIT, _MAY_BE_JSON.fullmatch)) is not None:
        return (yield from TaggedJson(f"{OPEN} {found[1]}>", CLOSE, name=found[1])(source, consumed))
    text, closing = yield from source.consume_through(_closing, consumed)
    return _build_call(found[1], tool, text) if closing else CUT


def _build_call(name: str, tool: Tool | None, text: str) -> BodyResult:
    # Lines are assigned to the required parameters or, without any, to the first one.
    parameters = (list(tool.required) or list(tool.properties)[:1]) if tool else []
    call = PendingCall(name, tool)
    line_end = "\r\n" if text.startswith("\r\n") else "\n"
    text = text.removeprefix(line_end).rstrip(line_end)
    lines = text.split(line_end, len(parameters) - 1) if parameters and text.strip() else []
    for key, value in zip(parameters, lines, strict=False):
        call.add_text(key, value)
    if not parameters and text.strip():
        return BodyResult(
            error=f"the call of {name!r} has arguments, but no parameters are known for it: {text[:60]!r}"
        )
    keys = "|".join(map(re.escape, tool.properties)) if tool else ""
    if keys and text.rstrip().endswith("}") and re.search(rf"\b(?:{keys})\W{{0,3}}:", text):
        return BodyResult(error=f"the arguments of {name!r} are damaged JSON: {text[:60]!r}. Write one JSON object")
    if OPEN in text:
        return BodyResult(error=f"the call of {name!r} is not closed: expected {CLOSE} before the next {OPEN}")
    return call.build_result()


def _encode_call(name: str, arguments: JsonObject) -> str:
    """Encode a call. A single string is written as the model writes it. Several arguments are written as JSON, because
    their order in the model's notation is unknown here."""
    body = encode_json_arguments(name, arguments)
    if len(arguments) == 1:
        (value,) = arguments.values()
        is_plain = isinstance(value, str) and value == value.strip() != "" and value[0] != "{" and value[-1] != "}"
        body = value if is_plain and not any(marker in value.lower() for marker in (OPEN, CLOSE)) else body
    return f"{OPEN} {name}>\n{body}\n{CLOSE}"


FORMAT = Format(
    name="cwm",
    openers=(CallOpener(OPEN, read_call),),
    encode_calls=build_calls_encoder(_encode_call, between="\n"),
    encode_result=build_result_encoder("<|start_header_id|>tool: {name}<|end_header_id|>\n\n", END),
    reasoning={"<think>": "</think>"},
    end_tokens=(END,),
    stop_sequences=(END,),
    model_patterns=(r"\bcwm\b",),
    template_fingerprints=("<tool: ",),
)
