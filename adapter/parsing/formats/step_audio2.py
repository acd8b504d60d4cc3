"""Step-Audio 2: the word ``function``, the tool's name and JSON arguments, each on a line, in ``<tool_call>`` tags.

Format: the detector for the family in sgl-project/sglang (function_call/step_audio2_detector.py)::

    <tool_call>function
    NAME
    {...}</tool_call>
"""

from dataclasses import replace

from adapter.parsing.call_encoders import build_calls_encoder, encode_json_arguments
from adapter.parsing.formats import hermes

FORMAT = replace(
    hermes.FORMAT,
    name="step_audio2",
    tool_call_body=None,
    aliases=("stepaudio2", "step_audio_2"),
    encode_calls=build_calls_encoder(
        encode_json_arguments, "<tool_call>function\n{name}\n", "</tool_call>", between="\n"
    ),
    model_patterns=(r"step-?_?audio",),
    template_fingerprints=("<tool_call>function\\n", "<tool_call>function\n"),
)
