"""Report a derivation's result: the format's fields, the checks and the failures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from adapter.parsing.format_spec import FormatSpec
from adapter.prompting.deriving.derive_format import DerivationResult
from adapter.prompting.deriving.format_detection import DetectedFormat
from adapter.prompting.deriving.round_trip import ONE_CALL_SAMPLE, TWO_CALLS_SAMPLE

NEXT_STEP = 'write the format by hand (CONTRIBUTING.md, "A format"), or learn it from examples (`adapter learn`)'
"""Advice for templates from which no format can be derived."""

_BODIES = {
    "json": "a JSON object that contains the name",
    "named json": "the name, then the arguments as JSON",
    "labels": "the name and the arguments as JSON, each after a label",
    "function": "<function=NAME> with a <parameter=KEY> for each argument",
    "pairs": "the name, then keys and values between tags",
    "elements": "elements with the name and the keys as attributes",
    "python": "a list of Python calls",
    "gemma": "call:NAME{key:value}",
    "lines": "the name, then keys and values in a layout of their own",
    "yaml": "the name, then the arguments as YAML",
    "channels": "messages with the recipient in their headers",
}


def format_report(found: DerivationResult, detected: DetectedFormat) -> str:
    """Return a report on ``found``, after a line about the detected format."""
    return "".join(_format_line(label, text) for label, text in _list_lines(found, detected))


def _format_line(label: str, text: str) -> str:
    return f"{label}:{text}\n" if text.startswith("\n") else f"{label + ':':<16}{text}\n"


def _list_lines(found: DerivationResult, detected: DetectedFormat) -> Iterator[tuple[str, str]]:
    # The reason follows on a line of its own.
    yield "format", str(detected).removesuffix(f" ({found.why})").removesuffix(f": {found.why}")
    checks = 2 * sum(sample.rendered is not None for sample in found.samples)
    if found.format is not None and found.frame is None:
        yield "learned", f"{found.format.name}; from the response template, whose answers it parses correctly"
    elif found.format is not None:
        yield "derived", f"{found.format.name}; {checks} rendered texts parsed correctly, whole and by characters"
    else:
        yield "not derived", found.why
        if detected.certain is None:
            test = f"test the guess with an answer of the model: `adapter parse --format {detected.format}`; or "
            yield "next step", f"{test if detected.format else ''}{NEXT_STEP}"
    if found.description is not None:
        yield from _describe(found.description)
    if found.frame is not None:
        yield "before calls", repr(found.frame.prefix)
        yield "after calls", repr(found.frame.suffix)
    yield from _list_examples(found)
    for _, misses in groupby(found.misses, attrgetter("sample")):
        miss = next(misses)
        if str(miss) not in found.why:
            yield "limit" if miss.is_ambiguous else "misread", str(miss)
    if wrong := sum(not miss.is_ambiguous for miss in found.misses):
        yield "in all", f"{wrong} texts misread"
    for sample in found.samples:
        if sample.rendered is None:
            yield "not shown", f"{sample.name}: the template rejects it or drops a part"


def _describe(description: FormatSpec) -> Iterator[tuple[str, str]]:
    yield "calls", _BODIES[description.body]
    pairs = description.pairs
    if pairs is not None:
        yield (
            "one call",
            f"{description.head!r} NAME {pairs.first!r} KEY {pairs.openings['string']!r} VALUE {pairs.last!r}",
        )
        yield "between pairs", repr(pairs.following)
        for kind, opening in pairs.openings.items():
            if opening != pairs.openings["string"]:
                yield f"{kind} after", repr(opening)
        yield "no arguments", repr(pairs.none) if pairs.none else "not shown"
    else:
        yield "one call", f"{description.head!r} NAME {description.middle!r} ARGUMENTS {description.tail!r}"
        if description.body == "json":
            yield "arguments", f"under {description.arguments_key!r}" if description.arguments_key else "under the name"
    if any(description.section):
        yield "section", " ... ".join(map(repr, description.section))
    yield "between calls", repr(description.between)
    for opening, closing in description.reasoning.items():
        yield "reasoning", f"{opening!r} ... {closing!r}"
    if description.starts_in_reasoning:
        yield "prompt", "opens the reasoning"
    yield "result", repr(description.result)
    yield "ends", " ".join(description.ends) or "not seen"
    yield "next turns", " ".join(description.next_turns) or "not seen"


def _list_examples(found: DerivationResult) -> Iterator[tuple[str, str]]:
    for label, name in (("written", ONE_CALL_SAMPLE), ("several", TWO_CALLS_SAMPLE)):
        written = found.find_sample(name)
        if written is not None:
            yield label, "\n" + "\n".join(f"    {line}" for line in written.splitlines())
