"""Parse calls inside wrapper tags, which no format defines: the opening tags, the call, and the closing tags."""

from __future__ import annotations

from collections.abc import Callable

from adapter.parsing.bodies.call_announcing_tags import build_announced_opener
from adapter.parsing.event_buffer import EventBuffer
from adapter.parsing.fallback_readers import MAX_GIVEN_BACK
from adapter.parsing.format import BodySource, CallOpener
from adapter.parsing.marker_set import WeakMarkerSet, get_marker_set
from adapter.parsing.marker_tables import MarkerTables
from adapter.parsing.stream_buffer import SPACE, Reader
from adapter.parsing.wrapper_tags import (
    MAX_DEPTH,
    TAG_START,
    consume_wrapper,
    is_tag,
    peek_announcing_tag,
    peek_namespace,
    with_closing_tags,
)


class WrappedCallReader:
    """Parses wrapper tags at the start of a line, and the call inside them.

    ``read_call`` parses a call after its opening marker.
    """

    def __init__(
        self,
        source: BodySource,
        output: EventBuffer,
        tables: MarkerTables,
        read_call: Callable[[CallOpener, str], Reader[None]],
    ) -> None:
        self._source, self._output, self._tables = source, output, tables
        self._state, self._read_call = output.state, read_call

    @property
    def text_markers(self) -> WeakMarkerSet:
        """All markers that are recognized in an answer at the current position."""
        markers = self._tables.text_markers
        return with_closing_tags(markers) if self._state.open_tags else markers

    def begins_here(self) -> Reader[bool]:
        """Return whether a wrapper tag, rather than a marker, may begin at the ``<`` at the current position."""
        if not self.text_markers.weak[TAG_START].accepts(self._source.text, self._source.position + 1):
            return False
        return not (yield from self._source.is_next(self._tables.text_markers))

    def read_tags(self) -> Reader[None]:
        """Parse tags at the start of a line that are not markers, and the call after them."""
        namespace = yield from self._peek_namespace()
        if namespace:
            yield from self._read_namespaced(namespace)
        elif not (yield from self.close_tags()):
            yield from self._read_wrapped_call()

    def reread(self, marker: str, raw: str) -> Reader[bool]:
        """Parse ``raw`` as a wrapper tag and a call after it, because the parser for ``marker``, the tag, has rejected
        it. If ``raw`` is anything else, or if too much of the answer has already been parsed again, consume nothing and
        return False."""
        if not (is_tag(marker) and self._state.line.is_blank):
            return False
        self._source.reread_characters += len(raw)
        if self._source.reread_characters > MAX_GIVEN_BACK:
            return False
        self._source.push_back(raw)
        if (yield from self._read_wrapped_call()):
            return True
        self._source.position += len(raw)
        return False

    def track_opener(self, marker: str, raw: str) -> None:
        """Remember ``marker``, a tag, as open if the call ``raw`` ended before its closing tag."""
        closing = self._tables.closing_tags.get(marker.lower(), "")
        if not (raw.endswith(closing) or raw.lower().rstrip(SPACE).endswith(closing)):
            self._state.open_tags.add(closing[2:-1])

    def close_tags(self) -> Reader[bool]:
        """Consume the closing tags of open wrappers. Return whether any were consumed."""
        has_closed = False
        while self._state.open_tags:
            closing = get_marker_set(*(f"</{name}>" for name in sorted(self._state.open_tags)))
            _, marker = yield from self._source.peek_after_space(closing)
            if not marker:
                break
            yield from self._source.skip_space(self._state.space)
            self._output.close_tag((yield from self._source.consume_marker(closing)))
            has_closed = True
        return has_closed

    def _read_wrapped_call(self) -> Reader[bool]:
        """Parse wrapper tags and the call after them, or consume nothing and return False."""
        if "".join(self._state.space).count("<") >= MAX_DEPTH:
            return False
        tags = yield from consume_wrapper(
            self._source, self._tables.opening_markers, self._tables.build_namespace_opener is not None
        )
        if not tags:
            return (yield from self._read_announced_call())
        self._state.space.append(tags)
        marker = yield from self._source.consume_marker(self._tables.opening_markers)
        if marker:
            yield from self._read_call(self._tables.openers[marker.lower()], marker)
        else:
            yield from self._read_namespaced((yield from self._peek_namespace()))
        return True

    def _read_announced_call(self) -> Reader[bool]:
        """Parse a tag that announces a call, such as ``<function_call>``, and a call without markers in it. If there is
        none, consume nothing and return False."""
        tag = yield from peek_announcing_tag(self._source)
        if not tag or f"<{tag.lower()}>" in self._tables.openers:
            return False
        opener = build_announced_opener(tag)
        self._source.position += len(opener.marker)
        yield from self._read_call(opener, opener.marker)
        return True

    def _peek_namespace(self) -> Reader[str]:
        return (yield from peek_namespace(self._source)) if self._tables.build_namespace_opener else ""

    def _read_namespaced(self, namespace: str) -> Reader[None]:
        """Parse the call that begins with ``<NAMESPACE:invoke``."""
        assert self._tables.build_namespace_opener is not None
        opener = self._tables.build_namespace_opener(namespace)
        marker = yield from self._source.consume_marker(get_marker_set(opener.marker))
        yield from self._read_call(opener, marker)
