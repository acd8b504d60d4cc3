"""Escape control tokens in untrusted text, so that it cannot end a turn, close a result or start a call.

Tokenizers read ``<|im_end|>`` as a control token anywhere in a prompt, and models repeat their input. Therefore,
`escape_control_tokens` inserts the mark ``¤`` after the first character of each control token and call::

    <|im_end|>            <¤|im_end|>
    </tool_call>          <¤/tool_call>
    [TOOL_CALLS]          [¤TOOL_CALLS]
    {"name": "read_file", "arguments": {}}   at the start of a line: {¤"name": ...

Other text is unchanged: code, HTML, Markdown, and JSON that is not a call. A ``¤`` that is already in such a position
is doubled. `unescape_control_tokens` removes one ``¤`` from each position, which restores the text exactly. It is
applied to calls' arguments, because models copy escaped text into them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from heapq import merge
from io import StringIO
from itertools import islice

from adapter.core.events import Json
from adapter.core.text.text_cache import TextCache
from adapter.parsing.bodies.worded_call import find_arguments
from adapter.parsing.bodies.worded_call_start import build_line_start
from adapter.parsing.bracket_delimited_json import CALL_KEYS
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS
from adapter.parsing.formats.tool_elements import is_distinctive_name
from adapter.parsing.marker_patterns import build_alternatives
from adapter.parsing.marker_tables import build_marker_tables
from adapter.parsing.stream_buffer import SPACE
from adapter.parsing.wrapper_tags import ANNOUNCING_WORD, announces_calls
from adapter.prompting.known_control_tokens import CHAT_TOKENS, MAX_ADDED, is_distinctive_token
from adapter.prompting.unmarked_call_positions import (
    MARK,
    find_bare_calls,
    find_broken_functions,
    find_heads,
    find_python_calls,
)
from adapter.tools.tool_set import ToolSet

NO_TOOLS = ToolSet()

_SPACES = f"[{re.escape(SPACE)}]"
_LABELED = (
    r"(?::\*{0,2}|\*\*:)[ \t]*`?[\w.:/-]+(?: [\w.:/-]+){0,5}`?\s*"
    r"(?:\*\*)?(?:action[ _]input|arguments|parameters|input|args)\b"
)
"""Pattern for a tool's name and the label of its arguments, which follow a label such as ``Action``."""
_NUMBERED = r"s\.[\w.-]{1,200}+:\d{1,6}\s*\{"
"""Pattern for the rest of a Kimi K2 call id after ``function``, and the start of the arguments."""
_WHOLE = r"\s*(?:```\w*\s*)?(?:[\w.-]+(?:[(\[]|[,:]?[ \t]{0,3}\{)|[{\[]\s*[{\[\"'])"
"""Pattern for the start of a call on one line, which follows a label and its colon."""
_CALL_LABELED = (_LABELED, rf"(?::\*{{0,2}}|\*\*:){_WHOLE}")
_SHAPES = {
    "<": (
        r"\|{1,2}[\w/\"!▁｜]", r"/?｜", r"/\|{1,2}\w", r"[\w:]{1,40}\|>", r"\]minimax",
        rf"tools>{_SPACES}*[\[{{<]", r"invoke(?!\w)", r"[a-z_][\w.-]{0,30}:invoke\s", r"/?seed:\w",
        r"/?longcat_\w", r"tokens_unused_\d", r"(?<=!<)function_call:",
        r"(?:special_|extra_id_|unused|reserved_?|mask:)\d", r"function>\s*<name>",
        rf"user>{_SPACES}*(?:\{{|[\w.:/-]+{_SPACES}*<)",
        r"role>(?:assistant|human|user|system|observation|tool|function)</role>",
        r"(?<=▁<)(?:PRE|SUF|MID|EOT)>",  # Code Llama: tokenizer_config.json of codellama/CodeLlama-7b-hf
    ),
    "[": (r"calling tool:", r"(?:control|reference_doc|unused_token)_\d", r"unused\d"),
    ">": (
        r">>[ \t]*[\w.:/-]+\r?\n\{", r" tool/function_call\r?\n",
        r">(?-i:TITLE|ABSTRACT|INTRODUCTION|SUMMARY|COMMENT|ANSWER|QUESTION|DOMAIN|PREFIX|SUFFIX|MIDDLE)<<",
    ),
    "`": (rf"(?<=```)(?:tool_(?:code|output)|{ANNOUNCING_WORD}\r?\n|[\w+#.:-]{{0,39}}[ \t]{{0,9}}[{{\[])",),
    "✿": (r"(?:function|args|result|return)✿",),
    "｜": (r"(?:ds|gc)ml｜",),
    "functools": (r"\s?\[",),
    "function call": (r"\s*\{", *_CALL_LABELED),
    **dict.fromkeys(("action", "tool call"), _CALL_LABELED),
    **dict.fromkeys(
        ("function", "tool"),
        (_LABELED, rf"(?::\*\*|\*\*:){_WHOLE}", *(f"_call{pattern}" for pattern in _CALL_LABELED), _NUMBERED),
    ),
    "tool_name": (r":[ \t]*[\w.:/-]+\s*(?:begin_arg:|```)",),
    **dict.fromkeys(("assistantcommentary", "assistantanalysis"), (r" to=",)),
}  # fmt: skip
"""Maps the text before a position at which ``MARK`` is inserted to patterns for the text after the position.

Letter case is ignored in both.
"""

