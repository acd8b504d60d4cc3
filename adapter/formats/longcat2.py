"""LongCat 2: keys and values in ``<longcat_tool_call>`` tags.

Format: what meituan-longcat/LongCat-2.0-Preview, LongCat-Next and LongCat-Flash-Lite
write, by the issues of their users: the pairs of GLM 4.5 in tags of their own; see
`key_value_body`::

    <longcat_tool_call>NAME
    <longcat_arg_key>KEY</longcat_arg_key>
    <longcat_arg_value>value</longcat_arg_value>
    </longcat_tool_call>
"""

from __future__ import annotations

from adapter.formats import longcat
from adapter.formats.longcat import CLOSE, OPEN, TAGS
from adapter.reading.bodies.key_value_body import encode_arguments
from adapter.values.events import JsonObject
from adapter.values.fields import replace


def encode_call(name: str, arguments: JsonObject) -> str:
    pairs = encode_arguments(TAGS, arguments, key_end="\n", value_end="\n")
    return f"{OPEN}{name}\n{pairs}{CLOSE}"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "\n".join(encode_call(name, arguments) for name, arguments in calls)


FORMAT = replace(
    longcat.FORMAT,
    name="longcat2",
    aliases=("longcat_2", "longcat_next"),
    encode_calls=encode_calls,
    special_tokens=(*TAGS.all, "<longcat_think>", "</longcat_think>"),
    models=(r"longcat",),
    template_marks=(TAGS.key_open,),
)
