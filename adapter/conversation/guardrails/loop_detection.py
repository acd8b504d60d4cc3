"""Detect loops: the same call with the same result, or text that repeats itself."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import takewhile

from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.conversation.guardrails.requested_file_changes import find_text
from adapter.core.events import JsonObject
from adapter.prompting.intent.verbs import sounds_like
from adapter.tools.argument_synonyms import NEW_TEXT, OLD_TEXT
from adapter.tools.tool_set import ToolSet

REPETITIONS = 2
"""Maximum number of times that a call may repeat, if its result is the same and nothing changed in between."""

EQUAL_FAILURES = 5
"""Number of consecutive calls to a tool that count as a repetition if all have the same error."""

RECENT = 4
"""Number of recent calls that must not be repeated even once. The model may have forgotten the results of older
ones."""

BLOCK = 200
"""Length of a text, in characters, that is not repeated in an answer by chance."""

MAX_TOKEN = 16
"""Maximum length of an unfinished number or word in JSON, in characters."""

_HEAD = re.compile(r"""\{\s*"name"\s*:\s*"(?P<name>[^"]+)"\s*,\s*"\w+"\s*:\s*\{[^{[]*"(?P<key>\w+)"\s*:\s*[{[]""")
"""Matches a call in JSON up to its first argument that is a list or an object."""

_POLLS = re.compile(r"status|wait|poll|progress|sleep|ping|monitor|watch|next|advance|step|tick|retry|roll|random|flip")
"""Matches names of polling tools, for tools that do not declare ``polls``."""

