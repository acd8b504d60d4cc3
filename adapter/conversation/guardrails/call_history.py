"""The history that guardrails check an answer against: the user's request and the calls so far."""

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
    """A call and its result. ``ok``: whether it succeeded. ``changes``: whether it may have changed the results of
    other calls."""

    name: str
    arguments: JsonObject
    result: str = ""
    ok: bool = True
    changes: bool = False

    @property
    def key(self) -> str:
        """A key that is equal for equal calls."""
        return call_key(self.name, self.arguments)


@dataclass(frozen=True, slots=True)
class CallHistory:
    """``request``: the user's last message. ``calls``: all calls of the conversation. ``turn_start``: index of the
    first call after ``request``."""

    request: str = ""
    calls: tuple[PastCall, ...] = ()
    turn_start: int = 0

    @property
    def recent(self) -> tuple[PastCall, ...]:
        return self.calls[self.turn_start :]


def call_key(name: str, arguments: JsonObject) -> str:
    """Return a key that is equal for equal calls."""
    return json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)


def call_history_of(messages: Json) -> CallHistory:
    """Read the history from ``messages`` in the format of OpenAI's chat API. Invalid messages are skipped."""
    calls: list[tuple[str, str, JsonObject]] = []
    results: dict[str, str] = {}
    request, turn_start = "", 0
    for message in messages if isinstance(messages, list) else ():
        match message:
            case {"role": "assistant", "tool_calls": [*tool_calls]}:
                calls += [call for each in tool_calls if (call := _parse_call(each, len(calls)))]
            case {"role": "tool" | "function", **rest}:
                results[str(rest.get("tool_call_id") or "")] = _text(rest.get("content"))
            case {"role": "user", "content": content}:
                request, turn_start = _text(content), len(calls)
            case _:
                pass
    past_calls = []
    for call_id, name, arguments in calls:
        result = results.get(call_id)
        is_ok = result is not None and not looks_like_error(result)
        past_calls.append(PastCall(name, arguments, result or "", is_ok, changes=True))  # unknown for a client's tool
    return CallHistory(request, tuple(past_calls), turn_start)


def _parse_call(tool_call: Json, number: int) -> tuple[str, str, JsonObject] | None:
    function = tool_call.get("function") if isinstance(tool_call, dict) else None
    if not isinstance(function, dict) or not isinstance(name := function.get("name"), str):
        return None
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {"arguments": arguments}
    return str(tool_call.get("id") or f"#{number}"), name, arguments if isinstance(arguments, dict) else {}


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts: Sequence[Json] = content if isinstance(content, list) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def looks_like_error(result: str) -> bool:
    """Return whether a tool's result begins like an error message."""
    return _FAILED.match(result[:400]) is not None
