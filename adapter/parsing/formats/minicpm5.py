"""MiniCPM5: ``<function name="NAME">`` elements with ``<param>`` elements in them.

Format: chat_template.jinja of openbmb/MiniCPM5 as parsed by ggml-org/llama.cpp (common/parsers/minicpm5.cpp) and
vllm-project/vllm; see `xml_named_function`::

    <function name="NAME"><param name="KEY">value</param><param name="KEY"><![CDATA[any text]]></param></function>
"""

from functools import partial

from adapter.parsing.bodies.xml_invoke_tags import encode_call
from adapter.parsing.bodies.xml_named_function import OPENER, PARAM_ELEMENTS, TAGS
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.format import Format

FORMAT = Format(
    name="minicpm5",
    aliases=("minicpm5_xml", "minicpm4_xml"),
    openers=(OPENER,),
    body_variants=frozenset({PARAM_ELEMENTS}),
    encode_calls=build_calls_encoder(partial(encode_call, TAGS, describe=None, line_end=""), between="\n"),
    encode_result=build_result_encoder("<tool_response>\n", "\n</tool_response>"),
    stray_closers=("</function>", "</param>"),
    stop_sequences=("<|im_end|>",),
    special_tokens=("<think>", "</think>"),
    model_patterns=(r"minicpm-?_?v?-?[5-9]",),
    template_fingerprints=("<param name=",),
)
