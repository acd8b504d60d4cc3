"""Gemma 2 and 3: Python calls in a ``tool_code`` fence.

Format: these models have no tool tokens. Google's "Function calling with Gemma" requests a list of Python calls, or
JSON without markers. Without such a prompt, the models write a code fence, as Gemini does::

    ```tool_code
    get_weather(city="Paris")
    ```

Results are returned in a ``tool_output`` fence. The fence is longer if a result contains fences.
"""

from __future__ import annotations

import re

from adapter.core.events import JsonObject
from adapter.parsing.bodies.python_encoder import encode_call
from adapter.parsing.bodies.python_scanner import PythonBlock, read_list
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.stream_buffer import Reader

OPEN, CLOSE, RESULT = "```tool_code", "```", "```tool_output"

_read_block, _read_element = PythonBlock(CLOSE), PythonBlock("</tool_code>")
_FENCES = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


def read_tool_code(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the Python calls in a ``tool_code`` fence, which must begin a line."""
    if not source.at_line_start:
        return TEXT
    return (yield from _read_block(source, consumed))


def read_element(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the Python calls in a ``<tool_code>`` element if all of them call known tools."""
    if not source.at_line_start:
        return TEXT
    source.may_be_text = True
    result = yield from _read_element(source, consumed)
    return result.with_repairs("misspelt-open-tag") if result.calls_known_tools(source.tools) else TEXT


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    lines = [encode_call(name, arguments) for name, arguments in calls]
    return "\n".join([OPEN, *lines, CLOSE])


def encode_result(_name: str, content: str, _call_id: str) -> str:
    longest = max(map(len, _FENCES.findall(content)), default=0)
    more = "`" * max(0, longest + 1 - len(CLOSE))
    return f"{more}{RESULT}\n{content}\n{more}{CLOSE}"


FORMAT = Format(
    name="gemma3",
    aliases=("gemma", "gemma2", "gemma_2", "gemma_3", "tool_code"),
    openers=(CallOpener(OPEN, read_tool_code), CallOpener("<tool_code>", read_element)),
    read_unmarked=read_list,
    encode_calls=encode_calls,
    encode_result=encode_result,
    end_tokens=("<end_of_turn>", "<eos>"),
    other_role_markers=("<start_of_turn>",),
    result_markers=(RESULT,),
    stop_sequences=("<end_of_turn>", RESULT),
    model_patterns=(r"gemma",),
    template_fingerprints=("<start_of_turn>",),
)
