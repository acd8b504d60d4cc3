"""Parse messages whose headers name a recipient and a channel, as gpt-oss and Muse Glimmer write them.

::

    <|channel|>analysis<|message|>reasoning<|end|>
    <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
    <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{...}<|call|>

The prompt ends with ``<|start|>assistant``, so an answer begins inside a header. The header alone decides whether a
message is reasoning, content or a call, even if the message quotes markers.
"""

from __future__ import annotations

import re

from adapter.core.events import JsonObject
from adapter.core.json.strict import decode_strict
from adapter.parsing.bodies import invoke_tags
from adapter.parsing.bracket_delimited_json import FENCE_END, UntaggedJson
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource, CallOpener, OpaqueSection
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer
from adapter.tools.decoded_json_calls import DecodedCall, is_named_call
from adapter.tools.tool_set import ToolSet

START, CHANNEL, CONSTRAIN, MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
END, CALL, RETURN = "<|end|>", "<|call|>", "<|return|>"
ENDS = (END, CALL, RETURN, "<|eom|>", "<|eot|>")
"""Tokens that end a message. Only Muse Glimmer writes the last two."""

ASSISTANT = START + "assistant"
SPACED = START + " assistant"

HEADER_WORDS = "header words"
"""Member of `Format.body_variants`: if a server strips the tokens of headers, plain words such as ``analysis``
remain."""

HEADER_LIMIT = 400
"""Maximum length of a header, in characters. Anything longer is prose that mentions a marker."""

RUBBISH_LIMIT = 60
"""Maximum number of characters from the end of the arguments to the end of the token that closes the call."""

_BEFORE = (START, CHANNEL)
_FINAL = CHANNEL + "final" + MESSAGE
_CALL_HEADERS = (CHANNEL + "commentary to=functions.", " to=functions.", CHANNEL + "analysis to=functions.")
_GLUED_HEADERS = ("assistantcommentary to=", "assistantanalysis to=")
"""The start of a call's header after the server stripped its tokens. It may directly follow other text."""
_RECIPIENT_START = "to="
_REASONING = OpaqueSection(
    is_reasoning=True,
    ends=ENDS,
    before=(*_BEFORE, _RECIPIENT_START),
    starts=(_FINAL, ASSISTANT + _FINAL),
    glued_starts=tuple(ASSISTANT + header for header in _CALL_HEADERS),
    weak_start=(_RECIPIENT_START, re.compile(rf"[\w.:-]+{re.escape(MESSAGE)}")),
)
_CONTENT = OpaqueSection(is_reasoning=False, ends=ENDS, before=(*_BEFORE, _RECIPIENT_START))
_REASONING_WITHOUT_TOKENS = OpaqueSection(
    is_reasoning=True, ends=(), before=(), starts=("assistantfinal", *_GLUED_HEADERS)
)
_SECTIONS = {"analysis": _REASONING, "commentary": _CONTENT, "final": _CONTENT}

_NOT_TOOLS = ("assistant", "user", "all")
"""Recipients of messages that are participants of the conversation rather than tools."""

# Possessive, so that other text is rejected in linear time.
_HEADER = re.compile(
    r"(?:<\|start\|> ?assistant)?"
    r"(?:\s*+(?:to=[^\s<]++|<\|channel\|>\s*+\w*+|<\|constrain\|>\s*+\w*+|[\w/+.\u2013\u2014-]++))*+\s*+",
    re.IGNORECASE,
)
_RECIPIENT = re.compile(r"\bto=([^\s<]+)", re.IGNORECASE)
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)", re.IGNORECASE)
_KNOWN_CHANNEL = re.compile(r"\s*(?:analysis|commentary|final)\b", re.IGNORECASE)
_TYPE = r"(?:\s*(?:code|json)?\s*(?=\{)|[ \t]+[^\n<{}\[\].]{1,40}\n\s*(?=\{\s*\"))"
"""Matches the type of a call's arguments, such as ``json``, before the arguments. If the token before the type is
missing, gpt-oss may write other words instead, on the same line."""

