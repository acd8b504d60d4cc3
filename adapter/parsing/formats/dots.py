"""dots: elements in ``<dots_function_call>``.

Format: the parsers in vllm-project/vllm (tool_parsers/dots_tool_parser.py) and sgl-project/sglang for the models of
rednote-hilab. The section contains the elements of `anthropic`; see `invoke_tags`. JSON in the section is also parsed.
"""

from adapter.parsing.bodies.invoke_tags import DOTS, OPENERS, STRAYS, build_calls_encoder
from adapter.parsing.format import Format

FORMAT = Format(
    name="dots",
    aliases=("dots_llm", "dots1", "dots3"),
    openers=OPENERS,
    encode_calls=build_calls_encoder(DOTS),
    stray_closers=STRAYS,
    end_tokens=("<|endofresponse|>",),
    other_role_markers=("<|userprompt|>",),
    stop_sequences=("<|endofresponse|>",),
    special_tokens=(f"<{DOTS}>", f"</{DOTS}>", "<think>", "</think>"),
    model_patterns=(r"\bdots[.-]?(?:llm|\d)",),
    template_fingerprints=(f"<{DOTS}>",),
)
