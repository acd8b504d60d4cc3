"""Constrain the retry of a call to the tools that help and, for very small models, to known strings.

For an edit, these are the paths and the texts in the request and the files that were read. Very small models invent the
text that an edit replaces, and write only the new value in place of a whole line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.requested_file_changes import (
    CHANGES,
    find_change_tools,
    find_file_action,
    find_needed_action,
    find_readers,
    find_replaced_names,
    find_started_action,
    find_text,
    find_unread_paths,
    find_unused_values,
    has_any,
    list_first_paths,
    list_known_lines,
    list_paths_with_replaced_names,
)
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.core.text.word_stems import stem_words
from adapter.editing.syntax_check import find_new_syntax_error
from adapter.grammars.schema_ir import Choices
from adapter.prompting.intent.text_values import find_paths, find_quoted, find_runs
from adapter.prompting.intent.value_kinds import PATHS, find_value_kinds
from adapter.prompting.intent.verbs import is_stop_word
from adapter.tools.argument_synonyms import DESTINATION, NEW_TEXT, OLD_TEXT, SOURCE
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

if TYPE_CHECKING:
    from adapter.backends.chat_client import ChatClient


MAX_LINES, MAX_LINE = 60, 200
"""Maximum number of lines that a call is limited to, and their maximum length in characters."""
MAX_ITEM_WORDS = 3
"""Maximum number of words of a list item that is added."""
MAX_ITEM = 200
"""Maximum length of a text that is added unchanged, in characters."""
_GLOB = re.compile(r"(?<!\S)\*[\w./*-]*\w")
_OPENS = (":", "{", "[", "(")
"""Characters at the end of a line that begins a block. Additions belong at the end of the block."""
_STRUCTURED = (*_OPENS, ",", ";", "}", "]", ")", ">")
"""Characters at the ends of lines, such as brackets, that show that text cannot simply be appended to the file."""
MAX_NEW_LINES = 200
"""Maximum number of new texts that a call may be limited to."""
_NAME = re.compile(r"\{\{[^{}\n]{1,40}\}\}|\d[\d.]*\d|\w+")


def build_retry_constraint(client: ChatClient, format: str, history: CallHistory, tools: ToolSet) -> JsonObject:
    """Return the request fields that constrain an answer to a call of ``tools``. Return no fields if there are no
    tools, or if the server cannot constrain answers. ``format`` is the name of the call format."""
    from adapter.backends.constraint_fields import build_constraint_fields
    from adapter.backends.small_model_detection import invents_values

    if not tools:
        return {}
    is_small = invents_values(client.endpoint, client.model)
    choices = find_named_values(history, tools, is_small=is_small)
    tools = require_texts(tools) if is_small else tools
    with suppress(UsageError):  # the grammar is too large or empty, so do not constrain
        return build_constraint_fields(client.endpoint.kind, tools, choices, format=format)
    return {}


def build_no_call_constraint(client: ChatClient) -> JsonObject:
    """Return the request fields that forbid calls, or no fields if the server cannot constrain answers."""
    from adapter.backends.constraint_fields import build_no_call_fields

    return build_no_call_fields(client.endpoint.kind)


def build_edit_constraint(client: ChatClient, format: str, history: CallHistory, tools: ToolSet) -> JsonObject:
    """Return the request fields that constrain the next answer of a very small model, or no fields.

    If the last call completed the requested change, the answer cannot contain another call. If it replaced a name that
    still occurs elsewhere, the answer must be the next edit. If the last edit failed, the answer must be an edit of
    known text or, if no file was read, the call that reads one. If the request asks for no edit, it must be the
    requested action. A lookup with a misspelt path of the request must be repeated.
    """
    from adapter.backends.small_model_detection import invents_values

    last = history.recent[-1] if history.recent else None
    change_tools = find_change_tools(history, tools)
    is_change = last is not None and last.ok and last.changes
    is_made = is_change and not change_tools and find_started_action(history) != ""
    is_failed = last is not None and not last.ok and find_text(last, OLD_TEXT) != ""
    paths = find_paths(history.request)
    is_misread = last is not None and not (last.ok or last.changes) and any(f"mean '{p}'" in last.result for p in paths)
    is_unfinished = is_change and bool(change_tools and list_paths_with_replaced_names(history))
    if not (is_made or is_failed or is_misread or is_unfinished) or not invents_values(client.endpoint, client.model):
        return {}
    if is_made:
        return build_no_call_constraint(client)
    if is_unfinished and not _has_new_texts(history, tools):
        return {}
    if is_misread and last is not None:
        change_tools = (last.name,)
    elif find_needed_action(history) in CHANGES and not _has_new_texts(history, tools):
        is_read = any(
            call.ok and not call.changes and path in call.arguments.values()
            for call in history.recent
            for path in paths
        )
        is_known = find_file_action(history.request) and any(find_known_lines(path, history) for path in paths)
        change_tools = find_readers(tools) if not is_read else change_tools if is_known else ()
    held_to = ToolSet(tools[name] for name in change_tools if name in tools)
    return build_retry_constraint(client, format, history, held_to)


def _has_new_texts(history: CallHistory, tools: ToolSet) -> bool:
    """Return whether the new text of an edit can be limited to texts that follow from the request."""
    choices = find_named_values(history, tools, is_small=True)
    return any(isinstance(key, tuple) and key[1] in NEW_TEXT for key in choices)


def find_named_values(history: CallHistory, tools: ToolSet, *, is_small: bool = False) -> Choices:
    """Return the values that the arguments of a retried call may have: for path parameters, the paths in the request.

    If ``is_small`` is set, the texts of an edit are also limited, because very small models invent them. They are the
    two quoted strings of the request, if there are two. Otherwise, the old text is a line of a file that was read but
    not changed yet; the new text is such a line with a name or number replaced by another one from the request, or with
    an item added.
    """
    paths, texts = find_paths(history.request), find_quoted(history.request)
    changed = {str(value) for call in history.recent if call.ok and call.changes for value in call.arguments.values()}
    known = {path: find_known_lines(path, history) for path in paths if is_small and len(texts) != 2}
    left = [path for path in paths if path not in changed] or list_paths_with_replaced_names(history) or paths
    unread = find_unread_paths(history) or left
    path, lines = next(((path, known[path]) for path in left if known.get(path)), ("", []))
    choices: dict[tuple[str, str] | str, Sequence[str]] = {}
    source = next((path for path in left if not path.endswith("/")), "")
    for tool in tools.values():
        is_edit, is_move = has_any(tool, OLD_TEXT), has_any(tool, SOURCE) and has_any(tool, DESTINATION)
        for name, schema in tool.properties.items():
            if is_move and source and name in (*SOURCE, *DESTINATION):
                choices[tool.name, name] = [source] if name in SOURCE else _find_destinations(source, history.request)
            elif paths and ("_path_" in find_value_kinds(name, schema) or name in (*SOURCE, *DESTINATION)):
                choices[tool.name, name] = ([path] if path else left) if is_edit else unread
            elif is_small and tool.effect == "execute" and find_value_kinds(name, schema) == {"_folder_"}:
                choices[tool.name, name] = ["."]
            elif is_small and len(texts) == 2 and name in (*OLD_TEXT, *NEW_TEXT):
                choices[tool.name, name] = texts[:1] if name in OLD_TEXT else texts[1:]
            elif lines and name in OLD_TEXT:
                choices[tool.name, name] = lines
            elif name in NEW_TEXT and (
                new_lines := [*_add_items(path, lines, history), *_replace_names(path, lines, history)]
            ):
                choices[tool.name, name] = list(dict.fromkeys(new_lines))[:MAX_NEW_LINES]
    return choices


def _find_destinations(source: str, request: str) -> list[str]:
    """Return the new paths of ``source`` that a request may name. A word after ``source`` may be the name of
    a folder."""
    paths, rest = find_paths(request), request.partition(source)[2]
    for path in paths:
        rest = rest.replace(path, " ")
    words = (word for word in re.findall(r"\w[\w-]*", rest) if not is_stop_word(word.lower()))
    folders = [*(path.rstrip("/") for path in paths if path.endswith("/")), *words]
    name = source.rpartition("/")[2]
    moved = {source, *list_first_paths(request)} if source in list_first_paths(request) else {source}
    others = [path for path in paths if path not in moved and not path.endswith("/")]
    return list(dict.fromkeys([*others, *(f"{folder}/{name}" for folder in folders)]))[:MAX_NEW_LINES] or paths


def require_texts(tools: ToolSet) -> ToolSet:
    """Return ``tools`` with simplified editing tools: their only parameters are the path, the old text and the new
    text, and all are required."""
    shown: list[Tool] = []
    for tool in tools.values():
        kept = {
            name: schema
            for name, schema in tool.properties.items()
            if name in (*OLD_TEXT, *NEW_TEXT) or find_value_kinds(name, schema) & PATHS
        }
        is_edit = has_any(tool, OLD_TEXT) and has_any(tool, NEW_TEXT)
        parameters = {"type": "object", "properties": kept, "required": list(kept)}
        shown.append(replace(tool, parameters=parameters, example=None) if is_edit else tool)
    return ToolSet(shown)


def _add_items(path: str, lines: Sequence[str], history: CallHistory) -> list[str]:
    """Return new texts that add an item to a list: the only line in ``lines``, followed by a line with the same
    beginning and words from the request, such as ``- milk`` after ``- eggs``.

    The result is empty if there are several ``lines``, or if the request adds nothing.
    """
    if len(lines) != 1 or find_started_action(history) != "add":
        return []
    prefix = _get_line_prefix(lines[0])
    stated = _find_stated_items(path, history)
    if stated or not prefix.strip():
        return [f"{lines[0]}\n{'' if item.startswith(prefix.strip() or item) else prefix}{item}" for item in stated]
    return [f"{lines[0]}\n{prefix}{words}" for words in find_runs(history.request, MAX_ITEM_WORDS)]


def _find_stated_items(path: str, history: CallHistory) -> list[str]:
    """Return the texts to add that a request states exactly: in quotes, as a glob, or after a colon at its end. Return
    none if the lines of the file have brackets or separators at their ends."""
    if any(line.rstrip().endswith(_STRUCTURED) for line in list_known_lines(path, history)):
        return []
    request = history.request
    end = request.rpartition(": ")[2].strip() if ": " in request else ""
    items = [*find_quoted(request), *_GLOB.findall(request)] or [end]
    return [item for item in items if 0 < len(item) <= MAX_ITEM and not find_paths(item)]


def _replace_names(path: str, lines: Sequence[str], history: CallHistory) -> Iterator[str]:
    """Yield copies of each line in which one number, or one name that the request contains, is replaced by another from
    the request. A number is replaced only by a number, and a file that can be parsed still can be."""
    if find_started_action(history) != "edit":
        return
    request = history.request
    for named in find_paths(request):
        request = request.replace(named, " ")
    replaced = find_replaced_names(history)
    asked = [name for name in dict.fromkeys(_NAME.findall(request)) if not is_stop_word(name.lower())]
    text = "\n".join(list_known_lines(path, history))
    for line in lines:
        for old in dict.fromkeys(_NAME.findall(line)):
            news = (new for new in asked if new not in line and new not in replaced and not new.startswith("{{"))
            is_number = old[0].isdigit()
            for new in news if is_number or old in asked else ():
                changed = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, line)
                if (not is_number or new[0].isdigit()) and not find_new_syntax_error(
                    text, text.replace(line, changed, 1), path
                ):
                    yield changed


def _get_line_prefix(line: str) -> str:
    """Return the indentation and the punctuation before the first word."""
    return line[: len(line) - len(re.sub(r"^[\W_]+", "", line))]


def _find_named_block(lines: Sequence[str], words: set[str]) -> list[str]:
    """Return the similar lines below the only heading that has one of ``words``, or nothing."""
    headings = [at for at, line in enumerate(lines) if line.rstrip().endswith(_OPENS)]
    named = [at for at in headings if not words.isdisjoint(stem_words(lines[at]))]
    below = lines[named[0] + 1 :] if len(named) == 1 else ()
    return [*takewhile(lambda line: _get_line_prefix(line) == _get_line_prefix(below[0]), below)]


def find_known_lines(path: str, history: CallHistory) -> list[str]:
    """Return the lines of a file that a constrained edit may use as its old text.

    They are known from the results of reading the file, and contain a word. Lines that the request is about are
    preferred. If the request adds something, only the last of several similar lines counts: of those below a heading
    that the request names, if there is one. The result is empty if there are too many lines for a grammar.
    """
    known = [line for line in dict.fromkeys(list_known_lines(path, history)) if stem_words(line)]
    if find_started_action(history) != "add":
        asked, left = set(stem_words(history.request.replace(path, ""))), find_unused_values(history)
        known = (
            [line.strip() for line in known if any(value in line for value in left)]
            or [line.strip() for line in known if not asked.isdisjoint(stem_words(line))]
            or known
        )
    else:
        asked = set(stem_words(history.request.replace(path, "")))
        known = _find_named_block(known, asked) or known
        prefixes = [*map(_get_line_prefix, known), None]
        known = [line for line, prefix, after in zip(known, prefixes, prefixes[1:], strict=False) if prefix != after]
        known = [line for line in known if not line.rstrip().endswith(_OPENS)] or known
        known = known[-1:] if _find_stated_items(path, history) else known
    return known if len(known) <= MAX_LINES and all(len(line) <= MAX_LINE for line in known) else []