_ACCUMULATES = re.compile(
    r"""move|press|click|scroll|swipe|rotate|turn_(?!on|off)|walk|forward|key|type|increment|decrement|undo|redo|draw|deal
    |spin|sample|generate|shuffle|pick|guess""",
    re.VERBOSE,
)
"""Matches names of tools that have more effect if they are called twice with the same arguments."""
_REPEATS = re.compile(
    r"""\b(?=[abdefhjkmnprstuvwz])(?:again|another|both|each|every|keep|per|poll|repeat\w*|retry|several|thrice|times|twice
    |until|wait|while|(?:two|three)\s+of|erneut|mehrmals|noch|warte|wieder\w*|zweimal|bis|deux|fois|jusqu\w*|dos|veces
    |hasta|volte|vezes|até|fino)\b
    |(?=[рпсд两兩二三直再回ま번까])(?:раз|пока|снова|дважды|[两兩二三]次|直到|再|回|まで|번|까지)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches requests that may ask for repeated calls. The lookaheads for first characters make this ten times as fast."""
_NOT_YET = re.compile(
    r"""busy|in[ _-]progress|\bmore\b|\bnext|not[ ](?:ready|yet)|offset|\bpage|pending|processing|queued|retry|running
    |starting|try[ ]again|\bwait|\d[ ]?%""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches results that may change later."""
_TEMPORARY = re.compile(
    r"""\b(?:429|5\d\d)\b|connection|\block(?:ed)?\b|network|overload|rate[ _-]?limit|temporar|time(?:d[ -]?)?[ -]?out
    |too[ ]many[ ]requests|unavailable|unreachable""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches temporary errors, which a repeated call may not get again."""


def repeats_text(text: str, times: int) -> bool:
    """Return whether the last `BLOCK` characters of ``text`` occur ``times`` times in it."""
    return len(text) >= BLOCK * times and text.count(text[-BLOCK:]) >= times


def repeats_in_call(raw: str, tools: ToolSet) -> bool:
    """Return whether an unfinished call repeats itself unintentionally: outside of strings, after an error in its JSON,
    or in an argument that the tool does not have."""
    body = raw[raw.find("{") :]
    head = _HEAD.match(body)
    tool = tools.match(head["name"]) if head else None
    if head and tool and head["key"] not in tool.properties:
        return repeats_text(re.sub(r"\d+", "0", body), 4)
    try:
        json.loads(body, strict=False)
    except json.JSONDecodeError as error:
        is_string, is_end = error.msg.startswith("Unterminated"), error.pos >= len(body) - MAX_TOKEN
        return not is_string and error.msg != "Extra data" and repeats_text(body, 12 if is_end else 4)
    except (ValueError, RecursionError):  # a number with thousands of digits, or deeply nested lists
        return repeats_text(body, 4)
    return False


def asks_for_repetition(request: str) -> bool:
    """Return whether ``request`` may ask for repeated calls."""
    return _REPEATS.search(request) is not None


def count_repeats(history: CallHistory, call: PastCall, earlier: Sequence[PastCall], tools: ToolSet) -> int:
    """Return how often ``call`` failed or returned the same result since the last call that changed something.

    If the tool's last calls all failed with the same error, return the number of these failures, even if the arguments
    differ. ``earlier`` has the preceding calls in the same answer, which have no results yet.
    """
    if is_polling_tool(call.name, tools):
        return 0
    if not earlier and (failures := _count_equal_failures(history, call.name)) >= EQUAL_FAILURES:
        return failures
    times, last = 0, ""
    are_equal = [other.equals(call) for other in history.recent]
    changes = _find_changes(history) if any(are_equal) else ()
    for other, is_equal, has_changed in zip(history.recent, are_equal, changes, strict=False):
        if is_equal:
            times = times + 1 if other.result == last or not other.ok else 1
            last = other.result
        elif has_changed:
            times = 0
    for other in earlier:
        times = times + 1 if other.equals(call) else 0 if other.changes else times
    return times


def _count_equal_failures(history: CallHistory, name: str) -> int:
    """Return how many of the last calls to the tool ``name`` failed with the same error. Their arguments may differ,
    because the model may have varied one that the tool ignores."""
    failed = list(takewhile(lambda call: call.name == name and not call.ok and call.result, reversed(history.recent)))
    return sum(call.result == failed[0].result for call in failed)


def is_recent_repeat(history: CallHistory, call: PastCall, earlier: Sequence[PastCall], tools: ToolSet) -> bool:
    """Return whether ``call`` equals a recent call that succeeded, and would return the same result.

    This is not the case if the user may have requested the repetition, if an earlier repetition returned another
    result, or if a call in between may have changed the result.
    """
    equal = [] if earlier else [other for other in history.recent if _are_same(other, call, tools)]
    if not equal or not equal[-1].ok or _NOT_YET.search(equal[-1].result[:400]):
        return False
    if asks_for_repetition(history.request) or is_polling_tool(call.name, tools) or accumulates(call.name):
        return False
    if any(other.result != equal[-1].result for other in equal):
        return False
    later = list(takewhile(lambda other: not _are_same(other, call, tools), reversed(history.recent)))
    return len(later) < RECENT and not any(_find_changes(history)[len(history.recent) - len(later) :])


def find_repeated_failure(
    history: CallHistory, call: PastCall, earlier: Sequence[PastCall], tools: ToolSet
) -> PastCall | None:
    """Return the last call that equals ``call``, if it failed and nothing has changed since; otherwise None.

    Errors that may be temporary do not count as failures.
    """
    if earlier or is_polling_tool(call.name, tools):
        return None
    for other in reversed(history.recent):
        if _are_same(other, call, tools):
            text = other.result[:400]
            is_final = text and not other.ok and not _NOT_YET.search(text) and not _TEMPORARY.search(text)
            return other if is_final else None
        if other.ok and other.changes:
            return None
    return None


def _find_changes(history: CallHistory) -> list[bool]:
    """Return, for each call since the user's last message, whether it may have changed something.

    Even a failed command may have changed something. A call that repeats an earlier call and its result does not count
    as a change, because two alternating calls are a loop.
    """
    seen, found = set[tuple[str, str]](), list[bool]()
    for call in history.recent:
        may_change = call.changes and (call.ok or sounds_like(call.name, "run"))
        outcome = (call.key, call.result) if may_change else ("", "")
        found.append(may_change and outcome not in seen)
        seen.add(outcome)
    return found


def _are_same(one: PastCall, two: PastCall, tools: ToolSet) -> bool:
    """Return whether two calls have the same effect. They may differ in arguments that the tool ignores, make the same
    edit with different tools, or add the same text twice (with the first edit's new text as the second's old text)."""
    if _adds_again(one, two):
        return True
    if one.name == two.name:
        return one.equals(two) or select_known_arguments(one, tools) == select_known_arguments(two, tools)
    if not (sounds_like(one.name, "edit") and sounds_like(two.name, "edit")):
        return False
    return len(texts := _list_texts(one, tools)) > 2 and texts == _list_texts(two, tools)


def _adds_again(one: PastCall, two: PastCall) -> bool:
    if two.arguments.keys().isdisjoint(OLD_TEXT):  # most calls
        return False
    (old, new), (later, newest) = ((find_text(call, OLD_TEXT), find_text(call, NEW_TEXT)) for call in (one, two))
    if not old or not later or not (new.startswith(old) and newest.startswith(later) and new in later):
        return False
    return new[len(old) :].strip() == newest[len(later) :].strip() != ""


def select_known_arguments(call: PastCall, tools: ToolSet) -> JsonObject:
    """Return the arguments of ``call``, without unknown arguments, which the tools of dialects ignore."""
    tool = tools.match(call.name)
    if tool is None or tool.validate is None or not tool.properties:
        return call.arguments
    return {name: value for name, value in call.arguments.items() if name in tool.properties}


def _list_texts(call: PastCall, tools: ToolSet) -> set[str]:
    return {value for value in select_known_arguments(call, tools).values() if isinstance(value, str)}


def accumulates(name: str) -> bool:
    """Return whether two equal calls to a tool have more effect than one, judging by its name, such as ``scroll``."""
    return _ACCUMULATES.search(name.lower()) is not None


def is_polling_tool(name: str, tools: ToolSet) -> bool:
    """Return whether a tool is meant to be called repeatedly until its result changes, such as ``get_status``."""
    tool = tools.match(name)
    if tool is None:
        return False
    return tool.polls or (tool.validate is None and _POLLS.search(name.lower()) is not None)
