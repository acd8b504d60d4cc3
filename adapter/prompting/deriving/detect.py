"""Which format a model writes, by its template and name: that of a table that is certain, or the derived one, and why.

A table is certain where it reads back what the template writes; its marks in the template's text, or the model's name,
only say which to try first. Where none is, the derived format is taken, which was checked in the same way. Of a
template that writes no calls the marks and the name are all there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS, guess_format
from adapter.prompting.deriving.probes import ONE, TWO_CALLS
from adapter.prompting.deriving.result import DerivationResult
from adapter.prompting.deriving.round_trip import ONE_CALL, SEVERAL, round_trip_failures


@dataclass(frozen=True, slots=True)
class DetectedFormat:
    """``format``: the name that `get_format` takes, None where nothing is known. ``by``: a table that was checked, the
    template (derived), or signs alone that nothing could be checked by."""

    format: str | None
    by: Literal["table", "template", "signs"]
    why: str
    derived: str | None = None
    """The derived format, whether or not it is taken."""

    @property
    def certain(self) -> str | None:
        """The format that was checked: signs alone may be of a name that says nothing."""
        return self.format if self.by != "signs" else None

    def from_template(self) -> DetectedFormat:
        """The derived format, as somebody wants it; where there is none, what else is known."""
        if self.derived is not None:
            return replace(self, format=self.derived, by="template", why="derived from the template, as asked for")
        return replace(self, why=f"not derived, as asked for: {self.why}")

    def __str__(self) -> str:
        return f"{self.format or 'any'}, {self.why}"


def match_known_format(found: DerivationResult, source: str, model: str | None) -> DetectedFormat:
    """``found``: what was derived from the template ``source``."""
    told = _recognised(found, source, model)
    return replace(told, derived=found.format.name) if found.format is not None else told


def _recognised(found: DerivationResult, source: str, model: str | None) -> DetectedFormat:
    signs = guess_format(model, source)
    if not found.samples:
        why = f"by signs alone: {found.why}" if signs else f"none known and none derived: {found.why}"
        return DetectedFormat(signs, "signs", why)
    for name, why in _candidates(found, source, model):
        if not _wrong(FORMATS[name], found):
            return DetectedFormat(name, "table", f"a table that reads what the template writes ({why})")
    if found.format is not None:
        doubt = f"the table {signs} misreads it" if signs else "no table knows it"
        return DetectedFormat(found.format.name, "template", f"derived from the template and read back ({doubt})")
    why = f"not certain: what the template writes is not all read back, nor is a format derived ({found.why})"
    return DetectedFormat(signs, "signs", why)


def _candidates(found: DerivationResult, source: str, model: str | None) -> Iterator[tuple[str, str]]:
    """The tables to try, the likeliest first."""
    for name, why in (
        (guess_format(None, source), "its marks stand there"),
        (guess_format(model), "the model's name says so"),
    ):
        if name is not None:
            yield name, why
    for name, entry in FORMATS.items():
        if _writes(entry, found):
            yield name, "it writes the same"


def _writes(format: Format, found: DerivationResult) -> bool:
    """Whether the format writes a call as the template does, white space around it aside."""
    one, several = found.written(ONE_CALL), found.written(SEVERAL)
    if one is None or format.encode_calls(ONE).strip() != one.strip():
        return False
    return several is None or format.encode_calls(TWO_CALLS).strip() == several.strip()


def _wrong(format: Format, found: DerivationResult) -> bool:
    return any(not miss.is_limit for miss in round_trip_failures(format, found.samples, writes=False))
