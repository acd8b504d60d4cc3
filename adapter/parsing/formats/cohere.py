"""Cohere Command: a JSON list of actions between ``<|START_ACTION|>`` and ``<|END_ACTION|>``.

Format: the tool-use chat templates of CohereLabs/c4ai-command-r7b-12-2024 and command-a. Each action has the keys
``tool_name`` and ``parameters``. Reasoning and answer have separate markers. Results are returned in a list between
``<|START_TOOL_RESULT|>`` and ``<|END_TOOL_RESULT|>``.
"""

from __future__ import annotations

from adapter.core.events import JsonObject
from adapter.core.json.encode import dump_json
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson, require_json

OPEN, CLOSE = "<|START_ACTION|>", "<|END_ACTION|>"
THINK, END_THINK = "<|START_THINKING|>", "<|END_THINKING|>"
ANSWER = ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>")
RESULT, TURN, END = "<|START_TOOL_RESULT|>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"

LABEL, FENCE = "Action: ```json", "```"

_read_json = require_json(TaggedJson(OPEN, CLOSE, "parameters", may_list=True))
_read_labeled = TaggedJson(LABEL, FENCE, "parameters", may_list=True)


def read_actions(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the list after ``<|START_ACTION|>``. The key ``tool_name``, which this format requires, is not reported as
    a repair."""
    return (yield from _read_json(source, consumed)).remove_fixes("name-key")


def read_labeled(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the list in a code fence after ``Action:``, as Command R and R+ write it."""
    if not source.at_line_start:
        return TEXT
    result = yield from _read_labeled(source, consumed)
    if result.error is not None or not all(source.tools.match(call.name) for call in result.calls):
        return TEXT
    return result.remove_fixes("name-key")


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    actions = [
        {"tool_call_id": str(number), "tool_name": name, "parameters": arguments}
        for number, (name, arguments) in enumerate(calls)
    ]
    return f"{OPEN}{dump_json(actions)}{CLOSE}"


def encode_result(_name: str, content: str, call_id: str) -> str:
    result = {"tool_call_id": call_id, "results": {"0": content}, "is_error": None}
    return f"{RESULT}{dump_json([result])}<|END_TOOL_RESULT|>"


FORMAT = Format(
    name="cohere",
    aliases=("cohere_command3", "cohere_command4", "cohere2", "command", "command_r", "command_a", "cohere2moe"),
    openers=(CallOpener(OPEN, read_actions), CallOpener(LABEL, read_labeled)),
    encode_calls=encode_calls,
    encode_result=encode_result,
    reasoning={THINK: END_THINK},
    stray_closers=(CLOSE,),
    end_tokens=(END, *ANSWER),
    other_role_markers=(TURN,),
    result_markers=(RESULT,),
    stop_sequences=(END,),
    special_tokens=(OPEN, CLOSE, THINK, END_THINK, *ANSWER),
    model_patterns=(r"command-?[ar]", r"c4ai", r"cohere", r"north-?_?mini"),
    template_fingerprints=(OPEN,),
)
