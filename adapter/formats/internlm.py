"""InternLM: JSON between ``<|action_start|><|plugin|>`` and ``<|action_end|>``.

Format: the chat templates of internlm2.5 and internlm3 and InternLM's "Plugin and function calling"
guide; the arguments stand under ``parameters``, in the first InternLM2 under ``arguments``. Its tokenizer
puts a space between the two tokens. Results go back under the role ``environment``.
"""

from __future__ import annotations

import json

from adapter.reading.format import Format, Opener
from adapter.reading.tagged_json import TaggedJson, only_json
from adapter.values.events import JsonObject

OPEN, CLOSE = "<|action_start|><|plugin|>", "<|action_end|>"
SPACED = "<|action_start|> <|plugin|>"

_read_json = only_json(TaggedJson(OPEN, CLOSE, "parameters"))


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    each = [json.dumps({"name": name, "parameters": arguments}, ensure_ascii=False) for name, arguments in calls]
    return "\n".join(f"{OPEN}\n{call}{CLOSE}" for call in each)


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return content


FORMAT = Format(
    name="internlm",
    aliases=("internlm2", "internlm3", "interns1", "intern_s1"),
    openers=(Opener(OPEN, _read_json), Opener(SPACED, _read_json)),
    encode_calls=encode_calls,
    encode_result=encode_result,
    strays=(CLOSE,),
    stops=("<|im_end|>",),
    special_tokens=("<|action_start|>", "<|plugin|>", CLOSE),
    models=(r"intern(?:lm|-?_?s1)",),
    template_marks=("<|action_start|>", "<|plugin|>"),
)
