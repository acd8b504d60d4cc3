"""Derive a format from a template and check it, or explain why that is not possible."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from adapter.core.events import JsonObject
from adapter.parsing.bodies import harmony_messages
from adapter.parsing.bodies.compiled_format import UnsupportedLayoutError
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.bodies.harmony_messages import START
from adapter.parsing.format import Format
from adapter.parsing.format_spec import FormatSpec, KeyValueLayout
from adapter.parsing.formats import DERIVED
from adapter.prompting.deriving.learn_from_examples import LearningExample, find_format_spec
from adapter.prompting.deriving.probe_conversations import (
    ANSWER,
    KEY,
    NAME,
    NO_ARGUMENTS,
    ONE_CALL,
    OTHER_KEY,
    OTHER_VALUE,
    QUESTION,
    QUESTION_MESSAGE,
    TWO_ARGUMENTS,
    TWO_CALLS,
    VALUE,
    Call,
    PromptRenderer,
    RenderedConversations,
    TemplateConventions,
    detect_conventions,
    find_shared_end,
    find_shared_start,
    looks_like_marker,
    split_tokens,
)  # fmt: skip
from adapter.prompting.deriving.prompt_layout import (
    CannotDeriveError,
    PromptFrame,
    find_prompt_frame,
    find_result_layout,
    find_turn_layout,
)
from adapter.prompting.deriving.round_trip import (
    MAX_QUOTED,
    RoundTripFailure,
    RoundTripSample,
    find_round_trip_failures,
    render_round_trip_samples,
)

_TYPED_VALUES: JsonObject = {
    "zqcount": 31337,
    "zqratio": 0.5,
    "zqflag": True,
    "zqlist": [31337, "zqitem"],
    "zqmap": {"zqinner": 31337},
}
_KINDS = dict(zip(_TYPED_VALUES, ("integer", "number", "boolean", "array", "object"), strict=True))


@dataclass(frozen=True, slots=True)
class DerivationResult:
    """The result of deriving a format: the format or the reason why there is none, and the samples that were
    checked."""

    format: Format | None
    """The derived format, or None for the reason ``why``."""
    why: str
    description: FormatSpec | None = None
    """The format's specification."""
    frame: PromptFrame | None = None
    samples: tuple[RoundTripSample, ...] = ()
    """Prompts rendered by the template."""
    misses: tuple[RoundTripFailure, ...] = ()
    """Samples that the format misread. They count against the format only if the sample is not ambiguous."""
    known: str | None = None
    """The built-in format that already parses the calls of a response template; ``samples`` is then empty."""

    def find_sample(self, name: str) -> str | None:
        """Return the sample ``name`` as the template rendered it, or None."""
        return next((sample.rendered for sample in self.samples if sample.name == name), None)


def build_derived_name(source: str, tokens: Mapping[str, str]) -> str:
    """Return the name of the format derived from this template, with a hash of the template's text and tokens."""
    text = "\0".join((source, *(f"{name}={token}" for name, token in sorted(tokens.items()))))
    return f"{DERIVED}{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def derive_format(render: PromptRenderer, name: str) -> DerivationResult:
    """Derive the format ``name`` of the template that ``render`` renders."""
    conventions = detect_conventions(render)
    if conventions is None:
        return DerivationResult(None, _explain_missing_calls(render))
    conversations = RenderedConversations(render, conventions)
    try:
        frame = find_prompt_frame(conversations, find_turn_layout(conversations))
    except CannotDeriveError as error:
        return DerivationResult(None, str(error)[:MAX_QUOTED])
    markers = [token for token in split_tokens(f"{frame.render_calls(ONE_CALL)}") if looks_like_marker(token)]
    try:
        description = _with_turns(frame, derive_call_format(frame, name))
    except CannotDeriveError as error:
        return DerivationResult(None, str(error)[:MAX_QUOTED], None, frame, render_round_trip_samples(frame, markers))
    pairs, all_markers = description.pairs, tuple(dict.fromkeys((*markers, *description.markers)))
    ends_line = pairs is not None and not pairs.value_close.strip()
    samples = render_round_trip_samples(frame, all_markers, ends_line=ends_line)
    try:
        format = compile_format(description)
    except UnsupportedLayoutError as error:
        return DerivationResult(None, f"no parser supports {error}"[:MAX_QUOTED], description, frame, samples)
    misses = find_round_trip_failures(format, samples)
    wrong = [miss for miss in misses if not miss.is_ambiguous]
    if wrong:
        return DerivationResult(None, f"the derived format misreads {wrong[0]}", description, frame, samples, misses)
    return DerivationResult(format, "", description, frame, samples, misses)


