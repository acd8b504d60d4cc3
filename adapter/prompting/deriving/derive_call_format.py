"""Derive the specification of a format from a few calls that a chat template has rendered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from adapter.core.events import JsonObject
from adapter.parsing.bodies.harmony_messages import START
from adapter.parsing.format_spec import FormatSpec, KeyValueLayout
from adapter.prompting.deriving.learn_from_examples import LearningExample, find_format_spec
from adapter.prompting.deriving.probe_conversations import (
    KEY,
    NAME,
    NO_ARGUMENTS,
    ONE_CALL,
    OTHER_KEY,
    OTHER_VALUE,
    TWO_ARGUMENTS,
    TWO_CALLS,
    VALUE,
    Call,
    find_shared_end,
    find_shared_start,
)
from adapter.prompting.deriving.prompt_layout import CannotDeriveError, PromptFrame


def derive_call_format(frame: PromptFrame, name: str) -> FormatSpec:
    """Derive the format of calls, without turn markers. Raises CannotDeriveError if they fit no notation."""
    opening = f"{START}{frame.prefix.rpartition(START)[2]}" if START in frame.prefix else ""  # part of Harmony's header
    examples = []
    for calls in (ONE_CALL, TWO_ARGUMENTS, TWO_CALLS, NO_ARGUMENTS):
        text = frame.render_calls(calls)
        if text is not None:
            examples.append(LearningExample(f"{opening}{text}", calls))
    spec, refusals = find_format_spec(examples, name, ends=())
    if spec is None:
        # The body "lines" is tried last, and holds the most layouts.
        raise CannotDeriveError(refusals.get("lines") or "; ".join(dict.fromkeys(refusals.values())))
    if spec.pairs is None:
        return _with_json_style(frame, spec) if spec.body != "yaml" else spec
    return spec if spec.body == "lines" else replace(spec, pairs=_with_types(frame, spec, spec.pairs))


def _with_json_style(frame: PromptFrame, spec: FormatSpec) -> FormatSpec:
    """Return ``spec`` with the colon, the comma and the indent that the template writes in arguments."""
    text, arguments = frame.render_calls(TWO_ARGUMENTS) or "", {KEY: VALUE, OTHER_KEY: OTHER_VALUE}
    for indent, colon, comma in product((None, 4, 2), (": ", ":"), (", ", ",")):
        encoded = json.dumps(arguments, separators=(comma, colon), indent=indent)
        if (json.dumps(encoded) if spec.is_text else encoded) in text:
            return replace(spec, colon=colon, comma=comma, indent=indent)
    return spec


_TYPED_VALUES: JsonObject = {
    "zqcount": 31337,
    "zqratio": 0.5,
    "zqflag": True,
    "zqlist": [31337, "zqitem"],
    "zqmap": {"zqinner": 31337},
}
_KINDS = dict(zip(_TYPED_VALUES, ("integer", "number", "boolean", "array", "object"), strict=True))


def _with_types(frame: PromptFrame, spec: FormatSpec, pairs: KeyValueLayout) -> KeyValueLayout:
    """Return ``pairs`` with the text before a value of each type (``openings``), and with the text around a single
    object that contains all arguments (``in_place``)."""
    openings = {**pairs.openings, **_find_openings(frame, spec, pairs)}
    if len(set(openings.values())) == 1:
        openings = dict(pairs.openings)
    in_place = (
        (find_shared_start(pairs.first, pairs.none), find_shared_end(pairs.last, pairs.none)) if pairs.none else None
    )
    return replace(pairs, openings=openings, in_place=in_place)


def _find_openings(frame: PromptFrame, spec: FormatSpec, pairs: KeyValueLayout) -> dict[str, str]:
    """Return the text between a key and its value, for each JSON type whose values are written as JSON."""
    openings = {}
    for key, value in _TYPED_VALUES.items():
        calls: Sequence[Call] = [(NAME, {key: value})]
        start, end = f"{spec.section[0]}{spec.head}{NAME}{pairs.first}{key}", f"{pairs.last}{spec.section[1]}"
        text = frame.render_calls(calls) or ""
        if not text.startswith(start) or not text.endswith(end):
            continue
        inner = text[len(start) : len(text) - len(end)]
        for colon, comma in ((": ", ", "), (":", ",")):
            encoded = json.dumps(value, separators=(comma, colon))
            if inner.endswith(encoded):
                openings[_KINDS[key]] = inner[: len(inner) - len(encoded)]
                break
    return openings
