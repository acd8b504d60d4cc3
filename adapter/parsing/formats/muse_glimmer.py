"""Muse Glimmer: elements in ``<atem:function_calls>``, in messages with headers like Harmony's.

Format: the chat template of the family in ollama/ollama (model/renderers/testdata/glimmer_chat_template.jinja); see
`harmony` and `invoke_tags`::

    <|start|>assistant to=self<|message|>reasoning<|eom|>
    <|start|>assistant to=NAME<|message|><atem:function_calls>
    <atem:invoke name="NAME">
    <atem:parameter name="KEY">value</atem:parameter>
    </atem:invoke>
    </atem:function_calls><|eot|>
"""

from __future__ import annotations

from dataclasses import replace

from adapter.core.events import JsonObject
from adapter.parsing.bodies.harmony_messages import ASSISTANT, MESSAGE, START
from adapter.parsing.bodies.invoke_tags import ATEM, OPENERS, STRAYS, build_calls_encoder
from adapter.parsing.call_encoders import build_result_encoder
from adapter.parsing.formats import harmony

END, END_TURN = "<|eom|>", "<|eot|>"

_encode_elements = build_calls_encoder(ATEM, "atem:")


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    messages = [f"{ASSISTANT} to={name}{MESSAGE}{_encode_elements([(name, arguments)])}" for name, arguments in calls]
    return END.join(messages) + END_TURN


FORMAT = replace(
    harmony.FORMAT,
    name="muse_glimmer",
    aliases=("muse", "glimmer", "atem"),
    body_variants=frozenset(),
    openers=(*harmony.FORMAT.openers, *OPENERS),
    encode_calls=encode_calls,
    encode_result=build_result_encoder(
        f'{START}tool {{name}}{MESSAGE}<tool_output name="{{name}}">\n', f"\n</tool_output>{END_TURN}"
    ),
    stray_closers=STRAYS,
    stop_sequences=(END_TURN,),
    special_tokens=(START, MESSAGE, END, END_TURN),
    model_patterns=(r"glimmer",),
    template_fingerprints=(f"<{ATEM}>",),
)
