"""MiMo: XML functions, like Qwen3-Coder, with each value on the same line as its tags.

Format: the parsers of inference engines for XiaomiMiMo/MiMo-V2-Flash, not compared with the template. MiMo-7B writes
`hermes`::

    <tool_call>
    <function=NAME>
    <parameter=KEY>value</parameter>
    </function>
    </tool_call>
"""

from dataclasses import replace
from functools import partial

from adapter.parsing.bodies.tool_call_tag import CLOSE, OPEN
from adapter.parsing.bodies.xml_function import INLINE_VALUES
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.formats import qwen3_coder
from adapter.parsing.formats.qwen3_coder import encode_function

FORMAT = replace(
    qwen3_coder.FORMAT,
    name="mimo",
    aliases=("mimo_v2", "mimo_v2_flash"),
    body_variants=frozenset({INLINE_VALUES}),
    encode_calls=build_calls_encoder(partial(encode_function, margin=""), f"{OPEN}\n", f"\n{CLOSE}", between="\n"),
    model_patterns=(r"mimo-?_?v?[2-9]",),
    template_fingerprints=("You are MiMo",),
)
