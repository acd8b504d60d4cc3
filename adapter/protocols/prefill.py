"""Let the model continue a text that it has begun, as part of the same answer."""

from __future__ import annotations

from typing import Literal, TypeAlias

from adapter.core.events import JsonObject

CONTINUED = "continued_text"
"""Field of a translated request with the text to append to its prompt, which is not sent to the server."""

Prefill: TypeAlias = Literal["completion", "final_message", "message"]
"""Ways to continue a text if this library does not render the chat template.

completion: llama.cpp's ``/completion``, because its chat endpoint refuses to continue a text if the template allows
reasoning. final_message: vLLM's ``continue_final_message``. message: an answer at the end of the conversation, which
Ollama and most other servers continue.
"""

LIMITS = ("max_tokens", "max_completion_tokens")
MIN_TOKENS = 16
"""Minimum token limit for the rest of an answer."""

_OWN_PROMPT = "own_prompt"


def continue_text(body: JsonObject, text: str, prefill: Prefill) -> JsonObject:
    """Return the request for the continuation of ``text``."""
    if _OWN_PROMPT in body or prefill == "completion":
        return {**body, CONTINUED: text}
    return with_final_message(body, text, is_vllm=prefill == "final_message")


def with_final_message(body: JsonObject, text: str, *, is_vllm: bool) -> JsonObject:
    """Append ``text`` to the messages, as an answer to continue."""
    fields = {"add_generation_prompt": False, "continue_final_message": True} if is_vllm else {}
    return {**body, "messages": [*body["messages"], {"role": "assistant", "content": text}], **fields}


def with_shorter_limit(body: JsonObject, used_tokens: int) -> JsonObject:
    """Subtract the tokens of the first part of an answer from the client's limit."""
    limits = {name: body[name] for name in LIMITS if isinstance(body.get(name), int)}
    return body | {name: max(MIN_TOKENS, limit - used_tokens) for name, limit in limits.items()}
