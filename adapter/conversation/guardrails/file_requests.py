"""Detect that a request about a file was answered without reading or changing the file.

Small models invent the content of a file; or they read it, and then repeat the call or show the file as their answer.
Only requests that name a file count, so that a false alarm is rare.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.conversation.guardrails.copied_text import list_strings
from adapter.conversation.guardrails.empty_claims import expects_information
from adapter.conversation.guardrails.surplus_calls import asks_for_removal, is_removal
from adapter.prompting.intent.bm25 import split_words
from adapter.prompting.intent.text_values import find_paths, find_quoted
from adapter.tools.argument_synonyms import NEW_TEXT, OLD_TEXT
from adapter.tools.tool import Tool, ToolSet

_REQUEST = re.compile(
    r"""(?=.*?[\w-]\.[a-z]{1,6}\b)(?:[^\n]{0,150}?[.!;]\s+)?(?:please[, ]+|in\s\S+\s)?
    (?P<verb>add|append|change|correct|create|delete|edit|fix|insert|make(?=\s+an?\s+(?:new\s+)?file\b)|move|remove
    |rename|replace|set|update)\s(?!.*\?\s*\Z)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""Matches requests to change a file, also after a first sentence. "Write a summary" needs only words."""
_RENAMES_WITHIN = re.compile(r"(?i)(?:please[, ]+)?rename\s(?:(?!\.\w)[^,;\n])*?\sin\s")
"""Matches requests to rename something in a file."""
_VALUE = re.compile(r"\{\{[^{}\n]{1,40}\}\}|(?<![\w.,])(?<!\bline\s)(?<!\blines\s)\d+(?:\.\d+)?(?![\w.,]*\w)")
_EXPLAINS = re.compile(
    r"""\?|n['’]t\b|\b(?:already|cannot|denied|does\s+not|error|fail\w*|missing|no|not|there\s+is\s+only|unable|which)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches answers that may explain why nothing was changed."""
_MAY_REMOVE = frozenset({"delete", "move", "remove", "rename", "replace"})
_ADDS = frozenset({"add", "append", "insert"})
_KEEPS_REST = frozenset({"add", "append", "correct", "fix", "insert", "set"})
_CORRECTS = frozenset({"correct", "edit", "fix", "rename", "replace", "set"})
"""Verbs of requests that need no other file than those that they name."""
_EDITS = "apply|change|edit|insert|modify|patch|replace|update"
_LINE_NUMBER = re.compile(r"^\s*\d+[:|\t] ?")
_LISTS = re.compile(r"(?i)^(?:find|glob|grep|list|ls|tree)(?:_|$)")
_EDITS_RE, _READS = re.compile(_EDITS, re.IGNORECASE), re.compile(r"(?i)^(?:cat|open|read|view)")
_TOOL_NAMES = {
    "create": "create_?file|write",
    "delete": "delete|remove|unlink",
    "make": "create_?file|write",
    "move": "move|rename",
    "remove": f"{_EDITS}|delete|remove|unlink",
    "rename": f"{_EDITS}|move|rename",
}
"""Patterns for names of tools, by the verb of the request; by default those that edit."""


def requests_file_change(request: str) -> bool:
    """Return whether ``request`` begins with a change and names a file."""
    return _REQUEST.match(request.lstrip()) is not None


def list_result_lines(text: str) -> list[str]:
    """Return the lines of a file from the result of reading it, without line numbers."""
    return [_LINE_NUMBER.sub("", line) for line in text.splitlines()]


def is_question(request: str) -> bool:
    return request.rstrip().endswith("?") or expects_information(request)


def find_change_tools(past: CallHistory, tools: ToolSet, *, is_partly_made: bool = False) -> tuple[str, ...]:
    """Return the tools that may make the requested change; empty if none was requested, or if one has been made, unless
    ``is_partly_made``."""
    request = _REQUEST.match(past.request.lstrip())
    if request is None or (not is_partly_made and has_changed(past)):
        return ()
    is_renamed_within = _RENAMES_WITHIN.match(past.request.lstrip()) is not None
    names = _EDITS if is_renamed_within else _TOOL_NAMES.get(request["verb"].lower(), _EDITS)
    return _find_tools(names, tools)


def has_changed(past: CallHistory) -> bool:
    """Return whether a call has changed something since the user's message."""
    return any(call.ok and call.changes for call in past.recent)


def find_unused_values(past: CallHistory) -> list[str]:
    """Return the values of a requested change that no successful change has used: paths, numbers, quoted texts and
    template variables."""
    if _REQUEST.match(past.request.lstrip()) is None:
        return []
    values = [*find_quoted(past.request), *_VALUE.findall(past.request), *find_paths(past.request)]
    used = "\n".join(text for call in past.recent if call.ok and call.changes for text in list_strings(call.arguments))
    return [value for value in dict.fromkeys(values) if value not in used]


@lru_cache(32)
def _find_tools(names: str, tools: ToolSet) -> tuple[str, ...]:
    """Return the tools that take a file, by a pattern for their names."""
    pattern = re.compile(names, re.IGNORECASE)
    return tuple(name for name, tool in tools.items() if pattern.search(name) and _takes_file(tool))


def find_next_tools(past: CallHistory, tools: ToolSet) -> tuple[str, ...]:
    """Return the tools for the next step of the requested change: those that read the file, unless it has been read or
    need not be, otherwise those that make the change."""
    change_tools = find_change_tools(past, tools)
    paths = set(find_paths(past.request))
    if any(call.ok and _names_any(call, paths) for call in past.recent):
        return change_tools
    if not any(_EDITS_RE.search(name) for name in change_tools) or len(find_quoted(past.request)) > 1:
        return change_tools
    return _find_readers(tools) or change_tools


def _find_readers(tools: ToolSet) -> tuple[str, ...]:
    return tuple(name for name, tool in tools.items() if _READS.search(name) and _takes_file(tool))[:1]


def find_listing_tools(tools: ToolSet) -> tuple[str, ...]:
    """Return the tools that list or search files."""
    return tuple(name for name, tool in tools.items() if _LISTS.search(name) and tool.effect == "read")


def _takes_file(tool: Tool) -> bool:
    words = {word for name in tool.properties for word in split_words(name)}
    return tool.effect != "execute" and not words.isdisjoint({"path", "file", "source"})


def omits_change(content: str, past: CallHistory, tools: ToolSet) -> tuple[str, ...]:
    """Return the tools for the next step of the requested change, if the answer omits it and does not explain why."""
    return () if _EXPLAINS.search(content) else find_next_tools(past, tools)


def is_blind_overwrite(call: PastCall, past: CallHistory) -> bool:
    """Return whether ``call`` writes a whole file before the one that the request names has been read: this file, or
    any other if the request only corrects it, and no call has been made."""
    request, paths = _REQUEST.match(past.request.lstrip()), set(find_paths(past.request))
    if request is None or request["verb"].lower() not in _CORRECTS or past.recent:
        paths.intersection_update(map(str, call.arguments.values()))
    has_read = any(each.ok and _names_any(each, paths) for each in past.calls)
    return bool(paths) and "content" in call.arguments and not has_read


def _names_any(call: PastCall, paths: Collection[str]) -> bool:
    """Return whether an argument contains one of the paths, for example in an absolute path or in a shell command."""
    return any(path in text for text in list_strings(call.arguments) for path in paths)


def omits_file_content(call: PastCall, past: CallHistory) -> bool:
    """Return whether ``call`` replaces a file that was read by a text without most of its lines, although the request
    only adds or corrects something."""
    request, content = _REQUEST.match(past.request.lstrip()), call.arguments.get("content")
    if request is None or not isinstance(content, str) or request["verb"].lower() not in _KEEPS_REST:
        return False
    paths = set(find_paths(past.request)).intersection(map(str, call.arguments.values()))
    texts = [each.result for each in past.recent if each.ok and not paths.isdisjoint(map(str, each.arguments.values()))]
    known = [line.strip() for line in list_result_lines(texts[-1]) if split_words(line)] if paths and texts else []
    return len(known) > 1 and sum(line in content for line in known) * 2 < len(known)


def replaces_instead_of_adding(call: PastCall, past: CallHistory) -> bool:
    """Return whether an edit puts what the request wants to be added in place of another line."""
    request = _REQUEST.match(past.request.lstrip())
    if request is None or request["verb"].lower() not in _ADDS:
        return False
    old, new = (
        next((text for name, text in call.arguments.items() if name in names and isinstance(text, str)), "")
        for names in (OLD_TEXT, NEW_TEXT)
    )
    added = set(split_words(new))
    return (
        bool(split_words(old) and added)
        and added.isdisjoint(split_words(old))
        and added <= set(split_words(past.request))
    )


def removes_needed_file(call: PastCall, past: CallHistory) -> bool:
    """Return whether ``call`` removes a file that the request asks about or wants to be changed."""
    paths = set(find_paths(past.request)).intersection(map(str, call.arguments.values()))
    if not paths or not is_removal(call.name) or asks_for_removal(past.user_text):
        return False
    request = _REQUEST.match(past.request.lstrip())
    return is_question(past.request) or (request is not None and request["verb"].lower() not in _MAY_REMOVE)


def invents_content(content: str, past: CallHistory, tools: ToolSet) -> tuple[str, ...]:
    """Return the tool that reads a file, if the request asks about a file, and the answer states a number that does not
    occur in the conversation, although no tool was called."""
    if past.recent or not is_question(past.request) or not find_paths(past.request):
        return ()
    numbers = re.findall(r"(?<![\w.])\d(?:[\d.]*\d)+(?![\w.]*\w)", content)
    return _find_readers(tools) if any(number not in past.text for number in numbers) else ()
