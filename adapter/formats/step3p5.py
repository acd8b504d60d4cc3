"""Step 3.5 and 3.7: the calls of Qwen3-Coder; reasoning is opened in the prompt.

Format: chat_template.jinja of stepfun-ai/Step-3.5-Flash and Step-3.7-Flash.
"""

from __future__ import annotations

from adapter.formats import qwen3_coder
from adapter.values.events import JsonObject
from adapter.values.fields import replace


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "".join(qwen3_coder.encode_call(name, arguments) for name, arguments in calls)


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return f"<tool_response>{content}</tool_response>"


FORMAT = replace(
    qwen3_coder.FORMAT,
    name="step3p5",
    aliases=("step3_5", "step3p7", "step3_7"),
    encode_calls=encode_calls,
    encode_result=encode_result,
    starts_in_reasoning=True,
    models=(r"step-?_?3[.p_-]?[5-9]",),
    template_marks=(),
)
