"""K2 Horizon: the pairs of GLM with tags of their own, in ``<ifm|tool_calls>``.

Format: that of IFM's K2-Horizon releases by the parsers of engines; see `key_value_body`. The template may ask for a
type between key and value, which is read, or for one JSON object in each call::

    <ifm|think>...</ifm|think>
    <ifm|tool_calls>
    <ifm|tool_call>NAME
    <ifm|arg_key>KEY</ifm|arg_key>
    <ifm|arg_value>value</ifm|arg_value>
    </ifm|tool_call>
    </ifm|tool_calls>

The prompt opens the reasoning with a tag that says how long it is to be. Results go back under the role ``tool``.
"""

from __future__ import annotations

from adapter.reading.bodies.key_value_body import KeyValueBody, PairTags, encode_arguments
from adapter.reading.bodies.section import Section
from adapter.reading.format import Format
from adapter.values.events import JsonObject

TAGS = PairTags(
    open="<ifm|tool_call>",
    close="</ifm|tool_call>",
    key_open="<ifm|arg_key>",
    key_close="</ifm|arg_key>",
    value_open="<ifm|arg_value>",
    value_close="</ifm|arg_value>",
    section_close="</ifm|tool_calls>",
    type=("<ifm|arg_type>", "</ifm|arg_type>"),
)
OPEN, END = "<ifm|tool_calls>", "<|ifm|im_end|>"
THINK = {f"<ifm|{word}>": f"</ifm|{word}>" for word in ("think", "think_fast", "think_faster")}

_section = Section(
    opens=(OPEN,),
    closes=(TAGS.section_close,),
    call_opens=(TAGS.open,),
    read_call=KeyValueBody(TAGS, own=("k2_horizon",)).read,
)


def encode_call(name: str, arguments: JsonObject) -> str:
    return f"{TAGS.open}{name}\n{encode_arguments(TAGS, arguments, key_end=chr(10), value_end=chr(10))}{TAGS.close}"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    written = "\n".join(encode_call(name, arguments) for name, arguments in calls)
    return f"{OPEN}\n{written}\n{TAGS.section_close}"


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return content


FORMAT = Format(
    name="k2_horizon",
    aliases=("k2_v3",),
    openers=_section.openers,
    encode_calls=encode_calls,
    encode_result=encode_result,
    reasoning=THINK,
    strays=(TAGS.section_close, TAGS.close, TAGS.key_close, TAGS.value_close),
    ends=(END,),
    next_turns=("<|ifm|im_start|>",),
    stops=(END,),
    special_tokens=(OPEN, *TAGS.all, TAGS.section_close, *THINK, *THINK.values()),
    models=(r"k2-?_?horizon",),
    template_marks=(OPEN,),
)
