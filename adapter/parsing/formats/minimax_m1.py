"""MiniMax M1: JSON objects, one per line, in ``<tool_calls>``.

Format: vLLM's parser for MiniMaxAI/MiniMax-M1-80k and MiniMax-Text-01, not compared with the template; see
`tool_calls_tag`.
"""

from adapter.parsing.bodies.tool_calls_tag import CLOSE, OPEN, OPENERS
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_call
from adapter.parsing.format import Format

FORMAT = Format(
    name="minimax_m1",
    aliases=("minimax_text_01", "minimax1"),
    openers=OPENERS,
    encode_calls=build_calls_encoder(encode_json_call, between="\n", opening=f"{OPEN}\n", closing=f"\n{CLOSE}"),
    encode_result=build_result_encoder("tool name: {name}\ntool result: "),
    result_markers=("\ntool name:", "\ntool result:"),
    stray_closers=(CLOSE,),
    end_tokens=("<end_of_sentence>",),
    stop_sequences=("<end_of_sentence>",),
    special_tokens=(OPEN, CLOSE, "<think>", "</think>"),
    model_patterns=(r"minimax-?_?(?:m1|text)",),
    template_fingerprints=("<beginning_of_sentence>",),
)
