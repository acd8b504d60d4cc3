"""Count the tokens of a request's rendered prompt, if possible with the model server's tokenizer."""

from __future__ import annotations

import json

from adapter.backends.endpoint_discovery import Kind
from adapter.conversation.message_content import get_text
from adapter.conversation.token_estimate import estimate_tokens
from adapter.core.errors import TransportError
from adapter.core.events import Json, JsonObject
from adapter.protocols.llama_cpp_completion import build_template_request
from adapter.protocols.template_prompt import HttpPost, TemplatePromptError
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.usage import get_object
from adapter.server.proxied_responses import CHAT
from adapter.server.upstream_connection import UpstreamConnection

_SHOWN = ("model", "messages", "tools", "chat_template_kwargs", "prompt")


async def count_prompt_tokens(connection: UpstreamConnection, kind: Kind | None, request: TranslatedRequest) -> int:
    """Return the number of prompt tokens. It is exact for llama.cpp and vLLM, and an estimate for other servers."""
    try:
        last = await connection.prepare(CHAT, request.body)
    except TemplatePromptError:
        if request.as_text is not None:
            return await count_prompt_tokens(connection, kind, request.as_text())
        last = HttpPost(CHAT, request.body)
    counted = None
    try:
        if kind == "llama.cpp":
            counted = await _count_by_llama_cpp(connection, last.body)
        elif kind == "vllm":
            fields = {key: last.body[key] for key in _SHOWN if key in last.body}
            counted = get_object(await connection.post_json(HttpPost("/tokenize", fields))).get("count")
    except TransportError:
        pass  # the actual request will report the error
    return counted if isinstance(counted, int) else estimate_prompt_tokens(last.body)


def estimate_prompt_tokens(body: JsonObject) -> int:
    """Estimate the number of prompt tokens from the first `SAMPLE` characters of a request."""
    messages = body.get("messages") or ()
    texts = [get_text(message.get("content")) for message in messages]
    texts += [json.dumps(message["tool_calls"]) for message in messages if message.get("tool_calls")]
    texts += [json.dumps(body["tools"])] if body.get("tools") else []
    prompt = body.get("prompt")
    text = prompt if isinstance(prompt, str) else "\n".join(texts)
    tokens = estimate_tokens(text[:SAMPLE]) * max(1.0, len(text) / SAMPLE)
    return round(tokens) + (0 if isinstance(prompt, str) else _FRAME * len(messages))


SAMPLE = 20_000
"""Maximum number of characters tokenized for an estimate. This takes a few milliseconds."""

_FRAME = 5
"""Number of tokens added by a template to each message."""


async def _count_by_llama_cpp(connection: UpstreamConnection, body: JsonObject) -> Json:
    prompt = body.get("prompt")
    if prompt is None:
        rendered = await connection.post_json(HttpPost("/apply-template", build_template_request(body)))
        prompt = get_object(rendered).get("prompt")
    if not isinstance(prompt, str):
        return None
    answer = await connection.post_json(
        HttpPost("/tokenize", {"content": prompt, "add_special": True, "parse_special": True})
    )
    tokens = get_object(answer).get("tokens")
    return len(tokens) if isinstance(tokens, list) else None