_ORDINARY = frozenset(
    {
        "</function>", "</parameter>", "</param>", "</invoke>", "<invoke", "<tools>", "<function>", "<result>",
        "<response>", "] result:\n",
    }
)  # fmt: skip
"""XML tags that are not escaped as control tokens. Tags that open a call are escaped by the patterns above."""

_BRACKETS = "<[]{>`✿｜"
_WORDS = (
    *("functools", "function call", "function", "action", "observation"),
    *("tool_name", "tool call", "tool", "assistantcommentary", "assistantanalysis"),
)
_JOINT = re.compile(f"[{re.escape(_BRACKETS)}]|(?i:{'|'.join(_WORDS)})", re.ASCII)
_BRACKET = re.compile(f"[{re.escape(_BRACKETS)}]")
_MARKED = re.compile(
    f"{MARK}(?:(?<=[({re.escape(_BRACKETS)}]{MARK})|{'|'.join(f'(?<={word}{MARK})' for word in _WORDS)})",
    re.IGNORECASE | re.ASCII,
)
_CHUNK = 100_000
"""Maximum length of the text in one search, in characters. Other threads cannot run during a search."""
_MIN_CACHED = 256
_ESCAPED = TextCache(16_000_000)
"""Caches escaped strings, because every request of a conversation repeats all earlier results.

The strings have ``_MIN_CACHED`` to ``_CHUNK`` characters.
"""
_TAG = re.compile(r"<(?=/?([^\s<>/]+)([>/]|\s+(?:/|[\w.-]+\s*=)))")
_CLOSERS = re.compile(r"</?[^\s<>]+>|\[/[A-Z_]+\]")

_ANNOUNCED = re.compile(
    rf"{_SPACES}*+(?:```[^\n]{{0,40}}+\n{_SPACES}*+)?(?:(?:[\[\]{{}},]{_SPACES}*+)++[\"'“]"
    rf"|(?:[\[\]{{}},]{_SPACES}*+)*+([^\W\d][\w.-]{{0,80}}+){_SPACES}*+[:={{(])"
)
"""Matches the start of a call after a tag that announces calls."""


def escape_control_tokens(text: str, format: Format | None = None, tools: ToolSet = NO_TOOLS) -> str:
    """Escape ``text`` for a prompt, in time linear in its length. `unescape_control_tokens` is the inverse.

    ``format`` is the format of the result that contains ``text``; its closing marker is also escaped. ``tools`` are the
    tools that the model can call; text that calls one of them by name is also escaped.
    """
    finders = (find_python_calls, _find_worded_calls)
    if len(text) <= _CHUNK and _JOINT.search(text) is None and not any(any(find(text, tools)) for find in finders):
        return text
    if not _MIN_CACHED <= len(text) <= _CHUNK:
        return _escape(text, format, tools)
    key = (text, format, tools)
    if (escaped := _ESCAPED.find(key)) is None:
        escaped = _escape(text, format, tools)
        _ESCAPED.store(key, escaped, len(text))
    return escaped


