"""Jamba: a JSON list of calls between ``<tool_calls>`` tags.

Format: the chat template of ai21labs/AI21-Jamba-Mini-1.5 and later releases. Results are returned between
``<tool_response>`` tags.
"""

from adapter.parsing.bodies.tool_calls_tag import CLOSE, OPEN, OPENERS
from adapter.parsing.call_encoders import build_list_encoder, build_result_encoder
from adapter.parsing.format import Format

RESULT = "<tool_response>"

FORMAT = Format(
    name="jamba",
    openers=OPENERS,
    encode_calls=build_list_encoder(OPEN, CLOSE),
    encode_result=build_result_encoder(f"{RESULT}\n", "\n</tool_response>"),
    stray_closers=(CLOSE,),
    end_tokens=("<|eom|>",),
    result_markers=(RESULT,),
    stop_sequences=("<|eom|>",),
    special_tokens=(OPEN, CLOSE),
    model_patterns=(r"jamba",),
    template_fingerprints=(OPEN,),
)
