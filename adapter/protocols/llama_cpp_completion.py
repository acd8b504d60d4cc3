"""Convert chat requests for llama.cpp's ``/completion`` endpoint, because its chat endpoint lacks lazy grammars.

The chat endpoint ignores ``grammar_lazy`` and applies the grammar from the first token. Therefore, the messages are
sent to ``/apply-template``, and the resulting prompt to ``/completion``. Recorded from llama.cpp b11549.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapter.core.events import Json, JsonObject

WORD, PATTERN = 1, 2
"""Values of llama.cpp's COMMON_GRAMMAR_TRIGGER_TYPE. With WORD, the grammar applies from the start of a given string;
with PATTERN, from the start of the first group of a regular expression."""

CHAT_ONLY = frozenset(
    {
        "messages", "tools", "tool_choice", "parallel_tool_calls", "max_completion_tokens", "chat_template_kwargs",
        "reasoning_format", "reasoning_effort",
    }
)  # fmt: skip
"""Request fields that completions do not have."""
_DROPPED = CHAT_ONLY | {
    "model",
    "max_tokens",
    "stream_options",
    "n",
    "user",
    "response_format",
    "reasoning_budget_tokens",
}
_FOR_TEMPLATE = (
    "messages", "tools", "chat_template_kwargs", "reasoning_format", "reasoning_effort", "add_generation_prompt",
)  # fmt: skip


def has_lazy_grammar(body: JsonObject) -> bool:
    """Return whether a chat request contains a lazy grammar."""
    return body.get("grammar_lazy") is True


def build_lazy_grammar_fields(grammar: str, word: str, tokens: Iterable[str], bare: Iterable[str] = ()) -> JsonObject:
    """Return the request fields for a lazy grammar, which constrains the text once the model writes ``word``.

    Every string that the grammar accepts begins with ``word``. ``tokens`` are further texts that may be single tokens.
    They are listed with ``word``, because llama.cpp rejects a trigger word that is an unlisted token, and removes
    unlisted special tokens from the text. Calls of the ``bare`` tools may also be JSON without markers, on a separate
    line or in a code fence.
    """
    triggers: list[Json] = [{"type": WORD, "value": word}]
    if names := "|".join(re.escape(name) for name in bare):
        triggers.append({"type": PATTERN, "value": rf'(?:^|\n)((?:```(?:json)?\s*)?\{{\s*"name"\s*:\s*"(?:{names})")'})
    preserved = list(dict.fromkeys([word, *tokens]))
    return {"grammar": grammar, "grammar_lazy": True, "grammar_triggers": triggers, "preserved_tokens": preserved}


def build_template_request(body: JsonObject) -> JsonObject:
    """Convert a chat request to a request to ``/apply-template``."""
    return {key: body[key] for key in _FOR_TEMPLATE if key in body}


def build_completion_request(body: JsonObject, prompt: str) -> JsonObject:
    """Convert a chat request with a rendered prompt to a ``/completion`` request."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    request: JsonObject = {key: value for key, value in body.items() if key not in _DROPPED}
    match body.get("response_format"):
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            request["json_schema"] = schema
        case {"type": "json_object", **fields}:
            request["json_schema"] = fields.get("schema") or {}
    return {**request, "prompt": prompt, **({"n_predict": limit} if limit else {})}


def remove_grammar(body: JsonObject) -> JsonObject:
    """Return a copy of the chat request without its grammar."""
    return {key: value for key, value in body.items() if not key.startswith("grammar")}


def convert_to_chat(answer: Json) -> Json:
    """Convert an answer of ``/completion``, or an event of its stream, to OpenAI's chat format. Return other values
    unchanged."""
    if not isinstance(answer, dict) or "choices" in answer or not isinstance(answer.get("content"), str):
        return answer
    text = {"role": "assistant", "content": answer["content"]}
    reason = None
    if answer.get("stop"):
        reason = "length" if answer.get("stop_type") == "limit" or answer.get("truncated") else "stop"
    stopped = {"stop_reason": answer["stopping_word"]} if answer.get("stopping_word") else {}
    choice = {"index": 0, "delta": text, "message": text, "finish_reason": reason, **stopped}
    chunk: JsonObject = {"model": answer.get("model"), "choices": [choice]}
    chunk |= {"prompt_progress": answer["prompt_progress"]} if "prompt_progress" in answer else {}
    if reason:
        prompt, completion = answer.get("tokens_evaluated") or 0, answer.get("tokens_predicted") or 0
        chunk["usage"] = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        chunk |= {"timings": answer["timings"]} if "timings" in answer else {}
    return chunk
