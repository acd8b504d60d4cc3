"""Qwen3-Coder: XML functions in ``<tool_call>`` tags.

Format: chat_template.jinja of Qwen/Qwen3-Coder-30B-A3B-Instruct, Qwen3-Next-Coder,
Qwen3.5 and later, also used by Nemotron 3 and Seed-Coder derivatives. Values are
written as bare text: strings as they are, everything else as JSON.
"""

from __future__ import annotations

import json

from adapter.core.events import Json, JsonObject
from adapter.parsing.bodies.argument_collection import encode_unescaped
from adapter.parsing.bodies.tool_call_tag import CLOSE, OPEN, OPENERS, STRAYS
from adapter.parsing.bodies.xml_function import NAME_LIMIT, read_bare_function
from adapter.parsing.bodies.xml_named_function import OPENER
from adapter.parsing.encoding import calls_encoder, result_encoder
from adapter.parsing.format import CallOpener, Format

_TAGS = ("<function", "</function>", "<parameter", "</parameter>", OPEN, CLOSE)


def encode_function(name: str, arguments: JsonObject, *, margin: str = "\n") -> str:
    """The function element. ``margin`` stands around values: a line break, or nothing."""
    if any(_is_ambiguous(key, value, margin) for key, value in arguments.items()):
        # A value that holds the format's own tags cannot be written bare; JSON in
        # the function element can hold anything and is read back by the same parser.
        body = json.dumps(arguments, ensure_ascii=False) + "\n"
    else:
        body = "".join(
            f"<parameter={key}>{margin}{encode_unescaped(value)}{margin}</parameter>\n"
            for key, value in arguments.items()
        )
    return f"<function={name}>\n{body}</function>"


def _is_ambiguous(key: str, value: Json, margin: str) -> bool:
    text = encode_unescaped(value).lower()
    if len(key) >= NAME_LIMIT:
        return True  # its tag would be taken for prose
    if not margin and text != text.strip("\r\n"):
        return True  # a line break at either end would be read as the margin
    return any(tag in text for tag in _TAGS) or any(char in key for char in "<>\n\"'") or key != key.strip() or not key


FORMAT = Format(
    name="qwen3_coder",
    tool_call_body="function",
    aliases=(
        "qwen3_xml",
        "qwen_coder",
        "qwen3-coder",
        "qwen3_5",
        "nemotron3",
        "nanbeige",
        "ornith",
        "nemotron_3_nano",
        "nemotron_3_5_nano",
    ),
    openers=(
        *OPENERS,
        CallOpener("<function=", read_bare_function),
        OPENER,
    ),
    encode_calls=calls_encoder(encode_function, f"{OPEN}\n", f"\n{CLOSE}", between="\n"),
    encode_result=result_encoder("<tool_response>\n", "\n</tool_response>"),
    stray_closers=STRAYS,
    stop_sequences=("<|im_end|>",),
    special_tokens=(OPEN, CLOSE, "<think>", "</think>"),
    model_patterns=(r"qwen-?3.*coder", r"qwen-?3\.[5-9]", r"nemotron-?3", r"nanbeige-?_?4", r"ornith"),
    template_fingerprints=("<function=", "<parameter="),
)
