"""Stretches of text that are one thing whatever they quote: no call counts in them.

What follows a header that says what it is, the echo of an earlier result, and what a model invents for others to say.
"""

from __future__ import annotations

from adapter.core.events import MarkupDelta
from adapter.parsing.event_buffer import EventBuffer
from adapter.parsing.format import OpaqueSection
from adapter.parsing.marker_set import MarkerSet, markers_for
from adapter.parsing.parse_state import CONTENT
from adapter.parsing.stream_buffer import Reader, StreamBuffer, skip_space, take_marker


def read_opaque_section(section: OpaqueSection, source: StreamBuffer, output: EventBuffer) -> Reader[None]:
    """Take text as what its header says it is, up to the section's end."""
    state = output.state
    markers = markers_for(*section.ends, *section.starts, *section.glued_starts, *section.closes)
    add = output.add_reasoning if section.is_reasoning else output.add_text
    if section.is_reasoning:
        yield from skip_space(source, state.space)
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
        elif marker.lower() in section.starts or (marker.lower() in section.glued_starts and not any(state.space)):
            source.push_back(marker)
            break
        elif marker.lower() in section.closes or (
            marker.lower() not in section.glued_starts and (yield from _ends(section, source))
        ):
            output.flush_whitespace(as_text=not section.is_reasoning)
            output.add_markup(marker)
            break
        else:
            add(marker)
    output.end_section(as_text=not section.is_reasoning)


def _ends(section: OpaqueSection, source: StreamBuffer) -> Reader[bool]:
    """Whether nothing stands here but what may follow the section's end. Takes nothing."""
    ahead: list[str] = []
    char = yield from skip_space(source, ahead)
    following = yield from take_marker(source, markers_for(*section.ends, *section.before))
    source.push_back("".join(ahead) + following)
    return bool(following) or not char


def read_echoed_result(closing: str, openers: MarkerSet, source: StreamBuffer, output: EventBuffer) -> Reader[None]:
    """Take what is echoed, up to ``closing`` at the beginning of a line, as text."""
    markers = markers_for(closing, *openers.literals)
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
            output.reject("echoed-result", source.offset - len(marker), source.offset)
            output.add_text(marker)
        elif source.final:
            return
        else:
            yield


def discard_rest(openers: MarkerSet, source: StreamBuffer, output: EventBuffer) -> Reader[None]:
    """The model goes on as somebody else: what it invents, to the end, is nobody's turn."""
    while True:
        plain, marker = source.scan(openers)
        if plain or marker:
            output.events.append(MarkupDelta(plain + marker))
        if marker:
            output.reject("later-turn", source.offset - len(marker), source.offset)
        elif source.final:
            return
        else:
            yield
