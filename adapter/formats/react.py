"""ReAct: ``Action:`` and ``Action Input:`` on lines of their own.

Format: the prompt of "ReAct: Synergizing Reasoning and Acting in Language Models" as LangChain and
Qwen-Agent word it::

    Thought: I need the file.
    Action: read_file
    Action Input: {"path": "a.py"}
    Observation: ...

The input is the arguments as JSON. ``Observation:`` is where the model must stop: what follows is invented.
Continue's labels are read, too, see `labelled_block`.
"""

from __future__ import annotations

import json

from adapter.reading.bodies import labelled_block
from adapter.reading.bodies.labelled_lines import labelled_reader
from adapter.reading.format import Format, Opener
from adapter.values.events import JsonObject

OPEN, INPUT, RESULT = "Action:", "Action Input:", "Observation:"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    each = [f"{OPEN} {name}\n{INPUT} {json.dumps(arguments, ensure_ascii=False)}" for name, arguments in calls]
    return "\n".join(each)


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return f"{RESULT} {content}"


FORMAT = Format(
    name="react",
    openers=(Opener(OPEN, labelled_reader(INPUT, RESULT)), labelled_block.OPENER),
    encode_calls=encode_calls,
    encode_result=encode_result,
    results=("\n" + RESULT,),
    stops=("\n" + RESULT,),
    template_marks=(INPUT,),
)