def _escape(text: str, format: Format | None, tools: ToolSet) -> str:
    closing = _compile_closing_pattern(format) if format is not None else None
    positions = merge(
        _find_joints(text, tools),
        (match.end() for match in closing.finditer(text)) if closing is not None else (),
        find_heads(text, tools),
        find_python_calls(text, tools),
        _find_worded_calls(text, tools),
        (position for position in find_bare_calls(text, tools) if not text.startswith(MARK, position)),
        find_broken_functions(text, tools),
    )
    escaped, last = StringIO(), 0
    for position in positions:
        if position != last:
            escaped.write(text[last:position] + MARK)
            last = position
    return escaped.getvalue() + text[last:] if last else text


def select_added_control_tokens(tokens: Iterable[str]) -> tuple[str, ...]:
    """Select the tokens for `with_control_tokens` from ``tokens``, the list of a server or model file. Tokens that can
    be ordinary text, and tokens that every format already escapes, are excluded."""
    distinctive = (
        token
        for token in dict.fromkeys(tokens)
        if is_distinctive_token(token) and _BRACKET.search(token, 0, len(token) - 1)
    )
    return tuple(islice((token for token in distinctive if escape_control_tokens(token) == token), MAX_ADDED))


@lru_cache(maxsize=64)
def with_control_tokens(format: Format, tokens: tuple[str, ...]) -> Format:
    """Return ``format`` with a model's control tokens, from `select_added_control_tokens`, so that they are escaped."""
    return replace(format, control_tokens=tokens) if tokens else format


def unescape_control_tokens(text: str) -> str:
    """Restore text that `escape_control_tokens` changed, or a part of it."""
    return _MARKED.sub("", text) if MARK in text else text


def map_strings(change: Callable[[str], str], value: Json) -> Json:
    """Apply ``change`` to every string in ``value``, including keys."""
    match value:
        case str():
            return change(value)
        case list():
            return [map_strings(change, item) for item in value]
        case dict():
            return {change(key): map_strings(change, item) for key, item in value.items()}
        case _:
            return value


class StreamingUnescaper:
    """Applies `unescape_control_tokens` to text that arrives in chunks."""

    def __init__(self) -> None:
        self._before = ""

    def feed(self, chunk: str) -> str:
        whole = self._before + chunk
        restored = unescape_control_tokens(whole)[len(unescape_control_tokens(self._before)) :]
        self._before = whole[-_LONGEST_JOINT:]
        return restored


_LONGEST_JOINT = max(map(len, _WORDS)) + 1


# ------------------------------------------------------------------- control tokens

# All formats share the common pattern, which takes 30 ms and 200 KB. A model's own tokens have a separate one.


@cache
def _compile_common_pattern() -> re.Pattern[str]:
    """Return a pattern for text after which ``MARK`` is always inserted, for all formats and tools."""
    spoken, exact = _list_literals()
    rules = {joint: [MARK] for joint in (*_BRACKETS, *_WORDS)}
    for joint, shapes in _SHAPES.items():
        rules[joint] += [f"(?i:{shape})" for shape in shapes]
    for joint in "<[]":
        in_any_case = build_alternatives(sorted(literal[1:] for literal in spoken if literal.startswith(joint)))
        as_written = [re.escape(literal[1:]) for literal in sorted(exact) if literal.startswith(joint)]
        rules[joint] += [in_any_case, *as_written] if in_any_case else as_written
    joints = (f"(?i:{re.escape(joint)})(?={'|'.join(rests)})" for joint, rests in rules.items())
    return re.compile("|".join(joints), re.ASCII)


