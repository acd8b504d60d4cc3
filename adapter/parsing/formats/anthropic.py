"""Anthropic's prompts: elements in ``<function_calls>``.

Format: the tool use prompt that Anthropic published before its API supported tools. Models trained on transcripts with
this prompt write the elements even if the prompt does not mention them. See `invoke_tags`.
"""

from adapter.parsing.bodies.invoke_tags import ANTHROPIC, OPENERS, STRAYS, build_calls_encoder, build_opener
from adapter.parsing.call_encoders import build_result_encoder
from adapter.parsing.format import Format

FORMAT = Format(
    name="anthropic",
    aliases=("claude", "function_calls", "invoke"),
    openers=OPENERS,
    build_namespace_opener=build_opener,
    encode_calls=build_calls_encoder(ANTHROPIC),
    encode_result=build_result_encoder(
        "<function_results>\n<result>\n<tool_name>{name}</tool_name>\n<stdout>\n",
        "\n</stdout>\n</result>\n</function_results>",
    ),
    result_markers=("<function_results>",),
    stray_closers=STRAYS,
    stop_sequences=("</function_calls>",),
    special_tokens=(),
    model_patterns=(r"claude",),
    template_fingerprints=("<function_calls>\\n<invoke", "<function_calls>\n<invoke"),
)
