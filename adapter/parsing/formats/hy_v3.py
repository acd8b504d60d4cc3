"""Hunyuan 3: ``<arg_key>`` and ``<arg_value>`` pairs after ``<tool_sep>``, in ``<tool_calls>``.

Format: the parsers in vLLM and SGLang for tencent/Hy3 and Hy3-preview (not verified against the template); see
`tool_calls_tag`. In the releases, every tag ends in ``:opensource``. In the preview and in output from other engines,
the tags lack this suffix::

    <tool_calls:opensource>
    <tool_call:opensource>NAME<tool_sep:opensource>
    <arg_key:opensource>KEY</arg_key:opensource>
    <arg_value:opensource>value</arg_value:opensource>
    </tool_call:opensource>
    </tool_calls:opensource>
"""

from functools import partial

from adapter.parsing.bodies import tool_call_tag, tool_calls_tag
from adapter.parsing.bodies.arg_key_value import KeyValueReader
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.key_value_tags import KeyValueTags, encode_call
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.format import Format

TAGS = KeyValueTags.with_affixes(
    suffix=":opensource", separator="<tool_sep:opensource>", section_close="</tool_calls:opensource>"
)
OPEN, RESULT = "<tool_calls:opensource>", "<tool_response:opensource>"
END = "<｜hy_eos:opensource｜>"

_section = CallSection(
    opens=(OPEN,),
    closes=(TAGS.section_close,),
    call_opens=(TAGS.open,),
    read_call=KeyValueReader(TAGS, own=("hy_v3", "hy_v4")).read,
)

FORMAT = Format(
    name="hy_v3",
    tool_call_body="pairs",
    aliases=("hunyuan3", "hy3"),
    openers=(*_section.openers, *tool_calls_tag.OPENERS, *tool_call_tag.OPENERS),
    encode_calls=build_calls_encoder(
        partial(encode_call, TAGS, gap=f"{TAGS.separator}\n", key_end="\n", value_end="\n"),
        after="\n",
        opening=f"{OPEN}\n",
        closing=TAGS.section_close,
    ),
    encode_result=build_result_encoder(f"{RESULT}\n", "\n</tool_response:opensource>"),
    reasoning={"<think:opensource>": "</think:opensource>", "<think>": "</think>"},
    stray_closers=(
        TAGS.section_close,
        TAGS.close,
        TAGS.key_close,
        TAGS.value_close,
        tool_calls_tag.CLOSE,
        *tool_call_tag.STRAYS,
    ),
    end_tokens=(END, "<｜hy_eos｜>"),
    result_markers=(RESULT, "<tool_responses:opensource>"),
    stop_sequences=(END,),
    special_tokens=(OPEN, *TAGS.all, "<think:opensource>", "</think:opensource>"),
    model_patterns=(r"hy-?_?v?3", r"hunyuan-?_?3"),
    template_fingerprints=("<tool_sep", "<tool_sep:opensource>"),
)
