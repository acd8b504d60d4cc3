"""Granite 4: JSON in ``<tool_call>`` tags, like Hermes, between Granite's own role tokens.

Format: the parsers of inference engines for ibm-granite/granite-4.0-h-small and the other sizes. Results are returned
in ``<tool_response>`` tags.
"""

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
