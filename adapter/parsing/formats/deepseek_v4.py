"""DeepSeek V4: DSML elements in ``<｜DSML｜tool_calls>``.

Format: the reference encoder of deepseek-ai/DeepSeek-V4-Flash and DeepSeek-V4-Pro; see `dsml`.
"""

from adapter.parsing.bodies.dsml import build_dsml_format

FORMAT = build_dsml_format(
    "deepseek_v4",
    ("deepseekv4",),
    section="tool_calls",
    models=(r"deepseek-?_?v4(?![.p_-]?1)",),
    result="<tool_result>{}</tool_result>",
)
