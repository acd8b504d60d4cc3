"""Ask a very small model for the new text of a whole file, instead of a call that edits the file.

Very small models copy a short file and change what the user asks for. In an edit, they invent the text to replace, or
write only the new value in place of a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from adapter.backends.constraint_fields import build_grammar_fields
from adapter.backends.endpoint_discovery import Kind
from adapter.backends.stream_chunks import Chunk
from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.requested_file_changes import (
    CHANGES,
    find_change_tools,
    find_needed_action,
    find_text,
    find_unread_paths,
    find_values,
    is_renaming,
    list_known_lines,
    list_paths_with_replaced_names,
)
from adapter.conversation.guardrails.requested_files import find_file_action, list_target_paths
from adapter.conversation.message_rendering import Message
from adapter.core.errors import ToolError
from adapter.core.events import JsonObject
from adapter.core.text.word_stems import STOP_WORDS
from adapter.editing.syntax_check import find_new_syntax_error
from adapter.grammars.gbnf import GAP, build_code_fence_grammar
from adapter.parsing.format import Format
from adapter.prompting.escaping import escape_control_tokens, unescape_control_tokens
from adapter.prompting.intent.removals import (
    find_named_words,
    find_removed_lines,
    find_unrelated_line,
    list_removals,
)
from adapter.prompting.intent.spelling import find_misspelled_word, is_correction, is_similar, replace_word
from adapter.prompting.intent.template_variables import BRACKETED_VARIABLE, find_lost_word
from adapter.prompting.intent.text_values import find_paths
from adapter.prompting.intent.verbs import find_requested_action
from adapter.tools.argument_synonyms import CONTENT, NEW_TEXT, OLD_TEXT, PATH
from adapter.tools.operations import FileText, ReadText
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.workspace import Workspace

Replaces: TypeAlias = Literal["", "names", "variables", "misspellings", "spelling", "removals"]

MAX_FILE = 3_000
"""Maximum length, in characters, of a file whose new text is requested."""
MAX_FILES = 4
"""Maximum number of files that a question shows."""
MAX_TOKENS = 1_500
"""Maximum number of tokens of an answer."""
_SYSTEM = "You edit one file. Change only what the user asks for, and keep all other lines."
MAX_VERSIONS = 60
"""Maximum number of texts among which the model chooses."""
_CHANGE: tuple[Replaces, ...] = ("", "variables", "misspellings", "spelling")
"""The limits for successive attempts at one change. After an attempt that changes nothing, the next attempts limit the
answer further, because the model may have copied the misspelling that it should correct."""
_RENAMING: tuple[Replaces, ...] = ("names",)
_REMOVAL: tuple[Replaces, ...] = ("", "removals")
_CORRECTIONS = (
    ("langauge", "language"),
    ("Wendesday", "Wednesday"),
    ("committe", "committee"),
    ("Strasse", "Straße"),
    ("suprise", "surprise"),
)
"""Examples for the question about a single word. Qwen2.5-Coder-0.5B corrected 12 of 18 words with these examples, and 7
without."""
_NAME = re.compile(r"[^\W\d]\w*")
_FIRST_WORD = re.compile(r"(?:(?<=[.!?]\s)|\A)\w+")
_FENCE = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """A request for the new text of the file ``path``, to be written by ``tool``. ``files`` maps the paths of existing
    files that the user's request names to their texts. ``replaces`` limits the text; see `list_versions`. For
    ``spelling``, only the correction of the misspelled word is requested."""

    path: str
    files: Mapping[str, str]
    tool: Tool
    request: str
    replaces: Replaces = ""

    @property
    def text(self) -> str:
        """The file's current text, or "" if it does not exist."""
        return self.files.get(self.path, "")

    @property
    def variables(self) -> list[str]:
        """The template variables in the file that the request names."""
        return [name for name in dict.fromkeys(BRACKETED_VARIABLE.findall(self.request)) if name in self.text]

    def build_request(self, kind: Kind, format: Format) -> tuple[list[Message], JsonObject]:
        """Return the messages, and the fields that limit the answer to a code fence, if the server supports that."""
        if self.replaces == "spelling":
            return self._build_spelling_request(kind)
        shown = [path for path in self.files if path != self.path] + [self.path] * (self.path in self.files)
        parts = [f"This is the file {path}:\n\n```\n{self.files[path].rstrip()}\n```" for path in shown]
        aim = (
            f"Write the whole changed file {self.path}." if self.path in self.files else f"Write the file {self.path}."
        )
        content = escape_control_tokens("\n\n".join([*parts, self.request, aim]), format)
        messages: list[Message] = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": content}]
        fields = {"max_tokens": MAX_TOKENS, "temperature": 0}  # a file should be copied, not varied
        grammar = build_code_fence_grammar(f"{text.rstrip()}\n" for text in self.list_versions())
        return messages, {**build_grammar_fields(kind, grammar), **fields}

    def _build_spelling_request(self, kind: Kind) -> tuple[list[Message], JsonObject]:
        messages: list[Message] = [{"role": "system", "content": "Correct the spelling of the word."}]
        for word, correction in (*_CORRECTIONS, (find_misspelled_word(self.request, self.text), "")):
            messages.append({"role": "user", "content": f"```\n{word}\n```"})
            messages += [{"role": "assistant", "content": f"```\n{correction}\n```"}] if correction else []
        fields = {"max_tokens": MAX_TOKENS, "temperature": 0}
        return messages, {**build_grammar_fields(kind, build_code_fence_grammar([f"{GAP}\n"])), **fields}

    def list_versions(self) -> list[str]:
        """Return the texts among which the model chooses, or [] if it may write any text, or if there are too many.

        In each text, one word of the request that the file contains is replaced by another one that it lacks. To
        correct misspellings, the words must be similar. To fill in a template, the only text has a `GAP` in place of
        each variable. A removal takes one line, and the lines indented below it.
        """
        if self.replaces == "variables" and self.variables:
            return [re.sub("|".join(map(re.escape, self.variables)), GAP, self.text)]
        if self.replaces in ("", "variables"):
            return []
        if self.replaces == "removals":
            return self._select_valid(list_removals(self.request, self.text))
        request, present = self.request, {*_NAME.findall(self.text)}
        for path in find_paths(request):
            request = request.replace(path, " ")
        request = _FIRST_WORD.sub(lambda word: word[0].lower() if word[0] not in present else word[0], request)
        action, start = find_requested_action(self.request)
        verb = _NAME.match(self.request, start) if action else None  # any other verb may be a name
        ignored = STOP_WORDS | {verb[0].lower()} if verb else STOP_WORDS
        names = [name for name in dict.fromkeys(_NAME.findall(request)) if name.lower() not in ignored]
        is_alike = is_similar if self.replaces == "misspellings" else str.__ne__
        texts = [
            re.sub(rf"\b{old}\b", new, self.text)
            for old in names
            for new in names
            if old in present and new not in present and is_alike(old, new)
        ]
        return self._select_valid(texts)

    def _select_valid(self, texts: list[str]) -> list[str]:
        """If the file parses, return only the texts that parse as well. Return [] if there are too many."""
        is_long = len(texts) > MAX_VERSIONS
        return [] if is_long else [each for each in texts if not find_new_syntax_error(self.text, each, self.path)]

    def is_useful(self) -> bool:
        """Return whether the model can answer the question. Some questions need versions to choose from, or a
        misspelled word."""
        if self.replaces == "spelling":
            return find_misspelled_word(self.request, self.text) != ""
        return self.replaces in ("", "names") or self.list_versions() != []

    def build_arguments(self, answer: str) -> JsonObject | None:
        """Return the arguments for ``tool`` to write the file, or None if the answer has no text or changes nothing."""
        found = _FENCE.search(answer)
        new, old = (found[1].strip("\n").rstrip() if found else ""), self.text.strip("\n").rstrip()
        word = find_misspelled_word(self.request, old)
        if self.replaces == "spelling":
            new = replace_word(old, word, new)
        if not new.strip() or new == old or find_new_syntax_error(old, new, self.path):
            return None
        if find_lost_word(self.variables, old, new, self.request) or (word and not is_correction(word, old, new)):
            return None
        if _asks_for_removal(self.request) and find_unrelated_line(
            find_removed_lines(old, new), find_named_words(self.request)
        ):
            return None
        parameters = [_find_parameter(self.tool, names) for names in (PATH, CONTENT)]
        if self.path not in self.files:
            return dict(zip(parameters, (self.path, f"{new}\n"), strict=True))
        parameters = [_find_parameter(self.tool, names) for names in (PATH, OLD_TEXT, NEW_TEXT)]
        return dict(zip(parameters, (self.path, *_find_changed_lines(old, new)), strict=True))

    def create_converter(self, format: Format) -> Callable[[Chunk], list[Chunk]]:
        """Return a function that converts the answer's chunks to a call in ``format``. A truncated answer, or an answer
        that changes nothing, becomes empty."""
        texts: list[str] = []

        def convert(chunk: Chunk) -> list[Chunk]:
            texts.append(chunk.text)
            rest = replace(chunk, text="", raw=None)
            answer = unescape_control_tokens("".join(texts)) if chunk.finish_reason == "stop" else ""
            arguments = self.build_arguments(answer)
            written = [Chunk(format.encode_calls([(self.tool.name, arguments)]))] if arguments else []
            return [*written, rest]

        return convert


