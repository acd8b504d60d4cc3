"""IQuest Q1: ``<arg_key>`` and ``<arg_value>`` pairs in ``<iquest_tool_call>``.

Format: the detector for the family in sgl-project/sglang (function_call/iquest_q1_detector.py); see `arg_key_value`::

    <iquest_tool_call>NAME<arg_key>KEY</arg_key><arg_value>value</arg_value></iquest_tool_call>
"""

from functools import partial

from adapter.parsing.bodies.arg_key_value import KeyValueReader
from adapter.parsing.bodies.key_value_tags import KeyValueTags, encode_call
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.format import CallOpener, Format

TAGS = KeyValueTags(open="<iquest_tool_call>", close="</iquest_tool_call>")

FORMAT = Format(
    name="iquest_q1",
    aliases=("iquest",),
    openers=(CallOpener(TAGS.open, KeyValueReader(TAGS, own=("iquest_q1",)).read),),
    encode_calls=build_calls_encoder(partial(encode_call, TAGS)),
    encode_result=build_result_encoder("<tool_response>", "</tool_response>"),
    stray_closers=(TAGS.close, TAGS.key_close, TAGS.value_close),
    special_tokens=(*TAGS.all, "<think>", "</think>"),
    model_patterns=(r"iquest.*q1",),
    template_fingerprints=(TAGS.open,),
)