_STRIPPED = re.compile(rf"\s*(?:(?:commentary|analysis) )?to=(?:functions\.)?([\w.-]+){_TYPE}")
_MAY_BE_STRIPPED = re.compile(
    r"\s*+(?:(?:commentary|analysis) )?to=[\w.-]*+(?:[ \t]++[^\n<{}\[\].]{0,40}+)?(?:\s*+\w*+\s*+|\n\s*+\{\s*+)"
)
_FINAL_WORDS = "assistantfinal"
_WITHOUT_TOKENS = re.compile(rf"\s*(?:(?P<reasoning>analysis)(?=[A-Z\"'“])|{_FINAL_WORDS}(?=\S))")
_GLUED = re.compile(
    rf"(?:functions\.)?([\w.-]+)\s*+(?:{re.escape(CONSTRAIN)})?+(?:code|json)?+\s*+(?:{re.escape(MESSAGE)})?+\s*+(?=\{{)"
)
_MAY_BE_GLUED = re.compile(r"[\w.-]*+[\s\w<|>]*+")
_HEADER_WORDS = re.compile(
    r"\bto=[^\s<]+|<\|(?:channel|constrain)\|>|<\|start\|> ?assistant|analysis|commentary|final|\b(?:json|code)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2}")
_CLOSING = (END, CALL, RETURN)
_ROLES = ("assistant" + CHANNEL, "assistant" + MESSAGE, "assistant to=")
_ROLE = re.compile(rf"assistant(?={re.escape(CHANNEL)}|{re.escape(MESSAGE)}|( to=))")
_ANY_TOKEN = re.compile(r"<[|\w]*$")

_header_end = MarkerSet(MESSAGE, START, *ENDS)
_body_end = MarkerSet(*ENDS)
_RUBBISH = re.compile(rf"[^\n<{{\[]{{1,40}}+(?={re.escape(CALL)})", re.IGNORECASE)
_MAY_BE_RUBBISH = re.compile(r"[^\n<{\[]{1,40}+(?:<[|a-z]*+)?", re.IGNORECASE)
_header_tokens = MarkerSet(CHANNEL, MESSAGE)
_next_message = MarkerSet(*ENDS, START, CHANNEL)
_fence, _fence_end = MarkerSet("```json", "```"), MarkerSet("```")
_to = MarkerSet("to=", "commentary to=", "analysis to=")
_elements = MarkerSet(*invoke_tags.SECTION.opens)


