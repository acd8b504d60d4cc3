"""Step 3: elements such as ``<steptml:invoke>`` between control tokens.

Format: tokenizer_config.json (chat_template) of stepfun-ai/step3; see `deepseek_tokens`::

    <｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>
    <steptml:invoke name="NAME"><steptml:parameter name="KEY">value</steptml:parameter></steptml:invoke>
    <｜tool_call_end｜><｜tool_calls_end｜>

All tokens are on one line.
"""

from functools import partial

from adapter.parsing.bodies import deepseek_tokens as tokens
from adapter.parsing.bodies.xml_invoke_tags import encode_call
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.format import Format

_OPEN, _SEPARATOR, _CLOSE = tokens.CALL_BEGIN[1], tokens.SEPARATOR[1], tokens.CALL_END[1]

FORMAT = Format(
    name="step3",
    aliases=("step-3",),
    openers=(*tokens.SECTION.openers, tokens.STEP_OPENER),
    encode_calls=build_calls_encoder(
        partial(encode_call, tokens.STEP_TAGS, describe=None, line_end=""),
        f"{_OPEN}function{_SEPARATOR}",
        _CLOSE,
        opening=tokens.CALLS_BEGIN[1],
        closing=tokens.CALLS_END[1],
    ),
    encode_result=build_result_encoder("<｜tool_output_begin｜>", "<｜tool_output_end｜>"),
    result_markers=("<｜tool_outputs_begin｜>", "<｜tool_output_begin｜>"),
    stray_closers=(*tokens.STRAYS, *tokens.STEP_TAGS.call_close, *tokens.STEP_TAGS.parameter_close),
    end_tokens=("<|EOT|>",),
    stop_sequences=("<|EOT|>",),
    special_tokens=(tokens.CALLS_BEGIN[1], tokens.CALLS_END[1], _OPEN, _SEPARATOR, _CLOSE, "<think>", "</think>"),
    model_patterns=(r"step-?_?3(?![.p_-]?[5-9])",),
    template_fingerprints=("<steptml:invoke",),
)
