"""What a template says of its family's calls: a format that was checked, or why there is none, and what was seen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from adapter.parsing.bodies import harmony_messages
from adapter.parsing.bodies.format_compiler import UnsupportedLayoutError, compile_format
from adapter.parsing.bodies.format_spec import FormatSpec
from adapter.parsing.format import Format
from adapter.parsing.formats import DERIVED
from adapter.prompting.deriving.infer_calls import infer_call_format
from adapter.prompting.deriving.probes import (
    ASKED,
    NAME,
    ONE,
    SAID,
    USER,
    Fill,
    RenderedConversations,
    TemplateConventions,
    detect_conventions,
    is_special,
    split_tokens,
)  # fmt: skip
from adapter.prompting.deriving.round_trip import (
    SHOWN,
    RoundTripFailure,
    RoundTripSample,
    round_trip_failures,
    round_trip_samples,
)
from adapter.prompting.deriving.turn_layout import CannotDeriveError, PromptFrame, find_frame, find_result, find_turns


@dataclass(frozen=True, slots=True)
class DerivationResult:
    """``format``: None where ``why`` says why there is none. ``description``: what was found, as far as it went.

    ``samples``: what the template writes. ``misses``: what of these was not read back; those that are limits of the
    family's form do not count against the format.
    """

    format: Format | None
    why: str
    description: FormatSpec | None = None
    frame: PromptFrame | None = None
    samples: tuple[RoundTripSample, ...] = ()
    misses: tuple[RoundTripFailure, ...] = ()

    def written(self, what: str) -> str | None:
        """The sample of this name as the template writes it; None where it cannot."""
        return next((sample.written for sample in self.samples if sample.what == what), None)

    @property
    def limits(self) -> tuple[RoundTripFailure, ...]:
        return tuple(miss for miss in self.misses if miss.is_limit)


def derived_format_name(source: str, tokens: Mapping[str, str]) -> str:
    """What a format derived from this template is called: the same for the same text and tokens."""
    told = "\0".join((source, *(f"{name}={token}" for name, token in sorted(tokens.items()))))
    return f"{DERIVED}{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def derive_format(fill: Fill, name: str) -> DerivationResult:
    """Derives the format of the template that ``fill`` fills."""
    way = detect_conventions(fill)
    if way is None:
        return DerivationResult(None, _why_no_calls(fill))
    writings = RenderedConversations(fill, way)
    try:
        frame = find_frame(writings, find_turns(writings))
    except CannotDeriveError as error:
        return DerivationResult(None, str(error)[:SHOWN])
    markers = [token for token in split_tokens(f"{frame.calls(ONE)}") if is_special(token)]
    try:
        description = _with_turns(frame, infer_call_format(frame, name))
    except CannotDeriveError as error:
        return DerivationResult(None, str(error)[:SHOWN], None, frame, round_trip_samples(frame, markers))
    samples = round_trip_samples(frame, tuple(dict.fromkeys((*markers, *description.markers))))
    try:
        format = compile_format(description)
    except UnsupportedLayoutError as error:
        return DerivationResult(None, f"no reader explains {error}"[:SHOWN], description, frame, samples)
    misses = round_trip_failures(format, samples)
    wrong = [miss for miss in misses if not miss.is_limit]
    if wrong:
        return DerivationResult(None, f"it does not read back {wrong[0]}", description, frame, samples, misses)
    return DerivationResult(format, "", description, frame, samples, misses)


def _with_turns(frame: PromptFrame, found: FormatSpec) -> FormatSpec:
    turns = frame.turns
    result, results, heads = find_result(frame)
    answer = frame.answer(ONE, SAID)
    if answer is not None:
        keeps_space = answer.partition(SAID)[2][:1].strip() != ""
    else:  # words and calls are not shown together: calls that follow each other are as telling
        keeps_space = found.between == "" and any(found.section) is False and found.body not in ("json", "labels")
    if found.body == "channels":  # what ends and begins a message belongs to the body
        stops = (harmony_messages.CALL, harmony_messages.RETURN)
        return replace(found, ends=harmony_messages.ENDS, next_turns=harmony_messages.NEXT_TURNS, stops=stops)
    return replace(
        found,
        keeps_space=keeps_space,
        result=result,
        results=results,
        reasoning=turns.reasoning,
        starts_in_reasoning=turns.starts_in_reasoning,
        ends=turns.ends,
        next_turns=tuple(dict.fromkeys((*turns.next_turns, *heads))),
        stops=(*turns.ends[:1], *heads) if turns.ends else (*turns.next_turns, *heads),
    )


def _why_no_calls(fill: Fill) -> str:
    """What a template lacks that no call could be had from."""
    question = fill([USER], [], False)
    if question is None:
        return "the template cannot be filled with a single question"
    if ASKED not in question:
        return "what the user says is not in what it writes: this is no chat template"
    way = TemplateConventions("object", "", False, False, False)
    text = RenderedConversations(fill, way).calls(ONE)
    if text is None:
        return "the template refuses every conversation in which a tool was called"
    if NAME in text:
        return "the template writes calls in no way that has a name, a key and a value in it"
    return "the template leaves past calls out"
