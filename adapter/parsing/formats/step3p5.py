"""Step 3.5 and 3.7: XML functions, like Qwen3-Coder; reasoning is opened in the prompt.

Format: chat_template.jinja of stepfun-ai/Step-3.5-Flash and Step-3.7-Flash.
"""

from dataclasses import replace

from adapter.parsing.bodies.tool_call_tag import CLOSE, OPEN
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.formats import qwen3_coder

FORMAT = replace(
    qwen3_coder.FORMAT,
    name="step3p5",
    aliases=("step3_5", "step3p7", "step3_7"),
    encode_calls=build_calls_encoder(qwen3_coder.encode_function, f"{OPEN}\n", f"\n{CLOSE}"),
    encode_result=build_result_encoder("<tool_response>", "</tool_response>"),
    starts_in_reasoning=True,
    model_patterns=(r"step-?_?3[.p_-]?[5-9]",),
    template_fingerprints=(),
)
