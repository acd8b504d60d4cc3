"""Hunyuan 4: the pairs of Hunyuan 3 without line breaks and without ``<tool_sep>``.

Format: that of tencent/Hy4-preview by the parsers of engines, not compared with the template; see `hy_v3`::

    <tool_calls:opensource><tool_call:opensource>NAME<arg_key:opensource>KEY</arg_key:opensource>...

all on one line.
"""

from __future__ import annotations

from adapter.formats import hy_v3
from adapter.formats.hy_v3 import OPEN, RESULT, TAGS
from adapter.reading.bodies.key_value_body import encode_arguments
from adapter.values.events import JsonObject
from adapter.values.fields import replace


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    written = "".join(f"{TAGS.open}{name}{encode_arguments(TAGS, arguments)}{TAGS.close}" for name, arguments in calls)
    return f"{OPEN}{written}{TAGS.section_close}"


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return f"{RESULT}{content}</tool_response:opensource>"


FORMAT = replace(
    hy_v3.FORMAT,
    name="hy_v4",
    aliases=("hunyuan4", "hy4"),
    encode_calls=encode_calls,
    encode_result=encode_result,
    special_tokens=tuple(token for token in hy_v3.FORMAT.special_tokens if token != TAGS.separator),
    models=(r"hy-?_?v?4", r"hunyuan-?_?4"),
    template_marks=(),
)
