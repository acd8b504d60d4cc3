"""GigaChat 3.5: elements like DeepSeek's, with ``GCML`` for ``DSML``; reasoning in ``<think>`` before them.

Format: the chat template of the ai-sage/GigaChat3.5 releases; see `dsml`.
"""

from dataclasses import replace

from adapter.parsing.bodies.dsml import build_dsml_format
from adapter.parsing.formats.gigachat3 import END, MESSAGE_END, NEXT_TURNS

FORMAT = replace(
    build_dsml_format(
        "gigachat35",
        ("gigachat3_5", "gcml"),
        section="tool_calls",
        models=(r"gigachat-?3\.[5-9]",),
        result='<function_response name="{name}">{}</function_response>',
        language="GCML",
    ),
    end_tokens=(MESSAGE_END, END),
    other_role_markers=NEXT_TURNS,
    stop_sequences=(END,),
    template_fingerprints=("<｜GCML｜",),
)
