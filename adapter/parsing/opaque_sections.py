"""Skip text in which no calls are parsed: sections after a header, echoed tool results, and turns of other roles."""

from __future__ import annotations

from adapter.core.events import MarkupDelta
from adapter.parsing.event_buffer import EventBuffer
from adapter.parsing.format import OpaqueSection
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.parse_state import CONTENT
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer


def read_opaque_section(section: OpaqueSection, source: StreamBuffer, output: EventBuffer) -> Reader[None]:
    """Consume the text up to the end of ``section``, and add it to ``output`` as reasoning or content."""
    state = output.state
    weak, after_weak = section.weak_start
    markers = get_marker_set(
        *section.ends, *section.starts, *section.glued_starts, *section.closes, *filter(None, (weak,))
    )
    add = output.add_reasoning if section.is_reasoning else output.add_text
    if section.is_reasoning:
        yield from source.skip_space(state.space)
        output.flush_whitespace(as_text=False)
        state.has_reasoning = True
    else:
        state.last = CONTENT
    while True:
        plain, marker = source.scan(markers)
        add(plain)
        if not marker:
            if source.final:
                break
            yield
        elif (
            marker.lower() in section.starts
            or (marker.lower() in section.glued_starts and not any(state.space))
            or (marker.lower() == weak and (yield from source.peek_match(after_weak, NAME_LIMIT, _is_one_word)))
        ):
            source.push_back(marker)
            break
        elif marker.lower() in section.closes or (
            marker.lower() in section.ends and (yield from _ends(section, source))
        ):
            output.flush_whitespace(as_text=not section.is_reasoning)
            output.add_markup(marker)
            break
        else:
            add(marker)
    output.end_section(as_text=not section.is_reasoning)


def _is_one_word(text: str) -> bool:
    return not any(map(str.isspace, text))


def _ends(section: OpaqueSection, source: StreamBuffer) -> Reader[bool]:
    """Return whether a marker of ``section.ends`` that was just consumed ends the section, according to the text after
    it. Nothing is consumed."""
    char, following = yield from source.peek_after_space(get_marker_set(*section.ends, *section.before))
    return bool(following) or not char


def read_echoed_result(closing: str, openers: MarkerSet, source: StreamBuffer, output: EventBuffer) -> Reader[None]:
    """Consume an echoed tool result, up to a line that begins with ``closing``, and add it as content."""
    markers = get_marker_set(closing, *openers.literals)
    while True:
        plain, marker = source.scan(markers)
        output.add_text(plain)
        if marker.lower() == closing.lower():
            if output.state.line.is_blank:
                output.add_markup(marker)
                output.state.line.end_quotation()
                return
            output.add_text(marker)
        elif marker:
            output.reject("echoed-result", *source.find_last_span(len(marker)))
            output.add_text(marker)
        elif source.final:
            return
        else:
            yield


def discard_rest(openers: MarkerSet, source: StreamBuffer, output: EventBuffer) -> Reader[None]:
    """Consume the rest of the text, a turn that the model invents for another role, and add it as markup."""
    while True:
        plain, marker = source.scan(openers)
        if plain or marker:
            output.events.append(MarkupDelta(plain + marker))
        if marker:
            output.reject("later-turn", *source.find_last_span(len(marker)))
        elif source.final:
            return
        else:
            yield
