"""Seed-OSS: XML functions in ``<seed:tool_call>``.

Format: chat_template.jinja of ByteDance-Seed/Seed-OSS-36B-Instruct. The body is the same as in `qwen3_coder`, but a
value is on the same line as its tags::

    <seed:think>...</seed:think>
    <seed:tool_call>
    <function=NAME>
    <parameter=KEY>value</parameter>
    </function>
    </seed:tool_call>
"""

from functools import partial

from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.xml_function import read_inline_function
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.format import Format
from adapter.parsing.formats.qwen3_coder import encode_function

OPEN, CLOSE = "<seed:tool_call>", "</seed:tool_call>"


_section = CallSection(
    opens=(OPEN,), closes=(CLOSE,), call_opens=("<function=", "<function "), read_call=read_inline_function
)

FORMAT = Format(
    name="seed_oss",
    aliases=("seed", "seed_oss_36b"),
    openers=_section.openers,
    encode_calls=build_calls_encoder(partial(encode_function, margin=""), f"{OPEN}\n", f"\n{CLOSE}", between="\n"),
    reasoning={"<seed:think>": "</seed:think>"},
    stray_closers=(CLOSE, "</function>", "</parameter>"),
    end_tokens=("<seed:eos>",),
    stop_sequences=("<seed:eos>",),
    special_tokens=(OPEN, CLOSE, "<seed:think>", "</seed:think>"),
    model_patterns=(r"seed-?_?oss",),
    template_fingerprints=(OPEN,),
)
