"""Granite 3: ``<|tool_call|>`` and a JSON list of calls.

Format: the chat templates of ibm-granite/granite-3.0 to 3.3 instruct; 3.1 asks for ``<tool_call>`` after the
token, and a server that strips the token leaves it alone. 3.3 answers in ``<response>`` tags after it has
reasoned. Results go back under the role ``tool_response``.
"""

from __future__ import annotations

from adapter.parsing.bodies.tool_call_token import OPEN, TAG, TAG_CLOSE, read_calls, read_list
from adapter.parsing.encoding import list_encoder
from adapter.parsing.format import CallOpener, Format
from adapter.parsing.tagged_json import require_json

END = "<|end_of_text|>"


FORMAT = Format(
    name="granite",
    aliases=("granite3", "granite_3"),
    openers=(CallOpener(OPEN, read_calls), CallOpener(TAG, require_json(read_list))),
    encode_calls=list_encoder(OPEN),
    answer_tags={"<response>": "</response>"},
    stray_closers=(TAG_CLOSE,),
    end_tokens=(END,),
    other_role_markers=("<|start_of_role|>",),
    stop_sequences=(END,),
    special_tokens=(OPEN,),
    model_patterns=(r"granite-?3",),
    template_fingerprints=("<|end_of_role|><|tool_call|>", "<|tool_call|> followed by", "<|tool_call|><tool_call>"),
)
