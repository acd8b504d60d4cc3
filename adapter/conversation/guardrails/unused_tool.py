"""Detect answers in words to a request that one of the tools clearly fulfills: "Set a timer." -> "Timer set!".

The answer's words do not matter: a claim, an announcement, instructions for the user and a refusal are the same
mistake. The request must begin with a tool's verb and name its object.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from adapter.conversation.guardrails.announced_action import wants_text
from adapter.conversation.guardrails.call_history import CallHistory, may_change
from adapter.core.text.word_stems import split_words, stem_word
from adapter.prompting.intent.text_values import find_paths
from adapter.prompting.intent.verbs import ACTIONS, VERB_STEMS, find_requested_action
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

MAX_LENGTH = 300
"""Maximum length, in characters, of an answer that is checked. A longer one may contain the requested text."""
_REASON = re.compile(r"\?|\b(?:because|since|there\s+(?:is|are)\s+no|already|instead|only)\b", re.IGNORECASE)
RUNS = re.compile(r"(?i)\b(?:run|execute)\s+(?!me\b|us\b|by\b|down\b|over\b|through\b)")
"""Matches a request to run something."""
_FIRST_WORD = re.compile(r"\W*(?:please\W+)?(\w+)", re.IGNORECASE)


def find_unused_tool(content: str, history: CallHistory, tools: ToolSet) -> Tool | None:
    """Return the tool that the request asks for, or None if there is none.

    Return None if a tool was called in the conversation, or if ``content`` is long, asks a question or gives a reason,
    unless the request is to run a file. For a question that ``content`` answers with an invented number, return the
    tool that reads the subject of the question.
    """
    if history.calls or content == "" or wants_text(history.request):
        return None
    is_short = len(content) <= MAX_LENGTH and not _REASON.search(content)
    verb = find_requested_action(history.request)[1]
    if (is_short or find_paths(history.request)) and RUNS.match(history.request, verb):
        runners = [tool for tool in tools.values() if tool.effect == "execute"]
        if len(runners) == 1:
            return runners[0]
    if not is_short:
        return None
    asked = {stem_word(word) for word in split_words(history.request)}
    prefixes = Counter(words[0] for name in tools if (words := split_words(name)))
    first = _FIRST_WORD.match(history.request)
    if history.is_question:
        has_invented = any(number not in history.text for number in re.findall(r"\d+", content))
        found = (name for name in tools if has_invented and not may_change(name, tools))
        return next((tools[name] for name in found if not asked.isdisjoint(_find_object(name, prefixes))), None)
    literal = {stem_word(first[1].lower())} if first else set()
    related = {stem_word(verb) for verb in ACTIONS.get(find_requested_action(history.request)[0], ())}
    for name, tool in tools.items():
        stems, objects = _split_name(name, prefixes)
        if not stems.isdisjoint(literal | related if objects else literal) and objects <= asked:
            return tool
    return None


def _find_object(name: str, prefixes: Mapping[str, int]) -> set[str]:
    """Return the stems of the words in a tool's name that are not verbs: "weather" for ``get_weather``. If all words
    are verbs, return the stem of the last one."""
    return _split_name(name, prefixes)[1] or {stem_word(word) for word in split_words(name)[-1:]}


def _split_name(name: str, prefixes: Mapping[str, int]) -> tuple[set[str], set[str]]:
    """Return the stems of all words in a tool's name, and the stems of the words that are not verbs.

    A prefix that several tools share, such as their server's name, does not count. ``prefixes`` maps a word to the
    number of tool names that begin with it.
    """
    words = [word for word in split_words(name) if stem_word(word) in VERB_STEMS or prefixes.get(word, 0) < 2]
    stems = {stem_word(word) for word in words}
    return stems, stems - VERB_STEMS