def read_message(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the rest of a message header after ``<|channel|>``, ``<|start|>assistant`` or ``to=``, and the arguments if
    the header addresses a tool."""
    opening = "".join(consumed)
    if not source.at_line_start and opening == CHANNEL:
        return TEXT
    end = yield from source.peek_marker(_header_end, HEADER_LIMIT)
    found = _header_end.search(source.text, source.position) if end else None
    text = source.text[source.position : found[0] if found else source.position + HEADER_LIMIT + 1]
    if not source.at_line_start and not _calls_tool(text, end, source.tools):
        return TEXT
    head = text.partition("{")[0]
    is_plain = _WORD.search(_HEADER_WORDS.sub("", opening + head)) is None
    if head != text and is_plain and _calls_tool(opening + head, MESSAGE, source.tools):
        consumed.append(head)
        source.position += len(head)
        name = _RECIPIENT.findall(opening + head)[-1].removeprefix("functions.")
        return (yield from _read_call(name, source, consumed)).with_fixes("missing-inner-tag")
    if end:
        if end.lower() != MESSAGE or not _HEADER.fullmatch(opening + text):
            return _read_broken_header(source, consumed, text if end.lower() in _CLOSING else "", end)
    elif len(text) > HEADER_LIMIT or not _HEADER.fullmatch(opening + _ANY_TOKEN.sub("", text)):
        return _read_broken_header(source, consumed, "", "")
    else:  # a header that is cut off before its message
        consumed.append(source.consume_rest())
        return CUT if _RECIPIENT.search(opening + text) else BodyResult(section=_CONTENT)
    consumed.append(text + source.text[source.position + len(text) :][: len(end)])
    source.position += len(text) + len(end)
    if any(name.lower() == "self" for name in _RECIPIENT.findall(opening + text)):
        return BodyResult(section=_REASONING)
    recipients = [name for name in _RECIPIENT.findall(opening + text) if name.lower() not in _NOT_TOOLS]
    if recipients:
        name = recipients[-1].removeprefix("functions.")
        glued = name.removesuffix("json")
        if source.tools.match(name) is None and source.tools.match(glued) is not None:
            return (yield from _read_call(glued, source, consumed)).with_fixes("tool-name")
        return (yield from _read_call(name, source, consumed))
    channels = _CHANNEL.findall(opening + text)
    if CHANNEL + " " in (opening + text).lower():
        yield from _consume_space(source, consumed)
    return BodyResult(section=_SECTIONS.get(channels[-1].lower() if channels else "", _CONTENT))


def _consume_space(source: StreamBuffer, consumed: list[str]) -> Reader[None]:
    """Consume the single space that a tokenizer added after the header."""
    yield from source.wait_for_character()
    if source.text.startswith(" ", source.position):
        consumed.append(" ")
        source.position += 1


def read_rest_of_header(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse `` to=NAME...`` at the start of an answer: the prompt ended with ``<|start|>assistant``. If it ended with
    ``<|start|>``, ``assistant`` comes first."""
    ahead: list[str] = []
    source.may_be_text = True
    role = yield from source.peek_match(
        _ROLE, HEADER_LIMIT, lambda ahead: any(role.startswith(ahead) for role in _ROLES)
    )
    if role is not None:
        source.consume_match(role, consumed)
        if not role[1]:
            return BodyResult()
    yield from source.skip_space(ahead)
    marker = yield from source.consume_marker(_to)
    source.may_be_text = not marker
    end = (yield from source.peek_marker(_header_end, HEADER_LIMIT)) if marker else ""
    source.push_back("".join(ahead) + marker)
    if end.lower() == MESSAGE:
        return (yield from read_message(source, consumed))
    if role is not None:
        source.push_back(consumed.pop())
        return TEXT
    return (yield from _read_without_message(source, consumed)) if marker else TEXT


def _read_without_message(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse ``to=NAME {...}`` at the start of an answer whose special tokens were stripped. NAME must be a known
    tool."""
    match = yield from source.peek_match(_STRIPPED, HEADER_LIMIT, _MAY_BE_STRIPPED.fullmatch)
    if match is None or source.tools.match(match[1]) is None:
        return TEXT
    source.consume_match(match, consumed)
    return (yield from UntaggedJson("arguments", after_marker=True, name=match[1])(source, consumed)).with_fixes(
        "missing-open-tag"
    )


def read_without_start(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the header of a message that lacks ``<|start|>assistant`` or all its tokens, at the start of an answer or
    after another message."""
    result = yield from read_rest_of_header(source, consumed)
    return (yield from read_without_tokens(source, consumed)) if result.not_a_call else result


def read_without_tokens(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse ``analysisWe need ...``: a header whose special tokens were stripped, and the text after it.

    ``assistantfinal`` or a call ends such reasoning. With another expected format, the first word may be an ordinary
    name: ``analysisResult is a list.``
    """
    if HEADER_WORDS not in source.body_variants:
        return TEXT
    source.may_be_text = True
    match = yield from source.peek_match(
        _WITHOUT_TOKENS,
        HEADER_LIMIT,
        lambda ahead: any(word.startswith(ahead.lstrip()) for word in ("analysis", _FINAL_WORDS)),
    )
    if match is None:
        return TEXT
    source.consume_match(match, consumed)
    if match["reasoning"]:
        return BodyResult(section=_REASONING_WITHOUT_TOKENS)
    return BodyResult()


def read_glued_header(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the rest of a header after ``assistantcommentary to=``, and the call after the header. A server has
    stripped the tokens of such a header."""
    if not source.at_line_start:
        return TEXT
    match = yield from source.peek_call(_GLUED, HEADER_LIMIT, _MAY_BE_GLUED.fullmatch)
    if match is None:
        return TEXT
    source.consume_match(match, consumed)
    read = UntaggedJson("arguments", after_marker=True, name=match[1])
    return (yield from read(source, consumed)).with_fixes("missing-open-tag")


def _calls_tool(text: str, end: str, tools: ToolSet) -> bool:
    """Return whether ``text`` is the rest of a message header that addresses a known tool. ``end`` is the marker after
    it. Otherwise, the header may be a quotation."""
    names = _RECIPIENT.findall(text) if end.lower() == MESSAGE and _HEADER.fullmatch(text) else []
    return any(tools.match(name.removeprefix("functions.")) for name in names)


def _read_broken_header(source: StreamBuffer, consumed: list[str], closed: str, end: str) -> BodyResult:
    """Parse a message header without ``<|message|>``. If it names a channel, the text after the name belongs to that
    channel.

    ``closed`` is the header's text if the marker ``end`` closes the message, as in ``<|channel|>??<|end|>``. At
    temperature 1, gpt-oss begins one turn in 25 like this. If ``closed`` contains words, it is reasoning; otherwise, it
    is dropped.
    """
    name_match = _KNOWN_CHANNEL.match(source.text, source.position, source.position + HEADER_LIMIT)
    if consumed[-1].lower() == CHANNEL and closed and not _WORD.search(_HEADER_WORDS.sub("", closed)):
        consumed.append(closed + end)
        source.position += len(closed) + len(end)
        return BodyResult()
    if consumed[-1].lower() == CHANNEL and closed and name_match is None:
        return BodyResult(section=_REASONING)
    if consumed[-1].lower() != CHANNEL or name_match is None:
        return TEXT
    consumed.append(name_match.group())
    source.position = name_match.end()
    return BodyResult(section=_SECTIONS[name_match.group().strip().lower()])


def _read_call(name: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    char = yield from source.skip_space(consumed)
    fence = (yield from source.consume_marker(_fence, consumed)) if char == "`" else ""
    if fence:
        char = yield from source.skip_space(consumed)
    if char == "<" and (yield from source.consume_marker(_elements, consumed)):
        return (yield from invoke_tags.SECTION.read(source, consumed))
    if char in ("{", "["):
        ends = (*ENDS, *_BEFORE, FENCE_END) if fence else (*ENDS, *_BEFORE)
        read = UntaggedJson("arguments", after_marker=True, name=name, ends=ends)
        result = yield from read(source, consumed)
    else:
        start = len(consumed)
        following = yield from source.skip_to(_next_message, consumed)
        text = "".join(consumed[start:]).strip()
        if arguments := _find_last_arguments(text, name, source.tools):
            result = BodyResult((DecodedCall(name, arguments),), ("text-in-tag",))
        elif text:
            result = BodyResult(error=f"the text to {name!r} must be its arguments as one JSON object")
        elif following:
            result = BodyResult((DecodedCall(name, {}),), ("no-arguments",))
        else:
            return CUT
    ahead: list[str] = []
    yield from source.skip_space(ahead)
    if fence:
        result = result.with_fixes("code-fence")
        yield from source.consume_marker(_fence_end, ahead)
        yield from source.skip_space(ahead)
    rubbish = yield from source.peek_match(_RUBBISH, RUBBISH_LIMIT, _MAY_BE_RUBBISH.fullmatch)
    if rubbish is not None:
        source.consume_match(rubbish, ahead)
        result = result.with_fixes("text-in-tag")
    closing = yield from source.consume_marker(_body_end)
    if not closing:
        source.consume_cut_marker(CALL, ahead)
    is_cut = not closing and source.was_cut and source.is_empty
    if closing or "".join(ahead).strip():
        consumed.extend([*ahead, closing])
    else:
        source.push_back("".join(ahead))
    return CUT if is_cut else result


def read_lone_token(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse ``<|message|>`` without a header, or ``<|start|>`` without a role."""
    if not source.at_line_start:
        return TEXT
    if consumed[-1].lower() == MESSAGE:
        return BodyResult(section=_CONTENT)
    return BodyResult() if (yield from source.peek_after_space(_header_tokens))[1] else TEXT


def _find_last_arguments(text: str, name: str, tools: ToolSet) -> JsonObject | None:
    """Return the arguments if ``text`` is reasoning and then a JSON object that fits the tool ``name``, or None."""
    start = text.find("\n{") + 1
    value = decode_strict(text, start) if start else None
    is_last = value is not None and not text[value.end :].strip()
    return value.value if value is not None and is_last and is_named_call({name: value.value}, tools) else None


OPENERS = (
    *(CallOpener(marker, read_lone_token) for marker in (START, MESSAGE)),
    *(CallOpener(marker, read_message) for marker in (CHANNEL, ASSISTANT, SPACED)),
    *(CallOpener(marker, read_glued_header) for marker in _GLUED_HEADERS),
)
NEXT_TURNS = tuple(START + role for role in ("user", "system", "developer", "functions", "tool"))
TOKENS = (START, CHANNEL, CONSTRAIN, MESSAGE, END, CALL, RETURN)
