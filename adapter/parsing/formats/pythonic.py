"""Pythonic: a list of Python calls, bare or between ``<|python_start|>`` and ``<|python_end|>``.

Format: Meta's prompt format for Llama 4 and the small Llama 3.2 models, which asks for ``[func(name=value, ...), ...]``
without other text. Llama 4 sometimes writes the list between the two tokens, and Llama 3 after ``<|python_tag|>``.
"""

from adapter.parsing.bodies.python_encoder import encode_call
from adapter.parsing.bodies.python_scanner import (
    BARE_LISTS,
    build_python_or_json_reader,
    read_after_python_tag,
    read_list,
)
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.format import CallOpener, Format

OPEN, CLOSE, PYTHON_TAG = "<|python_start|>", "<|python_end|>", "<|python_tag|>"

FORMAT = Format(
    name="pythonic",
    aliases=("llama4_pythonic", "llama4", "llama_4"),
    openers=(
        CallOpener(OPEN, build_python_or_json_reader(OPEN, CLOSE, "parameters"), keeps_space=True),
        CallOpener(PYTHON_TAG, read_after_python_tag, keeps_space=True),
    ),
    read_unmarked=read_list,
    body_variants=frozenset({BARE_LISTS}),
    encode_calls=build_calls_encoder(encode_call, between=", ", opening="[", closing="]"),
    stray_closers=(CLOSE,),
    end_tokens=("<|eot|>",),
    other_role_markers=("<|header_start|>",),
    stop_sequences=("<|eot|>", "<|eom|>"),
    special_tokens=(OPEN, CLOSE, PYTHON_TAG),
    model_patterns=(r"llama-?_?4", r"tool-?ace"),
    template_fingerprints=("<|python_start|>", "<|header_start|>"),
)
