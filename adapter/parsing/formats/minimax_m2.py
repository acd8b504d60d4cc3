"""MiniMax M2: elements in ``<minimax:tool_call>``.

Format: chat_template.jinja of MiniMaxAI/MiniMax-M2 and MiniMax-M2.1, which opens the reasoning in the prompt; see
`invoke_tags`. In long agent sessions, the model falls back to the calls of `arrow_call`.
"""

from adapter.parsing.bodies import arrow_call
from adapter.parsing.bodies.invoke_tags import MINIMAX, OPENERS, STRAYS, build_calls_encoder
from adapter.parsing.call_encoders import build_result_encoder
from adapter.parsing.format import Format

FORMAT = Format(
    name="minimax_m2",
    aliases=("minimax", "minimax-m2"),
    openers=(*OPENERS, arrow_call.OPENER),
    encode_calls=build_calls_encoder(MINIMAX),
    encode_result=build_result_encoder("<response>", "</response>"),
    result_markers=("<response>",),
    reasoning={"<mm:think>": "</mm:think>", "<minimax:think>": "</minimax:think>"},  # as in M3
    starts_in_reasoning=True,
    stray_closers=STRAYS,
    end_tokens=("[e~[",),
    stop_sequences=("[e~[",),
    special_tokens=(f"<{MINIMAX}>", f"</{MINIMAX}>", "<think>", "</think>"),
    model_patterns=(r"minimax-?_?m2",),
    template_fingerprints=(f"<{MINIMAX}>",),
)
