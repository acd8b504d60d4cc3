"""Solar Open 2: keys and values between control tokens.

Format: vLLM's parser for upstage/Solar-Open2-250B, not compared with the template; see `arg_key_value`::

    <|think:start|>...<|think:end|>
    <|tool_call:start|>NAME
    <|tool_arg:start|>KEY<|tool_arg:value|>value<|tool_arg:end|>
    <|tool_call:end|>

The markers are tokens of the tokenizer, so values need no escaping.
"""

from functools import partial

from adapter.parsing.bodies.arg_key_value import KeyValueReader
from adapter.parsing.bodies.key_value_tags import KeyValueTags, encode_call
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.format import CallOpener, Format

TAGS = KeyValueTags(
    open="<|tool_call:start|>",
    close="<|tool_call:end|>",
    key_open="<|tool_arg:start|>",
    key_close="",
    value_open="<|tool_arg:value|>",
    value_close="<|tool_arg:end|>",
)
THINK, END_THINK, END, START = "<|think:start|>", "<|think:end|>", "<|im:end|>", "<|im:start|>"

FORMAT = Format(
    name="solar_open2",
    aliases=("solar", "solar_open", "solar_pro4"),
    openers=(CallOpener(TAGS.open, KeyValueReader(TAGS, own=("solar_open2",)).read),),
    encode_calls=build_calls_encoder(partial(encode_call, TAGS, gap="\n", value_end="\n"), between="\n"),
    reasoning={THINK: END_THINK},
    stray_closers=(TAGS.close, TAGS.value_close),
    end_tokens=(END,),
    other_role_markers=(START,),
    stop_sequences=(END,),
    special_tokens=(*TAGS.all, THINK, END_THINK),
    model_patterns=(r"solar-?_?open-?_?2", r"solar-?_?pro-?_?4"),
    template_fingerprints=(TAGS.open,),
)
