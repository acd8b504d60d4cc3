"""Qwen3-Coder: XML functions in ``<tool_call>`` tags.

Format: chat_template.jinja of Qwen/Qwen3-Coder-30B-A3B-Instruct, Qwen3-Next-Coder, Qwen3.5 and later releases.
Derivatives of Nemotron 3 and Seed-Coder also use it. Strings are written unescaped, other values as JSON.
"""

from __future__ import annotations

from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json
from adapter.parsing.bodies.bare_xml_function import read_broken_opener, read_unopened, read_unwrapped_function
from adapter.parsing.bodies.tagged_arguments import encode_unescaped, is_ambiguous_pair
from adapter.parsing.bodies.tool_call_tag import CLOSE, OPEN, OPENERS, STRAYS
from adapter.parsing.bodies.xml_named_function import OPENER
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.format import CallOpener, Format
from adapter.parsing.stream_buffer import NAME_LIMIT

_TAGS = ("<function", "</function>", "<parameter", "</parameter>", OPEN, CLOSE)


def encode_function(name: str, arguments: JsonObject, *, margin: str = "\n") -> str:
    """Encode the function element. ``margin`` is the text around each value: a line break or nothing."""
    if any(_is_ambiguous(key, value, margin) for key, value in arguments.items()):
        # Unescaped values cannot contain the format's tags, but JSON in the element can.
        body = dump_json(arguments) + "\n"
    else:
        body = "".join(
            f"<parameter={key}>{margin}{encode_unescaped(value)}{margin}</parameter>\n"
            for key, value in arguments.items()
        )
    return f"<function={name}>\n{body}</function>"


def _is_ambiguous(key: str, value: Json, margin: str) -> bool:
    text = encode_unescaped(value)
    if len(key) >= NAME_LIMIT:
        return True  # a tag with such a key would count as prose
    if not margin and text != text.strip("\r\n"):
        return True  # a line break at either end would count as the margin
    return is_ambiguous_pair(key, text, _TAGS, "<>\n\"'")


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
        "berrylm",
    ),
    openers=(
        *OPENERS,
        CallOpener("<function=", read_unwrapped_function),
        CallOpener("function=", read_broken_opener),
        OPENER,
    ),
    read_stripped_start=read_unopened,
    encode_calls=build_calls_encoder(encode_function, f"{OPEN}\n", f"\n{CLOSE}", between="\n"),
    encode_result=build_result_encoder("<tool_response>\n", "\n</tool_response>"),
    stray_closers=STRAYS,
    stop_sequences=("<|im_end|>",),
    special_tokens=(OPEN, CLOSE, "<think>", "</think>"),
    model_patterns=(
        r"qwen-?3.*coder",
        r"qwen-?3\.[5-9]",
        r"nemotron-?3",
        r"nanbeige-?_?4",
        r"ornith",
        r"iquest-?_?coder",
        r"berry-?_?lm",
    ),
    template_fingerprints=("<function=", "<parameter="),
)
