"""iFlytek Spark 2.5: the pairs of GLM 4.5, a pair a line.

Format: the detector that sgl-project/sglang has for the family
(function_call/spark25_detector.py), whose template is not public::

    <tool_call>NAME
    <arg_key>KEY</arg_key><arg_value>value</arg_value>
    </tool_call>
"""

from __future__ import annotations

from adapter.formats import glm45
from adapter.reading.bodies.key_value_body import GLM, encode_arguments
from adapter.reading.bodies.tool_call_tag import CLOSE, OPEN
from adapter.values.events import JsonObject
from adapter.values.fields import replace


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    written = (
        f"{OPEN}{name}\n{encode_arguments(GLM, arguments, value_end=chr(10))}{CLOSE}" for name, arguments in calls
    )
    return "\n".join(written)


FORMAT = replace(
    glm45.FORMAT,
    name="spark25",
    aliases=("spark2_5", "spark"),
    encode_calls=encode_calls,
    ends=(),
    stops=(),
    models=(r"spark-?_?x?2",),
    template_marks=(),
)
