"""DeepSeek V4.1: DSML elements with a space before each word, in ``<｜DSML｜ calls>``.

Format: the reference encoder of deepseek-ai/DeepSeek-V4.1-Flash; see `dsml`.
"""

from adapter.parsing.bodies.dsml import build_dsml_format

FORMAT = build_dsml_format(
    "deepseek_v41",
    ("deepseekv41", "deepseek_v4_1"),
    section=" calls",
    gap=" ",
    models=(r"deepseek-?_?v4[.p_-]?1",),
    result="<tool_result>{}</tool_result>",
)
