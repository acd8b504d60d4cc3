"""GigaChat 3.1: ``<|function_call|>`` and JSON.

Format: users' reports of the output of ai-sage/GigaChat3.1-10B-A1.8B. The rest is as in `gigachat3`.
"""

from dataclasses import replace

from adapter.parsing.call_encoders import build_calls_encoder, encode_json_call
from adapter.parsing.formats import gigachat3
from adapter.parsing.formats.gigachat3 import SHORT

FORMAT = replace(
    gigachat3.FORMAT,
    name="gigachat31",
    aliases=("gigachat3_1",),
    encode_calls=build_calls_encoder(encode_json_call, SHORT),
    model_patterns=(r"gigachat-?3\.[1-4]",),
    template_fingerprints=(SHORT,),
)
