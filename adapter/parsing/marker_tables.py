"""What the segmenter looks for, put together once for a set of formats and tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from adapter.parsing.bare_json import CALL_KEYS, UntaggedJson
from adapter.parsing.fallback_readers import FallbackReader, FallbackReaders, merge_openers
from adapter.parsing.format import BodyReader, BodyResult, CallOpener, Format, ReadContext, try_readers
from adapter.parsing.markdown_context import FENCE, FENCE_KIND
from adapter.parsing.marker_set import MarkerSet, WeakMarkerSet, first_two, markers_for
from adapter.parsing.stream_buffer import SPACE, Reader, StreamBuffer

REASONING = {"<think>": "</think>", "<thinking>": "</thinking>"}
"""Reasoning markers that models write whatever their family."""

END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>")
"""Tokens that a server should have stripped."""

NEXT_TURN = ("<|im_start|>", "<|start_header_id|>")
INVENTED_RESULT = ("<tool_response>",)
"""What a model writes when it goes on by itself: the rest is not its turn any more."""

BARE_STARTS = ("\n{", "\n[")
"""Where JSON without markers may begin."""

CALL_FENCES = ("", "json", "json5", "jsonc", "tool_call", "tool_calls", "tool", "xml")
"""What code fences that may hold a call say of their language."""


class MarkerTables(NamedTuple):
    """The markers of some formats by what they do, in lower case, and what finds them in a text."""

    told: str | None
    """The name of the one format that is read, None when any may come."""
    openers: Mapping[str, CallOpener]
    heads: tuple[BodyReader, ...]
    stripped: tuple[BodyReader, ...]
    """Read calls whose openers are missing, where an answer begins."""
    bare: BodyReader
    """Reads calls that stand without markers where a line begins."""
    fenced: BodyReader
    """Reads what a code fence holds."""
    strays: frozenset[str]
    foreign_strays: frozenset[str]
    """Closing markers of the formats that are not told: they belong to nothing but a call right before them."""
    reasoning: Mapping[str, str]
    answers: Mapping[str, str]
    ends: frozenset[str]
    next_turns: frozenset[str]
    results: frozenset[str]
    text_markers: WeakMarkerSet
    """All that matters in an answer."""
    reasoning_ends: MarkerSet
    reasoning_markers: MarkerSet
    """All that matters in reasoning."""
    opening_markers: MarkerSet


@lru_cache(maxsize=128)
def reasoning_markers(formats: tuple[Format, ...]) -> Mapping[str, str]:
    """The closing marker of reasoning by its opening one, for these formats."""
    own = {opening.lower(): closing.lower() for entry in formats for opening, closing in entry.reasoning.items()}
    return REASONING | own


@lru_cache(maxsize=128)
def build_marker_tables(
    formats: tuple[Format, ...], names: tuple[str, ...], others: FallbackReaders | None = None
) -> MarkerTables:
    """``names``: those of the session's tools, which some formats use as markers.

    ``others``: those whose calls, but nothing else of them, are read where none of ``formats`` has its own.
    """
    if not names:
        return _tables(formats, others)
    plain, openers = _tables(formats, others), _all_openers(formats, others, names)
    text_markers = WeakMarkerSet(_weak(openers, names), *plain.text_markers.literals, *openers)
    return plain._replace(
        openers=openers,
        text_markers=text_markers,
        reasoning_markers=text_markers.part(*plain.reasoning_markers.literals, *openers),
        opening_markers=text_markers.part(*openers),
    )


def _all_openers(
    formats: tuple[Format, ...], others: FallbackReaders | None, names: tuple[str, ...]
) -> dict[str, CallOpener]:
    return merge_openers(_openers(formats, names), others.openers(names) if others else {})


def _openers(formats: tuple[Format, ...], names: tuple[str, ...]) -> dict[str, CallOpener]:
    return {
        opener.marker.lower(): opener
        for entry in reversed(formats)
        for opener in reversed((*entry.openers, *(entry.openers_for(names) if entry.openers_for else ())))
    }


@lru_cache(maxsize=128)
def _tables(formats: tuple[Format, ...], others: FallbackReaders | None) -> MarkerTables:
    openers = _all_openers(formats, others, ())
    strays = _lowered(marker for entry in formats for marker in entry.stray_closers)
    foreign_strays = (others.strays if others else frozenset()) - strays
    channels = _lowered(marker for entry in formats for marker in entry.channel_markers)
    ends = channels | _lowered((*END_OF_TURN, *(marker for entry in formats for marker in entry.end_tokens)))
    next_turns = _lowered((*NEXT_TURN, *(marker for entry in formats for marker in entry.other_role_markers)))
    results = _lowered((*INVENTED_RESULT, *(marker for entry in formats for marker in entry.result_markers)))
    reasoning = reasoning_markers(formats)
    answers = {opening.lower(): closing.lower() for entry in formats for opening, closing in entry.answer_tags.items()}
    text_markers = WeakMarkerSet(
        _weak(openers, ()),
        *openers, *strays, *foreign_strays, *reasoning, *reasoning.values(), *answers, *answers.values(), *ends,
        *next_turns, *results,
    )  # fmt: skip
    own_bare = [*_own_bare(formats), *_foreign_bare(formats, others)]
    return MarkerTables(
        told=formats[0].name if len(formats) == 1 else None,
        openers=openers,
        # Heads are of the told format alone: one may be any word, which would be held back from every answer.
        heads=tuple(dict.fromkeys(entry.read_header for entry in formats if entry.read_header is not None)),
        stripped=tuple(_stripped(formats, others)),
        bare=try_readers(*own_bare, _read_loose_json),
        fenced=try_readers(*own_bare, _bare_json),
        strays=strays,
        foreign_strays=foreign_strays,
        reasoning=reasoning,
        answers=answers,
        ends=ends,
        next_turns=next_turns,
        results=results,
        text_markers=text_markers,
        reasoning_ends=markers_for(*reasoning.values(), *channels),
        reasoning_markers=text_markers.part(*openers, *reasoning.values(), *channels),
        opening_markers=text_markers.part(*openers),
    )


def _weak(openers: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Patterns of what follows a code fence, or a bracket at a line's beginning, where that can begin no call."""
    keys = "|".join(map(re.escape, sorted({*CALL_KEYS, *names})))
    idle_object = rf"[{SPACE}]*(?:[^{SPACE}{{\[\"'“]|\"(?!(?:{keys})\")[^\"]{{0,63}}\")"
    idle_list = rf"[{SPACE}]*[^{SPACE}{{\[\"'“\w]"
    call = rf"{first_two(openers)}|\{{(?!{idle_object})|\[(?!{idle_list})|\Z"
    return {
        FENCE: rf"(?!(?i:{'|'.join(CALL_FENCES)})\n[{SPACE}]*(?:{call}))[\w+#.-]{{0,{FENCE_KIND}}}\n",
        "\n{": idle_object,
        "\n[": idle_list,
    }


