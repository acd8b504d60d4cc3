"""Detect calls that must not be run although the answer's first call is: repetitions, guesses, and unrequested actions.

After its first call, a small model tends to continue with needless calls. All checks prefer a miss to a false alarm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from adapter.conversation.guardrails.call_history import CallHistory, PastCall, may_change
from adapter.conversation.guardrails.copied_text import list_strings
from adapter.conversation.guardrails.loop_detection import accumulates, asks_for_repetition, is_polling_tool
from adapter.core.text.word_stems import split_words, stem_words
from adapter.prompting.intent.verbs import find_related_stems, sounds_destructive, sounds_like
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

_COUNTS = re.compile(
    r"(?i)\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|couple|pair|another|double|[2-9])\b(?!\s*[:.%/-]?\d)"
)
"""Matches requests that may ask for several equal calls."""

_NUMBER_WORDS = {"nine": 9, "ten": 10, "eleven": 11, "dozen": 12, "twelve": 12, "fifteen": 15, "twenty": 20}
_NUMBERS = re.compile(rf"(?i)(?<![\w:.,/-])(?:{'|'.join(_NUMBER_WORDS)}|[1-9]\d)(?![\w:.%/-])")
"""Matches a number of at least 9 in a request, which may be the number of calls."""

MIN_NAME, MAX_NAME = 3, 200
"""Minimum and maximum length, in characters, of a string that can name something, such as a file or a person."""
_TARGET_NAME = re.compile(r"(?i)path|file(?:_?name)?$|source|dest|target|^(?:from|to)$|(?:^|_)id$")
_SUFFIX = re.compile(r"(?<=\w)\.[A-Za-z]\w{0,4}\b")
"""Matches the suffix of a file name."""
_ENGLISH = frozenset({"the", "and", "of", "to", "it", "is", "with"})
"""Words that show that a request is in English, the language of most tool names."""
_WARNS = re.compile(r"(?i)\b(?:cannot be undone|can't be undone|irreversibl[ey]|permanently|destructive)\b")


def repeats_in_answer(call: PastCall, earlier: Sequence[PastCall], history: CallHistory, tools: ToolSet) -> bool:
    """Return whether ``call`` needlessly repeats one of ``earlier``, the preceding calls in the same answer.

    A repetition is not needless if a call in between may change its result, unless the call before it is repeated as
    well, or if the user may have requested it.
    """
    keys = [each.key for each in earlier]
    if call.key not in keys or is_polling_tool(call.name, tools) or accumulates(call.name):
        return False
    if asks_for_repetition(history.request) or _COUNTS.search(history.request):
        return False
    if (keys[-1], call.key) in pairwise(keys):
        return True  # a sequence of calls begins again
    last = len(keys) - 1 - keys[::-1].index(call.key)
    new = (each for each in earlier[last + 1 :] if each.key not in keys[:last])
    return not any(may_change(each.name, tools) and _may_affect(each, call, tools) for each in new)


def _may_affect(other: PastCall, call: PastCall, tools: ToolSet) -> bool:
    """Return whether ``other`` may affect the result of ``call``. Two calls to one tool do not affect each other if
    their first arguments, which name the targets, differ."""
    tool = tools.match(call.name)
    if other.name != call.name or tool is None:
        return True
    first = next(iter((*tool.required, *tool.properties)), "")
    return other.arguments.get(first) == call.arguments.get(first)


def is_expected(call: PastCall, earlier: Sequence[PastCall], history: CallHistory) -> bool:
    """Return whether the user may have requested ``call`` in addition to ``earlier``, the preceding calls.

    This is so if the request contains a number that is greater than the number of preceding calls, or if ``call`` has a
    new value that comes from the user or from a tool result.
    """
    numbers = (_NUMBER_WORDS.get(number.lower()) or int(number) for number in _NUMBERS.findall(history.request))
    if any(len(earlier) < number for number in numbers):
        return True
    used, given = {value for each in earlier for value in _list_names(each)}, history.given_text
    return any(
        value not in used and re.search(rf"(?<!\w){re.escape(value.rpartition('/')[2])}(?!\w)", given)
        for value in _list_names(call)
    )


def _list_names(call: PastCall) -> list[str]:
    """Return the texts and whole numbers in the arguments of ``call`` that can name something."""
    numbers = [str(value) for value in call.arguments.values() if type(value) is int]
    return numbers + [text for text in list_strings(call.arguments) if MIN_NAME <= len(text) <= MAX_NAME]


def changes_unread_target(call: PastCall, earlier: Sequence[PastCall], history: CallHistory, tools: ToolSet) -> bool:
    """Return whether ``call`` changes a target, such as a file, before the model knows its content, with values that
    the user did not give. Such a target is read by a call in ``earlier``, the preceding calls in the same answer, and
    was not read before."""
    targets = _list_targets(call)
    if not may_change(call.name, tools):
        return False
    read = {target for each in earlier if not may_change(each.name, tools) for target in _list_targets(each)} & targets
    if not read or any(not read.isdisjoint(_list_targets(each)) for each in history.calls if each.ok):
        return False
    tool = tools.match(call.name)
    given = {name: value for name, value in call.arguments.items() if tool is None or name in tool.properties}
    values = [text for text in list_strings(given) if len(text) >= MIN_NAME and _normalize_target(text) not in read]
    if values:
        known = history.given_text
        return not any(text.strip() in known for text in values)
    asked = {*stem_words(history.user_text), *find_related_stems(history.user_text)}
    is_english = not _ENGLISH.isdisjoint(split_words(history.user_text))
    return is_english and asked.isdisjoint(stem_words(call.name))


def undoes_call(call: PastCall, earlier: Sequence[PastCall], tools: ToolSet) -> bool:
    """Return whether ``call`` deletes the target of a call in ``earlier``, moves it back, or replaces the text that
    this call wrote.

    ``earlier`` has the preceding calls in the same answer. A target that another call used in between may be deleted,
    such as a script that was written and run.
    """
    given = {name: value for name, value in call.arguments.items() if not isinstance(value, bool) and value is not None}
    for index, other in enumerate(earlier):
        shared = _list_targets(call) & _list_targets(other)
        if not shared or not may_change(other.name, tools):
            continue
        if other.name == call.name and len(shared) > 1 and [*given.values()] == [*other.arguments.values()][::-1]:
            return True
        users = (each for each in earlier[index + 1 :] if shared.isdisjoint(_list_targets(each)))
        used = [text for each in users for text in list_strings(each.arguments)]
        if any(target in text for target in shared for text in used):
            continue
        if len(given) == 1 and sounds_like(call.name, "delete") and not sounds_like(other.name, "delete"):
            return True
        texts = {name: text for name, text in given.items() if isinstance(text, str) and len(text) >= MIN_NAME}
        written = other.arguments
        if any(
            _normalize_target(t) not in shared and t in written.values() and written.get(n) != t
            for n, t in texts.items()
        ):
            return True
    return False


def _list_targets(call: PastCall) -> set[str]:
    """Return the values that name the target of the call: its first argument, and all paths and ids."""
    first = next(iter(call.arguments), "")
    named = (value for name, value in call.arguments.items() if name == first or _TARGET_NAME.search(name))
    return {_normalize_target(value) for value in named if isinstance(value, str) and value.strip("./ ")}


def _normalize_target(text: str) -> str:
    return text.strip().removeprefix("./")


def is_unasked_action(call: PastCall, earlier: Sequence[PastCall], history: CallHistory, tools: ToolSet) -> bool:
    """Return whether ``call`` is destructive and has no word in common with the user's messages.

    This only works if the user writes in the language of the tool names. Therefore, the result is False if the names of
    the tools in ``earlier``, the preceding calls, have no word in common with the user's messages either.
    """
    tool = tools.match(call.name)
    if not earlier or tool is None or not _is_destructive(tool) or any(each.name == call.name for each in earlier):
        return False
    asked = {*stem_words(history.user_text), *find_related_stems(history.user_text)}
    before = {word for each in earlier for word in stem_words(each.name)}
    own = {*stem_words(tool.name)} - before | {
        word for text in list_strings(call.arguments) for word in stem_words(_SUFFIX.sub("", text))
    }
    squashed = "".join(split_words(history.user_text))  # "check out" asks for checkout
    return (
        not asked.isdisjoint(before)
        and asked.isdisjoint(own)
        and not any(word in squashed for word in own if len(word) > 4)
    )


def _is_destructive(tool: Tool) -> bool:
    return tool.effect == "delete" or sounds_destructive(tool.name) or _WARNS.search(tool.description) is not None
