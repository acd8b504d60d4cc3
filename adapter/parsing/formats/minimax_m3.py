"""MiniMax M3: elements named after the parameters in ``<tool_call>``, with a token before each tag.

Format: chat_template.jinja of MiniMaxAI/MiniMax-M3 as parsed by ggml-org/llama.cpp (common/parsers/minimax-m3.cpp) and
sgl-project/sglang; see `nested_elements`::

    <mm:think>...</mm:think>
    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="NAME">]<]minimax[>[<KEY>value]<]minimax[>[</KEY>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

The model opens its reasoning in the output, or writes only ``</mm:think>`` if it does not reason. The first token is
sometimes missing, and a space may follow a token.
"""

from __future__ import annotations

from adapter.core.events import JsonObject
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.nested_elements import NestedElements, encode_call
from adapter.parsing.call_encoders import build_result_encoder
from adapter.parsing.format import CallOpener, Format

TOKEN = "]<]minimax[>["
OPEN, CLOSE, CALL = f"{TOKEN}<tool_call>", f"{TOKEN}</tool_call>", f"{TOKEN}<invoke"
NO_BRACKET = f"{TOKEN}invoke"
END = "[e~["


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "\n".join((OPEN, *(encode_call(TOKEN, name, arguments) for name, arguments in calls), CLOSE))


_GAPS = ("", " ", "\n")
_section = CallSection(
    opens=[f"{TOKEN}{gap}<tool_call>" for gap in _GAPS],
    closes=[f"{TOKEN}{gap}</tool_call>" for gap in _GAPS],
    call_opens=[*(f"{TOKEN}{gap}<invoke" for gap in _GAPS), NO_BRACKET],
    read_call=NestedElements(TOKEN),
    misspelt=(NO_BRACKET,),
)

FORMAT = Format(
    name="minimax_m3",
    aliases=("minimax-m3", "minimax3"),
    openers=(*_section.openers, *(CallOpener(f"<tool_call>{gap}{CALL}", _section.read_alone) for gap in ("", "\n"))),
    encode_calls=encode_calls,
    encode_result=build_result_encoder("<response>", "</response>"),
    result_markers=("<response>",),
    reasoning={"<mm:think>": "</mm:think>"},
    stray_closers=(*_section.closes, f"{TOKEN}</invoke>"),
    end_tokens=(END,),
    other_role_markers=("]~b]",),
    stop_sequences=(END,),
    special_tokens=(TOKEN, "<mm:think>", "</mm:think>"),
    model_patterns=(r"minimax-?_?m3",),
    template_fingerprints=(TOKEN,),
)