def needs_file_question(history: CallHistory, tools: ToolSet) -> bool:
    """Return whether a file question may follow the last call.

    It may follow a failed edit, a change that did not complete the request, a read of the last unread file in the
    request, and a call that did not find the file to create.
    """
    if not history.recent:
        return False
    last = history.recent[-1]
    if not last.ok:
        return find_text(last, OLD_TEXT) != "" or find_needed_action(history) == "create"
    named = find_paths(history.request)
    is_read = not last.changes and not last.values.isdisjoint(named) and not find_unread_paths(history)
    return (last.changes or is_read) and bool(find_change_tools(history, tools))


def find_file_question(
    history: CallHistory, tools: ToolSet, read_file: Callable[[str], str | None], asked: Collection[FileQuestion]
) -> FileQuestion | None:
    """Return the question for the next file to change or create, or None. No question is repeated.

    The request must begin with a change or state a value, because other requests may ask to delete the file.
    ``read_file`` returns a file's text, or None. A question shows only files that the model has seen lines of. If one
    of them is long or contains a code fence, there is no question.
    """
    action, named = find_needed_action(history), find_paths(history.request)
    is_change = history.classified or find_file_action(history.request) or find_values(history.request)
    if action != "create" and not is_change:
        return None
    usable = [tool for name in find_change_tools(history, tools) if _writes_file(tool := tools[name], action)]
    if not usable or len(named) > MAX_FILES:
        return None
    found = {path: text for path in named if (text := read_file(path)) is not None}
    texts = {path: text for path, text in found.items() if _has_seen(path, text, history)}
    if any(len(text) > MAX_FILE or "```" in text for text in texts.values()):
        return None
    if action == "create":
        paths = [path for path in named[:1] if path not in found]
    else:
        changed = {value for call in history.recent if call.ok and call.changes for value in call.values}
        targets = list_target_paths(history.request)
        left = [path for path in targets if path not in changed] or list_paths_with_replaced_names(history)
        paths = [path for path in left if path in texts]
    change = _REMOVAL if _asks_for_removal(history.request) else _CHANGE
    kinds = _RENAMING if is_renaming(history) else change
    questions = (FileQuestion(path, texts, usable[0], history.request, kind) for path in paths for kind in kinds)
    new = (question for question in questions if question not in asked)
    return next((each for each in new if each.is_useful()), None)


