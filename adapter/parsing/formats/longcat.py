"""LongCat Flash: JSON in ``<longcat_tool_call>`` tags.

Format: tokenizer_config.json (chat_template) of meituan-longcat/LongCat-Flash-Chat and of LongCat-Flash-Thinking, which
writes reasoning in its own tags. The keys and values of `longcat2` in these tags are also parsed.
"""

from __future__ import annotations

from adapter.parsing.bodies.arg_key_value import KeyValueReader
from adapter.parsing.bodies.key_value_tags import KeyValueTags
from adapter.parsing.call_encoders import build_calls_encoder, encode_json_call
from adapter.parsing.format import BodyResult, BodySource, CallOpener, Format
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson, require_json

TAGS = KeyValueTags.with_affixes("longcat_", section_close="")
OPEN, CLOSE = TAGS.open, TAGS.close

_read_json = require_json(TaggedJson(OPEN, CLOSE, may_list=True), CLOSE)
_read_pairs = KeyValueReader(TAGS, own=("longcat2",)).read


def read_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the body after ``<longcat_tool_call>``: JSON, or a name with pairs."""
    char = yield from source.skip_space(consumed)
    return (yield from (_read_json if char in "{[<" else _read_pairs)(source, consumed))


FORMAT = Format(
    name="longcat",
    aliases=("longcat_flash",),
    openers=(CallOpener(OPEN, read_call),),
    encode_calls=build_calls_encoder(encode_json_call, f"{OPEN}\n", f"\n{CLOSE}", between="\n"),
    reasoning={"<longcat_think>": "</longcat_think>"},
    stray_closers=(CLOSE, TAGS.key_close, TAGS.value_close),
    end_tokens=("</longcat_s>",),
    stop_sequences=("</longcat_s>",),
    special_tokens=(OPEN, CLOSE, "<longcat_think>", "</longcat_think>"),
    model_patterns=(r"longcat-?_?flash(?!-?_?(?:lite|thinking-?_?26))",),
    template_fingerprints=(OPEN,),
)
