"""Seed-OSS: XML functions in ``<seed:tool_call>``.

Format: chat_template.jinja of ByteDance-Seed/Seed-OSS-36B-Instruct. The body is
that of `qwen3_coder`, with values on the line of their tags::

    <seed:think>...</seed:think>
    <seed:tool_call>
    <function=NAME>
    <parameter=KEY>value</parameter>
    </function>
    </seed:tool_call>
"""

from __future__ import annotations

from adapter.formats.qwen3_coder import encode_function
from adapter.reading.bodies.function_body import read_inline_function
from adapter.reading.bodies.section import Section
from adapter.reading.format import Format
from adapter.values.events import JsonObject

OPEN, CLOSE = "<seed:tool_call>", "</seed:tool_call>"


def encode_call(name: str, arguments: JsonObject) -> str:
    return f"{OPEN}\n{encode_function(name, arguments, margin='')}\n{CLOSE}"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "\n".join(encode_call(name, arguments) for name, arguments in calls)


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return content


_section = Section(
    opens=(OPEN,), closes=(CLOSE,), call_opens=("<function=", "<function "), read_call=read_inline_function
)

FORMAT = Format(
    name="seed_oss",
    aliases=("seed", "seed_oss_36b"),
    openers=_section.openers,
    encode_calls=encode_calls,
    encode_result=encode_result,
    reasoning={"<seed:think>": "</seed:think>"},
    strays=(CLOSE, "</function>", "</parameter>"),
    ends=("<seed:eos>",),
    stops=("<seed:eos>",),
    special_tokens=(OPEN, CLOSE, "<seed:think>", "</seed:think>"),
    models=(r"seed-?_?oss",),
    template_marks=(OPEN,),
)
