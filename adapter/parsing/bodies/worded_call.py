"""Parse a call in words, which no format defines: words that announce the call, the tool's name, and the arguments.

::

    [Calling tool: NAME({...})]                    Calling NAME with input: {...}
    [Tool Call] name=NAME id=ID args={...}         [TOOL: NAME] {...} [/TOOL]
    TOOL_CALL {"name": "NAME", ...}                <<<TOOL_CALL>>> {"name": "NAME", ...} <<<END_TOOL_CALL>>>
    to=functions.NAME {...}                        ## Using tool: NAME
    Tool: NAME, KEY=VALUE, KEY=VALUE               ## Tool Input: "{...}"
    [Calling tool: NAME]                           print(default_api.NAME(KEY=VALUE))
    <parameter name="KEY">value</parameter>

Between the start of the line and the arguments, there may only be punctuation, a known tool's name, and words that
announce a call. Sentences about calls contain other words, end with a full stop, or continue after the call.
"""

from __future__ import annotations

import re
from functools import lru_cache

from adapter.core.errors import FormatError
from adapter.core.json.decode import decode_json
from adapter.parsing.bodies.invoke_tags import read_all
from adapter.parsing.bodies.python_scanner import read_one_call
from adapter.parsing.bracket_delimited_json import FENCE_END, UntaggedJson
from adapter.parsing.call_events import is_placeholder
from adapter.parsing.fallback_readers import MAX_GIVEN_BACK
from adapter.parsing.format import TEXT, BodyResult, BodySource
from adapter.parsing.json_calls import skip_string
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader
from adapter.tools.decoded_json_calls import DecodedCall, parse_arguments
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.tools.unbracketed_arguments import TYPE_NAMES, parse_plain_arguments

LINE_LIMIT = 4000
"""Maximum length of arguments without brackets, in characters."""

ANNOUNCING_WORDS = (
    "tool", "function", "func", "action", "call", "calling", "invoke", "invoking", "invocation", "using",
)  # fmt: skip
_OTHER = (
    "running", "executing", "execute", "request", "name", "recipient", "assistant", "commentary", "to", "with", "the",
    "and", "input", "arguments", "argument", "args", "parameters", "params", "json", "code", "print", "begin", "start",
    "end", "block", "default_api", "id", "use"
)  # fmt: skip
ANY_WORD = "|".join(rf"{word}s?" for word in (*ANNOUNCING_WORDS, *_OTHER))
"""Pattern for a word that may come before a call's arguments."""
_SIGN = r"(?![.!?]\s|<[^\w<])[^\w{¤]"
_ID = r"(?i:(?:call_)?id)\s*[=:]\s*[\w-]+|call[_-][\w-]+"
_BEGINS_ID = r"(?i:c|ca|cal|call|call[_-]|(?:call_)?id?\s*[=:]?)\s*\Z"
_is_word = re.compile(r"[\w.<-]*").fullmatch
_bracket = get_marker_set("]")
_announces = re.compile("|".join(ANNOUNCING_WORDS) + r"|\bto=", re.IGNORECASE)
_OBJECT_ARGUMENT = re.compile(r"[\w.-]+\s*\(\s*\{")
_ORDER = re.compile(r"\W*(?:use|call|run|execute)[ \t]+", re.IGNORECASE)
"""Matches the words before a tool's name in an instruction to another person, such as ``call NAME with ...``."""
_JOINT = re.compile(r"[\[<({]|tool|function|action", re.IGNORECASE)
"""Matches text in untrusted input. `adapter.prompting.escaping` inserts a character after it to prevent a call in
words."""
_LABEL = re.compile(r"\W+|\w+(?: \w+)?\s?[^\w\s]|\w+_\w+|[A-Z]{3}")
_QUOTES = re.compile(
    r"\b(?:previous|earlier|example|logs?|history|transcript|wrote|said|says|printed|shows|looks|look like|would|"
    r"format|syntax|schema|definition|documentation|output|such as|e\.g|like this|as follows|"
    r"you (?:can|could|should|may|might|must|need))\b|\blike:\Z",
    re.IGNORECASE,
)
"""Matches words in a line that show that a call below it is only quoted."""
_CLOSING_SIGNS = "])}>\"'`"
_CLOSING_TAG = re.compile(rf"[\[<(]{{1,3}}[/|]?\s*(?i:(?:(?:{ANY_WORD})[_ -]?)+)[|/]?[\]>)]{{1,3}}")
_MAY_BE_CLOSING_TAG = re.compile(r"[\[<(]{1,3}[^\[\]<>()\n]{0,40}+[\]>)]{0,3}")
_MODULE = "default_api"
"""The module that Gemini models write before a tool in code."""
_ONLY_MODULE = re.compile(rf"[*#@\s]*|\s*(?:print\s*\(\s*)?{_MODULE}\.").fullmatch