def _lowered(markers: Iterable[str]) -> frozenset[str]:
    return frozenset(marker.lower() for marker in markers)


def _own_bare(formats: Sequence[Format]) -> list[BodyReader]:
    """How these formats call without markers. Where no format is told, bare JSON is nobody's own way."""
    own = list(dict.fromkeys(entry.read_bare for entry in formats if entry.read_bare is not None))
    return own if len(formats) == 1 else [read for read in own if not isinstance(read, UntaggedJson)]


def _stripped(formats: Sequence[Format], others: FallbackReaders | None) -> list[BodyReader]:
    own = list(dict.fromkeys(entry.read_without_markers for entry in formats if entry.read_without_markers is not None))
    return own + [_undecided(read) for read in _not_among(own, others.stripped if others else ())]


def _undecided(read: BodyReader) -> BodyReader:
    """Reads a call of another family that is known to be one only when it is whole."""
    read_foreign = FallbackReader(None, read)

    def read_undecided(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        context.may_be_text = True
        return (yield from read_foreign(source, span, context))

    return read_undecided


def _foreign_bare(formats: Sequence[Format], others: FallbackReaders | None) -> list[BodyReader]:
    """How the ``others`` call without markers; bare JSON is read in any case."""
    own = [entry.read_bare for entry in formats if entry.read_bare is not None]
    return [FallbackReader(None, read) for read in _not_among(own, others.bare if others else ())]


def _not_among(own: Sequence[BodyReader], others: Sequence[BodyReader]) -> list[BodyReader]:
    return [read for read in others if read not in own]


_bare_json = UntaggedJson("arguments", after_marker=False)


def _read_loose_json(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """JSON calls that lack their format's markers."""
    reading = yield from _bare_json(source, span, context)
    return reading.adding("no-markers")
