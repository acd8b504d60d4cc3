"""Hunyuan 3: the pairs of GLM after ``<tool_sep>``, in ``<tool_calls>``.

Format: that of tencent/Hy3 and Hy3-preview by the parsers of vLLM and SGLang, not compared with the
template itself; see `tool_calls_tag`.
In the releases every tag ends in ``:opensource``, in the preview and in what
other engines hand on it does not::

    <tool_calls:opensource>
    <tool_call:opensource>NAME<tool_sep:opensource>
    <arg_key:opensource>KEY</arg_key:opensource>
    <arg_value:opensource>value</arg_value:opensource>
    </tool_call:opensource>
    </tool_calls:opensource>
"""

from __future__ import annotations

from adapter.reading.bodies import tool_call_tag, tool_calls_tag
from adapter.reading.bodies.key_value_body import KeyValueBody, PairTags, encode_arguments
from adapter.reading.bodies.section import Section
from adapter.reading.format import Format
from adapter.values.events import JsonObject

TAGS = PairTags(
    open="<tool_call:opensource>",
    close="</tool_call:opensource>",
    key_open="<arg_key:opensource>",
    key_close="</arg_key:opensource>",
    value_open="<arg_value:opensource>",
    value_close="</arg_value:opensource>",
    separator="<tool_sep:opensource>",
    section_close="</tool_calls:opensource>",
)
OPEN, RESULT = "<tool_calls:opensource>", "<tool_response:opensource>"
END = "<｜hy_eos:opensource｜>"

_section = Section(
    opens=(OPEN,),
    closes=(TAGS.section_close,),
    call_opens=(TAGS.open,),
    read_call=KeyValueBody(TAGS, own=("hy_v3", "hy_v4")).read,
)


def encode_call(name: str, arguments: JsonObject) -> str:
    pairs = encode_arguments(TAGS, arguments, key_end="\n", value_end="\n")
    return f"{TAGS.open}{name}{TAGS.separator}\n{pairs}{TAGS.close}\n"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return f"{OPEN}\n{''.join(encode_call(name, arguments) for name, arguments in calls)}{TAGS.section_close}"


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return f"{RESULT}\n{content}\n</tool_response:opensource>"


FORMAT = Format(
    name="hy_v3",
    tool_call_body="pairs",
    aliases=("hunyuan3", "hy3"),
    openers=(*_section.openers, *tool_calls_tag.OPENERS, *tool_call_tag.OPENERS),
    encode_calls=encode_calls,
    encode_result=encode_result,
    reasoning={"<think:opensource>": "</think:opensource>", "<think>": "</think>"},
    strays=(
        TAGS.section_close,
        TAGS.close,
        TAGS.key_close,
        TAGS.value_close,
        tool_calls_tag.CLOSE,
        *tool_call_tag.STRAYS,
    ),
    ends=(END, "<｜hy_eos｜>"),
    results=(RESULT, "<tool_responses:opensource>"),
    stops=(END,),
    special_tokens=(OPEN, *TAGS.all, "<think:opensource>", "</think:opensource>"),
    models=(r"hy-?_?v?3", r"hunyuan-?_?3"),
    template_marks=("<tool_sep", "<tool_sep:opensource>"),
)
