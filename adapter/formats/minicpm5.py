"""MiniCPM5: ``<function name="NAME">`` elements with ``<param>`` elements in them.

Format: chat_template.jinja of openbmb/MiniCPM5 as the parsers of ggml-org/llama.cpp
(common/parsers/minicpm5.cpp) and vllm-project/vllm read it; see `function_tag`::

    <function name="NAME"><param name="KEY">value</param><param name="KEY"><![CDATA[any text]]></param></function>
"""

from __future__ import annotations

from adapter.reading.bodies.element_tags import encode_call
from adapter.reading.bodies.function_tag import OPENER, TAGS
from adapter.reading.format import Format
from adapter.values.events import JsonObject


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "\n".join(encode_call(TAGS, name, arguments, None, line_end="") for name, arguments in calls)


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return f"<tool_response>\n{content}\n</tool_response>"


FORMAT = Format(
    name="minicpm5",
    aliases=("minicpm5_xml", "minicpm4_xml"),
    openers=(OPENER,),
    encode_calls=encode_calls,
    encode_result=encode_result,
    strays=("</function>", "</param>"),
    stops=("<|im_end|>",),
    special_tokens=("<think>", "</think>"),
    models=(r"minicpm-?_?v?-?[5-9]",),
    template_marks=("<param name=",),
)
