"""DeepSeek V3.2: DSML elements in ``<｜DSML｜function_calls>``.

Format: encoding/encoding_dsv32.py of deepseek-ai/DeepSeek-V3.2; see `dsml`.
"""

from adapter.parsing.bodies.dsml import build_dsml_format

FORMAT = build_dsml_format(
    "deepseek_v32",
    ("deepseekv32", "deepseek_v3_2", "dsml"),
    section="function_calls",
    models=(r"deepseek-?_?v3[.p_-]?2(?!-?exp)",),
    result="<result>{}</result>",
)
