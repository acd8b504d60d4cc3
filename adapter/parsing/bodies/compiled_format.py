"""`CompiledFormat`, the part of a `Format` that is compiled from a `FormatSpec`, and functions for its compilers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.name_then_json import build_word_reader
from adapter.parsing.format import BodyReader, CallOpener
from adapter.parsing.format_spec import FormatSpec


class UnsupportedLayoutError(Exception):
    """Raised if no parser supports the notation in a `FormatSpec`. ``str(error)`` names the unsupported part."""


@dataclass(frozen=True, slots=True)
class CompiledFormat:
    """The fields of a `Format` that depend on how its calls are written.

    - ``unmarked``, ``head``: the format's ``read_unmarked`` and ``read_header``.
    - ``closers``: closing markers that are markup even without an opening marker.
    - ``tokens``: further markers that the server must not strip.
    """

    openers: tuple[CallOpener, ...] = ()
    unmarked: BodyReader | None = None
    head: BodyReader | None = None
    closers: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()


def is_marker(text: str) -> bool:
    """Return whether ``text`` is unlikely to occur in prose, because it contains a bracket or similar punctuation."""
    return (
        len(text) > 2 and re.search(r"[^\w\s.,:;!?'\"(){}-]", text) is not None and re.search(r"\w", text) is not None
    )


def strip_both(section: tuple[str, str]) -> tuple[str, str]:
    return section[0].strip(), section[1].strip()


def wrap_in_section(
    section: tuple[str, str], opening: str, closes: tuple[str, ...], read: BodyReader
) -> CompiledFormat:
    """Return the part of a format for calls that begin with the marker ``opening``, are parsed by ``read`` and may end
    with one of ``closes``.

    ``section`` is the text before and after all calls. Raises UnsupportedLayoutError if only its first text is not
    empty.
    """
    read, closers = read if is_marker(opening) else build_word_reader(read), (*closes, section[1])
    if section[0] in ("", opening):
        return CompiledFormat((CallOpener(opening, read),), closers=closers)
    if not section[1]:
        raise UnsupportedLayoutError(f"{section[0]!r} opens a section that has no closing marker")
    call_section = CallSection(opens=(section[0],), closes=(section[1],), call_opens=(opening,), read_call=read)
    return CompiledFormat(call_section.openers, closers=closers)


def compile_described(spec: FormatSpec, read: BodyReader, closing: str) -> CompiledFormat:
    """Return the part of a format for calls that begin with ``spec.head``, are parsed by ``read`` and end with the
    marker ``closing``. Raises UnsupportedLayoutError if the head has no word."""
    opening = spec.head.strip()
    if not re.search(r"\w", opening):
        raise UnsupportedLayoutError(f"the text before the name is {spec.head!r}, which is not a marker")
    closers = () if "{name}" in closing else (closing,)
    return wrap_in_section(strip_both(spec.section), opening, closers, read)
