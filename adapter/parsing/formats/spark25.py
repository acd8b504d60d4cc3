"""iFlytek Spark 2.5 and 3: ``<arg_key>`` and ``<arg_value>`` pairs, one per line.

Format: the detectors for the family in sgl-project/sglang (function_call/spark25_detector.py and spark3_detector.py).
The chat template is not public::

    <tool_call>NAME
    <arg_key>KEY</arg_key><arg_value>value</arg_value>
    </tool_call>
"""

from dataclasses import replace
from functools import partial

from adapter.parsing.bodies.key_value_tags import GLM, encode_call
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.formats import glm45

FORMAT = replace(
    glm45.FORMAT,
    name="spark25",
    aliases=("spark2_5", "spark3", "spark"),
    encode_calls=build_calls_encoder(partial(encode_call, GLM, gap="\n", value_end="\n"), between="\n"),
    end_tokens=(),
    stop_sequences=(),
    model_patterns=(r"spark-?_?x?[23]",),
    template_fingerprints=(),
)
