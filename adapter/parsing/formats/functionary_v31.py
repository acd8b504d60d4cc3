"""Functionary v3.1 and v4r: ``<function=NAME>{JSON}</function>``, Llama 3.1's custom tool calling.

Format: the chat template of meetkai/functionary-medium-v3.1 (v3-llama3.1). Code for the model's interpreter follows
``<|python_tag|>``. Results are returned under the ``ipython`` role.
"""

from dataclasses import replace

from adapter.parsing.call_encoders import build_calls_encoder, encode_json_arguments
from adapter.parsing.formats import llama3_json

FORMAT = replace(
    llama3_json.FORMAT,
    name="functionary_v31",
    aliases=("functionary_v3_1", "functionary_v3_1_llama_3_1"),
    read_unmarked=None,
    encode_calls=build_calls_encoder(encode_json_arguments, "<function={name}>", "</function>"),
    stray_closers=("</function>",),
    model_patterns=(r"functionary.*v(?:3\.1|4)",),
    template_fingerprints=("<{start_tag}={function_name}>",),
)
