"""Apriel 1.5 and 1.6: a JSON list in ``<tool_calls>``; the answer between final response markers.

Format: chat_template.jinja of ServiceNow-AI/Apriel-1.5-15b-Thinker and Apriel-1.6-15b-Thinker. Reasoning begins with a
fixed sentence, which is part of the prompt in 1.6, and ends where the final response begins. In one place, the prompt
of 1.5 has ``<tool_call>`` instead of ``<tool_calls>``. Results are returned under a separate role.
"""

from __future__ import annotations

from dataclasses import replace

from adapter.parsing.call_encoders import encode_content_alone
from adapter.parsing.format import BodyResult, BodySource, CallOpener
from adapter.parsing.formats import hunyuan_a13b
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson, require_json

SINGULAR, SINGULAR_CLOSE = "<tool_call>", "</tool_call>"

_read_singular = require_json(TaggedJson(SINGULAR, SINGULAR_CLOSE, may_list=True), SINGULAR_CLOSE)


def read_singular(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the list between ``<tool_call>`` tags, which the prompt of 1.5 mentions."""
    return (yield from _read_singular(source, consumed)).with_fixes("misspelt-open-tag")


FORMAT = replace(
    hunyuan_a13b.FORMAT,
    name="apriel",
    aliases=("apriel_1_5",),
    openers=(*hunyuan_a13b.FORMAT.openers, CallOpener(SINGULAR, read_singular)),
    encode_result=encode_content_alone,
    answer_tags={},
    reasoning={"Here are my reasoning steps:\n": "[BEGIN FINAL RESPONSE]"},
    end_tokens=("<|end|>", "[END FINAL RESPONSE]"),
    other_role_markers=("<|begin_user|>", "<|begin_system|>"),
    result_markers=("<|tool_result|>", "<|begin_tool_result|>"),
    stop_sequences=("<|end|>",),
    model_patterns=(r"apriel",),
    template_fingerprints=("[BEGIN FINAL RESPONSE]",),
)
