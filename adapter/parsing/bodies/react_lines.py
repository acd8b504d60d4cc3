"""Parse calls on two labeled lines: the tool's name, and the arguments as JSON.

::

    Action: read_file                                  ✿FUNCTION✿: read_file
    Action Input: {"path": "a.py"}                     ✿ARGS✿: {"path": "a.py"}
    Observation: ...                                   ✿RESULT✿: ...
    Action: search(query="a")                          Action: search["a"], search, {"query": "a"}
    Action: {"name": "search", "arguments": {...}}     also in a code fence

The arguments may also be plain text; see `unbracketed_arguments`. The model must stop at the third label; it invents
any text after that.
"""

from __future__ import annotations

import re
from functools import partial

from adapter.parsing.bodies.python_scanner import read_one_call
from adapter.parsing.bracket_delimited_json import FENCE_END, UntaggedJson
from adapter.parsing.fallback_readers import read_call_or_text
from adapter.parsing.format import CUT_OFF, TEXT, BodyReader, BodyResult, BodySource
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.unbracketed_arguments import parse_plain_arguments

LANGUAGE_LIMIT = 20
"""Maximum length of the language of a code fence around the arguments."""

_fence, _tick, _inline_object = get_marker_set("```"), get_marker_set("`"), get_marker_set("`{")
_LANGUAGE = re.compile(r"[a-zA-Z]*(?=[^a-zA-Z])")
_is_letters = re.compile("[a-zA-Z]*").fullmatch
_NAME = re.compile(r"[ \t]*`?([\w.:/-]+(?: [\w.:/-]+){0,5}+)`?[ \t]*")
_BEGINS_CALL = re.compile(r"\s{0,9}(?:[{\[`]|[^\W\d][\w.-]{0,80}+(?:[(\[]|[,:]?[ \t]{0,3}\{))")
_MAY_BEGIN_CALL = re.compile(r"\s{0,9}(?:[^\W\d][\w.-]{0,80}+(?:[,:]?[ \t]{0,3})?)?")
_NAMED_OBJECT = re.compile(r"([^\W\d][\w.-]{0,80}+)[,:]?[ \t]{0,3}(?=\{)")
_BRACKETED = re.compile(r"([^\W\d][\w.-]{0,80}+)\[([^\[\]\n]{0,200})\]")
_MAY_BE_BRACKETED = re.compile(r"[\w.-]{1,81}+(?:\[[^\[\]\n]*)?")


