"""FunctionGemma: ``<start_function_call>call:NAME{key:value}<end_function_call>``, strings between ``<escape>``.

Format: Google's "FunctionGemma formatting and best practices" and the chat template of
google/functiongemma-270m-it. The model stops at ``<start_function_response>``.
"""

from __future__ import annotations

from adapter.reading.bodies.gemma_call import GemmaCall, encode_call
from adapter.reading.format import Format, Opener
from adapter.values.events import JsonObject

OPEN, CLOSE, QUOTE = "<start_function_call>", "<end_function_call>", "<escape>"
RESULT, TURN, END = "<start_function_response>", "<start_of_turn>", "<end_of_turn>"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "".join(f"{OPEN}{encode_call(name, arguments, QUOTE)}{CLOSE}" for name, arguments in calls)


def encode_result(name: str, content: str, _call_id: str) -> str:
    return f"{RESULT}response:{name}{{value:{QUOTE}{content}{QUOTE}}}<end_function_response>"


FORMAT = Format(
    name="functiongemma",
    aliases=("function_gemma",),
    openers=(Opener(OPEN, GemmaCall(OPEN, CLOSE, QUOTE), keeps_space=True),),
    encode_calls=encode_calls,
    encode_result=encode_result,
    strays=(CLOSE,),
    ends=(END, "<eos>"),
    next_turns=(TURN,),
    results=(RESULT,),
    stops=(END, RESULT),
    special_tokens=(OPEN, CLOSE, QUOTE, RESULT),
    models=(r"function-?gemma",),
    template_marks=(OPEN,),
)
