"""Detect file contents that have no word in common with the conversation, in any language."""

from __future__ import annotations

import re
from functools import lru_cache

from adapter.conversation.guardrails.announced_action import wants_text
from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.conversation.guardrails.copied_text import list_strings
from adapter.conversation.guardrails.requested_file_changes import find_text, has_any
from adapter.conversation.guardrails.requested_files import find_file_action
from adapter.core.text.word_stems import STOP_WORDS, split_words, stem_word, stem_words
from adapter.prompting.intent.text_values import find_paths
from adapter.tools.argument_synonyms import CONTENT, OLD_TEXT
from adapter.tools.tool_set import ToolSet

SHORT_TEXT = 200
"""Maximum length of a checked text, in characters. A longer text may be a translation or a program."""

PROSE_FILES = (".txt", ".md", ".rst")
"""Endings of the files whose text is checked."""
_PROSE = re.compile(r"(?=.*\w,? \w)[\w\s,.;:!?'\"#-]*", re.DOTALL)


def find_terms(text: str) -> set[str]:
    """Return the stems of the words in ``text`` that are not stop words, and its numbers."""
    return {*stem_words(text), *re.findall(r"\d+", text)}


def is_invented(path: str, text: str, request: str, known: str, tools: ToolSet) -> bool:
    """Return whether a short ``text`` for the file at ``path`` is prose that has no word in common with ``known``.

    Words from the tools' definitions do not count: "This is a file." could be about anything. But if the request has
    all words of the text, the text is not invented. Only prose files are checked, not ``.gitignore``, for example, and
    only if the user did not ask the model to compose a text.
    """
    terms = find_terms(text)
    if not path.lower().endswith(PROSE_FILES) or not _PROSE.fullmatch(text) or wants_text(request):
        return False
    if not terms or len(text) > SHORT_TEXT or text.strip().lower() in known.lower():
        return False
    return not terms <= find_terms(request) and (terms - list_tool_words(tools)).isdisjoint(find_terms(known))


@lru_cache(32)
def list_tool_words(tools: ToolSet) -> frozenset[str]:
    """Return the stems of the words in the definitions of ``tools``."""
    texts = (text for name, tool in tools.items() for text in (name, tool.description, *tool.properties))
    words = (word for text in texts for word in split_words(text))
    return frozenset(stem_word(word) for word in words if word not in STOP_WORDS)


def invents_text(call: PastCall, history: CallHistory, tools: ToolSet) -> bool:
    """Return whether ``call`` writes an invented text to a file that the request names. If the request only moves a
    file, any new text for a file of this name is invented."""
    tool, written = tools.match(call.name), find_text(call, CONTENT)
    if tool is None or not written or has_any(tool, OLD_TEXT):
        return False
    paths, values = find_paths(history.request), list_strings(call.arguments)
    if find_file_action(history.request) == "move" and {*map(_get_name, values)} & {*map(_get_name, paths)}:
        return written.strip() not in history.text
    named = [path for path in paths if path in values]
    return any(is_invented(path, written, history.request, history.text, tools) for path in named)


def _get_name(path: str) -> str:
    return path.rpartition("/")[2]
