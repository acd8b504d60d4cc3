"""Kimi K3: elements in control tokens, with channels for reasoning, answer and calls.

Format: the message encoder and chat template of moonshotai/Kimi-K3. In attributes, ``&`` and ``"`` are escaped. Values
are not escaped, and an attribute declares their JSON type. The prompt opens the first channel::

    reasoning<|close|>think<|sep|>
    <|open|>response<|sep|>answer<|close|>response<|sep|>
    <|open|>tools<|sep|>
    <|open|>call tool="NAME" index="1"<|sep|>
    <|open|>argument key="KEY" type="string"<|sep|>value<|close|>argument<|sep|>
    <|close|>call<|sep|>
    <|close|>tools<|sep|><|close|>message<|sep|>

All elements are on one line. ``<|open|>json type="object"<|sep|>`` may contain all arguments of a call as one object.
"""

from __future__ import annotations

from functools import partial

from adapter.core.events import Json
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_tags import XmlInvokeTags, encode_call
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.format import Format
from adapter.tools.coercion import get_type_name

SEP = "<|sep|>"


def _close(tag: str) -> str:
    return f"<|close|>{tag}{SEP}"


def unescape(text: str) -> str:
    return text.replace("&quot;", '"').replace("&amp;", "&")


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")


TAGS = XmlInvokeTags(
    call=("<|open|>call", "<|open|>toolscall"),
    call_close=(_close("call"), _close("call")),
    parameter=("<|open|>argument",),
    parameter_close=(_close("argument"),),
    section=(f"<|open|>tools{SEP}",),
    section_close=(_close("tools"),),
    end=SEP,
    name="tool",
    key="key",
    json=("<|open|>json", _close("json")),
    unescape=unescape,
    escape=escape,
)


def _get_type(value: Json) -> str:
    name = get_type_name(value)
    return f' type="{"number" if name == "integer" else name}"'


_section = CallSection(
    opens=TAGS.section,
    closes=TAGS.section_close,
    call_opens=TAGS.call,
    read_call=XmlInvokeReader(TAGS),
    keeps_space=True,
)

FORMAT = Format(
    name="kimi_k3",
    aliases=("kimi3",),
    openers=_section.openers,
    encode_calls=build_calls_encoder(
        partial(encode_call, TAGS, describe=_get_type, line_end=""),
        opening=TAGS.section[0],
        closing=TAGS.section_close[0],
    ),
    reasoning={f"<|open|>think{SEP}": _close("think")},
    starts_in_reasoning=True,
    stray_closers=(*TAGS.section_close, _close("toolsmessage"), *TAGS.call_close, *TAGS.parameter_close),
    end_tokens=(_close("response"), _close("message"), "<|end_of_msg|>"),
    channel_markers=(f"<|open|>response{SEP}",),
    stop_sequences=("<|end_of_msg|>",),
    special_tokens=("<|open|>", "<|close|>", SEP),
    model_patterns=(r"kimi-?_?k3",),
    template_fingerprints=("<|open|>",),
)
