"""Solar Open 2: keys and values between control tokens.

Format: that of upstage/Solar-Open2-250B by vLLM's parser, not compared with the template; see `key_value_body`::

    <|think:start|>...<|think:end|>
    <|tool_call:start|>NAME
    <|tool_arg:start|>KEY<|tool_arg:value|>value<|tool_arg:end|>
    <|tool_call:end|>

The tokens are the tokenizer's own, so that nothing else has to be escaped.
"""

from __future__ import annotations

from adapter.reading.bodies.key_value_body import KeyValueBody, PairTags, encode_arguments
from adapter.reading.format import Format, Opener
from adapter.values.events import JsonObject

TAGS = PairTags(
    open="<|tool_call:start|>",
    close="<|tool_call:end|>",
    key_open="<|tool_arg:start|>",
    key_close="",
    value_open="<|tool_arg:value|>",
    value_close="<|tool_arg:end|>",
)
THINK, END_THINK, END, START = "<|think:start|>", "<|think:end|>", "<|im:end|>", "<|im:start|>"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    written = (
        f"{TAGS.open}{name}\n{encode_arguments(TAGS, arguments, value_end=chr(10))}{TAGS.close}"
        for name, arguments in calls
    )
    return "\n".join(written)


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return content


FORMAT = Format(
    name="solar_open2",
    aliases=("solar", "solar_open", "solar_pro4"),
    openers=(Opener(TAGS.open, KeyValueBody(TAGS, own=("solar_open2",)).read),),
    encode_calls=encode_calls,
    encode_result=encode_result,
    reasoning={THINK: END_THINK},
    strays=(TAGS.close, TAGS.value_close),
    ends=(END,),
    next_turns=(START,),
    stops=(END,),
    special_tokens=(*TAGS.all, THINK, END_THINK),
    models=(r"solar-?_?open-?_?2", r"solar-?_?pro-?_?4"),
    template_marks=(TAGS.open,),
)
