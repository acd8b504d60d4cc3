"""What the segmenter looks for, put together once for a set of formats and tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from adapter.formats.base import BodyReader, Context, Format, Opener, Reading, first_of
from adapter.formats.reading.json_body import UntaggedJson
from adapter.formats.reading.source import Either, Markers, Reader, Source, markers_for

REASONING = {"<think>": "</think>", "<thinking>": "</thinking>"}
"""Reasoning markers that models write whatever their family."""

END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>")
"""Tokens that a server should have stripped."""

NEXT_TURN = ("<|im_start|>", "<|start_header_id|>")
INVENTED_RESULT = ("<tool_response>",)
"""What a model writes when it goes on by itself: the rest is not its turn any more."""

FENCE, TILDE_FENCE = "```", "~~~"
BARE_STARTS = ("\n{", "\n[")
"""Where JSON without markers may begin."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The markers of some formats by what they do, in lower case, and what finds them in a text."""

    told: str | None
    """The name of the one format that is read, None when any may come."""
    openers: Mapping[str, Opener]
    heads: tuple[BodyReader, ...]
    bare: BodyReader
    """Reads calls that stand without markers where a line begins."""
    fenced: BodyReader
    """Reads what a code fence holds."""
    strays: frozenset[str]
    reasoning: Mapping[str, str]
    answers: Mapping[str, str]
    ends: frozenset[str]
    next_turns: frozenset[str]
    results: frozenset[str]
    text_markers: Markers | Either
    """All that matters in an answer."""
    reasoning_ends: Markers
    reasoning_markers: Markers | Either
    """All that matters in reasoning."""
    opening_markers: Markers | Either
    busy: re.Pattern[str]
    """Characters without which a piece of text can neither hold a marker nor begin or end a line, code or quotation."""

    def is_plain(self, piece: str) -> bool:
        """Whether ``piece``, put after plain text, is plain text whatever follows."""
        return self.busy.search(piece) is None and self.text_markers.held(piece, 0) == len(piece)


def reasoning_of(formats: Sequence[Format]) -> dict[str, str]:
    """The closing marker of reasoning by its opening one, for these formats."""
    own = {opening.lower(): closing.lower() for entry in formats for opening, closing in entry.reasoning.items()}
    return REASONING | own


@lru_cache(maxsize=64)
def tables_for(formats: tuple[Format, ...], names: tuple[str, ...]) -> Tables:
    """``names``: those of the session's tools, which some formats use as markers."""
    if not names:
        return _tables(formats)
    plain, openers = _tables(formats), _openers(formats, names)
    own = [marker for marker in openers if marker not in plain.openers]
    if not own:
        return replace(plain, openers=openers)
    # Only these are new: patterns of all markers take 0.1 s to make, and a megabyte.
    tags = Markers(*own)
    return replace(
        plain,
        openers=openers,
        text_markers=(text_markers := Either(tags, plain.text_markers)),
        reasoning_markers=Either(tags, plain.reasoning_markers),
        opening_markers=Either(tags, plain.opening_markers),
        busy=_busy(text_markers),
    )


def _openers(formats: tuple[Format, ...], names: tuple[str, ...]) -> dict[str, Opener]:
    return {
        opener.marker.lower(): opener
        for entry in reversed(formats)
        for opener in reversed((*entry.openers, *(entry.openers_for(names) if entry.openers_for else ())))
    }


@lru_cache(maxsize=64)
def _tables(formats: tuple[Format, ...]) -> Tables:
    openers = _openers(formats, ())
    strays = _lowered(marker for entry in formats for marker in entry.strays)
    channels = _lowered(marker for entry in formats for marker in entry.channels)
    ends = channels | _lowered((*END_OF_TURN, *(marker for entry in formats for marker in entry.ends)))
    next_turns = _lowered((*NEXT_TURN, *(marker for entry in formats for marker in entry.next_turns)))
    results = _lowered((*INVENTED_RESULT, *(marker for entry in formats for marker in entry.results)))
    reasoning = reasoning_of(formats)
    answers = {opening.lower(): closing.lower() for entry in formats for opening, closing in entry.answers.items()}
    text_markers = markers_for(
        *openers, *strays, *reasoning, *reasoning.values(), *answers, *answers.values(), *ends, *next_turns, *results,
        FENCE, TILDE_FENCE, *BARE_STARTS,
    )  # fmt: skip
    own_bare = _own_bare(formats)
    return Tables(
        told=formats[0].name if len(formats) == 1 else None,
        openers=openers,
        heads=tuple(entry.head for entry in formats if entry.head is not None),
        bare=first_of(*own_bare, _read_loose_json),
        fenced=first_of(*own_bare, _bare_json),
        strays=strays,
        reasoning=reasoning,
        answers=answers,
        ends=ends,
        next_turns=next_turns,
        results=results,
        text_markers=text_markers,
        reasoning_ends=markers_for(*reasoning.values(), *channels),
        reasoning_markers=markers_for(*openers, *reasoning.values(), *channels),
        opening_markers=markers_for(*openers),
        busy=_busy(text_markers),
    )


def _busy(markers: Markers | Either) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(''.join(markers.anchors))}\n`>]")


def _lowered(markers: Iterable[str]) -> frozenset[str]:
    return frozenset(marker.lower() for marker in markers)


def _own_bare(formats: Sequence[Format]) -> list[BodyReader]:
    """How these formats call without markers. Where no format is told, bare JSON is nobody's own way."""
    own = list(dict.fromkeys(entry.bare for entry in formats if entry.bare is not None))
    return own if len(formats) == 1 else [read for read in own if not isinstance(read, UntaggedJson)]


_bare_json = UntaggedJson("arguments", after_marker=False)


def _read_loose_json(source: Source, span: list[str], context: Context) -> Reader[Reading]:
    """JSON calls that lack their format's markers."""
    reading = yield from _bare_json(source, span, context)
    return reading.adding("no-markers")
