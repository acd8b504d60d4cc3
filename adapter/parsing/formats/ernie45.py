"""ERNIE 4.5 Thinking, X1.1 and 5: JSON in ``<tool_call>`` tags, like Hermes; the answer in ``<response>`` tags.

Format: FastDeploy's `ernie_x1` parser, and users' quotations of the template of baidu/ERNIE-4.5-21B-A3B-Thinking, which
opens the reasoning in the prompt::

    ...</think>
    <response>
    I look.
    </response>
    <tool_call>
    {"name": ..., "arguments": {...}}
    </tool_call>

Results are returned between ``<tool_output>`` tags under the ``tool`` role.
"""

from dataclasses import replace

from adapter.parsing.call_encoders import build_result_encoder
from adapter.parsing.formats import hermes

RESULT = "<tool_output>"

FORMAT = replace(
    hermes.FORMAT,
    name="ernie45",
    aliases=("ernie", "ernie4_5", "ernie5", "ernie_x1", "ernie_45_vl_thinking"),
    encode_result=build_result_encoder(f"{RESULT}\n", "\n</tool_output>"),
    starts_in_reasoning=True,
    answer_tags={"<response>": "</response>"},
    result_markers=(RESULT,),
    model_patterns=(r"ernie",),
    template_fingerprints=("<global_setting>",),
)
