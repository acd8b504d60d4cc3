"""Find text that looks like a call in an unknown format, to explain to the user why it was not parsed.

The text remains content; only the reason is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from itertools import islice

from adapter.core.events import Json, RejectedCall
from adapter.core.json.strict import decode_strict
from adapter.core.turn import Turn
from adapter.parsing.markdown_context import MarkdownContext
from adapter.tools.decoded_json_calls import ARGUMENT_KEYS, NAME_KEYS
from adapter.tools.tool_set import ToolSet

SEARCHED = 8000
"""Number of characters at each end of a span of content that are searched for apparent calls."""

_CONTEXT = 200
"""Number of characters around a tool's name that decide whether it belongs to a call."""

_LONGEST = 2000
"""Number of characters searched for a call's closing bracket."""

MAX_OBJECTS = 20
"""Maximum number of objects that are compared with the tools' parameters by their keys."""

_OBJECT = re.compile(r"\{(?<![:,\[{]\{)(?<![:,\[{] \{)(?=\s*\"\w+\"\s*:)")
_STRUCTURE = ("{", "(", "<", "=", ":", "&lt;")
"""Text without any of these strings cannot contain an apparent call."""

_QUOTED_NAME = rf"[\"'](?:{'|'.join(NAME_KEYS)})[\"']\s*:\s*[\"']"
_JSON_CALL = re.compile(
    rf"\{{\s*{_QUOTED_NAME}[\w./:-]{{1,100}}[\"']\s*,\s*[\"'](?:{'|'.join(ARGUMENT_KEYS)})[\"']\s*:"
)
_JSON_NAME = re.compile(rf"\{{[^{{}}]*{_QUOTED_NAME}\Z")
_JSON_KEY = re.compile(r"\{\s*[\"']\Z")
_AFTER_KEY = re.compile(r"[\"']\s*:\s*\{")
_UNKNOWN_CALL = re.compile(
    r"^(?=\w*[a-z](?:_|[A-Z]))([A-Za-z][\w.-]{0,100})[ \t]*\n?(?=\{\s*\"\w+\"\s*:)\{", re.MULTILINE
)
"""Matches a line with a name like ``fetch_page`` and the start of its arguments."""
_LABEL = re.compile(
    r"(?:\b|_)(?:tools?|functions?|actions?|calls?|invoke|command|name)[\"'*`)\]]*[ \t]*(?:[:=]|->|=>)[\"'*`(\[ \t]*\Z",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"<[\w:.-]+\s[^<>]*=\s*[\"']?\Z")
_TAG_NAME = re.compile(r"[<＜]\w+[\s/>\]＞]|\[\w+>")
_MARKER = re.compile(r"(?:\[/?[A-Z_ ]+\]|[|｜]>|<[\w-]+>)\s?\Z")
_LINE_START = re.compile(r"[\s>*`/@#!$-]*(?:functions?\.)?\Z")
_BRACKET = re.compile(
    r"[*`]{0,3}(?:\(|\[(?=\w+=))\s*(?:[A-Za-z_]\w*\s*[=:\"\\]|[\"'{\[\d-]|(?:True|False|None)\b)"
    r"|[ \t]?:?[ \t]?\{\s*[\"'}]"
)
_ARGUMENTS = re.compile(r"[\"'*`\]>)\s:,-]*(?:json\s*)?(?:\{|\(|</?[|｜\w-]|[\w\"'*`-]+(?:[ \t]\w+)?\s*[:=])")
_GLUED_ARGUMENTS = re.compile(r"[\"']?\s{0,3}(?:<[|｜\w]|&[lg]t;|</?\w+[|｜:]|\[[A-Z]+\]\s*\{)")
_GLUED = re.compile(r"\w+(?:[=:]|[\"'()\s]*[{(])")
"""Matches a word directly after a tool's name, the rest of a longer name or a key, and a bracket or similar sign."""
_BROKEN_TAG = re.compile(r"[<\[][\w:|｜▁]*(?:tool|call|functio|reci)[\w:|｜▁]*\Z", re.IGNORECASE)
_PAIR = re.compile(r"[ \t]+(?:--)?[\w-]+\s*[=:]\s*\S|(?::\d+)?[*`]*\s*[:=]?[*`]*\s*(?:```\w*\s*)?\{\s*[\"'}]")
_FIRST_KEY = re.compile(
    r"[^\n{}]{0,60}\s{0,3}(?:(?<=\n)[^\n{}]{0,60})?[{\[]\s*[\"']?(\w+)[\"']?\s*:"
    r"|[^\n{}]{0,60}\n?[^\n{}]{0,20}?[\"'](\w+)[\"']\s*:"
    r"|:[ \t]*\n[ \t]+(\w+):|[ \t]+(?:--)?(\w+)[ \t]*[=:]"
)
"""Matches the text from a tool's name to the first key of an object, of YAML or of a pair."""
_LATE_NAME = re.compile(rf"[\"'](?:{'|'.join(ARGUMENT_KEYS)})[\"'].*{_QUOTED_NAME}\Z", re.DOTALL)
_WORD = re.compile(r"\w")
_TAG_WITHOUT_NAME = re.compile(r"</[\w:|｜]*(?:tool|function|invoke|call|param|arg)[\w:|｜]*>")
_KEY = re.compile(r"[\"'=<](\w+)(?:[\"']\s*:|[\"']?>)")
"""Matches a parameter's name in an object or a tag."""
_CLOSERS = {"(": ")", "{": "}", "[": "]"}


