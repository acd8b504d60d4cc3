"""Functionary v3.1 and v4r: ``<function=NAME>{JSON}</function>``, Llama 3.1's custom tool calling.

Format: the chat template of meetkai/functionary-medium-v3.1 (v3-llama3.1). Code for its interpreter comes
after ``<|python_tag|>``. Results go back under the role ``ipython``.
"""

from __future__ import annotations

import json

from adapter.formats import llama3_json
from adapter.values.events import JsonObject
from adapter.values.fields import replace


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "".join(
        f"<function={name}>{json.dumps(arguments, ensure_ascii=False)}</function>" for name, arguments in calls
    )


FORMAT = replace(
    llama3_json.FORMAT,
    name="functionary_v31",
    aliases=("functionary_v3_1", "functionary_v3_1_llama_3_1"),
    bare=None,
    encode_calls=encode_calls,
    strays=("</function>",),
    models=(r"functionary.*v(?:3\.1|4)",),
    template_marks=("<{start_tag}={function_name}>",),
)
