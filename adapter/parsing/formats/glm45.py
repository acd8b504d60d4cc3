"""GLM 4.5 and 4.6: ``<arg_key>`` and ``<arg_value>`` pairs, one tag per line, in ``<tool_call>``.

Format: chat_template.jinja of zai-org/GLM-4.5 and GLM-4.6. Strings are written unescaped, other values as JSON. The
model opens its reasoning in the answer::

    <think>...</think>
    <tool_call>NAME
    <arg_key>KEY</arg_key>
    <arg_value>value</arg_value>
    </tool_call>
"""

from functools import partial

from adapter.parsing.bodies.key_value_tags import GLM, encode_call
from adapter.parsing.bodies.tool_call_tag import CLOSE, OPEN, OPENERS, STRAYS, read_unopened_pairs
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.format import Format

PAIR_TOKENS = (GLM.key_open, GLM.key_close, GLM.value_open, GLM.value_close)

FORMAT = Format(
    name="glm45",
    tool_call_body="pairs",
    aliases=("glm", "glm4", "glm46", "glm4_5", "glm4_6", "glm4_moe", "glm_ocr"),
    openers=OPENERS,
    read_stripped_start=read_unopened_pairs,
    encode_calls=build_calls_encoder(partial(encode_call, GLM, gap="\n", key_end="\n", value_end="\n"), between="\n"),
    encode_result=build_result_encoder("<tool_response>\n", "\n</tool_response>"),
    stray_closers=(*STRAYS, GLM.key_close, GLM.value_close),
    end_tokens=("<|observation|>", "<|user|>", "<|begin_of_box|>", "<|end_of_box|>"),
    stop_sequences=("<|observation|>", "<|user|>", "<|endoftext|>"),
    special_tokens=(OPEN, CLOSE, *PAIR_TOKENS, "<think>", "</think>"),
    model_patterns=(r"glm-?_?4[.-]?[56]", r"glm-?_?4-?moe", r"hyperclova-?x.*think.*32b"),
    template_fingerprints=("<arg_key>{arg-key-1}</arg_key>\n", "<arg_key>{arg-key-1}</arg_key>\\n"),
)
