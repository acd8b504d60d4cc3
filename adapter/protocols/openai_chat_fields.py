"""The fields of a chat completion, and what becomes of each in a request that is translated.

Source: https://platform.openai.com/docs/api-reference/chat/create. A request that needs no translation goes on whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapter.core.events import JsonObject
from adapter.protocols.dropped_fields import FieldHandling
from adapter.protocols.guarded_exchange import EXTENSION
from adapter.protocols.template_prompt import MARKS

FIELDS: Mapping[str, FieldHandling] = {
    "model": "passed",
    "messages": "mapped",
    "tools": "mapped",
    "tool_choice": "taken",
    "parallel_tool_calls": "taken",
    "functions": "mapped",
    "function_call": "mapped",
    "stop": "mapped",
    "n": "passed",
    "stream": "passed",
    "stream_options": "passed",
    "logprobs": "passed",
    "top_logprobs": "passed",
    "response_format": "passed",
    "reasoning_effort": "passed",
    "max_tokens": "passed",
    "max_completion_tokens": "passed",
    "temperature": "passed",
    "top_p": "passed",
    "frequency_penalty": "passed",
    "presence_penalty": "passed",
    "logit_bias": "passed",
    "seed": "passed",
    "user": "passed",
    "audio": "passed",
    "metadata": "passed",
    "modalities": "passed",
    "moderation": "passed",
    "prediction": "passed",
    "prompt_cache_key": "passed",
    "prompt_cache_options": "passed",
    "prompt_cache_retention": "passed",
    "safety_identifier": "passed",
    "service_tier": "passed",
    "store": "passed",
    "verbosity": "passed",
    "web_search_options": "passed",
    EXTENSION: "taken",
}
"""What is not named here goes on untouched."""

_OURS = {name for name, fate in FIELDS.items() if fate == "taken"} | {"tools", MARKS}
"""What a client says to us, or is not to say at all."""


def passthrough_fields(body: JsonObject) -> JsonObject:
    return {key: value for key, value in body.items() if key not in _OURS}
