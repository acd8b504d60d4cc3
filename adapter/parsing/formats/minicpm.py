"""MiniCPM 3 and 4: Python calls in a fence, between ``<|tool_call_start|>`` and ``<|tool_call_end|>``.

Format: the parsers of inference engines for openbmb/MiniCPM3-4B and MiniCPM4-8B, not compared with the templates.
`lfm2` has the same tokens, and its lists of calls are also parsed::

    <|thought_start|>
    ...
    <|thought_end|>
    <|tool_call_start|>
    ```python
    NAME(KEY=value)
    ```
    <|tool_call_end|>
"""

from adapter.parsing.bodies.python_encoder import encode_call
from adapter.parsing.bodies.python_scanner import build_python_or_json_reader
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.format import CallOpener, Format

OPEN, CLOSE = "<|tool_call_start|>", "<|tool_call_end|>"
THINK, END_THINK = "<|thought_start|>", "<|thought_end|>"

FORMAT = Format(
    name="minicpm",
    aliases=("minicpm3", "minicpm4"),
    openers=(CallOpener(OPEN, build_python_or_json_reader(OPEN, CLOSE, has_fence=True)),),
    encode_calls=build_calls_encoder(
        encode_call, between="\n", opening=f"{OPEN}\n```python\n", closing=f"\n```\n{CLOSE}"
    ),
    reasoning={THINK: END_THINK, "<think>": "</think>"},
    stray_closers=(CLOSE,),
    stop_sequences=("<|im_end|>",),
    special_tokens=(OPEN, CLOSE, THINK, END_THINK),
    model_patterns=(r"minicpm-?_?[34]",),
    template_fingerprints=(THINK,),
)