def find_unread_calls(turn: Turn, tools: ToolSet) -> tuple[RejectedCall, ...]:
    """Return the apparent calls in the content of ``turn`` that are not in ``turn.rejected``.

    Without ``tools``, only JSON with a name and arguments is found. The reasons are ``in-text``, ``unknown-form``, and
    those for quoted calls.
    """
    content, has_calls = turn.content, bool(turn.calls)
    if not any(mark in content for mark in _STRUCTURE):
        return ()
    if len(content) <= 2 * SEARCHED and not _find_apparent_calls(content, tools, has_calls):
        return ()
    rejected: list[RejectedCall] = []
    for span in turn.explain():
        if span.kind != "content":
            continue
        if len(span.text) <= 2 * SEARCHED:
            rejected += _search(span.text, tools, span.start, has_calls)
        else:
            rejected += _search(span.text[:SEARCHED], tools, span.start, has_calls)
            rejected += _search(span.text[-SEARCHED:], tools, span.end - SEARCHED, has_calls)
    known = turn.rejected
    return tuple(call for call in rejected if not any(_is_part(call, each) for each in known))


def _is_part(call: RejectedCall, known: RejectedCall) -> bool:
    """Return whether ``known`` overlaps ``call`` or is the marker directly before it."""
    return known.start < call.end and call.start <= known.end + 1


def _find_apparent_calls(text: str, tools: ToolSet, has_calls: bool) -> dict[int, str]:
    """Map the offsets of apparent calls in ``text`` to their notation: ``json``, ``name`` (a tool's name and a
    bracket), ``unknown`` (the name of no tool, and arguments) or ``other``.

    ``has_calls``: whether the answer also has real calls. If so, a JSON object with a tool's arguments is taken for a
    call rather than an answer in JSON.
    """
    notations: dict[int, str] = {}
    if "{" in text:
        notations = {match.start(): "json" for match in _JSON_CALL.finditer(text)}
    if has_calls:
        for match in islice(_OBJECT.finditer(text), MAX_OBJECTS):
            value = decode_strict(text, match.start())
            if value is not None and _fits_a_tool(value.value, tools):
                notations[match.start()] = "json"
    for match in _UNKNOWN_CALL.finditer(text) if tools else ():
        if match[1] not in tools and decode_strict(text, match.end() - 1) is not None:
            notations[match.start()] = "unknown"
    spellings = dict.fromkeys(tools.all_names)
    if "-" in text:
        spellings |= {name.replace("_", "-"): None for name in tools.all_names}
    for name in spellings:
        if name in text:
            tool = tools.match(name)
            parameters = tool.properties.keys() if tool else frozenset[str]()
            for start in _find_word(text, name, (name, *parameters)):
                _classify(text, start, start + len(name), parameters, notations)
    if "</" in text:
        parameters = frozenset(name for tool in tools.values() for name in tool.properties)
        end = 0
        for match in _TAG_WITHOUT_NAME.finditer(text):
            first = _KEY.search(text, max(end, match.start() - _LONGEST), match.start())
            start, end = max(end, text.rfind("\n", 0, first.start()) + 1) if first else end, match.end()
            if first and first[1] in parameters:
                notations.setdefault(start, "other")
    return notations


