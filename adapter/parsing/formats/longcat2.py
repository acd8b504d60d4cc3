"""LongCat 2: keys and values in ``<longcat_tool_call>`` tags.

Format: issues in which users report the output of meituan-longcat/LongCat-2.0-Preview, LongCat-Next and
LongCat-Flash-Lite. The models write the pairs of GLM 4.5 in different tags; see `arg_key_value`::

    <longcat_tool_call>NAME
    <longcat_arg_key>KEY</longcat_arg_key>
    <longcat_arg_value>value</longcat_arg_value>
    </longcat_tool_call>
"""

from dataclasses import replace
from functools import partial

from adapter.parsing.bodies.key_value_tags import encode_call
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.formats import longcat
from adapter.parsing.formats.longcat import TAGS

FORMAT = replace(
    longcat.FORMAT,
    name="longcat2",
    aliases=("longcat_2", "longcat_next"),
    encode_calls=build_calls_encoder(partial(encode_call, TAGS, gap="\n", key_end="\n", value_end="\n"), between="\n"),
    special_tokens=(*TAGS.all, "<longcat_think>", "</longcat_think>"),
    model_patterns=(r"longcat",),
    template_fingerprints=(TAGS.key_open,),
)
