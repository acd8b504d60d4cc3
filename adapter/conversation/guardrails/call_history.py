"""What happened in a conversation before the answer that is judged: what was asked for, which calls were made."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from adapter.core.events import Json, JsonObject

_FAILED = re.compile(
    r"""\s*(?:[^\w{]{0,4}(?:tool_)?(?:error|exception|failed|failure|denied|fatal)\b|traceback\b
    |\{\s*"(?:error|exception)"\s*:(?!\s*(?:null|""|false))|\{[^{}]{0,200}"(?:ok|success)"\s*:\s*false)""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call that was made. ``result``: what came back; ``ok``: it did what was asked for. ``changes``: it may have
    changed what others give."""

    name: str
    arguments: JsonObject
    result: str = ""
    ok: bool = True
    changes: bool = False

    @property
    def key(self) -> str:
        """Equal for calls that ask for the same thing."""
        return call_key(self.name, self.arguments)


@dataclass(frozen=True, slots=True)
class CallHistory:
    """``request``: what the user said last. ``made``: all calls, from ``since`` on those after these words."""

    request: str = ""
    calls: tuple[PastCall, ...] = ()
    turn_start: int = 0

    @property
    def recent(self) -> tuple[PastCall, ...]:
        return self.calls[self.turn_start :]


def call_key(name: str, arguments: JsonObject) -> str:
    """Equal for calls that ask for the same thing."""
    return json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)


def call_history_of(messages: Json) -> CallHistory:
    """The past that ``messages`` of OpenAI's chat interface tell. What is none is passed over."""
    calls: list[tuple[str, str, JsonObject]] = []
    results: dict[str, str] = {}
    request, since = "", 0
    for message in messages if isinstance(messages, list) else ():
        match message:
            case {"role": "assistant", "tool_calls": [*given]}:
                calls += [call for each in given if (call := _call(each, len(calls)))]
            case {"role": "tool" | "function", **rest}:
                results[str(rest.get("tool_call_id") or "")] = _text(rest.get("content"))
            case {"role": "user", "content": content}:
                request, since = _text(content), len(calls)
            case _:
                pass
    made = tuple(_made(name, arguments, results.get(call_id)) for call_id, name, arguments in calls)
    return CallHistory(request, made, since)


def _made(name: str, arguments: JsonObject, result: str | None) -> PastCall:
    """By a client, of whose tools nobody says what they change."""
    return PastCall(name, arguments, result or "", ok=result is not None and not looks_like_error(result), changes=True)


def _call(given: Json, number: int) -> tuple[str, str, JsonObject] | None:
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict) or not isinstance(name := function.get("name"), str):
        return None
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {"arguments": arguments}
    return str(given.get("id") or f"#{number}"), name, arguments if isinstance(arguments, dict) else {}


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts: Sequence[Json] = content if isinstance(content, list) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def looks_like_error(result: str) -> bool:
    """Whether a tool's result, by its first words, says that the call failed."""
    return _FAILED.match(result[:400]) is not None
