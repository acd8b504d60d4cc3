"""Functionary v2: messages with ``<|from|>``, ``<|recipient|>`` and ``<|content|>``.

Format: the chat template of meetkai/functionary-small-v2.4 (v2). The prompt ends with ``<|recipient|>``, so the output
begins with the recipient::

    all
    <|content|>I look.
    <|from|>assistant
    <|recipient|>get_weather
    <|content|>{"city": "Oslo"}<|stop|>

Text to ``all`` is the answer. A result is returned as a message from the tool to ``all``.
"""

from __future__ import annotations

from adapter.parsing.bodies.recipient_header import consume_cut_name, consume_name, read_arguments
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_arguments
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import Reader

FROM, RECIPIENT, CONTENT, STOP = "<|from|>", "<|recipient|>", "<|content|>", "<|stop|>"
ASSISTANT = FROM + "assistant"

_content = get_marker_set("\n" + CONTENT, CONTENT)


def read_recipient(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the recipient after ``<|recipient|>`` and the arguments. If the recipient is ``all``, the answer follows,
    which is not parsed here."""
    name = yield from consume_name(source, consumed, _content, any_name=True)
    if not name:
        return consume_cut_name(source, consumed) or TEXT
    return (yield from _read_message(name, source, consumed))


def read_first_recipient(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the recipient at the start of an answer. The ``<|recipient|>`` before it is in the prompt."""
    is_expected = source.expected_format == "functionary_v2"
    name = yield from consume_name(source, consumed, _content, any_name=is_expected)
    return (yield from _read_message(name, source, consumed)) if name else TEXT


def _read_message(name: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    if name == "all":
        return BodyResult()
    return (yield from read_arguments(name, source, consumed, (FROM, STOP)))


FORMAT = Format(
    name="functionary_v2",
    marks_plain_text=True,
    aliases=("functionary2",),
    openers=(CallOpener(RECIPIENT, read_recipient),),
    read_header=read_first_recipient,
    encode_calls=build_calls_encoder(encode_json_arguments, f"\n{ASSISTANT}\n{RECIPIENT}{{name}}\n{CONTENT}"),
    encode_result=build_result_encoder(f"\n{FROM}{{name}}\n{RECIPIENT}all\n{CONTENT}"),
    end_tokens=(ASSISTANT, STOP),
    other_role_markers=(FROM + "user", FROM + "system"),
    result_markers=(FROM,),
    stop_sequences=(STOP,),
    special_tokens=(FROM, RECIPIENT, CONTENT, STOP),
    model_patterns=(r"functionary.*v2(?!\.5)",),
    template_fingerprints=(RECIPIENT,),
)
