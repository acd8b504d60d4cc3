"""Text from outside as a model may see it: nothing in it ends a turn, closes a result or is a call.

Tokenizers take ``<|im_end|>`` for a control token wherever it stands in a prompt, and models repeat what they read.
So `neutralise` puts ``¤`` behind the first character of whatever could act::

    <|im_end|>            <¤|im_end|>
    </tool_call>          <¤/tool_call>
    [TOOL_CALLS]          [¤TOOL_CALLS]
    {"name": "read_file", "arguments": {}}   at the beginning of a line: {¤"name": ...

All else stays as it is: code, HTML, Markdown, JSON that is no call. Where ``¤`` stands behind such a character already
it gets one more, so that `restore`, which takes one away, gives back every text exactly. `restore` is for the arguments
of calls: there models repeat what they were shown, and mean what it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from heapq import merge
from io import StringIO
from itertools import islice

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.core.json.decode import decode_json
from adapter.parsing.bare_json import CALL_KEYS, MAX_OPENING
from adapter.parsing.bodies.python_scanner import read_list
from adapter.parsing.format import Format, ReadContext
from adapter.parsing.formats import FORMATS
from adapter.parsing.json_scanner import MAX_ATTEMPTS, scan_json_value
from adapter.parsing.marker_set import alternatives, markers_for
from adapter.parsing.marker_tables import build_marker_tables
from adapter.parsing.stream_buffer import SPACE, Reader, StreamBuffer, T
from adapter.prompting.control_tokens import CHAT_TOKENS, MAX_TOLD, is_distinctive_token
from adapter.tools.call_shapes import looks_like_call
from adapter.tools.tool import ToolSet

MARK = "¤"
NO_TOOLS = ToolSet()

_SHAPES = {
    "<": (
        r"\|{1,2}[\w/\"!▁｜]", r"/?｜", r"/\|{1,2}\w", r"[\w:]{1,40}\|>", r"\]minimax", r"tools>\s*[\[{]",
        r"invoke(?!\w)", r"/?seed:\w", r"/?longcat_\w", r"tokens_unused_\d",
        r"(?:special_|extra_id_|unused|reserved_)\d", r"function>\s*<name>",
    ),
    "[": (r"calling tool:",),
    ">": (
        r">>[ \t]*[\w.:/-]+\n\{", r" tool/function_call\n",
        r">(?-i:TITLE|ABSTRACT|INTRODUCTION|SUMMARY|COMMENT|ANSWER|QUESTION|DOMAIN|PREFIX|SUFFIX|MIDDLE)<<",
    ),
    "`": (r"(?<=```)tool_(?:code|output)",),
    "✿": (r"(?:function|args|result|return)✿",),
    "｜": (r"(?:ds|gc)ml｜",),
    "functools": (r"\s?\[",),
    "function call": (r"\s*\{",),
    "action": (r":[ \t]*`?[\w.:/-]+`?\s*action input:",),
    "tool_name": (r":[ \t]*[\w.:/-]+\s*(?:begin_arg:|```)",),
    "assistantcommentary": (r" to=",),
}  # fmt: skip
"""By what stands before the mark: what must follow for it to be put there, in any letter case."""

_ORDINARY = frozenset(
    {
        "</function>", "</parameter>", "</param>", "</invoke>", "<invoke", "<tools>", "<function>", "<result>",
        "<response>", "] result:\n",
    }
)  # fmt: skip
"""Tags of other people's XML that are no tokens; those of them that open a call have a shape above."""

_BRACKETS = "<[]{>`✿｜"
_WORDS = ("functools", "function call", "action", "observation", "tool_name", "assistantcommentary")
_JOINT = re.compile(f"[{re.escape(_BRACKETS)}]|(?i:{'|'.join(_WORDS)})", re.ASCII)
_BRACKET = re.compile(f"[{re.escape(_BRACKETS)}]")
_MARKED = re.compile(
    f"{MARK}(?:(?<=[{re.escape(_BRACKETS)}]{MARK})|{'|'.join(f'(?<={word}{MARK})' for word in _WORDS)})",
    re.IGNORECASE | re.ASCII,
)
_STRETCH = 100_000
"""Characters of one search. Whoever else is at work has to wait for its end."""
_TAG = re.compile(r"<(?=/?([^\s<>/]+)(>|\s+[\w.-]+\s*=))")
_CLOSERS = re.compile(r"</?[^\s<>]+>|\[/[A-Z_]+\]")

