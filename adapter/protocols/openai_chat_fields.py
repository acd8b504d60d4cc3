"""The fields of a chat completion request, and the handling of each field in a translated request.

Source: https://platform.openai.com/docs/api-reference/chat/create and the types of openai-python 3.54.
"""

from __future__ import annotations

from adapter.core.events import JsonObject
from adapter.protocols.dropped_fields import build_field_table
from adapter.protocols.exchange_guardrails import EXTENSION
from adapter.protocols.ollama import EXTRA
from adapter.protocols.template_prompt import TEMPLATE_SETTINGS

FIELDS = build_field_table(
    {
        "passed": (
            "model n stream stream_options logprobs top_logprobs response_format reasoning_effort max_tokens "
            "max_completion_tokens temperature top_p frequency_penalty presence_penalty logit_bias seed user "
            "audio metadata modalities moderation prediction prompt_cache_key prompt_cache_options "
            "prompt_cache_retention safety_identifier service_tier store verbosity web_search_options"
        ),
        "mapped": "messages tools functions function_call stop",
        "taken": f"tool_choice parallel_tool_calls {EXTENSION}",
    }
)
"""Handling of each request field. Fields that are not listed are forwarded unchanged."""

_OURS = {name for name, handling in FIELDS.items() if handling == "taken"} | {"tools", TEMPLATE_SETTINGS, EXTRA}
"""Fields that are not forwarded to the model server."""


def select_passthrough_fields(body: JsonObject) -> JsonObject:
    """Return the fields of a chat request that are forwarded to the model server."""
    return {key: value for key, value in body.items() if key not in _OURS}
