"""LM Studio's own format: JSON between ``[TOOL_REQUEST]`` and ``[END_TOOL_REQUEST]``.

Format: "default tool use support" in LM Studio's documentation of tool use. LM Studio requests it in the prompt for
every model whose template does not support tools. Results are returned as a user message.
"""

from adapter.parsing.call_encoders import build_calls_encoder, encode_json_call
from adapter.parsing.format import CallOpener, Format
from adapter.parsing.tagged_json import TaggedJson, require_json

OPEN, CLOSE = "[TOOL_REQUEST]", "[END_TOOL_REQUEST]"

FORMAT = Format(
    name="tool_request",
    aliases=("lmstudio", "lm_studio"),
    openers=(CallOpener(OPEN, require_json(TaggedJson(OPEN, CLOSE))),),
    encode_calls=build_calls_encoder(encode_json_call, OPEN, CLOSE, between="\n"),
    stray_closers=(CLOSE,),
    template_fingerprints=(OPEN,),
)
