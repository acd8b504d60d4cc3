"""xLAM: a bare JSON list of calls.

Format: that of Salesforce/xLAM-2-3b-fc-r and Llama-xLAM-2-8b-fc-r by vLLM's parser::

    [{"name": "get_weather", "arguments": {"city": "Oslo"}}, ...]

The first releases (the model card of Salesforce/xLAM-7b-fc-r) wrap the list in an object,
``{"thought": ..., "tool_calls": [...]}``. vLLM's parser of this name takes the list from a code fence,
from ``<tool_call>`` tags and after ``[TOOL_CALLS]`` too. Results go back under the role ``tool``.
"""

from __future__ import annotations

from adapter.parsing.bare_json import UntaggedJson
from adapter.parsing.bodies.tool_call_tag import OPENERS, STRAYS
from adapter.parsing.encoding import list_encoder
from adapter.parsing.format import Format
from adapter.parsing.formats import mistral

FORMAT = Format(
    name="xlam",
    aliases=("xlam2",),
    openers=(*OPENERS, *mistral.FORMAT.openers),
    read_bare=UntaggedJson("arguments", after_marker=False),
    encode_calls=list_encoder(),
    stray_closers=(*STRAYS, *mistral.FORMAT.stray_closers),
    stop_sequences=("<|im_end|>", "<|eot_id|>"),
    model_patterns=(r"xlam",),
    template_fingerprints=("Salesforce xLAM",),
)
