"""xLAM: a bare JSON list of calls.

Format: vLLM's parser for Salesforce/xLAM-2-3b-fc-r and Llama-xLAM-2-8b-fc-r::

    [{"name": "get_weather", "arguments": {"city": "Oslo"}}, ...]

The first releases (the model card of Salesforce/xLAM-7b-fc-r) wrap the list in an object, ``{"thought": ...,
"tool_calls": [...]}``. vLLM's parser also accepts the list in a code fence, in ``<tool_call>`` tags and after
``[TOOL_CALLS]``. Results are returned under the ``tool`` role.
"""

from adapter.parsing.bodies.tool_call_tag import OPENERS, STRAYS
from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.call_encoders import build_list_encoder
from adapter.parsing.format import Format
from adapter.parsing.formats import mistral

FORMAT = Format(
    name="xlam",
    aliases=("xlam2",),
    openers=(*OPENERS, *mistral.FORMAT.openers),
    read_unmarked=UntaggedJson("arguments", after_marker=False),
    encode_calls=build_list_encoder(),
    stray_closers=(*STRAYS, *mistral.FORMAT.stray_closers),
    stop_sequences=("<|im_end|>", "<|eot_id|>"),
    model_patterns=(r"xlam",),
    template_fingerprints=("Salesforce xLAM",),
)
