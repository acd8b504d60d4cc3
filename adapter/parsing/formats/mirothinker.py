"""MiroThinker: the call to an MCP server's tool, with JSON arguments, as elements.

Format: the prompts of MiroMindAI/MiroThinker, which offer the tools of several servers::

    <use_mcp_tool>
    <server_name>SERVER</server_name>
    <tool_name>NAME</tool_name>
    <arguments>
    {...}
    </arguments>
    </use_mcp_tool>

The server is ignored: a tool is found by its name. Results are returned as the user's turn.
"""

from __future__ import annotations

import re

from adapter.core.events import JsonObject
from adapter.parsing.call_encoders import build_calls_encoder, encode_json_arguments
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson

OPEN, CLOSE, ARGUMENTS, END_ARGUMENTS = "<use_mcp_tool>", "</use_mcp_tool>", "<arguments>", "</arguments>"

HEAD_LIMIT = 400
"""Maximum number of characters before the arguments. Anything longer is prose."""

_HEAD = re.compile(
    r"\s*(?:<server_name>[^<>]*</server_name>\s*)?<tool_name>\s*([\w.:/-]+)\s*</tool_name>\s*<(?:arguments|input)>",
    re.I,
)
_arguments = MarkerSet(ARGUMENTS, "<input>")


def read_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the call after ``<use_mcp_tool>``."""
    if not (source.at_line_start or source.after_call):
        return TEXT
    if not (yield from source.peek_marker(_arguments, HEAD_LIMIT)):
        rest = source.text[source.position :]
        if not source.was_cut or len(rest) > HEAD_LIMIT or not rest.lstrip().startswith("<"):
            return TEXT
        consumed.append(source.consume_rest())
        return CUT
    found = yield from source.peek_match(_HEAD, HEAD_LIMIT, lambda _: True)
    if found is None:
        return TEXT
    source.consume_match(found, consumed)
    yield from source.skip_space(consumed)
    return (yield from TaggedJson(ARGUMENTS, END_ARGUMENTS, name=found[1])(source, consumed))


def encode_call(name: str, arguments: JsonObject) -> str:
    head = f"{OPEN}\n<server_name>default</server_name>\n<tool_name>{name}</tool_name>\n{ARGUMENTS}\n"
    return f"{head}{encode_json_arguments(name, arguments)}\n{END_ARGUMENTS}\n{CLOSE}"


FORMAT = Format(
    name="mirothinker",
    aliases=("mcp",),
    openers=(CallOpener(OPEN, read_call),),
    encode_calls=build_calls_encoder(encode_call, between="\n"),
    stray_closers=(CLOSE, END_ARGUMENTS),
    stop_sequences=("<|im_end|>",),
    special_tokens=("<think>", "</think>"),
    model_patterns=(r"mirothinker",),
    template_fingerprints=(OPEN,),
)