def _with_turns(frame: PromptFrame, found: FormatSpec) -> FormatSpec:
    turns = frame.turns
    result, results, heads = find_result_layout(frame)
    answer = frame.render_answer(ONE_CALL, ANSWER)
    if answer is not None:
        keeps_space = answer.partition(ANSWER)[2][:1].strip() != ""
    else:  # Without an answer that has both text and calls, use the whitespace between calls.
        keeps_space = found.between == "" and any(found.section) is False and found.body not in ("json", "labels")
    if found.body == "channels":  # The markers around a message are part of the body.
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


def _explain_missing_calls(render: PromptRenderer) -> str:
    question = render([QUESTION_MESSAGE], [], False)
    if question is None:
        return "the template cannot be rendered with a single question"
    if QUESTION not in question:
        return "the template's output does not contain the user's message: this is not a chat template"
    conventions = TemplateConventions("object", "", False, False, False)
    text = RenderedConversations(render, conventions).render_calls(ONE_CALL)
    if text is None:
        return "the template rejects every conversation with a tool call"
    if NAME in text:
        return "the template writes calls without a name, a key or a value"
    return "the template drops past calls"


def derive_call_format(frame: PromptFrame, name: str) -> FormatSpec:
    """Derive the format of calls, without turn markers. Raises CannotDeriveError if they are in no known notation."""
    opening = f"{START}{frame.prefix.rpartition(START)[2]}" if START in frame.prefix else ""  # part of Harmony's header
    examples = []
    for calls in (ONE_CALL, TWO_ARGUMENTS, TWO_CALLS, NO_ARGUMENTS):
        text = frame.render_calls(calls)
        if text is not None:
            examples.append(LearningExample(f"{opening}{text}", calls))
    spec, refusals = find_format_spec(examples, name, ends=())
    if spec is None:
        # The body "lines" is tried last and allows the most layouts.
        raise CannotDeriveError(refusals.get("lines") or "; ".join(dict.fromkeys(refusals.values())))
    if spec.pairs is None:
        return _with_json_style(frame, spec) if spec.body != "yaml" else spec
    return spec if spec.body == "lines" else replace(spec, pairs=_with_types(frame, spec, spec.pairs))


def _with_json_style(frame: PromptFrame, spec: FormatSpec) -> FormatSpec:
    """Return ``spec`` with the colon, comma and indent that the template uses in arguments."""
    text, arguments = frame.render_calls(TWO_ARGUMENTS) or "", {KEY: VALUE, OTHER_KEY: OTHER_VALUE}
    for indent, colon, comma in product((None, 4, 2), (": ", ":"), (", ", ",")):
        encoded = json.dumps(arguments, separators=(comma, colon), indent=indent)
        if (json.dumps(encoded) if spec.is_text else encoded) in text:
            return replace(spec, colon=colon, comma=comma, indent=indent)
    return spec


def _with_types(frame: PromptFrame, spec: FormatSpec, pairs: KeyValueLayout) -> KeyValueLayout:
    """Return ``pairs`` with the text before a value of each type (``openings``) and the text around a single object
    with all arguments (``in_place``)."""
    openings = {**pairs.openings, **_find_openings(frame, spec, pairs)}
    if len(set(openings.values())) == 1:
        openings = dict(pairs.openings)
    in_place = (
        (find_shared_start(pairs.first, pairs.none), find_shared_end(pairs.last, pairs.none)) if pairs.none else None
    )
    return replace(pairs, openings=openings, in_place=in_place)


def _find_openings(frame: PromptFrame, spec: FormatSpec, pairs: KeyValueLayout) -> dict[str, str]:
    """Return the text between a key and a value of each JSON type, if the template writes such values as JSON."""
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
