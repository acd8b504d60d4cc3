"""MiMo: the functions of Qwen3-Coder with values on the line of their tags.

Format: that of XiaomiMiMo/MiMo-V2-Flash by the parsers of engines, not compared with the template;
MiMo-7B writes `hermes`::

    <tool_call>
    <function=NAME>
    <parameter=KEY>value</parameter>
    </function>
    </tool_call>
"""

from __future__ import annotations

from adapter.formats import qwen3_coder
from adapter.formats.qwen3_coder import encode_function
from adapter.reading.bodies.tool_call_tag import CLOSE, OPEN
from adapter.values.events import JsonObject
from adapter.values.fields import replace


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "\n".join(f"{OPEN}\n{encode_function(name, arguments, margin='')}\n{CLOSE}" for name, arguments in calls)


FORMAT = replace(
    qwen3_coder.FORMAT,
    name="mimo",
    aliases=("mimo_v2", "mimo_v2_flash"),
    encode_calls=encode_calls,
    models=(r"mimo-?_?v?[2-9]",),
    template_marks=("You are MiMo",),
)
