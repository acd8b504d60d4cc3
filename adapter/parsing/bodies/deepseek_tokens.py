"""Parse calls between the control tokens that DeepSeek V3, R1 and V3.1 and Step 3 share. Their bodies differ.

::

    <｜tool▁calls▁begin｜>
    <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME       DeepSeek V3 and R1
    ```json
    {...}
    ```<｜tool▁call▁end｜>
    <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...}<｜tool▁call▁end｜>       DeepSeek V3.1
    <｜tool_call_begin｜>function<｜tool_sep｜>             Step 3
    <steptml:invoke name="NAME">...</steptml:invoke><｜tool_call_end｜>
    <｜tool▁calls▁end｜>

All bodies are parsed, whichever of these formats is expected, because a call's text shows its release. Distilled and
quantized models also write the tokens with ASCII bars, or with other characters between the words.
"""

from __future__ import annotations

import re

from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_tags import XmlInvokeTags
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import HEAD_LIMIT, Reader
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.decoded_json_calls import DecodedCall

TYPED_HEADS, UNTYPED_HEADS = "deepseek typed heads", "deepseek untyped heads"
"""Members of `Format.body_variants`. DeepSeek V3 writes ``function`` and a separator before the name; V3.1 writes only
the name."""

TYPED_NAME = "function="
"""Prefix that models distilled from DeepSeek V3 write before a name, in addition to V3's ``function``."""

STEP_TAGS = XmlInvokeTags(
    call=("<steptml:invoke",),
    call_close=("</steptml:invoke>",),
    parameter=("<steptml:parameter",),
    parameter_close=("</steptml:parameter>",),
)


def _list_spellings(words: str) -> tuple[str, ...]:
    """Return all spellings of the token with ``words``: DeepSeek's, Step's, and misspellings that models write."""
    return tuple(f"<{bar}{words.replace(' ', gap)}{bar}>" for bar in "｜|" for gap in "▁_ ")


CALLS_BEGIN, CALLS_END = _list_spellings("tool calls begin"), _list_spellings("tool calls end")
CALL_BEGIN, CALL_END = _list_spellings("tool call begin"), _list_spellings("tool call end")
SEPARATOR = _list_spellings("tool sep")

_separator = MarkerSet(*SEPARATOR)
_call_end = MarkerSet(*CALL_END)
_in_head = MarkerSet(*SEPARATOR, *CALL_END, *CALL_BEGIN, *CALLS_END)
_after_name = MarkerSet("{", "[", "```", *CALL_END, *CALL_BEGIN, *CALLS_END)
_WITHOUT_SEPARATOR = re.compile(r"\s*(?:function\b[\s<]*)?([\w.-]+)>?\s*(?=```|\{)")
_MAY_BE_WITHOUT_SEPARATOR = re.compile(r"\s*+[\w.-]*+[\s<]*+[\w.-]*+>?\s*+`{0,2}")
_fence = MarkerSet("```json", "```")
_step_invoke = MarkerSet(*STEP_TAGS.call)
_read_step_invoke = XmlInvokeReader(STEP_TAGS)


def read_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call after ``<｜tool▁call▁begin｜>``."""
    opening = consumed[-1]
    if (yield from source.skip_space(consumed)) == "{":
        return (yield from TaggedJson(opening, _get_closing(opening))(source, consumed)).with_fixes("foreign-body")
    if (yield from source.consume_marker(_step_invoke, consumed)):
        return (yield from _read_step_invoke(source, consumed)).with_repairs("missing-inner-tag")
    named = yield from source.peek_match(_WITHOUT_SEPARATOR, HEAD_LIMIT, _MAY_BE_WITHOUT_SEPARATOR.fullmatch)
    if named is not None and source.tools.match(named[1]) is not None:
        source.consume_match(named, consumed)
        return (yield from _read_arguments(named[1], opening, source, consumed)).with_fixes("missing-inner-tag")
    marker = yield from source.peek_marker(_in_head, HEAD_LIMIT)
    if _call_end.match(marker, 0) is not None:
        return (yield from _read_name_alone(source, consumed))
    if not marker or not _separator.match(marker, 0):
        return TEXT if marker else source.read_cut_head(consumed)
    head, _ = yield from source.consume_through(_separator, consumed)
    name = head.strip()
    is_typed = name.lower() == "function"
    if is_typed:
        yield from source.skip_space(consumed)
        if (yield from source.consume_marker(_step_invoke, consumed)):
            return (yield from _read_step_invoke(source, consumed))
        marker = yield from source.peek_marker(_after_name, HEAD_LIMIT)
        if not marker:
            return source.read_cut_head(consumed)
        start = len(consumed)
        yield from source.skip_to(_after_name, consumed)
        name = "".join(consumed[start:]).strip()
    if name.lower().startswith(TYPED_NAME) and source.tools.match(name) is None:
        name = name[len(TYPED_NAME) :]
    if not name or any(char.isspace() for char in name):
        return BodyResult(error=f"the call has no name: expected a tool's name, got {name[:60]!r}")
    result = yield from _read_arguments(name, opening, source, consumed)
    if is_typed:  # the format's normal spelling has a fence
        result = result.remove_fixes("code-fence")
    other = UNTYPED_HEADS if is_typed else TYPED_HEADS
    return result.with_fixes("foreign-body") if other in source.body_variants else result


def _read_arguments(name: str, opening: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    yield from source.skip_space(consumed)
    fence = yield from source.consume_marker(_fence, consumed)
    result = yield from TaggedJson(opening, _get_closing(opening), name=name)(source, consumed)
    if fence and "missing-bracket" in result.fixes:  # canitoolcall demands an error
        return BodyResult(error=f"the arguments of {name!r} lack a closing bracket. Write them again.")
    return result


def _get_closing(opening: str) -> str:
    return opening.lower().replace("begin", "end")


def _read_name_alone(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call that is only the name of one of the session's tools. Other text is not a call."""
    ahead: list[str] = []
    name, _ = yield from source.consume_through(_call_end, ahead)
    if source.tools.match(name.strip()) is None:
        source.push_back("".join(ahead))
        return TEXT
    consumed.extend(ahead)
    return BodyResult((DecodedCall(name.strip(), {}),), ("no-arguments",))


SECTION = CallSection(
    opens=CALLS_BEGIN,
    closes=CALLS_END,
    call_opens=CALL_BEGIN,
    read_call=read_call,
    misspelt=[*CALLS_BEGIN[2:], *CALL_BEGIN[2:]],
    keeps_space=True,
)

STRAYS = (*CALLS_END, *CALL_END)


def read_step_invoke(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse Step's ``steptml:invoke`` element without the tokens around it, at the start of a line."""
    if not source.at_line_start:
        return TEXT
    result = yield from _read_step_invoke(source, consumed)
    return result.with_repairs("missing-open-tag") if result.calls and not source.after_call else result


STEP_OPENER = CallOpener(STEP_TAGS.call[0], read_step_invoke)
