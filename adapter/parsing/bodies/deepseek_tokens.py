"""The control tokens around calls that DeepSeek V3, R1 and V3.1 and Step 3 share, with different bodies.

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

Which release wrote a call shows in it, so every body is read, whatever the told
format is. Distilled and quantised models write the tokens with ASCII bars and
other gaps too.
"""

from __future__ import annotations

from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_tags import XmlInvokeTags
from adapter.parsing.format import CUT_OFF, TEXT, BodyResult, CallOpener, ReadContext
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer, peek_marker, read_until, skip_space, take_marker
from adapter.parsing.tagged_json import TaggedJson

HEAD_LIMIT = 300
"""Characters of a call before its arguments; more is prose with a stray token in it."""

TYPED_NAME = "function="
"""What distilled models put before the name, from the word that V3 has in its place."""

STEP_TAGS = XmlInvokeTags(
    call=("<steptml:invoke",),
    call_close=("</steptml:invoke>",),
    parameter=("<steptml:parameter",),
    parameter_close=("</steptml:parameter>",),
)


def _spellings(words: str) -> tuple[str, ...]:
    """A token as DeepSeek's tokenizer has it, as Step's has it, and then as models misspell it."""
    return tuple(f"<{bar}{words.replace(' ', gap)}{bar}>" for bar in "｜|" for gap in "▁_ ")


CALLS_BEGIN, CALLS_END = _spellings("tool calls begin"), _spellings("tool calls end")
CALL_BEGIN, CALL_END = _spellings("tool call begin"), _spellings("tool call end")
SEPARATOR = _spellings("tool sep")

_separator = MarkerSet(*SEPARATOR)
_in_head = MarkerSet(*SEPARATOR, *CALL_END, *CALL_BEGIN, *CALLS_END)
_after_name = MarkerSet("{", "[", "```", *CALL_END, *CALL_BEGIN, *CALLS_END)
_fence = MarkerSet("```json", "```")
_step_invoke = MarkerSet(*STEP_TAGS.call)
_read_step_invoke = XmlInvokeReader(STEP_TAGS)


def read_call(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """A call after ``<｜tool▁call▁begin｜>``."""
    opening = span[-1]
    yield from skip_space(source, span)
    invoke = yield from take_marker(source, _step_invoke)
    if invoke:
        span.append(invoke)
        return (yield from _read_step_invoke(source, span, context)).adding("missing-inner-tag")
    marker = yield from peek_marker(source, _in_head, HEAD_LIMIT)
    if not marker or not _separator.match(marker, 0):
        return _without_arguments(source, span, marker)
    head: list[str] = []
    marker = yield from read_until(source, _separator, head)
    span.extend([*head, marker])
    name = "".join(head).strip()
    is_typed = name.lower() == "function"
    if is_typed:
        yield from skip_space(source, span)
        invoke = yield from take_marker(source, _step_invoke)
        if invoke:
            span.append(invoke)
            return (yield from _read_step_invoke(source, span, context))
        marker = yield from peek_marker(source, _after_name, HEAD_LIMIT)
        if not marker:
            return _without_arguments(source, span, marker)
        typed: list[str] = []
        marker = yield from read_until(source, _after_name, typed)
        span.extend(typed)
        source.push_back(marker)
        name = "".join(typed).strip()
    if name.lower().startswith(TYPED_NAME) and context.tools.match(name) is None:
        name = name[len(TYPED_NAME) :]
    if not name or any(char.isspace() for char in name):
        return BodyResult(error=f"the call has no name: {name[:60]!r} stands in its place")
    yield from skip_space(source, span)
    fence = yield from take_marker(source, _fence)
    span.append(fence)
    reading = yield from TaggedJson(opening, opening.replace("begin", "end"), name=name)(source, span, context)
    if is_typed:  # the fence is the format's own
        reading = reading.without_fix("code-fence")
    is_foreign = reading.calls and context.expected_format == ("deepseek_v31" if is_typed else "deepseek_v3")
    return reading.adding("foreign-body") if is_foreign else reading


def _without_arguments(source: StreamBuffer, span: list[str], marker: str) -> BodyResult:
    """No arguments follow: the text ends before them, or the token was only mentioned."""
    rest = source.text[source.position :]
    if marker or not source.final or any(char.isspace() for char in rest.strip()):
        return TEXT
    span.append(source.rest())
    return BodyResult(error=CUT_OFF)


SECTION = CallSection(
    opens=CALLS_BEGIN,
    closes=CALLS_END,
    call_opens=CALL_BEGIN,
    read_call=read_call,
    misspelt=[*CALLS_BEGIN[2:], *CALL_BEGIN[2:]],
    keeps_space=True,
)

STRAYS = (*CALLS_END, *CALL_END)


def read_step_invoke(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """Step's element without the tokens around it, at the beginning of a line."""
    if not context.at_line_start:
        return TEXT
    reading = yield from _read_step_invoke(source, span, context)
    return reading.adding("missing-open-tag") if reading.calls and not context.after_call else reading


STEP_OPENER = CallOpener(STEP_TAGS.call[0], read_step_invoke)
