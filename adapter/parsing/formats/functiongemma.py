"""FunctionGemma: ``<start_function_call>call:NAME{key:value}<end_function_call>``, strings between ``<escape>``.

Format: Google's "FunctionGemma formatting and best practices" and the chat template of
google/functiongemma-270m-it. The model stops at ``<start_function_response>``.
"""

from functools import partial

from adapter.parsing.bodies.gemma_call import GemmaCall
from adapter.parsing.bodies.gemma_encoder import encode_call
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.format import CallOpener, Format

OPEN, CLOSE, QUOTE = "<start_function_call>", "<end_function_call>", "<escape>"
RESULT, TURN, END = "<start_function_response>", "<start_of_turn>", "<end_of_turn>"

FORMAT = Format(
    name="functiongemma",
    aliases=("function_gemma",),
    openers=(CallOpener(OPEN, GemmaCall(OPEN, CLOSE, QUOTE), keeps_space=True),),
    encode_calls=build_calls_encoder(partial(encode_call, quote=QUOTE), OPEN, CLOSE),
    encode_result=build_result_encoder(
        f"{RESULT}response:{{name}}{{value:{QUOTE}", f"{QUOTE}}}<end_function_response>"
    ),
    stray_closers=(CLOSE, f"</{CLOSE[1:]}"),
    end_tokens=(END, "<eos>"),
    other_role_markers=(TURN,),
    result_markers=(RESULT,),
    stop_sequences=(END, RESULT),
    special_tokens=(OPEN, CLOSE, QUOTE, RESULT),
    model_patterns=(r"function-?gemma",),
    template_fingerprints=(OPEN,),
)
