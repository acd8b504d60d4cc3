"""openPangu: a JSON list of calls between two unused tokens of its vocabulary.

Format: the prompts and tool parsers of openPangu-Embedded and openPangu-2, in the models' repositories::

    [unused16]reasoning[unused17]
    [unused11][{"name": "get_weather", "arguments": {"city": "Oslo"}}][unused12]
"""

from adapter.parsing.call_encoders import build_list_encoder
from adapter.parsing.format import CallOpener, Format
from adapter.parsing.tagged_json import TaggedJson, require_json

OPEN, CLOSE, THINK, END_THINK, END = "[unused11]", "[unused12]", "[unused16]", "[unused17]", "[unused10]"

FORMAT = Format(
    name="openpangu",
    aliases=("pangu",),
    openers=(CallOpener(OPEN, require_json(TaggedJson(OPEN, CLOSE, may_list=True))),),
    encode_calls=build_list_encoder(OPEN, CLOSE),
    reasoning={THINK: END_THINK},
    stray_closers=(CLOSE,),
    end_tokens=(END,),
    stop_sequences=(END,),
    special_tokens=(OPEN, CLOSE, THINK, END_THINK),
    model_patterns=(r"pangu",),
    template_fingerprints=(OPEN,),
)