def _asks_for_removal(request: str) -> bool:
    return find_requested_action(request)[0] == "delete"


def _has_seen(path: str, text: str, history: CallHistory) -> bool:
    """Return whether the model has seen a line of the file in a result or error, or has written the file. A question
    shows only such files, because the model may not be allowed to read others."""
    shown = {line.strip() for line in list_known_lines(path, history)}
    writes = (call for call in history.calls if call.ok and find_text(call, (*OLD_TEXT, *CONTENT)))
    is_written = any(path in call.values for call in writes)
    return is_written or any(line.strip() in shown for line in text.splitlines() if line.strip())


def read_short_file(workspace: Workspace, path: str) -> str | None:
    """Return a file's text, or None if it is missing, not text, or much longer than `MAX_FILE`."""
    with suppress(ToolError):
        read = workspace.read(ReadText(path, max_lines=MAX_FILE, max_line_characters=MAX_FILE))
        if isinstance(read, FileText) and not read.truncated:
            return read.text.replace("\r\n", "\n").replace("\r", "\n")
    return None


def _writes_file(tool: Tool, action: str) -> bool:
    """Return whether ``tool`` requires no arguments besides the path and the text."""
    texts = (OLD_TEXT, NEW_TEXT) if action in CHANGES else (CONTENT,)
    names = [_find_parameter(tool, names) for names in (PATH, *texts)]
    return all(names) and set(tool.required) <= {*names} and action in (*CHANGES, "create")


def _find_parameter(tool: Tool, names: Collection[str]) -> str:
    return next((name for name in names if name in tool.properties), "")


def _find_changed_lines(old: str, new: str) -> tuple[str, str]:
    """Return the lines of ``old`` from the first to the last change, and their replacement in ``new``. Both are
    extended by surrounding lines until the old ones are unique."""
    before, after = old.split("\n"), new.split("\n")
    shorter = min(len(before), len(after))
    start = next((index for index in range(shorter) if before[index] != after[index]), shorter)
    end = next((index for index in range(shorter - start) if before[-1 - index] != after[-1 - index]), shorter - start)
    while True:
        texts = "\n".join(before[start : len(before) - end]), "\n".join(after[start : len(after) - end])
        if (start, end) == (0, 0) or (all(map(str.strip, texts)) and old.count(texts[0]) == 1):
            return texts
        start, end = max(start - 1, 0), max(end - 1, 0)
