"""Granite 20B function calling: ``<function_call>`` before each JSON call.

Format: the model card of ibm-granite/granite-20b-functioncalling, and vLLM's chat template for the model. A call has no
closing marker. If no tool is suitable, the prompt requests ``no_function``. Results follow ``<function_response>``.
"""

from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_call
from adapter.parsing.format import CallOpener, Format
from adapter.parsing.tagged_json import require_json

OPEN, CLOSE, RESULT, END = "<function_call>", "</function_call>", "<function_response>", "<|endoftext|>"

_read_json = require_json(UntaggedJson("arguments", after_marker=True, ends=(OPEN, CLOSE, RESULT, END)))

FORMAT = Format(
    name="granite_20b_fc",
    aliases=("granite_20b",),
    openers=(CallOpener(OPEN, _read_json),),
    encode_calls=build_calls_encoder(encode_json_call, f"{OPEN} "),
    encode_result=build_result_encoder(f"{RESULT} "),
    stray_closers=(CLOSE,),
    result_markers=(RESULT,),
    stop_sequences=(END,),
    special_tokens=(OPEN,),
    model_patterns=(r"granite-?20b",),
    template_fingerprints=("<function_call> {",),
)