@lru_cache(maxsize=64)
def _compile_closing_pattern(format: Format) -> re.Pattern[str] | None:
    """Return a pattern for the text after which ``MARK`` is inserted because of ``format``, or None if there is none.

    The pattern matches the control tokens that were added to the format, and the closing marker of its results.
    """
    envelope = format.encode_result("tool", "\0", "call")
    closers = {closer.lower() for closer in _CLOSERS.findall(envelope.partition("\0")[2])}
    if format.name not in FORMATS:  # a derived format
        closers |= {marker for marker in _list_markers((format,)) if marker[0] in _BRACKETS} - _ORDINARY
    closers -= _list_literals()[0]
    rules = [f"{re.escape(closer[0])}(?={build_alternatives([closer[1:]])})" for closer in sorted(closers)]
    rules += ["(?i:observation)(?=:)"] if "observation:" in envelope.lower() else []
    rules += _list_token_patterns(format.control_tokens)
    return re.compile("|".join(rules), re.ASCII) if rules else None


def _list_token_patterns(tokens: tuple[str, ...]) -> Iterator[str]:
    """Yield patterns that match the first bracket of each token, but only inside the whole token."""
    rests: dict[str, list[str]] = {}
    for token in tokens:
        match = _BRACKET.search(token)
        assert match is not None
        rests.setdefault(token[: match.end()], []).append(token[match.end() :])
    for start, ends in rests.items():
        before = f"(?<={re.escape(start[:-1])})" if start[:-1] else ""
        yield f"{before}{re.escape(start[-1])}(?={build_alternatives(ends, exact=True)})"


def _find_joints(text: str, tools: ToolSet) -> Iterator[int]:
    """Yield the positions at which to insert ``MARK`` in common control tokens and in tags that begin calls."""
    pattern, names = _compile_common_pattern(), tools.lower_names
    for start in range(0, len(text), _CHUNK):
        end = start + _CHUNK
        for joint in _JOINT.finditer(text, start, end + _LONGEST_JOINT):
            at = joint.start()
            if at >= end:
                break
            tag = _TAG.match(text, at) if names and text[at] == "<" else None
            if (tag is not None and _begins_call(tag, tools)) or pattern.match(text, at) is not None:
                yield joint.end()


def _find_worded_calls(text: str, tools: ToolSet) -> Iterator[int]:
    """Yield the positions at which to insert ``MARK`` in calls that are announced only by words."""
    for line in _compile_line_start(tuple(tools)).finditer(text) if tools.may_be_named(text) else ():
        end = find_arguments(text, line.end(), tools)
        joint = _JOINT.search(text, line.end(), end) if end is not None else None
        if joint is not None or end is not None:
            yield joint.end() if joint is not None else text.find("(", line.end()) + 1


@lru_cache(maxsize=64)
def _compile_line_start(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the start of a line that may announce a call in words."""
    return re.compile(rf"(?:\A|(?<=\n))(?=[\[<]|{build_line_start(names)})")


def _begins_call(tag: re.Match[str], tools: ToolSet) -> bool:
    """Return whether a tag probably begins a call.

    Such a tag has a tool's name, or announces calls and is followed by text that looks like a call.
    """
    if tag[1].lower() in tools.lower_names:
        tool = tools.match(tag[1])
        return tag[2].strip() in ">/" or tool is None or is_distinctive_name(tool.name)
    if tag[2] != ">" or not announces_calls(tag[1]):
        return False
    start = _ANNOUNCED.match(tag.string, tag.end(2))
    return start is not None and (start[1] is None or start[1] in CALL_KEYS or tools.match(start[1]) is not None)


@cache
def _list_literals() -> tuple[frozenset[str], frozenset[str]]:
    """Return the literals to escape: the markers of all formats, in lower case, and all known control tokens."""
    tokens = {token for format in FORMATS.all for token in (*format.special_tokens, *format.stop_sequences)}
    return _list_markers(FORMATS.all) - _ORDINARY, frozenset({*CHAT_TOKENS, *tokens}) - _ORDINARY


def _list_markers(formats: tuple[Format, ...]) -> frozenset[str]:
    """Return the markers that parsers of ``formats`` recognize, in lower case."""
    tables = build_marker_tables(formats, ())
    marked = (tables.openers, tables.stray_closers, tables.end_tokens, tables.other_role_markers, tables.result_markers)
    return frozenset().union(*marked, tables.reasoning, tables.reasoning.values())
