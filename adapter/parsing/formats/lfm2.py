"""LFM2: a list of Python calls between ``<|tool_call_start|>`` and ``<|tool_call_end|>``.

Format: the model card and chat template of LiquidAI/LFM2-1.2B-Tool. A system prompt may request JSON instead, so a list
of objects is also parsed. Results are returned between ``<|tool_response_start|>`` and ``<|tool_response_end|>``.
"""

from adapter.parsing.bodies.python_encoder import encode_call
from adapter.parsing.bodies.python_scanner import build_python_or_json_reader
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.format import CallOpener, Format
from adapter.parsing.formats import pythonic

OPEN, CLOSE, RESULT = "<|tool_call_start|>", "<|tool_call_end|>", "<|tool_response_start|>"

FORMAT = Format(
    name="lfm2",
    aliases=("lfm", "liquid", "lfm2_thinking"),
    openers=(CallOpener(OPEN, build_python_or_json_reader(OPEN, CLOSE)),),
    read_unmarked=pythonic.FORMAT.read_unmarked,
    encode_calls=build_calls_encoder(encode_call, between=", ", opening=f"{OPEN}[", closing=f"]{CLOSE}"),
    encode_result=build_result_encoder(RESULT, "<|tool_response_end|>"),
    stray_closers=(CLOSE,),
    result_markers=(RESULT,),
    stop_sequences=("<|im_end|>",),
    special_tokens=(OPEN, CLOSE),
    model_patterns=(r"lfm-?[23]",),
    template_fingerprints=("<|tool_list_start|>", OPEN, '"List of tools: '),
)
