"""K2 Horizon: ``<ifm|arg_key>`` and ``<ifm|arg_value>`` pairs, in ``<ifm|tool_calls>``.

Format: the parsers of inference engines for IFM's K2-Horizon releases; see `arg_key_value`. The template may request a
type between key and value, which is also parsed, or one JSON object in each call::

    <ifm|think>...</ifm|think>
    <ifm|tool_calls>
    <ifm|tool_call>NAME
    <ifm|arg_key>KEY</ifm|arg_key>
    <ifm|arg_value>value</ifm|arg_value>
    </ifm|tool_call>
    </ifm|tool_calls>

The prompt opens the reasoning with a tag for the requested length. Results are returned under the ``tool`` role.
"""

from functools import partial

from adapter.parsing.bodies.arg_key_value import KeyValueReader
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.key_value_tags import KeyValueTags, encode_call
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.format import Format

TAGS = KeyValueTags.with_affixes("ifm|", section_close="</ifm|tool_calls>", type="arg_type")
OPEN, END = "<ifm|tool_calls>", "<|ifm|im_end|>"
THINK = {f"<ifm|{word}>": f"</ifm|{word}>" for word in ("think", "think_fast", "think_faster")}

_section = CallSection(
    opens=(OPEN,),
    closes=(TAGS.section_close,),
    call_opens=(TAGS.open,),
    read_call=KeyValueReader(TAGS, own=("k2_horizon",)).read,
)

FORMAT = Format(
    name="k2_horizon",
    aliases=("k2_v3",),
    openers=_section.openers,
    encode_calls=build_calls_encoder(
        partial(encode_call, TAGS, gap="\n", key_end="\n", value_end="\n"),
        between="\n",
        opening=f"{OPEN}\n",
        closing=f"\n{TAGS.section_close}",
    ),
    reasoning=THINK,
    stray_closers=(TAGS.section_close, TAGS.close, TAGS.key_close, TAGS.value_close),
    end_tokens=(END,),
    other_role_markers=("<|ifm|im_start|>",),
    stop_sequences=(END,),
    special_tokens=(OPEN, *TAGS.all, TAGS.section_close, *THINK, *THINK.values()),
    model_patterns=(r"k2-?_?horizon",),
    template_fingerprints=(OPEN,),
)
