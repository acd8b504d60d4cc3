"""DeepSeek V3.1: JSON arguments after the name, between control tokens.

Format: assets/chat_template.jinja of deepseek-ai/DeepSeek-V3.1, V3.1-Terminus and V3.2-Exp::

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
"""

from dataclasses import replace

from adapter.parsing.bodies import deepseek_tokens as tokens
from adapter.parsing.call_encoders import build_calls_encoder, encode_json_arguments
from adapter.parsing.formats import deepseek_v3

FORMAT = replace(
    deepseek_v3.FORMAT,
    name="deepseek_v31",
    aliases=("deepseekv31", "deepseek_v3_1"),
    body_variants=frozenset({tokens.UNTYPED_HEADS}),
    encode_calls=build_calls_encoder(
        encode_json_arguments,
        f"{tokens.CALL_BEGIN[0]}{{name}}{tokens.SEPARATOR[0]}",
        tokens.CALL_END[0],
        opening=tokens.CALLS_BEGIN[0],
        closing=tokens.CALLS_END[0],
    ),
    model_patterns=(r"deepseek-?_?v3[.p_-]?1", r"deepseek-?_?v3[.p_-]?2-?exp"),
    template_fingerprints=("tool['function']['name'] + '<｜tool▁sep｜>'",),
)
