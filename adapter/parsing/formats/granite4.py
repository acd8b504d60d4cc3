"""Granite 4: the calls of Hermes, between Granite's own role tokens.

Format: that of ibm-granite/granite-4.0-h-small and its sizes by the parsers of engines. Results go back in
``<tool_response>`` tags.
"""

from __future__ import annotations

from dataclasses import replace

from adapter.parsing.formats import hermes

END = "<|end_of_text|>"

FORMAT = replace(
    hermes.FORMAT,
    name="granite4",
    aliases=("granite_4",),
    end_tokens=(END,),
    other_role_markers=("<|start_of_role|>",),
    stop_sequences=(END,),
    model_patterns=(r"granite-?4",),
    template_fingerprints=("<|start_of_role|>",),
)
