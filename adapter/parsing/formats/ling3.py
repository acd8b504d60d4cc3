"""Ling 3: calls like GLM 4.5; reasoning is opened in the prompt.

Format: the parsers of SGLang and llama.cpp (ling3) for the inclusionAI/Ling-3 releases. A turn begins with a role
between ``<role>`` tags. A call may precede the end of the reasoning.
"""

from dataclasses import replace

from adapter.parsing.formats import glm45

END = "<|role_end|>"

FORMAT = replace(
    glm45.FORMAT,
    name="ling3",
    aliases=("bailing_v3",),
    starts_in_reasoning=True,
    end_tokens=(END,),
    other_role_markers=("<role>HUMAN</role>", "<role>SYSTEM</role>"),
    result_markers=("<role>OBSERVATION</role>",),
    stop_sequences=(END,),
    model_patterns=(r"\bling-?_?3", r"bailing-?_?v?3"),
    template_fingerprints=("<role>ASSISTANT</role>",),
)
