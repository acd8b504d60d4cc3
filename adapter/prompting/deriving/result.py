"""What a template says of its family's calls: a format that was checked, or why there is none, and what was seen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from adapter.parsing.bodies import harmony_messages
from adapter.parsing.bodies.format_compiler import NoReaderError, format_of
from adapter.parsing.bodies.format_spec import Description
from adapter.parsing.format import Format
from adapter.parsing.formats import DERIVED
from adapter.prompting.deriving.infer_calls import find_calls
from adapter.prompting.deriving.probes import (
    ASKED,
    NAME,
    ONE,
    SAID,
    USER,
    Fill,
    Way,
    Writings,
    find_way,
    is_special,
    tokens,
)  # fmt: skip
from adapter.prompting.deriving.round_trip import SHOWN, Miss, Sample, misses_of, samples_of
from adapter.prompting.deriving.turn_layout import CannotDeriveError, Frame, find_frame, find_result, find_turns


@dataclass(frozen=True, slots=True)
class Derived:
    """``format``: None where ``why`` says why there is none. ``description``: what was found, as far as it went.

    ``samples``: what the template writes. ``misses``: what of these was not read back; those that are limits of the
    family's form do not count against the format.
    """

    format: Format | None
    why: str
    description: Description | None = None
    frame: Frame | None = None
    samples: tuple[Sample, ...] = ()
    misses: tuple[Miss, ...] = ()

    def written(self, what: str) -> str | None:
        """The sample of this name as the template writes it; None where it cannot."""
        return next((sample.written for sample in self.samples if sample.what == what), None)

    @property
    def limits(self) -> tuple[Miss, ...]:
        return tuple(miss for miss in self.misses if miss.is_limit)


def name_of(source: str, tokens: Mapping[str, str]) -> str:
    """What a format derived from this template is called: the same for the same text and tokens."""
    told = "\0".join((source, *(f"{name}={token}" for name, token in sorted(tokens.items()))))
    return f"{DERIVED}{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def derived_by(fill: Fill, name: str) -> Derived:
    """Derives the format of the template that ``fill`` fills."""
    way = find_way(fill)
    if way is None:
        return Derived(None, _why_no_calls(fill))
    writings = Writings(fill, way)
    try:
        frame = find_frame(writings, find_turns(writings))
    except CannotDeriveError as error:
        return Derived(None, str(error)[:SHOWN])
    markers = [token for token in tokens(f"{frame.calls(ONE)}") if is_special(token)]
    try:
        description = _with_turns(frame, find_calls(frame, name))
    except CannotDeriveError as error:
        return Derived(None, str(error)[:SHOWN], None, frame, samples_of(frame, markers))
    samples = samples_of(frame, tuple(dict.fromkeys((*markers, *description.markers))))
    try:
        format = format_of(description)
    except NoReaderError as error:
        return Derived(None, f"no reader explains {error}"[:SHOWN], description, frame, samples)
    misses = misses_of(format, samples)
    wrong = [miss for miss in misses if not miss.is_limit]
    if wrong:
        return Derived(None, f"it does not read back {wrong[0]}", description, frame, samples, misses)
    return Derived(format, "", description, frame, samples, misses)


def _with_turns(frame: Frame, found: Description) -> Description:
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
    way = Way("object", "", False, False, False)
    text = Writings(fill, way).calls(ONE)
    if text is None:
        return "the template refuses every conversation in which a tool was called"
    if NAME in text:
        return "the template writes calls in no way that has a name, a key and a value in it"
    return "the template leaves past calls out"