def _may_begin_word(text: str, words: tuple[str, ...]) -> bool:
    """Return whether ``text`` may be the start of one of ``words`` or of a word that announces a call."""
    begun = text.lstrip("_").lower()
    return _is_word(begun) is not None and any(
        word.lower().startswith(begun[: len(word)]) for word in (*ANNOUNCING_WORDS, *_OTHER, *words)
    )


@lru_cache(maxsize=64)
def build_head(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the text up to a tool's name, or up to JSON that contains it."""
    name = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    word = rf"(?!(?:{name})(?![\w-]))(?:{_ID}|(?:{ANY_WORD})_?)+(?![^\W_])"
    head = rf"(?!\s*[>|*-]\s)(?P<head>(?:{_SIGN}|{word})*+)(?:(?P<name>{name})(?![\w-])|(?P<json>\{{)(?!¤))?"
    return re.compile(head, re.IGNORECASE)


@lru_cache(maxsize=256)
def _build_tail(keys: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the text between a tool's name and the start of its arguments."""
    key = "|".join(map(re.escape, sorted(keys, key=len, reverse=True))) or "(?!)"
    bracket = rf"\((?=\s*[\w\"'{{)*])(?!{_ID}|{_BEGINS_ID})"
    start = rf"\{{(?!¤)|\"\s*\{{(?!¤)|<parameter\b|{bracket}|(?:{key})\s?[=:](?!\s*[\"']?\{{)"
    return re.compile(
        rf"(?P<head>(?:(?!{start})(?:{_SIGN}|(?:{_ID}|(?i:{ANY_WORD})_?)+(?![^\W_])))*+)(?P<start>{start})?"
    )


def read_worded_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call in words at the start of a line. If there is none, consume nothing and return `TEXT`."""
    start = len(consumed)
    if source.reread_characters > MAX_GIVEN_BACK:
        return TEXT
    source.may_be_text = True
    result = yield from _read_call(source, consumed)
    is_call = result.calls or source.was_cut or (announces_call("".join(consumed)) and result.error is not None)
    if result.not_a_call or not is_call:
        source.reread_characters += sum(map(len, source.give_back(consumed, start)))
        return TEXT
    yield from _consume_closers(source, consumed)
    is_announced = announces_call("".join(consumed[start:]))
    return result.with_fixes("misspelt-open-tag" if is_announced else "no-markers")


def read_last_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call after a label such as ``Tool Call:``. The answer must end after the call."""
    if not source.at_line_start:
        return TEXT
    start, ahead = len(consumed), list[str]()
    result = yield from read_worded_call(source, consumed)
    is_last = (yield from source.skip_space(ahead)) == ""
    source.push_back("".join(ahead))
    if not is_last:
        source.give_back(consumed, start)
    return result if is_last else TEXT


def announces_call(text: str) -> bool:
    """Return whether ``text``, a call and the words before it, contains a word that announces the call."""
    return text.startswith("[") or _announces.search(text.partition("{")[0].partition("(")[0]) is not None


def find_arguments(text: str, start: int, tools: ToolSet) -> int | None:
    """Return the offset after the first character of the arguments if a call in words begins at ``start``, the start of
    a line. Otherwise, return None."""
    head = build_head(tuple(tools)).match(text, start, start + NAME_LIMIT)
    if head is None or not (head["name"] or (head["json"] and _announces.search(head["head"]))):
        return None
    tool = tools.match(head["name"]) if head["name"] else None
    if tool is None or text.startswith("]", head.end()):
        return head.end()
    tail = _build_tail(tuple(tool.properties)).match(text, head.end(), head.end() + NAME_LIMIT)
    is_worded = _announces.search(head["head"]) or _MODULE in head["head"]
    if tail is None or not tail["start"] or (tail["start"] == "(" and not is_worded):
        return None  # Python calls without words before them are found by `adapter.prompting.escaping`
    return tail.end()


def has_label(text: str) -> bool:
    """Return whether ``text``, a call and the words before it, begins with a label rather than a sentence."""
    return _LABEL.match(text) is not None


def quotes_calls(line: str) -> bool:
    """Return whether ``line`` introduces a quotation. The model only quotes a call below such a line."""
    return _QUOTES.search(line) is not None


def _read_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    names = tuple(source.tools)
    head = yield from _peek(build_head(names), names, source)
    if head is None or _ORDER.fullmatch(head["head"]) or _has_tag(head["head"], source):
        return TEXT
    is_announced = announces_call("".join(consumed) + head["head"])
    tool = source.tools.match(head["name"]) if head["name"] else None
    if tool is None:
        if not head["json"] or not is_announced:
            return TEXT
        consumed.append(head["head"])
        source.position += len(head["head"])
        result = yield from UntaggedJson("arguments", after_marker=False, ends=(FENCE_END,))(source, consumed)
        return result if result.calls_known_tools(source.tools) else TEXT
    consumed.extend([head["head"], head["name"]])
    source.position += len(head.group())
    if head["head"].endswith("[") and (yield from source.consume_marker(_bracket, consumed)):
        result = yield from _read_brackets(tool, source, consumed)
        if result.calls:
            return result
    keys = tuple(tool.properties)
    tail = yield from _peek(_build_tail(keys), ("<parameter", *keys), source)
    if tail is None:
        return TEXT
    result = yield from _read_arguments(tool, tail, source, consumed)
    if not is_announced and not (_ONLY_MODULE(head["head"]) and _fits(result, tool)):
        return TEXT
    is_quoted = any(map(_is_example, result.calls)) or head["head"].lstrip()[:1] in ("`", '"', "'")
    is_quoted = is_quoted or (head["head"].endswith("(") and tail["start"] != "(")
    return TEXT if is_quoted else result.remove_fixes("positional-arguments")


def _peek(pattern: re.Pattern[str], words: tuple[str, ...], source: BodySource) -> Reader[re.Match[str] | None]:
    """Return the match of ``pattern`` at the current position, or None. Wait until more text cannot change the result.
    ``words`` are the words, other than announcing ones, that may come next. Nothing is consumed."""
    while True:
        ahead = source.text[source.position : source.position + NAME_LIMIT]
        match = pattern.match(ahead)
        end = match.end("head") if match else 0
        if match is not None and match.end() > end and (source.final or match.end() < len(ahead)):
            return match
        may_continue = match is not None and (match.end() == len(ahead) or _may_begin_word(ahead[end:], words))
        if source.final or len(ahead) == NAME_LIMIT or not may_continue:
            return None
        yield


def _read_arguments(tool: Tool, tail: re.Match[str], source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    between, start = tail["head"], tail["start"]
    if start == "(":
        source.push_back(consumed.pop())
        if between.strip() not in ("", ".call"):
            return TEXT
        begun = len(consumed)
        result = yield from read_one_call(source, consumed)
        is_object = _OBJECT_ARGUMENT.match("".join(consumed[begun:])) is not None
        return result.remove_fixes("positional-arguments") if is_object else result
    consumed.append(between)
    source.position += len(between)
    if start == "{":
        return (yield from UntaggedJson("arguments", after_marker=True, name=tool.name)(source, consumed))
    if start.startswith('"'):
        return (yield from _read_quoted_object(tool, source, consumed))
    if start.startswith("<"):
        return (yield from read_all.read_named(tool.name, "<invoke", source, consumed))
    return (yield from _read_pairs(tool, source, consumed)) if _JOINT.search("".join(consumed)) else TEXT


def _read_quoted_object(tool: Tool, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the arguments of ``tool`` as JSON inside a string."""
    start = len(consumed)
    consumed.append('"')
    source.position += 1
    yield from skip_string(source, consumed, '"')
    try:
        arguments, fixes = parse_arguments(decode_json("".join(consumed[start:])).value)
    except FormatError:
        return TEXT
    return BodyResult((DecodedCall(tool.name, arguments),), tuple(fixes))


def _read_pairs(tool: Tool, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the arguments of ``tool`` as pairs in the rest of the line."""
    line: list[str] = []
    while (text := (yield from source.consume_until("\n", LINE_LIMIT, line))) is None:
        if not source.final:
            return TEXT
        text = source.consume_rest()
        line.append(text)
        break
    raw = "".join(line)
    bare = text.rstrip().rstrip("])>")
    plain = parse_plain_arguments(bare, tool)
    result = BodyResult((DecodedCall(tool.name, plain[0]),), (plain[1],)) if plain else TEXT
    is_torn = any(isinstance(each, str) and each[:1] in ("'", '"') for each in (plain or ({}, ""))[0].values())
    if is_torn or source.was_cut or not _fits(result, tool):
        source.push_back(raw)
        return TEXT
    source.push_back(raw[len(text.rstrip()) :])
    consumed.append(text.rstrip())
    return result


def _has_tag(head: str, source: BodySource) -> bool:
    """Return whether ``head``, the words before a tool's name, contains the tag of an element or a format."""
    tag, count = source.openers.search(head, 0), 0
    while tag is not None:
        start, end = tag
        count += head[start] == "<"
        if count > 1 or (start > 0 and head[start] in "<[" and head[start - 1] not in "<["):
            return True
        tag = source.openers.search(head, end)
    return head.endswith("<")


def _read_brackets(tool: Tool, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the arguments in ``[NAME]...[/NAME]``, after the first tag: pairs, or the value of the tool's only
    parameter."""
    taken: list[str] = []
    text = yield from source.consume_until(f"[/{tool.name}]", LINE_LIMIT, taken)
    plain = parse_plain_arguments(text, tool) if text is not None else None
    keys = tool.required or tuple(tool.properties)
    if text is not None and plain is None and len(keys) == 1:
        plain = {keys[0]: text.strip()}, "positional-arguments"
    if plain is None:
        source.push_back("".join(taken))
        return TEXT
    consumed.extend(taken)
    return BodyResult((DecodedCall(tool.name, plain[0]),), (plain[1],))


def _fits(result: BodyResult, tool: Tool) -> bool:
    """Return whether the call has all required arguments and no undeclared ones."""
    return "positional-arguments" not in result.fixes and all(
        tool.accepts(call.arguments.keys()) for call in result.calls
    )


def _is_example(call: DecodedCall) -> bool:
    """Return whether ``call`` is only an example: its arguments are placeholders, names of types, or a schema."""
    values = call.arguments.values()
    are_types = bool(values) and all(value in TYPE_NAMES for value in values if isinstance(value, str))
    has_placeholder = any(
        isinstance(value, str) and is_placeholder(key, value) for key, value in call.arguments.items()
    )
    is_schema = isinstance(call.arguments.get("properties"), dict)
    return has_placeholder or is_schema or (are_types and all(isinstance(each, str) for each in values))


def _consume_closers(source: BodySource, consumed: list[str]) -> Reader[None]:
    """Consume the punctuation and tags after a call that match the ones before its name."""
    while True:
        gap: list[str] = []
        char = yield from source.skip_space(gap)
        if char and char in _CLOSING_SIGNS:
            source.position += 1
            consumed.extend([*gap, char])
            continue
        tag = None
        if char and char in "[<(":
            tag = yield from source.peek_match(_CLOSING_TAG, NAME_LIMIT, _MAY_BE_CLOSING_TAG.fullmatch)
        if tag is None:
            source.push_back("".join(gap))
            return
        consumed.extend(gap)
        source.consume_match(tag, consumed)