def _fits_a_tool(arguments: Json, tools: ToolSet) -> bool:
    """Return whether ``arguments`` has at least two keys and could be the arguments of a tool."""
    if not isinstance(arguments, dict) or len(arguments) < 2:
        return False
    return any(tool.accepts(arguments.keys()) for tool in tools.values())


def _search(text: str, tools: ToolSet, offset: int, has_calls: bool) -> Iterator[RejectedCall]:
    line, end = MarkdownContext(), 0
    for start, notation in sorted(_find_apparent_calls(text, tools, has_calls).items()):
        if start < end:
            continue
        line.add(text[end:start])
        reason = line.quote_reason
        end, line_end = _find_bracket_end(text, start), _find_line_end(text, start)
        if notation == "other":
            reason, end = "unknown-form" if reason in ("", "code-fence") else reason, line_end
        elif not reason and notation == "unknown":
            reason = "unknown-tool"
        elif not reason:
            around = text[text.rfind("\n", 0, start) + 1 : start] + text[end : _find_line_end(text, end)]
            reason = "in-text" if _WORD.search(around) else "unknown-form"
        line.add(text[start:end])
        yield RejectedCall(offset + start, offset + end, reason)


def _find_word(text: str, word: str, continuations: tuple[str, ...]) -> Iterator[int]:
    """Yield the offsets of ``word`` in ``text``, except inside longer words or as a code fence's language. A string of
    ``continuations`` may directly follow it."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        is_part = _continues_word(text[start - 1 : start]) and not _BROKEN_TAG.search(text[max(0, start - 40) : start])
        is_part = is_part or (_continues_word(text[end : end + 1]) and not text.startswith(continuations, end))
        if not is_part and not text.endswith("```", 0, start):
            yield start
        start = text.find(word, end)


def _continues_word(character: str) -> bool:
    return character.isalnum() or character in ("_", "-")


def _classify(text: str, start: int, end: int, parameters: Set[str], notations: dict[int, str]) -> None:
    """If the tool's name ``text[start:end]`` belongs to a call rather than a sentence, add the call's offset and
    notation to ``notations``. ``parameters`` are the names of the tool's parameters."""
    line_start = text.rfind("\n", 0, start) + 1
    near = text[max(0, start - _CONTEXT) : start]
    before = text[max(line_start, start - _CONTEXT) : start]
    after = text[end : end + _CONTEXT]
    is_labeled = _LABEL.search(before)
    if _JSON_NAME.search(near) or (_JSON_KEY.search(near) and _AFTER_KEY.match(after)):
        notations[text.rfind("{", 0, start)] = "json"
    elif not is_labeled and _BRACKET.match(after):
        notations[start] = "name"
    elif (
        _GLUED.match(after)
        or ((is_labeled or _MARKER.search(before)) and _ARGUMENTS.match(after))
        or _TAG_NAME.match(text, max(0, start - 1))
        or (text.startswith(">", end) and text.endswith("</", 0, start) and f"<{text[start:end]}>" not in text)
        or _ATTRIBUTE.search(before)
        or _GLUED_ARGUMENTS.match(after)
        or (_LINE_START.match(before) and _PAIR.match(after))
        or ((key := _FIRST_KEY.match(after)) and parameters & {*key.groups()})
        or _LATE_NAME.search(near)
    ):
        notations[line_start + len(before) - len(before.lstrip())] = "other"


def _find_line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _find_bracket_end(text: str, start: int) -> int:
    """Return the end of the first bracketed text after ``start`` on the same line, or else the line's end."""
    line_end = _find_line_end(text, start)
    open_brackets: list[str] = []
    for at in range(start, min(len(text), start + _LONGEST)):
        character = text[at]
        if not open_brackets and at >= line_end:
            break
        if character in _CLOSERS:
            open_brackets.append(_CLOSERS[character])
        elif open_brackets and character == open_brackets[-1]:
            open_brackets.pop()
            if not open_brackets:
                return at + 1
    return line_end
