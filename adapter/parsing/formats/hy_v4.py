"""Hunyuan 4: ``<arg_key>`` and ``<arg_value>`` pairs on one line, in ``<tool_calls>``.

Format: the parsers of inference engines for tencent/Hy4-preview, not compared with the template; see `hy_v3`::

    <tool_calls:opensource><tool_call:opensource>NAME<arg_key:opensource>KEY</arg_key:opensource>...

All tags are on one line.
"""

from dataclasses import replace
from functools import partial

from adapter.parsing.bodies.key_value_tags import encode_call
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.formats import hy_v3
from adapter.parsing.formats.hy_v3 import OPEN, RESULT, TAGS

FORMAT = replace(
    hy_v3.FORMAT,
    name="hy_v4",
    aliases=("hunyuan4", "hy4"),
    encode_calls=build_calls_encoder(partial(encode_call, TAGS), opening=OPEN, closing=TAGS.section_close),
    encode_result=build_result_encoder(RESULT, "</tool_response:opensource>"),
    special_tokens=tuple(token for token in hy_v3.FORMAT.special_tokens if token != TAGS.separator),
    model_patterns=(r"hy-?_?v?4", r"hunyuan-?_?4"),
    template_fingerprints=(),
)
