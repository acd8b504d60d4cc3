"""DeepSeek V3.1: JSON arguments after the name, between control tokens.

Format: assets/chat_template.jinja of deepseek-ai/DeepSeek-V3.1, V3.1-Terminus and V3.2-Exp::

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
"""

from __future__ import annotations

from dataclasses import replace

from adapter.parsing.bodies.deepseek_tokens import CALL_BEGIN, CALL_END, CALLS_BEGIN, CALLS_END, SEPARATOR
from adapter.parsing.encoding import calls_encoder, json_arguments
from adapter.parsing.formats import deepseek_v3

FORMAT = replace(
    deepseek_v3.FORMAT,
    name="deepseek_v31",
    aliases=("deepseekv31", "deepseek_v3_1"),
    encode_calls=calls_encoder(
        json_arguments,
        f"{CALL_BEGIN[0]}{{name}}{SEPARATOR[0]}",
        CALL_END[0],
        opening=CALLS_BEGIN[0],
        closing=CALLS_END[0],
    ),
    model_patterns=(r"deepseek-?_?v3[.p_-]?1", r"deepseek-?_?v3[.p_-]?2-?exp"),
    template_fingerprints=("tool['function']['name'] + '<｜tool▁sep｜>'",),
)
