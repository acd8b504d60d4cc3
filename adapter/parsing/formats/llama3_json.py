"""Llama 3: bare JSON with ``parameters``, sometimes after ``<|python_tag|>``.

Format: Meta's prompt format for Llama 3.1, 3.2 and 3.3 (JSON based tool calling, and the custom
``<function=NAME>{JSON}</function>``), and the chat templates of these models. Semicolons or line breaks separate
several calls. Results are returned under the ``ipython`` role.
"""

from adapter.parsing.bodies.bare_xml_function import read_unwrapped_function
from adapter.parsing.bodies.python_scanner import read_after_python_tag
from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.call_encoders import build_calls_encoder, encode_json_call_with_parameters
from adapter.parsing.format import CallOpener, Format

PYTHON_TAG = "<|python_tag|>"

FORMAT = Format(
    name="llama3_json",
    aliases=("llama3", "llama", "llama3_1", "llama3_2", "llama3_3", "llama_json", "llama4_json"),
    openers=(
        CallOpener(PYTHON_TAG, read_after_python_tag, keeps_space=True),
        CallOpener("<function=", read_unwrapped_function),
    ),
    read_unmarked=UntaggedJson("parameters", after_marker=False),
    encode_calls=build_calls_encoder(encode_json_call_with_parameters, between="; "),
    stop_sequences=("<|eot_id|>", "<|eom_id|>"),
    special_tokens=(PYTHON_TAG,),
    model_patterns=(
        r"^(?!.*deepseek.*r1).*llama[-_]?3(?!.*(?:nemotron-(?:nano|super|ultra)|firefunction))",
        r"meta-llama.*3\.[123]",
    ),
    template_fingerprints=("<|python_tag|>", '{"name": function name, "parameters"', "Environment: ipython"),
)
