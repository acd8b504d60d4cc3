"""Functionary v3.2: ``>>>`` and a recipient, then the text for the recipient.

Format: the chat template of meetkai/functionary-medium-v3.2 (v3.llama3). The prompt ends with ``>>>``, so the output
begins with the recipient::

    all
    I look.>>>get_weather
    {"city": "Oslo"}>>>get_time
    {}

Text to ``all`` is the answer. v2.5 (v2.llama3) writes the token ``<|reserved_special_token_249|>`` in place of ``>>>``
and omits ``all``; it is also parsed here. Results are returned under the ``tool`` role.
"""

from __future__ import annotations

from adapter.parsing.bodies.recipient_header import consume_cut_name, consume_name, read_arguments
from adapter.parsing.call_encoders import build_calls_encoder, encode_json_arguments
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import Reader

OPEN, OPEN_V25 = ">>>", "<|reserved_special_token_249|>"
ALL = "all\n"
ENDS = (OPEN, OPEN_V25, "<|eot_id|>")

_line_end = get_marker_set("\n")
_json_below = get_marker_set("\n{")
_all = get_marker_set(ALL)


def read_recipient(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the recipient after ``>>>`` and its arguments. If ``>>>`` is a Python prompt, return `TEXT`."""
    is_intended = source.expected_format == "functionary" or consumed[-1] == OPEN_V25
    name = yield from consume_name(source, consumed, _line_end, any_name=is_intended)
    if not name:
        return (consume_cut_name(source, consumed) if is_intended else None) or TEXT
    yield from source.wait_for_character()
    is_json = source.text.startswith("{", source.position)
    if not is_json and not (is_intended and (name in source.tools or (source.final and source.is_empty))):
        return TEXT
    return (yield from read_arguments(name, source, consumed, ENDS))


def read_first_recipient(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the recipient at the start of an answer. The ``>>>`` before it is in the prompt."""
    is_own = source.expected_format == "functionary"
    if is_own and (yield from source.consume_marker(_all, consumed)):
        return BodyResult()
    name = yield from consume_name(source, consumed, _json_below, any_name=is_own and not source.tools)
    if not name:
        return TEXT
    consumed[-1] = consumed[-1][:-1]
    source.push_back("{")
    return (yield from read_arguments(name, source, consumed, ENDS))


FORMAT = Format(
    name="functionary",
    marks_plain_text=True,
    aliases=("functionary_v3", "functionary_v3_2", "functionary_v2_5"),
    openers=(
        CallOpener(OPEN, read_recipient, keeps_space=True),
        CallOpener(OPEN_V25, read_recipient, keeps_space=True),
    ),
    read_header=read_first_recipient,
    encode_calls=build_calls_encoder(encode_json_arguments, f"{OPEN}{{name}}\n"),
    end_tokens=(OPEN + ALL,),
    stop_sequences=("<|eot_id|>",),
    special_tokens=(OPEN_V25,),
    model_patterns=(r"functionary",),
    template_fingerprints=(">>>${recipient}", OPEN_V25),
)
