"""Qwen-Agent's own format: ``✿FUNCTION✿`` and ``✿ARGS✿`` on separate lines.

Format: the prompt in QwenLM/Qwen-Agent for Qwen 1.5 and 2 (llm/fncall_prompts/qwen_fncall_prompt.py)::

    ✿FUNCTION✿: get_weather
    ✿ARGS✿: {"city": "Oslo"}
    ✿RESULT✿: ...
    ✿RETURN✿: It is cold in Oslo.

All calls precede the first result. The model must stop at ``✿RESULT✿``. The answer follows ``✿RETURN✿``.
"""

from adapter.parsing.bodies.react_lines import build_labeled_reader
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_arguments
from adapter.parsing.format import CallOpener, Format

OPEN, ARGUMENTS, RESULT, ANSWER = "✿FUNCTION✿:", "✿ARGS✿:", "✿RESULT✿", "✿RETURN✿"

FORMAT = Format(
    name="qwen_agent",
    aliases=("qwen_fncall",),
    openers=(CallOpener(OPEN, build_labeled_reader((ARGUMENTS,), RESULT)),),
    encode_calls=build_calls_encoder(encode_json_arguments, f"{OPEN} {{name}}\n{ARGUMENTS} ", between="\n"),
    encode_result=build_result_encoder(f"{RESULT}: "),
    end_tokens=(ANSWER + ":",),
    result_markers=(RESULT,),
    stop_sequences=(RESULT, ANSWER),
    template_fingerprints=(OPEN,),
)
