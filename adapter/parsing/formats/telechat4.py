"""TeleChat 4, XingChen 4 and Xing 4: ``<param_key>`` and ``<param_value>`` pairs in ``<tool_call>``.

Format: SGLang's parsers (telechat4, xingchen4, xing4_0), not compared with a template. JSON is also parsed::

    <tool_call>NAME<param_key>KEY</param_key><param_value>value</param_value></tool_call>
"""

from functools import partial

from adapter.parsing.bodies.key_value_tags import TELECHAT, encode_call
from adapter.parsing.bodies.tool_call_tag import CLOSE, OPEN, OPENERS, STRAYS
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.format import Format

PAIR_TOKENS = (TELECHAT.key_open, TELECHAT.key_close, TELECHAT.value_open, TELECHAT.value_close)

FORMAT = Format(
    name="telechat4",
    aliases=("telechat", "xingchen4", "xing4_0"),
    openers=OPENERS,
    encode_calls=build_calls_encoder(partial(encode_call, TELECHAT)),
    stray_closers=(*STRAYS, TELECHAT.key_close, TELECHAT.value_close),
    special_tokens=(OPEN, CLOSE, *PAIR_TOKENS, "<think>", "</think>"),
    model_patterns=(r"telechat-?_?4", r"xing(?:chen)?-?_?4"),
    template_fingerprints=(TELECHAT.key_open,),
)
