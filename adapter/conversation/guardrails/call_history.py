"""Read the user's request and the calls so far from a conversation, for guardrails."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from adapter.conversation.message_content import get_text
from adapter.core.events import Json, JsonObject
from adapter.core.json.load import load_json
from adapter.prompting.intent.verbs import is_question, sounds_like_change
from adapter.tools.tool_set import ToolSet

_FAILED = re.compile(
    r"""\s*(?:[^\w{]{0,4}(?:tool_)?(?:error|exception|failed|failure|denied|fatal)\b|traceback\b
    |\{\s*"(?:error|exception)"\s*:(?!\s*(?:null|""|false))|\{[^{}]{0,200}"(?:ok|success)"\s*:\s*false
    |[\w./-]{1,40}:\s[^\n]{0,200}\b(?:not\sfound|no\ssuch\sfile|permission\sdenied|(?:is|not)\sa\sdirectory)\b)""",
    re.IGNORECASE | re.VERBOSE,
)

MAX_CACHED_NAME = 128
"""Maximum length of a tool's name whose words are cached, in characters."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call and its result. ``ok`` is True if the call succeeded, and ``changes`` if it may have changed something. An
    equal call may then return another result."""

    name: str
    arguments: JsonObject
    result: str = ""
    ok: bool = True
    changes: bool = False

    @property
    def values(self) -> set[str]:
        """The arguments as strings, without a leading ``./``, to compare them with paths."""
        return {str(value).removeprefix("./") for value in self.arguments.values()}

    @property
    def key(self) -> str:
        """A key that is equal for equal calls."""
        return build_call_key(self.name, self.arguments)

    def equals(self, other: PastCall) -> bool:
        """Return whether both calls have the same tool and arguments. The arguments are compared before the slower
        ``key``."""
        return self.name == other.name and self.arguments == other.arguments and self.key == other.key


@dataclass(frozen=True, slots=True)
class CallHistory:
    """The conversation before an answer that guardrails check."""

    request: str = ""
    """The user's last message."""
    calls: tuple[PastCall, ...] = ()
    """All calls of the conversation."""
    turn_start: int = 0
    """Index of the first call after ``request``."""
    messages: tuple[tuple[str, str], ...] = ()
    """Role and text of the messages before the answer, without tool results."""
    classified: str = ""
    """Kind of the request, as classified by the model: ``edit``, ``rename``, ``create``, ``delete``, ``move``, ``run``,
    ``answer`` or "" if unknown (see `adapter.agent.request_classification`)."""

    @property
    def is_question(self) -> bool:
        return is_question(self.request) or self.classified == "answer"

    @property
    def recent(self) -> tuple[PastCall, ...]:
        """The calls since the user's last message."""
        return self.calls[self.turn_start :]

    @property
    def last_result(self) -> str:
        """The last successful result since the user's message; "" if there is none."""
        return next((call.result.strip() for call in reversed(self.recent) if call.ok and call.result.strip()), "")

    @property
    def user_text(self) -> str:
        """The text of all user messages."""
        return "\n".join([*(text for role, text in self.messages if role == "user"), self.request])

    @property
    def given_text(self) -> str:
        """All text from the user and from tools: user messages and successful results."""
        return "\n".join([self.user_text, *(call.result for call in self.calls if call.ok)])

    @property
    def text(self) -> str:
        """All text that the model may copy from: messages, and the arguments and results of earlier calls."""
        calls = (f"{json.dumps(call.arguments, ensure_ascii=False)}\n{call.result}" for call in self.calls)
        return "\n".join([*(text for _, text in self.messages), self.request, *calls])


def build_call_key(name: str, arguments: JsonObject) -> str:
    """Return a key that is equal for equal calls."""
    return json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)


def may_change(name: str, tools: ToolSet) -> bool:
    """Return whether calls to the tool ``name`` may change something. If the tool has no annotations, the name
    decides."""
    tool = tools.match(name)
    if tool is not None and (tool.effect != "read" or tool.validate is not None):
        return tool.effect != "read"
    return (_is_change if len(name) <= MAX_CACHED_NAME else sounds_like_change)(name)


_is_change = lru_cache(1_024)(sounds_like_change)


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """The ``history`` of the first ``count`` messages of a conversation, which `read_history` can continue.

    ``calls`` has the id, name and arguments of each call, and ``results`` the result of each call by its id.
    """

    history: CallHistory
    count: int
    calls: tuple[tuple[str, str, JsonObject], ...]
    results: dict[str, str]


UNREAD = ReadMessages(CallHistory(), 0, (), {})
"""The state before any message was read."""


def read_call_history(messages: Json, tools: ToolSet | None = None) -> CallHistory:
    """Read the history from ``messages`` in the format of OpenAI's chat API. Invalid messages are skipped.

    The effects of ``tools`` show which calls may have changed something. If it is None, any call may have.
    """
    return read_history(messages, tools).history


def read_history(messages: Json, tools: ToolSet | None, before: ReadMessages = UNREAD) -> ReadMessages:
    """Continue the history ``before`` with the messages after its first ``count`` ones; see `read_call_history`."""
    earlier, calls, results = before.history, list(before.calls), dict[str, str]()
    request, turn_start, texts = earlier.request, earlier.turn_start, list(earlier.messages)
    all_messages = messages if isinstance(messages, list) else []
    for message in all_messages[before.count :]:
        if not isinstance(message, dict):
            continue
        role, content = message.get("role"), message.get("content")
        text = get_text(content)
        if role in ("tool", "function"):
            results[str(message.get("tool_call_id") or "")] = text
            continue
        texts.append((str(role), text))
        if role == "assistant" and isinstance(tool_calls := message.get("tool_calls"), list | tuple):
            number = len(calls)
            for each in tool_calls:
                if call := _parse_call(each, number):
                    calls.append(call)
        elif role == "user" and "content" in message:
            request, turn_start = text, len(calls)
    is_settled = not any(call_id in results for call_id, _, _ in before.calls)
    past_calls = list(earlier.calls) if is_settled else []
    results = before.results | results
    added = calls[len(past_calls) :]
    changing = {name: tools is None or may_change(name, tools) for name in {name for _, name, _ in added}}
    for call_id, name, arguments in added:
        result = results.get(call_id)
        is_ok = result is not None and not looks_like_error(result)
        past_calls.append(PastCall(name, arguments, result or "", is_ok, changing[name]))
    history = CallHistory(request, tuple(past_calls), turn_start, tuple(texts))
    return ReadMessages(history, len(all_messages), tuple(calls), results)


def _parse_call(tool_call: Json, number: int) -> tuple[str, str, JsonObject] | None:
    function = tool_call.get("function") if isinstance(tool_call, dict) else None
    if not isinstance(function, dict) or not isinstance(name := function.get("name"), str):
        return None
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = load_json(arguments)
        except ValueError:
            arguments = {"arguments": arguments}
    return str(tool_call.get("id") or f"#{number}"), name, arguments if isinstance(arguments, dict) else {}


def looks_like_error(result: str) -> bool:
    """Return whether a tool's result begins like an error message."""
    return _FAILED.match(result, 0, 400) is not None