_LINE_SPACE = re.escape(SPACE.replace("\n", ""))
_BARE = re.compile(
    rf"(?:\A|\n)[{_LINE_SPACE}]*+(?=[\[{{])(?:"
    rf"(?P<json>(?:[\[{{][{re.escape(SPACE)}]*+){{1,{MAX_OPENING}}}+[\"'“](?P<key>[^\"'”]{{1,64}})[\"'”])"
    rf"|(?P<list>\[\s*+[^\W\d][\w.-]*+\s*+\())"
)
"""Where a call without markers may begin: what stands there, up to its first key or its first parenthesis."""

_HEAD = re.compile(r"[ \t]*+([\w.:/-]++)\n\{")
"""How an answer begins whose prompt ended in Functionary's ``>>>``."""

_TOKENS = markers_for('"', "'", "{", "[", "}", "]")


def escape_control_tokens(text: str, format: Format | None = None, tools: ToolSet = NO_TOOLS) -> str:
    """``text`` for a prompt. Linear in its length; `restore` gives it back.

    ``format``: in which the result is handed to the model, so that it cannot close its envelope.
    ``tools``: those of the session, whose names make a call of what is none without them.
    """
    if len(text) <= _STRETCH and _JOINT.search(text) is None:
        return text
    closing = _closing(format) if format is not None else None
    places = merge(
        _joints(text, tools),
        (found.end() for found in closing.finditer(text)) if closing is not None else (),
        (place for place in _bare_calls(text, tools) if not text.startswith(MARK, place)),
    )
    marked, last = StringIO(), 0
    for place in places:
        if place != last:
            marked.write(text[last:place] + MARK)
            last = place
    return marked.getvalue() + text[last:] if last else text


def added_control_tokens(told: Iterable[str]) -> tuple[str, ...]:
    """Of control tokens that a server or a file tells, those for `knowing`: neither what may be ordinary text
    (`is_telling`) nor what `neutralise` breaks anyway."""
    own = (
        token
        for token in dict.fromkeys(told)
        if is_distinctive_token(token) and _BRACKET.search(token, 0, len(token) - 1)
    )
    return tuple(islice((token for token in own if escape_control_tokens(token) == token), MAX_TOLD))


@lru_cache(maxsize=64)
def with_control_tokens(format: Format, tokens: tuple[str, ...]) -> Format:
    """The format of one model, whose own control tokens, as `own_tokens` gives them, `neutralise` breaks, too."""
    return replace(format, control_tokens=tokens) if tokens else format


def unescape_control_tokens(text: str) -> str:
    """The text that `neutralise` was given, from what it gave; a part of it from the same part."""
    return _MARKED.sub("", text) if MARK in text else text


def map_strings(change: Callable[[str], str], value: Json) -> Json:
    """``value`` with ``change`` made in every string in it, keys too."""
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
    """`restore` for text that comes in pieces."""

    def __init__(self) -> None:
        self._before = ""

    def feed(self, piece: str) -> str:
        whole = self._before + piece
        restored = unescape_control_tokens(whole)[len(unescape_control_tokens(self._before)) :]
        self._before = whole[-_LONGEST_JOINT:]
        return restored


_LONGEST_JOINT = max(map(len, _WORDS)) + 1


# ------------------------------------------------------------------- what acts


# What a session adds is looked for apart: the pattern for all the rest takes 30 ms and 200 KB, too much to make
# for each of its formats and tool sets.


@cache
def _acting() -> re.Pattern[str]:
    """Matches what stands before each place where a mark is to be put whatever the format and the tools."""
    spoken, exact = _literals()
    rules = {joint: [MARK] for joint in (*_BRACKETS, *_WORDS)}
    for joint, shapes in _SHAPES.items():
        rules[joint] += [f"(?i:{shape})" for shape in shapes]
    for joint in "<[]":
        in_any_case = alternatives(sorted(literal[1:] for literal in spoken if literal.startswith(joint)))
        as_written = [re.escape(literal[1:]) for literal in sorted(exact) if literal.startswith(joint)]
        rules[joint] += [in_any_case, *as_written] if in_any_case else as_written
    joints = (f"(?i:{re.escape(joint)})(?={'|'.join(rests)})" for joint, rests in rules.items())
    return re.compile("|".join(joints), re.ASCII)


@lru_cache(maxsize=64)
def _closing(format: Format) -> re.Pattern[str] | None:
    """Finds what else closes the envelope of a result."""
    envelope = format.encode_result("tool", "\0", "call")
    closers = {closer.lower() for closer in _CLOSERS.findall(envelope.partition("\0")[2])} - _literals()[0]
    closers |= {marker for marker in _own_markers(format) if marker[0] in _BRACKETS} - _literals()[0] - _ORDINARY
    rules = [f"{re.escape(closer[0])}(?={alternatives([closer[1:]])})" for closer in sorted(closers)]
    rules += ["(?i:observation)(?=:)"] if "observation:" in envelope.lower() else []
    rules += _told(format.control_tokens)
    return re.compile("|".join(rules), re.ASCII) if rules else None


