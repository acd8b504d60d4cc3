"""Collect the markers and parsers of the accepted formats for the segmenter, once for each set of formats and tools."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from adapter.parsing.bodies.call_announcing_tags import build_announced_reader
from adapter.parsing.bodies.worded_call_start import WordedCallStart
from adapter.parsing.bracket_delimited_json import CALL_KEYS, NAMED_LATER, UntaggedJson
from adapter.parsing.fallback_readers import FallbackReader, mark_foreign_opener, merge_openers
from adapter.parsing.format import (
    BodyReader,
    BodyResult,
    BodySource,
    CallOpener,
    Format,
    list_distinct_readers,
    try_readers,
)
from adapter.parsing.markdown_context import FENCE, FENCE_KIND
from adapter.parsing.marker_patterns import build_first_two
from adapter.parsing.marker_set import MarkerSet, WeakMarker, WeakMarkerSet, get_marker_set
from adapter.parsing.stream_buffer import HEAD_LIMIT, SPACE, Reader
from adapter.parsing.wrapper_tags import (
    ANNOUNCING_WORD,
    LINE_START,
    TAG_START,
    announces_calls,
    build_tag_pattern,
    is_tag,
)

REASONING = {"<think>": "</think>", "<thinking>": "</thinking>"}
"""Reasoning markers that models of every family write."""

END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>")
"""End-of-turn tokens that a server should have stripped."""

NEXT_TURN = ("<|im_start|>", "<|start_header_id|>")
INVENTED_RESULT = ("<tool_response>",)
"""Tags of a tool result that the model invents. The text after them does not belong to its turn."""

LINE_STARTS = (LINE_START, "\n{", "\n[", TAG_START)
"""Weak markers (see `WeakMarkerSet`) at which a call without markers, or a tag around a call, may begin."""

CALL_FENCES = ("", "json", "json5", "jsonc", "xml", "text", "plaintext")
"""Languages of code fences that may contain a call, in addition to languages named after calls."""

PYTHON_FENCES = ("python", "py")
"""Languages of code fences that may contain a call if they begin an answer."""


MARKER_SIGNS = "<>[]|｜"
"""Punctuation that encloses the word in a marker, as in ``<|tool_call|>``."""


class MarkerTables(NamedTuple):
    """The markers of a group of formats, in lower case and grouped by role, and the marker sets built from them."""

    openers: Mapping[str, CallOpener]
    header_readers: tuple[BodyReader, ...]
    markerless_readers: tuple[BodyReader, ...]
    """Parsers for calls at the start of an answer whose opening markers are missing."""
    unmarked: BodyReader
    """Parser for calls without markers at the start of a line."""
    fenced: BodyReader
    """Parser for the content of a code fence."""
    stray_closers: frozenset[str]
    fallback_closers: frozenset[str]
    """Closing markers of formats other than the expected one. They are recognized only directly after a call."""
    all_closers: MarkerSet
    """``stray_closers`` and ``fallback_closers``."""
    reasoning: Mapping[str, str]
    answer_tags: Mapping[str, str]
    end_tokens: frozenset[str]
    other_role_markers: frozenset[str]
    result_markers: frozenset[str]
    text_markers: WeakMarkerSet
    """All markers that are recognized in an answer."""
    reasoning_ends: MarkerSet
    reasoning_markers: MarkerSet
    """All markers that are recognized in reasoning."""
    opening_markers: MarkerSet
    closing_tags: Mapping[str, str]
    """Maps opening markers that are tags without attributes to their closing tags."""
    build_namespace_opener: Callable[[str], CallOpener] | None
    """Builds the opening marker ``<NAMESPACE:invoke`` for a namespace, or is None."""

    def is_cut_closer(self, text: str) -> bool:
        """Return whether ``text``, which follows a call at the end of an answer, is an incomplete closing marker."""
        bare = text.strip().lower()
        return len(bare) > 1 and any(closer.startswith(bare) for closer in self.all_closers.literals)


@lru_cache(maxsize=128)
def map_reasoning_markers(formats: tuple[Format, ...]) -> Mapping[str, str]:
    """Map the opening markers of reasoning in these formats to their closing markers."""
    own = {opening.lower(): closing.lower() for entry in formats for opening, closing in entry.reasoning.items()}
    return REASONING | own


@lru_cache(maxsize=128)
def build_marker_tables(
    formats: tuple[Format, ...], names: tuple[str, ...], fallback: tuple[Format, ...] = ()
) -> MarkerTables:
    """Build the `MarkerTables` for ``formats``, the expected formats. ``names`` are the session's tools, which some
    formats use as markers. Of the ``fallback`` formats, only calls are parsed, at markers that ``formats`` lack."""
    plain = _build_tables(formats, fallback)
    if not names:
        return plain
    added = merge_openers(_collect_tool_openers(formats, names), _collect_tool_openers(fallback, names))
    if added.keys() & plain.openers:
        openers: Mapping[str, CallOpener] = _collect_all_openers(formats, fallback, names)
    else:  # collecting all openers takes longer than parsing most answers
        openers = {**plain.openers, **_accept_any_call(added)}
    text_markers = plain.text_markers.with_literals(_build_weak_markers(plain.openers, names), *added)
    return plain._replace(
        openers=openers,
        text_markers=text_markers,
        reasoning_markers=text_markers.select_subset((*plain.reasoning_markers.literals, *added)),
        opening_markers=text_markers.select_subset(openers),
    )


def _collect_all_openers(
    formats: tuple[Format, ...], fallback: tuple[Format, ...], names: tuple[str, ...]
) -> Mapping[str, CallOpener]:
    return _accept_any_call(merge_openers(_collect_openers(formats, names), _collect_openers(fallback, names)))


def _accept_any_call(openers: Mapping[str, CallOpener]) -> Mapping[str, CallOpener]:
    """Return ``openers`` with parsers that accept any notation after a marker that announces a call, such as
    ``<tool_call>``."""
    closings = {
        marker: find_closing_marker(marker) for marker in openers if announces_calls(marker.strip(MARKER_SIGNS))
    }
    return {**openers, **{marker: _with_any_call(openers[marker], end) for marker, end in closings.items() if end}}


@lru_cache(maxsize=256)
def _with_any_call(opener: CallOpener, closing: str) -> CallOpener:
    """Return ``opener`` with a parser that also accepts calls in other notations, up to the marker ``closing``."""
    return opener._replace(read=FallbackReader(opener.read, build_announced_reader(opener.marker, closing)))


def find_closing_marker(marker: str) -> str:
    """Return the closing marker for ``marker``, or "" if it cannot be inferred."""
    if is_tag(marker):
        return f"</{marker[1:]}"
    for word in ("start", "begin"):
        head, found, tail = marker.rpartition(word)
        if found and not tail.strip(MARKER_SIGNS):
            return f"{head}end{tail}"
    if marker.startswith("<|") and marker.endswith(">"):
        return f"<|/{marker[2:]}" if marker.endswith("|>") else f"<{marker[2:-1]}|>"
    return f"[/{marker[1:]}" if marker.startswith("[") and marker.endswith("]") else ""


def _collect_openers(formats: tuple[Format, ...], names: tuple[str, ...]) -> dict[str, CallOpener]:
    return _map_by_marker((*entry.openers, *_build_tool_openers(entry, names)) for entry in formats)


def _collect_tool_openers(formats: tuple[Format, ...], names: tuple[str, ...]) -> dict[str, CallOpener]:
    return _map_by_marker(_build_tool_openers(entry, names) for entry in formats)


def is_token(tag: str) -> bool:
    """Return whether ``tag`` is a control token rather than an XML tag. A control token also ends unclosed
    reasoning."""
    return tag.startswith("<|")


def _build_tool_openers(format: Format, names: tuple[str, ...]) -> tuple[CallOpener, ...]:
    return format.build_tool_openers(names) if format.build_tool_openers else ()


def _map_by_marker(openers: Iterable[tuple[CallOpener, ...]]) -> dict[str, CallOpener]:
    """Map each opening marker, in lower case, to its first `CallOpener` in ``openers``."""
    ordered = chain.from_iterable(openers)
    return {sys.intern(opener.marker.lower()): opener for opener in reversed([*ordered])}  # shared by all sessions


@lru_cache(maxsize=128)
def _build_tables(formats: tuple[Format, ...], fallback: tuple[Format, ...]) -> MarkerTables:
    openers = _collect_all_openers(formats, fallback, ())
    stray_closers = _lower_markers(marker for entry in formats for marker in entry.stray_closers)
    fallback_closers = _lower_markers(marker for entry in fallback for marker in entry.stray_closers) - stray_closers
    channels = _lower_markers(marker for entry in formats for marker in entry.channel_markers)
    end_tokens = channels | _lower_markers(
        (*END_OF_TURN, *(marker for entry in formats for marker in entry.end_tokens))
    )
    other_role_markers = _lower_markers(
        (*NEXT_TURN, *(marker for entry in formats for marker in entry.other_role_markers))
    )
    result_markers = _lower_markers(
        (*INVENTED_RESULT, *(marker for entry in formats for marker in entry.result_markers))
    )
    reasoning = map_reasoning_markers(formats)
    answer_tags = {
        opening.lower(): closing.lower() for entry in formats for opening, closing in entry.answer_tags.items()
    }
    answer_tokens = [tag for tag in answer_tags if is_token(tag)]
    text_markers = WeakMarkerSet(
        _build_weak_markers(openers, ()),
        *openers, *stray_closers, *fallback_closers, *reasoning, *reasoning.values(), *answer_tags,
        *answer_tags.values(), *end_tokens,
        *other_role_markers, *result_markers,
    )  # fmt: skip
    unmarked = _collect_unmarked_readers(formats, fallback)
    return MarkerTables(
        openers=openers,
        # Only for expected formats: a header may be any word, so fallback formats would delay every answer.
        header_readers=list_distinct_readers(entry.read_header for entry in formats),
        markerless_readers=_collect_markerless_readers(formats, fallback),
        unmarked=try_readers(*unmarked, _read_loose_json),
        fenced=try_readers(*unmarked, _bare_json),
        stray_closers=stray_closers,
        fallback_closers=fallback_closers,
        all_closers=MarkerSet(*stray_closers, *fallback_closers),
        reasoning=reasoning,
        answer_tags=answer_tags,
        end_tokens=end_tokens,
        other_role_markers=other_role_markers,
        result_markers=result_markers,
        text_markers=text_markers,
        reasoning_ends=get_marker_set(*reasoning.values(), *channels, *answer_tokens),
        reasoning_markers=text_markers.select_subset((*openers, *reasoning.values(), *channels, *answer_tokens)),
        opening_markers=text_markers.select_subset(openers),
        closing_tags={marker: f"</{marker[1:]}" for marker in openers if is_tag(marker)},
        build_namespace_opener=_find_namespace_opener(formats, fallback),
    )


def _find_namespace_opener(
    formats: tuple[Format, ...], fallback: tuple[Format, ...]
) -> Callable[[str], CallOpener] | None:
    own = next((entry.build_namespace_opener for entry in formats if entry.build_namespace_opener), None)
    other = next((entry.build_namespace_opener for entry in fallback if entry.build_namespace_opener), None)
    if own or not other:
        return own
    return lambda namespace: mark_foreign_opener(other(namespace))


def _build_weak_markers(openers: Iterable[str], names: tuple[str, ...]) -> dict[str, WeakMarker]:
    """Return the strings that are markers only before certain text: code fences, and line breaks before possible calls.
    ``openers`` are the opening markers of calls that do not depend on the session's tools, so all sessions share the
    patterns."""
    keys = CALL_KEYS.union(names)
    later = rf"(?=[\s\S]{{0,{HEAD_LIMIT}}}+\Z|{NAMED_LATER.replace('?P<name>', '?:')})"  # the parser decides
    after_brace = rf"[{SPACE}]*+(?:[{{\['“]|\"(?:{later}|(?:([^\"]{{0,63}})\")?)|\Z)"
    after_bracket = rf"[{SPACE}]*+(?:[{{\[\"'“\w]|\Z)"
    objects = rf"[\w+#.-]{{0,{FENCE_KIND}}}\n[{SPACE}]*+(?:\{{{after_brace}|\Z)"
    calls = rf"(?i:{'|'.join(CALL_FENCES)})\n[{SPACE}]*(?:{build_first_two(openers)}|<[A-Za-z_]|\[{after_bracket})"
    python = rf"(?i:{'|'.join(PYTHON_FENCES)})\n[{SPACE}]*+(?:([\w.-]++)\(|[\w.-]*+\Z)"
    fence = rf"(?![\w+#.-]{{0,{FENCE_KIND}}}\n)|{objects}|{calls}|{python}|{ANNOUNCING_WORD}\n"
    return {
        LINE_START: WordedCallStart(names),
        FENCE: WeakMarker(f"(?:{fence})", keys),
        "\n{": WeakMarker(after_brace, keys),
        "\n[": WeakMarker(after_bracket),
        TAG_START: WeakMarker(build_tag_pattern(openers)),
    }


def _lower_markers(markers: Iterable[str]) -> frozenset[str]:
    return frozenset(marker.lower() for marker in markers)


def _collect_unmarked_readers(formats: Sequence[Format], fallback: tuple[Format, ...]) -> tuple[BodyReader, ...]:
    """Return the parsers for calls without markers. The parser for bare JSON is included only if there is a single
    expected format, which writes bare JSON."""
    own = list_distinct_readers(entry.read_unmarked for entry in formats)
    others = [read for read in list_distinct_readers(entry.read_unmarked for entry in fallback) if read not in own]
    return (
        *(read for read in own if len(formats) == 1 or not isinstance(read, UntaggedJson)),
        *(FallbackReader(None, read) for read in others if not isinstance(read, UntaggedJson)),
    )


def _collect_markerless_readers(formats: Sequence[Format], fallback: tuple[Format, ...]) -> tuple[BodyReader, ...]:
    own = list_distinct_readers(entry.read_stripped_start for entry in formats)
    others = list_distinct_readers(entry.read_stripped_start for entry in fallback)
    return (*own, *(_build_uncertain_reader(read) for read in others if read not in own))


def _build_uncertain_reader(read: BodyReader) -> BodyReader:
    """Return a parser that reports nothing before a call is complete, because it may still turn out to be text.
    ``read`` is the parser of another family's format."""
    read_foreign = FallbackReader(None, read)

    def read_undecided(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        source.may_be_text = True
        return (yield from read_foreign(source, consumed))

    return read_undecided


_bare_json = UntaggedJson("arguments", after_marker=False)


def _read_loose_json(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse JSON calls that lack their format's markers."""
    result = yield from _bare_json(source, consumed)
    return result.with_repairs("no-markers")
