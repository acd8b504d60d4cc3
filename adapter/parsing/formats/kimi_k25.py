"""Kimi K2.5 and K2.6: JSON arguments after an id, like Kimi K2; reasoning is opened in the prompt.

Format: chat_template.jinja of moonshotai/Kimi-K2.5 and Kimi-K2.6::

    reasoning</think>answer<|tool_calls_section_begin|>...<|tool_calls_section_end|>
"""

from dataclasses import replace

from adapter.parsing.formats import kimi_k2

FORMAT = replace(
    kimi_k2.FORMAT,
    name="kimi_k25",
    aliases=("kimi_k26", "kimi_k2_5", "kimi_k2_6"),
    starts_in_reasoning=True,
    model_patterns=(r"kimi-?_?k2[.p_-]?[5-9](?!\d)",),
    template_fingerprints=(),
)
