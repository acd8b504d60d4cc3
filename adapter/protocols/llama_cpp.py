"""llama.cpp's own completions in place of its chat: only there a grammar may wait for a call to begin.

On the chat endpoint ``grammar_lazy`` is ignored and the grammar strict from the first token. So the messages go through
``/apply-template`` and the prompt to ``/completion``. Recorded from llama.cpp b11549.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapter.core.events import Json, JsonObject

WORD, PATTERN = 1, 2
"""llama.cpp's COMMON_GRAMMAR_TRIGGER_TYPE: the grammar holds from where this text begins, or what the first group of
this regular expression found."""

_CHAT_ONLY = frozenset(
    {
        "messages", "model", "max_tokens", "max_completion_tokens", "stream_options", "chat_template_kwargs", "n",
        "user", "tools", "tool_choice", "parallel_tool_calls", "reasoning_format", "reasoning_effort",
        "response_format",
    }
)  # fmt: skip
_FOR_TEMPLATE = (
    "messages", "tools", "chat_template_kwargs", "reasoning_format", "reasoning_effort", "add_generation_prompt",
)  # fmt: skip


def has_lazy_grammar(body: JsonObject) -> bool:
    """Whether a chat request has a grammar that waits."""
    return body.get("grammar_lazy") is True


def lazy_grammar_fields(grammar: str, word: str, tokens: Iterable[str], bare: Iterable[str] = ()) -> JsonObject:
    """What makes a grammar wait for ``word``, with which its texts begin.

    ``tokens``: texts that may be one token of the model's vocabulary: llama.cpp refuses a word that is one unless it is
    named here, and leaves such tokens out of the text. ``bare``: tools for whose calls in JSON alone, on a line of its
    own or in a fence, it waits as well.
    """
    triggers: list[Json] = [{"type": WORD, "value": word}]
    if names := "|".join(re.escape(name) for name in bare):
        triggers.append({"type": PATTERN, "value": rf'(?:^|\n)((?:```(?:json)?\s*)?\{{\s*"name"\s*:\s*"(?:{names})")'})
    preserved = list(dict.fromkeys([word, *tokens]))
    return {"grammar": grammar, "grammar_lazy": True, "grammar_triggers": triggers, "preserved_tokens": preserved}


def template_request(body: JsonObject) -> JsonObject:
    """The request to ``/apply-template`` for a chat request."""
    return {key: body[key] for key in _FOR_TEMPLATE if key in body}


def completion_request(body: JsonObject, prompt: str) -> JsonObject:
    """The request to ``/completion`` for a chat request and its prompt."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    request: JsonObject = {key: value for key, value in body.items() if key not in _CHAT_ONLY}
    match body.get("response_format"):
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            request["json_schema"] = schema
        case {"type": "json_object"}:
            request["json_schema"] = {}
    return {**request, "prompt": prompt, **({"n_predict": limit} if limit else {})}


def without_grammar(body: JsonObject) -> JsonObject:
    """The chat request, free."""
    return {key: value for key, value in body.items() if not key.startswith("grammar")}


def as_chat(answer: Json) -> Json:
    """An event or the whole of ``/completion`` as that of the chat; anything else as it is."""
    if not isinstance(answer, dict) or "choices" in answer or not isinstance(answer.get("content"), str):
        return answer
    text = {"role": "assistant", "content": answer["content"]}
    reason = None
    if answer.get("stop"):
        reason = "length" if answer.get("stop_type") == "limit" or answer.get("truncated") else "stop"
    made: JsonObject = {
        "model": answer.get("model"),
        "choices": [{"index": 0, "delta": text, "message": text, "finish_reason": reason}],
    }
    made |= {"prompt_progress": answer["prompt_progress"]} if "prompt_progress" in answer else {}
    if reason:
        read, written = answer.get("tokens_evaluated") or 0, answer.get("tokens_predicted") or 0
        made["usage"] = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        made |= {"timings": answer["timings"]} if "timings" in answer else {}
    return made
