"""Detect a model's format from its chat template and name: a known format that fits, or else the derived one.

A known format fits if it parses the template's output correctly. Markers in the template and the model's name only
determine which formats are tried first. A derived format has passed the same check. If the template writes no calls,
the format is guessed from the markers and the name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS, guess_format
from adapter.prompting.deriving.derive_format import DerivationResult
from adapter.prompting.deriving.probe_conversations import ONE_CALL, TWO_CALLS
from adapter.prompting.deriving.round_trip import ONE_CALL_SAMPLE, TWO_CALLS_SAMPLE, find_round_trip_failures


@dataclass(frozen=True, slots=True)
class DetectedFormat:
    """A model's detected format: a name for `get_format`, or None if unknown.

    ``by`` is "known" for a known format that was checked, "template" for the derived format, "guess" for an unchecked
    guess.
    """

    format: str | None
    by: Literal["known", "template", "guess"]
    why: str
    derived: str | None = None
    """Name of the derived format, even if it is not used."""

    @property
    def certain(self) -> str | None:
        """The format if it was checked, or None, because a guess may be based on a misleading name."""
        return self.format if self.by != "guess" else None

    def from_template(self) -> DetectedFormat:
        """Return this detection with the derived format, which the user requested. Without one, only the reason
        changes."""
        if self.derived is not None:
            return replace(self, format=self.derived, by="template", why="derived from the template, as requested")
        return replace(self, why=f"not derived, as requested: {self.why}")

    def __str__(self) -> str:
        return f"{self.format or 'any'}, {self.why}"


def match_known_format(found: DerivationResult, source: str, model: str | None) -> DetectedFormat:
    """Return the known format that fits the template ``source``, or else the derived format or a guess. ``found`` is
    the result of deriving a format from ``source``. ``model`` is the model's name."""
    detected = _detect(found, source, model)
    return replace(detected, derived=found.format.name) if found.format is not None else detected


def _detect(found: DerivationResult, source: str, model: str | None) -> DetectedFormat:
    guess = guess_format(model, source)
    if found.known is not None:
        return DetectedFormat(found.known, "known", "a known format that reads the calls of the response template")
    if found.format is not None and not found.samples:
        return DetectedFormat(found.format.name, "template", "learned from the response template")
    if not found.samples:
        why = f"a guess: {found.why}" if guess else f"none known and none derived: {found.why}"
        return DetectedFormat(guess, "guess", why)
    for name, why in _list_candidates(found, source, model):
        if not _misreads(FORMATS[name], found):
            return DetectedFormat(name, "known", f"a known format that reads the template's output ({why})")
    if found.format is not None:
        doubt = f"{guess} misreads it" if guess else "no known format fits"
        return DetectedFormat(found.format.name, "template", f"derived from the template and tested ({doubt})")
    why = f"not certain: no known format reads all of the template's output, and none was derived ({found.why})"
    return DetectedFormat(guess, "guess", why)


def _list_candidates(found: DerivationResult, source: str, model: str | None) -> Iterator[tuple[str, str]]:
    """Yield the known formats to try, most likely first, each with the reason."""
    for name, why in ((guess_format(None, source), "by its markers"), (guess_format(model), "by the model's name")):
        if name is not None:
            yield name, why
    for name, entry in FORMATS.items():
        if _writes(entry, found):
            yield name, "by identical output"


def _writes(format: Format, found: DerivationResult) -> bool:
    """Return whether the format writes calls like the template, ignoring whitespace around them."""
    one, several = found.find_sample(ONE_CALL_SAMPLE), found.find_sample(TWO_CALLS_SAMPLE)
    if one is None or format.encode_calls(ONE_CALL).strip() != one.strip():
        return False
    return several is None or format.encode_calls(TWO_CALLS).strip() == several.strip()


def _misreads(format: Format, found: DerivationResult) -> bool:
    return any(not miss.is_ambiguous for miss in find_round_trip_failures(format, found.samples, writes=False))
