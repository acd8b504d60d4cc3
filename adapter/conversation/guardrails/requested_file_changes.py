"""Determine which change to a file was requested, and what remains to be done.

Small models talk about the change, read the file again and again, or make only a part of the change. To avoid false
alarms, only requests that begin with a verb for a change and name a file are considered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from adapter.conversation.guardrails.call_history import CallHistory, PastCall, may_change
from adapter.conversation.guardrails.copied_text import list_strings
from adapter.conversation.guardrails.refusals_and_claims import expects_information
from adapter.conversation.guardrails.removing_commands import list_removed_paths
from adapter.conversation.guardrails.requested_files import (
    find_file_action,
    find_kept_values,
    is_inside,
    list_target_paths,
)
from adapter.core.events import JsonObject
from adapter.core.text.word_stems import split_words
from adapter.prompting.intent.text_values import find_paths, find_quoted
from adapter.prompting.intent.verbs import READS, asks_for, find_requested_action, sounds_like
from adapter.tools.argument_synonyms import COMMAND, CONTENT, DESTINATION, NEW_TEXT, OLD_TEXT, PATH, SOURCE
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

_VALUE = re.compile(r"\{\{[^{}\n]{1,40}\}\}|(?<![\w.,])(?<!\bline\s)(?<!\blines\s)\d+(?:\.\d+)*(?![\w.,]*\w)")
_EXPLAINS = re.compile(
    r"""[?？]|n['’]t\b|\b(?:already|cannot|denied|error|fail\w*|missing|neither|no|none|not|nothing|only|unable|which
    |bereits|kein\w*|nicht|nichts|schon|aucun\w*|déjà|pas|rien|ningun\w*|ningún|nada|già|nessun\w*|niente|non|já|não
    |nenhum\w*|geen|niet|brak|nie|нет|не|уже)\b|ありません|ない|ません|没|不|已|없""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches answers that may explain why nothing was changed."""
_HOW_TO = re.compile(
    r"(?i)\b(?:how\s+(?:can|could|do|should|to|would)|should|what\s+(?:does|is)\s+(?:an?|(?:\w+\s+)?\d\S*))\b"
)
"""Matches questions that need no content of the file that they name, such as "What is port 8080 in a.ini for?"."""
MAX_UNREAD = 200
"""Maximum length of an answer to a question about a file that was not read, in characters."""
_NAME = re.compile(r"\{\{[^{}\n]{1,40}\}\}|\w{3,}")
_LINE_NUMBER = re.compile(r"^(?:[\w./-]+\.\w+:)?\s*\d+[:|\t] ?")
_NUMBERED = re.compile(r"(?m)^\s*\d+: (.*)$")
_YOUR = re.compile(r"(?i)[\[<{]your [\w ]{1,40}[\]>}]")
"""Matches placeholders in an answer: "The author is [Your Name]."."""
_FAILED = re.compile("Command (?:failed|timed out)")
_MISSING = re.compile(r"(?i)does not exist|no such file|file not found|ENOENT")
_EMPTIES = re.compile(r"(?i)\b(?:blank|empt|leer|vac[ií]|vid[ae]|vuot|leeg|vazi)")
"""Matches requests that may ask to empty a file."""
_SAVES_TO = re.compile(
    r"""(?i)\b(?:copy|export|save|store|write|speicher\w*|schreib\w*|enregistre\w*|guarda\w*|salva)\b[^.\n]{0,60}?
    \s(?:as|in|into|to|under|als|nach|sous|dans|como|en|come)\s+[`'"]?([\w./-]+\.\w+)""",
    re.VERBOSE,
)
"""Matches the path to which a text is saved."""
_GIVES_TEXT = re.compile(r"(?i)\w\.\w+[`'\"]?\s+(?:with|to|mit|avec|con|com|met)\s")
"""Matches requests that describe the whole new text of a file: "fill a.txt with dummy text"."""
_QUOTATION = re.compile(r"(?i)\b(?:contains?|reads|says?|contents?\s+(?:is|are))\b\W{0,3}[\"“]([^\"”\n]{3,})[\"”]")
"""Matches a quotation from a file in an answer: ``It says "hello".``."""
_PATCHES = ("diff", "edits", "patch", "patches")
CHANGES = ("add", "edit", "update")
"""Actions of requests for a change of an existing file."""
_CLASSIFIED = {"edit": "edit", "rename": "edit", "create": "create"}
"""Actions by the model's own classification of a request. Its guess is not trusted for deleting or moving a file."""


def find_started_action(history: CallHistory) -> str:
    """Return the requested action on a file, given by the words of the request, its classification or the calls so far.

    The calls decide if the request does not start with a known verb. The action is then ``edit`` if the model tried to
    edit a file that the request names, or read one that lacks a number or quoted text from the request. Return "" if no
    action is found.
    """
    action, paths = (
        find_file_action(history.request) or _CLASSIFIED.get(history.classified, ""),
        find_paths(history.request),
    )
    if action or not paths or history.classified or history.is_question or find_requested_action(history.request)[0]:
        return action
    edits = (call for call in history.recent if find_text(call, OLD_TEXT) and call.changes)
    if any(find_text(call, PATH).removeprefix("./") in paths for call in edits):
        return "edit"
    values = find_values(history.request) if history.recent and not expects_information(history.request) else []
    text = "\n".join(line for path in paths for line in list_known_lines(path, history)) if values else ""
    return "edit" if text and any(value not in text for value in values) else ""


def list_result_lines(text: str) -> list[str]:
    """Return the lines of a file from the result of reading or searching it, without line numbers and the path."""
    lines = text.splitlines()
    numbered = [line for line in lines if _LINE_NUMBER.match(line)]
    shown = numbered if 2 * len(numbered) > len(lines) else lines  # the others describe the file
    return [_LINE_NUMBER.sub("", line) for line in shown]


def has_changed(history: CallHistory) -> bool:
    """Return whether a call since the user's message has changed something. A command that failed does not count."""
    return any(call.ok and call.changes and not _FAILED.match(call.result) for call in history.recent)


def find_values(request: str) -> list[str]:
    """Return the quoted strings, numbers and template variables in a request."""
    return [*find_quoted(request), *_VALUE.findall(request)]


def find_unused_values(history: CallHistory) -> list[str]:
    """Return values that show which parts of the requested change are unfinished.

    These are the values in the request (paths, numbers, quoted strings and template variables) that no successful
    change has used, and names that had to be replaced but still occur in a file that was read.
    """
    if not find_started_action(history):
        return []
    values = [*find_values(history.request), *list_target_paths(history.request)]
    used = "\n".join(
        text for call in history.recent if call.ok and call.changes for text in list_strings(call.arguments)
    )
    known = "\n".join(line for path in find_paths(history.request) for line in list_known_lines(path, history))
    remaining = sorted(find_replaced_names(history) & find_names(known))
    return [*(value for value in dict.fromkeys(values) if value not in used), *remaining]


def list_paths_with_replaced_names(history: CallHistory) -> list[str]:
    """Return the paths of known files that still contain a replaced name."""
    replaced = find_replaced_names(history)
    known = {path: "\n".join(list_known_lines(path, history)) for path in find_paths(history.request)}
    return [path for path, text in known.items() if not replaced.isdisjoint(find_names(text))]


def find_names(text: str) -> set[str]:
    """Return the words and template variables in ``text``."""
    return set(_NAME.findall(text))


def find_replaced_names(history: CallHistory) -> set[str]:
    """Return the names in the request that a successful change has replaced by other names in the request.

    Only requests to rename something count. Other requests may replace a word in a single place, such as the port in
    one of two sections.
    """
    asked, replaced = find_names(history.request), set[str]()
    if not is_renaming(history):
        return replaced
    for call in history.recent:
        old, new = (find_names(find_text(call, names)) for names in (OLD_TEXT, NEW_TEXT))
        if call.ok and call.changes and (new - old) & asked:
            replaced |= (old - new) & asked
    return replaced


def is_renaming(history: CallHistory) -> bool:
    """Return whether the request may ask to rename something in files."""
    return find_requested_action(history.request)[0] == "move" or history.classified == "rename"


def find_text(call: PastCall, names: Collection[str]) -> str:
    """Return the first string among the arguments ``names``, or "" if there is none."""
    return next((call.arguments[name] for name in names if isinstance(call.arguments.get(name), str)), "")


def find_change_tools(history: CallHistory, tools: ToolSet) -> tuple[str, ...]:
    """Return the tools that can make the unfinished part of the requested change, or () if it is complete."""
    action = find_needed_action(history)
    if not action or (has_changed(history) and not find_unused_values(history)):
        return ()
    return _find_tools(action, tools)


def find_needed_action(history: CallHistory) -> str:
    """Return the requested action like `find_started_action`. If the file is missing, return ``create`` for a request
    that adds something to it, or that only states a text for it."""
    action, path = find_started_action(history), next(iter(find_paths(history.request)), "")
    states_text = bool(find_quoted(history.request)) or ": " in history.request
    is_other = history.is_question or find_requested_action(history.request)[0] != ""
    if action == "add" or (action == "" and path and states_text and not is_other):
        failed = (call.result for call in history.recent if not call.ok)
        return "create" if any(path in error and _MISSING.search(error) for error in failed) else action
    return action


@lru_cache(32)
def _find_tools(action: str, tools: ToolSet) -> tuple[str, ...]:
    """Return the tools that can perform an action on a file, as far as their parameters and names show."""
    return tuple(
        name
        for name, tool in tools.items()
        if _takes_file(tool)
        and (
            (has_any(tool, OLD_TEXT) and has_any(tool, NEW_TEXT)) or has_any(tool, _PATCHES)
            if action in CHANGES
            else has_any(tool, CONTENT) and not has_any(tool, OLD_TEXT)
            if action == "create"
            else has_any(tool, SOURCE) and has_any(tool, DESTINATION) and sounds_like(name, "move")
            if action == "move"
            else sounds_like(name, "delete")
        )
    )


def has_any(tool: Tool, names: Collection[str]) -> bool:
    """Return whether the tool has one of the parameters ``names``."""
    return not tool.properties.keys().isdisjoint(names)


def find_next_tools(history: CallHistory, tools: ToolSet) -> tuple[str, ...]:
    """Return the tools that the model needs next.

    If the request concerns a file that has not been read yet, these are the tools that read a file. If the file has
    been read, or the request quotes the old and the new text, they are the tools that make the change.
    """
    change_tools = find_change_tools(history, tools)
    unread = find_unread_paths(history)
    if unread and (history.is_question or find_requested_action(history.request)[0] in READS):
        return find_readers(tools)
    is_known = not unread or len(find_quoted(history.request)) > 1
    if not change_tools or is_known or find_needed_action(history) not in CHANGES:
        return change_tools
    return find_readers(tools) or change_tools


def find_unread_paths(history: CallHistory) -> list[str]:
    """Return the paths in the request of files that no call has read, tried to read or changed."""
    tried = (call for call in history.calls if call.ok or not call.changes)
    known = "\n".join(text for call in tried for text in list_strings(call.arguments))
    return [
        path
        for path in find_paths(history.request)
        if not re.search(rf"(?<![\w-]){re.escape(path)}(?![\w-]|\.\w)", known)
    ]


def find_readers(tools: ToolSet) -> tuple[str, ...]:
    """Return the first tool that reads a file, as a tuple, or ()."""
    readers = (
        name
        for name, tool in tools.items()
        if _takes_file(tool) and len(tool.required) == 1 and not may_change(name, tools) and sounds_like(name, "read")
    )
    return tuple(readers)[:1]


def _takes_file(tool: Tool) -> bool:
    words = {word for name in tool.properties for word in split_words(name)}
    return tool.effect != "execute" and not words.isdisjoint({"path", "file", "source"})


def find_tools_for_omitted_change(content: str, history: CallHistory, tools: ToolSet) -> tuple[str, ...]:
    """Return the tools for the next step of a requested change that was not made. Return () if a change was made, or if
    the answer ``content`` explains why not."""
    action = find_file_action(history.request) or _CLASSIFIED.get(history.classified, "")
    makers = _find_tools(action, tools) if action else ()  # whose effect may not be declared
    is_made = has_changed(history) or not action or any(call.ok and call.name in makers for call in history.recent)
    return () if is_made or _EXPLAINS.search(content) else find_next_tools(history, tools)


def loses_text(call: PastCall, history: CallHistory, tools: ToolSet) -> bool:
    """Return whether ``call`` destroys text that the user probably wants to keep.

    This is the case if it changes, deletes or moves a file that must stay as it is; if it deletes a file that the
    request needs for another purpose; if it empties a file although the
    user did not ask for that; if it overwrites a file, of which the request concerns only a part, with a text that
    lacks most of the known lines; or if it overwrites an unread file and the user's message cannot be the new text.
    """
    tool, is_deletion = tools.match(call.name), sounds_like(call.name, "delete")
    if may_change(call.name, tools) and find_kept_values(history.request, call.arguments):
        return "copy" not in split_words(call.name)
    is_deletion |= sounds_like(call.name, "move") and history.classified not in ("", "move", "delete")
    if history.is_question and _removes_named_path(call, history.request):
        return not asks_for(history.user_text, "delete", "move")
    if not is_deletion and (tool is None or not has_any(tool, CONTENT) or has_any(tool, OLD_TEXT)):
        return False  # the usual case, which avoids searching the request
    if not is_deletion and not re.search(r"\w", find_text(call, CONTENT)) and not _EMPTIES.search(history.user_text):
        path = find_text(call, PATH)
        if any(split_words(line) for line in list_known_lines(path, history)):
            return not asks_for(history.user_text, "delete", "reset")
    named = set(find_paths(history.request))
    paths = named.intersection(map(str, call.arguments.values()))
    if not paths or is_deletion:
        actions = {find_requested_action(history.request)[0], history.classified}
        is_needed = history.is_question or not actions <= {"", "delete"}
        is_needed |= len(named) == 1 and asks_for(history.user_text, "add", "edit")
        is_needed &= not asks_for(history.user_text, "delete")
        is_only = len(named) == 1
        return bool(paths) and (is_needed or (is_only and all(is_inside(path, history.request) for path in paths)))
    action = find_file_action(history.request) or _CLASSIFIED.get(history.classified, "")
    if not paths.isdisjoint(find_unread_paths(history)) and _needs_reading(call, action, history):
        return True
    if action not in ("add", "edit") and not history.is_question:
        return False
    written = find_text(call, CONTENT)
    known = {line.strip() for path in paths for line in list_known_lines(path, history) if split_words(line)}
    return len(known) > 1 and sum(line in written for line in known) * 2 < len(known)


def _needs_reading(call: PastCall, action: str, history: CallHistory) -> bool:
    """Return whether the file that ``call`` overwrites must be read first, because the request concerns its old text,
    and no message of the user can be its new text. ``action`` is the requested action on a file."""
    messages = [history.request, *(text for role, text in history.messages if role == "user")]
    if any("\n" in message.strip() for message in messages):
        return False
    verb = action or find_requested_action(history.request)[0]
    saved = _SAVES_TO.findall(history.request) if verb in ("", *READS) else []
    if saved and call.values.isdisjoint(saved):
        return True  # it is the source of another file
    if action == "update":
        is_quoted = find_text(call, CONTENT).strip() in find_quoted(history.request)
        return not is_quoted and _GIVES_TEXT.search(history.request) is None
    return action == "edit" or not (verb or asks_for(history.user_text, "add", "create"))


def _removes_named_path(call: PastCall, request: str) -> bool:
    """Return whether the command of ``call`` deletes or moves a file or folder that ``request`` names."""
    removed = (path for path in list_removed_paths(find_text(call, COMMAND)) if re.search(r"\w", path))
    return any(re.search(rf"(?<![\w/.]){re.escape(path)}(?!\w)", request) for path in removed)


def changes_nothing(tool: Tool, arguments: JsonObject) -> bool:
    """Return whether a call would replace a text with itself."""
    old, new = (
        [arguments[name] for name in names if name in tool.properties and name in arguments]
        for names in (OLD_TEXT, NEW_TEXT)
    )
    return bool(old) and old == new and _takes_file(tool)


def list_known_lines(path: str, history: CallHistory) -> Iterator[str]:
    """Yield the lines of a file that tool results and errors have shown to the model, without line numbers.

    Lines that a later change has replaced are left out.
    """
    calls = [call for call in history.calls if path in call.values]
    replaced = [find_text(call, OLD_TEXT).strip() for call in calls if call.ok and call.changes]
    replaced_lines = {line.strip() for old in replaced for line in old.splitlines()}
    for call in calls:
        lines = list_result_lines(call.result) if call.ok else _NUMBERED.findall(call.result)
        if not (call.ok and call.changes):
            kept = (line for line in lines if not any(old and old in line for old in replaced))
            yield from (line for line in kept if line.strip() not in replaced_lines)


def find_readers_for_invented_content(content: str, history: CallHistory, tools: ToolSet) -> tuple[str, ...]:
    """Return the tool that reads a file, as a tuple, if the answer seems to invent the content of a file.

    This is so if the request is a question about a file, no tool was called, and the answer has a placeholder, or a
    number or quotation ("it says ...") that does not occur in the conversation. A short answer without a reason also
    counts as invented, unless the question asks how to do something, or what a value means.
    """
    if history.recent or not history.is_question or not find_paths(history.request):
        return ()
    plain = re.sub("|".join(f"`{re.escape(path)}`" for path in find_paths(history.request)), "", content)
    is_general = _HOW_TO.search(history.request) or _EXPLAINS.search(content)
    if history.classified == "answer":
        return find_readers(tools)
    if 0 < len(content) <= MAX_UNREAD and not is_general and not history.calls and "`" not in plain:
        return find_readers(tools)
    numbers = re.findall(r"(?<![\w.])\d(?:[\d.]*\d)+(?![\w.]*\w)", content)
    invented = [*numbers, *_YOUR.findall(content), *_QUOTATION.findall(content)]
    return find_readers(tools) if any(each not in history.text for each in invented) else ()