def build_labeled_reader(arguments: tuple[str, ...], result_label: str) -> BodyReader:
    """Return a parser for the text after a label such as ``Action:``. The tool's name is in the rest of the line, and
    the arguments follow one of the labels ``arguments``. ``result_label`` begins a result, which ends the call."""
    label, line_end = get_marker_set(*arguments), get_marker_set("\n", *arguments)

    def read(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        if not source.at_line_start:
            return TEXT
        ends = ("\n" + consumed[-1], "\n" + result_label)
        if (yield from source.peek_match(_BEGINS_CALL, NAME_LIMIT, _MAY_BEGIN_CALL.fullmatch)) is not None:
            read_whole = partial(_read_whole_call, ends=get_marker_set(*ends))
            whole = yield from read_call_or_text(read_whole, source, consumed)
            if whole.calls:
                return whole
        return (yield from read_lines(source, consumed, ends))

    def read_lines(source: BodySource, consumed: list[str], ends: tuple[str, ...]) -> Reader[BodyResult]:
        if not (yield from source.peek_marker(line_end, NAME_LIMIT)):
            return TEXT
        line: list[str] = []
        ending = yield from source.read_until(line_end, line)
        if ending != "\n":
            source.push_back(ending)
            ending = ""
        consumed.extend([*line, ending])
        name_match = _NAME.fullmatch("".join(line).rstrip("\r"))
        tool = source.tools.match(name_match[1]) if name_match else None
        if name_match is None or (tool is None and source.tools):
            return TEXT
        yield from source.skip_space(consumed)
        if not (yield from source.consume_marker(label, consumed)):
            return TEXT
        name, result = name_match[1], (yield from _read_json_arguments(name_match[1], source, consumed, ends))
        if not result.not_a_call:
            return result
        is_cut = source.final and source.is_empty
        if tool is not None and not (is_cut and (source.was_cut or source.finish_reason is None)):
            text = yield from _peek_last_block(source, get_marker_set(*ends))
            plain = parse_plain_arguments(text, tool)
            if plain is not None:
                consumed.append(text)
                source.position += len(text)
                return BodyResult((DecodedCall(name, plain[0]),), (plain[1],))
        return BodyResult(
            error=CUT_OFF if is_cut else f"after {arguments[0]!r} must come one JSON object with the arguments"
        )

    return read


def _read_json_arguments(
    name: str, source: BodySource, consumed: list[str], ends: tuple[str, ...]
) -> Reader[BodyResult]:
    """Parse the arguments of the tool ``name``, a JSON object, possibly in a code fence or backticks."""
    yield from source.skip_space(consumed)
    is_fenced = yield from _consume_fence(source, consumed)
    is_inline = not is_fenced and (yield from source.is_next(_inline_object))
    if is_inline:
        yield from source.consume_marker(_tick, consumed)
    json_ends = (*ends, FENCE_END) if is_fenced else ends
    result = yield from UntaggedJson("arguments", after_marker=True, name=name, ends=json_ends)(source, consumed)
    if is_fenced and (yield from source.peek_after_space(_fence))[1]:
        yield from source.consume_through(_fence, consumed)
        return result.with_fixes("code-fence")
    if is_inline:
        yield from source.consume_marker(_tick, consumed)
    return result


def _consume_fence(source: StreamBuffer, consumed: list[str]) -> Reader[bool]:
    """Consume the line that opens a code fence. Return whether there is one."""
    if not (yield from source.consume_marker(_fence, consumed)):
        return False
    language = yield from source.peek_match(_LANGUAGE, LANGUAGE_LIMIT, _is_letters)
    if language:
        source.consume_match(language, consumed)
    return True


def _read_whole_call(source: BodySource, consumed: list[str], ends: MarkerSet) -> Reader[BodyResult]:
    """Parse a whole call in place of a name, in Python or JSON, if it calls a known tool and the answer ends or one of
    the labels ``ends`` follows it."""
    yield from source.skip_space(consumed)
    is_fenced = yield from _consume_fence(source, consumed)
    char = yield from source.skip_space(consumed)
    bracketed = yield from source.peek_match(_BRACKETED, NAME_LIMIT, _MAY_BE_BRACKETED.fullmatch)
    tool = source.tools.match(bracketed[1]) if bracketed else None
    if bracketed is not None and tool is not None:
        source.consume_match(bracketed, consumed)
        plain = parse_plain_arguments(bracketed[2], tool)
        result = BodyResult((DecodedCall(bracketed[1], plain[0]),), (plain[1],)) if plain else TEXT
    elif char and char in "{[":
        result = yield from UntaggedJson("arguments", after_marker=False, ends=(FENCE_END,))(source, consumed)
    elif named := (yield from source.peek_match(_NAMED_OBJECT, NAME_LIMIT, _MAY_BEGIN_CALL.fullmatch)):
        source.consume_match(named, consumed)
        read = UntaggedJson("arguments", after_marker=True, name=named[1], ends=(*ends.literals, FENCE_END))
        result = yield from read(source, consumed)
    else:
        result = yield from read_one_call(source, consumed)
    if is_fenced:
        yield from source.skip_space(consumed)
        yield from source.consume_marker(_fence, consumed)
    is_last = yield from _ends_turn(source, ends)
    if not is_last or not result.calls_known_tools(source.tools):
        return TEXT
    return result.with_repairs("code-fence") if is_fenced else result.with_repairs("missing-inner-tag")


def _ends_turn(source: StreamBuffer, ends: MarkerSet) -> Reader[bool]:
    """Return whether the text ends here, or the next line begins with one of the labels ``ends``."""
    ahead: list[str] = []
    char = yield from source.skip_space(ahead)
    text = "".join(ahead)
    line_break = text.rfind("\n")
    source.push_back(text[line_break:] if line_break >= 0 else text)
    is_end = char == "" or (line_break >= 0 and (yield from source.is_next(ends)))
    source.push_back(text[:line_break] if line_break >= 0 else "")
    return is_end


def _peek_last_block(source: StreamBuffer, ends: MarkerSet) -> Reader[str]:
    """Return the text up to one of the labels ``ends``. Without a label, return the rest of the answer if it is a
    single paragraph, or "". Nothing is consumed."""
    taken: list[str] = []
    marker = yield from source.read_until(ends, taken)
    text = "".join(taken)
    source.push_back(text + marker)
    return "" if not marker and (source.was_cut or "\n\n" in text.strip()) else text