def _told(tokens: tuple[str, ...]) -> Iterator[str]:
    """Patterns for the first bracket of each token, by what stands before and behind it."""
    rests: dict[str, list[str]] = {}
    for token in tokens:
        found = _BRACKET.search(token)
        assert found is not None
        rests.setdefault(token[: found.end()], []).append(token[found.end() :])
    for start, ends in rests.items():
        before = f"(?<={re.escape(start[:-1])})" if start[:-1] else ""
        yield f"{before}{re.escape(start[-1])}(?={alternatives(ends, exact=True)})"


def _own_markers(format: Format) -> set[str]:
    """In lower case, the markers of a format that was derived: `_literals` has those of all others."""
    if format.name in FORMATS:
        return set()
    markers = (*(opener.marker for opener in format.openers), *format.reasoning, *format.reasoning.values())
    return {
        each.lower()
        for each in (
            *markers,
            *format.stray_closers,
            *format.end_tokens,
            *format.other_role_markers,
            *format.result_markers,
        )
    }


def _joints(text: str, tools: ToolSet) -> Iterator[int]:
    """Where a mark goes behind a bracket or a word: of what acts anyway, and of tags with the name of a tool."""
    acting, names = _acting(), tools.lower_names
    for start in range(0, len(text), _STRETCH):
        end = start + _STRETCH
        for joint in _JOINT.finditer(text, start, end + _LONGEST_JOINT):
            at = joint.start()
            if at >= end:
                break
            tag = _TAG.match(text, at) if names and text[at] == "<" else None
            is_tool = tag is not None and tag[1].lower() in names and (tag[2] == ">" or "_" in tag[1])
            if is_tool or acting.match(text, at) is not None:
                yield joint.end()


@cache
def _literals() -> tuple[frozenset[str], frozenset[str]]:
    """What parsers act on, in lower case, and what tokenizers take for control tokens."""
    tables = build_marker_tables(FORMATS.all, ())
    spoken = {*tables.openers, *tables.strays, *tables.ends, *tables.next_turns, *tables.results}
    spoken |= {*tables.reasoning, *tables.reasoning.values()}
    tokens = {token for format in FORMATS.all for token in (*format.special_tokens, *format.stop_sequences)}
    return frozenset(spoken) - _ORDINARY, frozenset({*CHAT_TOKENS, *tokens}) - _ORDINARY


# ------------------------------------------------------------------- calls without markers


def _bare_calls(text: str, tools: ToolSet) -> Iterator[int]:
    """Where a mark keeps a bare call from being one: behind its first bracket."""
    if (head := _HEAD.match(text)) is not None and (not tools or head[1] in tools):
        yield head.end()
    budget = 4 * len(text) + 10_000
    for found in _lines(text):
        start = found.start("json") if found["json"] else found.start("list")
        if found["json"] and found["key"] not in CALL_KEYS and found["key"] not in tools:
            continue
        # Of a text that is read over and over, what only looks like a call is marked, too.
        is_call, size = _is_call(text, start, tools) if budget > 0 else (True, 0)
        budget -= size
        if is_call:
            yield start + 1


def _lines(text: str) -> Iterator[re.Match[str]]:
    """The lines that begin as `_BARE` says."""
    at = 0
    while at >= 0:
        found = _BARE.match(text, at)
        if found is not None:
            yield found
        at = text.find("\n", max(at + 1, found.end()) if found is not None else at + 1)


def _is_call(text: str, start: int, tools: ToolSet) -> tuple[bool, int]:
    """Whether a call begins at ``start``, and how many characters it took to see that."""
    source, span = StreamBuffer(text, final=True), list[str]()
    source.position = start
    if _finished(read_list(source, span, ReadContext(tools))).calls:
        return True, sum(map(len, span))
    source, piece = StreamBuffer(text, final=True), list[str]()
    source.position = start
    for attempt in range(1, MAX_ATTEMPTS + 1):
        bracket = _finished(scan_json_value(source, piece, _TOKENS))
        size = attempt * (source.position - start)
        try:
            value = decode_json("".join(piece), closed=False).value
        except FormatError:
            if not bracket:
                return False, size
            continue  # stray quotes: the brackets may balance again further on
        items = value if isinstance(value, list) else [value]
        return bool(items) and all(looks_like_call(item) or _is_named(item, tools) for item in items), size
    return False, size


def _is_named(item: Json, tools: ToolSet) -> bool:
    return isinstance(item, dict) and len(item) == 1 and next(iter(item)) in tools


def _finished(reader: Reader[T]) -> T:
    """What ``reader`` returns, whose text is all there."""
    try:
        next(reader)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("a reader waited for more of a text that has ended")
