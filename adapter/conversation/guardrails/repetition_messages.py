"""Build messages to a model that repeated a call. They name the remaining work, or another call that may help."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from adapter.conversation.guardrails import retry_messages
from adapter.conversation.guardrails.call_history import CallHistory, PastCall, may_change
from adapter.conversation.guardrails.copied_text import list_strings
from adapter.conversation.guardrails.loop_detection import count_repeats, find_repeated_failure, is_recent_repeat
from adapter.conversation.guardrails.refusals_and_claims import expects_information
from adapter.conversation.guardrails.requested_file_changes import (
    find_next_tools,
    find_unread_paths,
    find_unused_values,
    has_changed,
)
from adapter.conversation.guardrails.retry_messages import Encode
from adapter.conversation.guardrails.verdicts import Violation
from adapter.core.events import JsonObject
from adapter.tools.tool_set import ToolSet

_PROPOSED = re.compile(r"(?P<old>[^\s'\"]{1,200}) does not exist \(did you mean '(?P<new>[^'\n]{1,200})'\?\)")
"""Matches the error for a path that does not exist."""
MAX_QUESTION = 300
"""Maximum length of a question that is repeated in a message, in characters."""


def describe_repetition(
    history: CallHistory, call: PastCall, earlier: Sequence[PastCall], tools: ToolSet, encode: Encode, repetitions: int
) -> Violation | None:
    """Return the violation if ``call`` is a repetition, otherwise None.

    ``earlier`` has the preceding calls in the same answer. ``repetitions`` is the number of repetitions allowed.
    """
    times = count_repeats(history, call, earlier, tools)
    is_repeated = times <= repetitions and is_recent_repeat(history, call, earlier, tools)
    failed = None if is_repeated else find_repeated_failure(history, call, earlier, tools)
    if times <= repetitions and not is_repeated and not failed:
        return None
    next_tools = find_next_tools(history, tools)
    next_calls = [_describe_call(name, call, history) for name in next_tools]
    if times > repetitions:
        words = retry_messages.build_repeated_call_message(call.name, times, next_calls)
        return Violation("repeated_call", words, next_tools)
    if (is_repeated or failed) and has_changed(history) and next_tools:
        rest = ", ".join(find_unused_values(history)[: retry_messages.MAX_NAMES])
        tools_text = retry_messages.join_with_or(next_calls)
        words = retry_messages.render_message("unfinished_change", tool=call.name, rest=rest, tools=tools_text)
        return Violation("made_already" if is_repeated else "failed_already", words, next_tools)
    if is_repeated or (failed and has_changed(history)):
        is_asked = history.is_question or expects_information(history.request)
        question = history.request if is_asked and len(history.request) <= MAX_QUESTION else ""
        words = retry_messages.build_repeated_call_message(call.name, 1, next_calls, question)[:1]
        return Violation("made_already", words, next_tools)
    assert failed is not None
    return _describe_failure(history, call, failed.result, tools, encode, next_tools)


def _describe_call(name: str, call: PastCall, history: CallHistory) -> str:
    """Return a phrase for the next call, of the tool ``name``. If that tool was repeated, the phrase adds that the
    arguments must differ."""
    unread = find_unread_paths(history)
    other = f"for {retry_messages.shorten_to_line(unread[0], 60)}" if unread else "with other arguments"
    return f"{name} {other}" if name == call.name else name


def _describe_failure(
    history: CallHistory, call: PastCall, error: str, tools: ToolSet, encode: Encode, next_tools: tuple[str, ...]
) -> Violation:
    """Describe the repetition of a call that failed with ``error``. The first message explains the error. If the model
    repeats the call again, it is constrained to tools that change nothing.
    """
    if corrected := _build_corrected_arguments(call, error, tools):
        instead = f"Call it like this:\n{encode([(call.name, corrected)]).strip()}"
        return Violation("failed_already", (f"This call of {call.name} has failed. {instead}",), (call.name,))
    wrong = [name for name in _list_optional_arguments(call, tools) if str(call.arguments[name]) in error]
    example = _encode_call_without(history, call, wrong, encode) if wrong and not next_tools else ""
    others = () if example or has_changed(history) else next_tools
    named = [_describe_call(name, call, history) for name in others]
    lookups = tuple(name for name in tools if name != call.name and not may_change(name, tools))
    invented = "" if example or others else _find_invented(history, call, tools)
    words = retry_messages.build_failed_call_message(call.name, wrong, example, named, invented, lookups)
    return Violation("failed_already", words, others or lookups, is_free_first=not others)


def _build_corrected_arguments(call: PastCall, error: str, tools: ToolSet) -> JsonObject:
    """Return the call's arguments with the value that ``error`` proposes: "env does not exist (did you mean '.env'?)".
    Arguments that the tool does not have are left out. Return {} if the error proposes no value."""
    proposed, tool = _PROPOSED.search(error), tools.match(call.name)
    if proposed is None or tool is None:
        return {}
    arguments = {name: value for name, value in call.arguments.items() if name in tool.properties}
    wrong = [name for name, value in arguments.items() if value and value in (proposed["old"], f"./{proposed['old']}")]
    return {**arguments, wrong[0]: proposed["new"]} if wrong else {}


def _find_invented(history: CallHistory, call: PastCall, tools: ToolSet) -> str:
    """Return the first string argument that occurs neither in the user's messages nor in a tool result, or ""."""
    known, tool = history.given_text, tools.match(call.name)
    arguments = {name: value for name, value in call.arguments.items() if tool is None or name in tool.properties}
    return next((text for text in list_strings(arguments) if text.strip() not in known), "")


def _list_optional_arguments(call: PastCall, tools: ToolSet) -> list[str]:
    tool = tools.match(call.name)
    return [name for name in call.arguments if tool and name in tool.properties and name not in tool.required]


def _encode_call_without(history: CallHistory, call: PastCall, names: Collection[str], encode: Encode) -> str:
    """Encode the call without the arguments ``names``. Return "" if this call was already made."""
    arguments = {name: value for name, value in call.arguments.items() if name not in names}
    is_new = all(each.name != call.name or each.arguments != arguments for each in history.recent)
    return encode([(call.name, arguments)]).strip() if is_new else ""
