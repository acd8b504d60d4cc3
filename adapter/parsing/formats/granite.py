"""Granite 3: ``<|tool_call|>`` and a JSON list of calls.

Format: the chat templates of ibm-granite/granite-3.0 to 3.3 instruct. The prompt of 3.1 requests ``<tool_call>`` after
the token. If a server strips the token, only the tag remains. After reasoning, 3.3 writes its answer in ``<response>``
tags. Results are returned under the ``tool_response`` role.
"""

from adapter.parsing.bodies.tool_call_token import OPEN, TAG, TAG_CLOSE, read_calls, read_list
from adapter.parsing.call_encoders import build_list_encoder
from adapter.parsing.format import CallOpener, Format
from adapter.parsing.tagged_json import require_json

END = "<|end_of_text|>"

FORMAT = Format(
    name="granite",
    aliases=("granite3", "granite_3"),
    openers=(CallOpener(OPEN, read_calls), CallOpener(TAG, require_json(read_list))),
    encode_calls=build_list_encoder(OPEN),
    answer_tags={"<response>": "</response>"},
    stray_closers=(TAG_CLOSE,),
    end_tokens=(END,),
    other_role_markers=("<|start_of_role|>",),
    stop_sequences=(END,),
    special_tokens=(OPEN,),
    model_patterns=(r"granite-?3",),
    template_fingerprints=("<|end_of_role|><|tool_call|>", "<|tool_call|> followed by", "<|tool_call|><tool_call>"),
)
