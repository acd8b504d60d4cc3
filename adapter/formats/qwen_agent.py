"""Qwen-Agent's own: ``✿FUNCTION✿`` and ``✿ARGS✿`` on lines of their own.

Format: the prompt that QwenLM/Qwen-Agent has for Qwen 1.5 and 2 (llm/fncall_prompts/qwen_fncall_prompt.py)::

    ✿FUNCTION✿: get_weather
    ✿ARGS✿: {"city": "Oslo"}
    ✿RESULT✿: ...
    ✿RETURN✿: It is cold in Oslo.

Several calls stand below each other before the first result. ``✿RESULT✿`` is where the model must stop;
``✿RETURN✿`` comes before the answer.
"""

from __future__ import annotations

import json

from adapter.reading.bodies.labelled_lines import labelled_reader
from adapter.reading.format import Format, Opener
from adapter.values.events import JsonObject

OPEN, ARGUMENTS, RESULT, ANSWER = "✿FUNCTION✿:", "✿ARGS✿:", "✿RESULT✿", "✿RETURN✿"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    each = [(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in calls]
    return "\n".join(f"{OPEN} {name}\n{ARGUMENTS} {written}" for name, written in each)


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return f"{RESULT}: {content}"


FORMAT = Format(
    name="qwen_agent",
    aliases=("qwen_fncall",),
    openers=(Opener(OPEN, labelled_reader(ARGUMENTS, RESULT)),),
    encode_calls=encode_calls,
    encode_result=encode_result,
    ends=(ANSWER + ":",),
    results=(RESULT,),
    stops=(RESULT, ANSWER),
    template_marks=(OPEN,),
)
