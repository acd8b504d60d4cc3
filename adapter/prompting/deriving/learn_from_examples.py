"""Learn a format from examples: a model's outputs, each with its expected calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.parsing.bodies import harmony_messages
from adapter.parsing.bodies.compiled_format import UnsupportedLayoutError
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.format import Format
from adapter.parsing.format_spec import ID, NUMBER, Body, FormatSpec, KeyValueLayout
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import parse
from adapter.prompting.deriving.known_call_locations import (
    Call,
    CallSpan,
    CannotLearnError,
    Locator,
    locate_calls,
    locate_gemma,
    locate_json,
    locate_named_json,
    locate_pairs,
    locate_python,
    locate_yaml,
)
from adapter.prompting.deriving.probe_conversations import (
    find_shared_end,
    find_shared_start,
    looks_like_marker,
    split_tokens,
)
from adapter.tools.coercion import get_type_name
from adapter.tools.tool_set import ToolSet

MIN_EXAMPLES = 3
"""Minimum number of examples with calls for learning a format."""


@dataclass(frozen=True, slots=True)
class LearningExample:
    """A model's raw text and its expected calls, each as a name and arguments."""

    text: str
    calls: list[Call]


@dataclass(frozen=True, slots=True)
class LearningResult:
    """The specification learned from examples with its cross-check, or the reasons why no notation fits."""

    spec: FormatSpec | None
    """The specification, or None if no notation fits the examples."""
    refusals: dict[str, str]
    """The reason against each notation (`FormatSpec.body`) that was tried before."""
    left_out: tuple[tuple[int, str], ...] = ()
    """The examples, by index, that the format learned from the other examples misreads, with the reason."""
    known: str | None = None
    """A built-in format that parses all examples."""


def learn_format(examples: Sequence[LearningExample], name: str) -> LearningResult:
    """Learn the format ``name``, and cross-check it: parse each example with the format learned from the others."""
    spec, refusals = find_format_spec(examples, name)
    known = next((each.name for each in FORMATS.all if not _find_misread(each, examples, examples)), None)
    if spec is None:
        return LearningResult(None, refusals, known=known)
    left_out = []
    for index, example in enumerate(examples):
        others = [*examples[:index], *examples[index + 1 :]]
        learned, reasons = find_format_spec(others, name)
        if learned is None:
            left_out.append((index, "; ".join(dict.fromkeys(reasons.values()))))
        elif problem := _find_misread(compile_format(learned), [example], examples):
            left_out.append((index, problem))
    return LearningResult(spec, refusals, tuple(left_out), known)


def find_format_spec(
    examples: Sequence[LearningExample], name: str, ends: tuple[str, ...] | None = None
) -> tuple[FormatSpec | None, dict[str, str]]:
    """Return the first specification that parses all examples, and the reasons against the notations tried before it.

    If none fits, return None and the reasons against the notations in which the calls were found, or why no calls were
    found. ``ends`` are the tokens that may end the outputs; by default, the known ones.
    """
    missing: dict[str, str] = {}
    refusals: dict[str, str] = {}
    with_calls = [example for example in examples if example.calls]
    ends = _find_ends(examples) if ends is None else ends
    for body, (locate, describe) in _BODIES.items():
        try:
            located = [_locate(each, ends, locate) for each in with_calls]
        except CannotLearnError as error:
            missing[body] = str(error)
            continue
        try:
            spec = replace(describe(located, _find_frame(located)), name=name, ends=ends)
        except CannotLearnError as error:
            refusals[body] = str(error)
            continue
        # The body "lines" is more general, and may parse the same text.
        for variant in [
            spec,
            *([replace(spec, body="lines")] if spec.body in ("pairs", "elements", "function") else []),
        ]:
            try:
                problem = _find_misread(compile_format(variant), examples, examples)
            except UnsupportedLayoutError as error:
                problem = f"no parser supports it: {error}"
            if not problem:
                return variant, refusals
            refusals[variant.body] = problem
    return None, refusals or missing


def _locate(example: LearningExample, ends: tuple[str, ...], locate: Locator) -> _Located:
    text = _strip_ends(example.text, ends)
    return _Located(text, locate_calls(text, example.calls, locate), example.calls)


def _find_misread(format: Format, examples: Sequence[LearningExample], all_examples: Sequence[LearningExample]) -> str:
    """Return the first difference between the calls parsed with ``format`` and the calls in the examples, or ""."""
    tools = build_tools(all_examples)
    for number, example in enumerate(examples, 1):
        turn = parse(example.text, tools, format, policy="strict")
        calls = [(call.name, call.arguments) for call in turn.calls]
        if calls != example.calls:
            reason = turn.invalid[0].error if turn.invalid else f"the calls are parsed as {calls!r}"
            return f"example {number} is misread: {reason}"[:400]
    return ""


def build_tools(examples: Sequence[LearningExample]) -> ToolSet:
    """Return definitions of the tools that the examples call, with the values' types."""
    tools: dict[str, dict[str, set[str]]] = {}
    for name, arguments in (call for example in examples for call in example.calls):
        properties = tools.setdefault(name, {})
        for key, value in arguments.items():
            properties.setdefault(key, set()).add(get_type_name(value))
    return ToolSet([{"name": name, "parameters": _build_schema(properties)} for name, properties in tools.items()])


def _build_schema(properties: dict[str, set[str]]) -> JsonObject:
    types: dict[str, Json] = {key: {"type": list[Json](sorted(kinds))} for key, kinds in properties.items()}
    return {"type": "object", "properties": types}


# ------------------------------------------------------------------- the text around calls


@dataclass(frozen=True, slots=True)
class _Located:
    text: str
    spans: list[CallSpan]
    calls: list[Call]


@dataclass(frozen=True, slots=True)
class _Frame:
    """The text around and between the calls of the examples. The fields are the same as in `FormatSpec`."""

    head: str
    tail: str
    section: tuple[str, str] = ("", "")
    between: str = ""


def _find_ends(examples: Sequence[LearningExample]) -> tuple[str, ...]:
    """Return the known end-of-turn tokens that end the examples."""
    known = sorted({token for format in FORMATS.all for token in format.end_tokens}, key=len, reverse=True)
    found = (next((end for end in known if each.text.rstrip().endswith(end)), None) for each in examples)
    return tuple(dict.fromkeys(end for end in found if end is not None))


def _strip_ends(text: str, ends: tuple[str, ...]) -> str:
    end = next((each for each in ends if text.rstrip().endswith(each)), "")
    return text.rstrip().removesuffix(end) if end else text


def _find_frame(located: Sequence[_Located]) -> _Frame:
    """Find the text around and between the calls. If a call without arguments has no recognizable end, the text after
    it is ignored, provided that other calls have an end."""
    is_end_known = any(span.texts for span in _build_spans(located))
    befores = [each.text[: each.spans[0].start] for each in located]
    afters = [each.text[each.spans[-1].end :] for each in located if each.spans[-1].texts or not is_end_known]
    gaps = [
        each.text[one.end : two.start]
        for each in located
        for one, two in zip(each.spans, each.spans[1:], strict=False)
        if one.texts or not is_end_known
    ]
    if not afters:
        raise CannotLearnError("no example ends with a call that has arguments; add one")
    head, tail = _trim_head(reduce(find_shared_end, befores), befores), reduce(find_shared_start, afters).rstrip()
    if not gaps:
        is_list = head.rstrip().endswith("[") and tail.lstrip().startswith("]")
        return _Frame("", "", (head, tail), ", ") if is_list else _Frame(head, tail, between="\n")
    own_head, own_tail = reduce(find_shared_end, gaps, head), reduce(find_shared_start, gaps, tail)
    if not re.search(r"\w", own_head):
        return _Frame("", "", (head, tail), gaps[0])
    shortest = min(gaps, key=len)
    if len(own_head) + len(own_tail) > len(shortest):
        own_tail = shortest[: len(shortest) - len(own_head)]
    between = {gap[len(own_tail) : len(gap) - len(own_head)] for gap in gaps}
    section = (head[: len(head) - len(own_head)], tail[len(own_tail) :])
    return _Frame(own_head, own_tail, section, between.pop() if len(between) == 1 else "\n")


def _trim_head(head: str, befores: Sequence[str]) -> str:
    """Return ``head`` without text at its start that belongs to the content before a call."""
    if any(before.strip() == head.strip() for before in befores):
        return head.lstrip()
    tokens = split_tokens(head.lstrip(" \n.,:;!?"))
    first = next((index for index, token in enumerate(tokens) if looks_like_marker(token)), 0)
    return "".join(tokens[first:])


def _find_shared(what: str, pieces: Sequence[str]) -> str:
    """Return the text that all ``pieces`` share, with a placeholder for differing ids. Raises CannotLearnError, in
    which ``what`` describes the text, for other differences."""
    if any(ID in piece for piece in pieces):
        pieces = [piece.replace(NUMBER, ID) for piece in pieces]
    different = list(dict.fromkeys(pieces))
    if len(different) == 1:
        return different[0]
    start, end = reduce(find_shared_start, different), reduce(find_shared_end, different)
    inner = [piece[len(start) : len(piece) - len(end)] for piece in different]
    if all(re.fullmatch(r"[\w-]+", each) for each in inner):
        return f"{start}{ID}{end}"
    raise CannotLearnError(f"{what} differs: {different[0][:80]!r} and {different[1][:80]!r}")


# ------------------------------------------------------------------- bodies

Describe: TypeAlias = Callable[[Sequence[_Located], _Frame], FormatSpec]
"""Builds the specification of a format from the located calls and the text around them."""


def _build_spans(located: Sequence[_Located]) -> list[CallSpan]:
    return [span for each in located for span in each.spans]


def _build_spec(frame: _Frame, body: Body, middle: str = "", **settings: object) -> FormatSpec:
    spec = FormatSpec("", body, frame.head, middle, frame.tail, frame.section, frame.between)
    return replace(spec, **settings)  # type: ignore[arg-type]


def _describe_json(located: Sequence[_Located], frame: _Frame) -> FormatSpec:
    spans = _build_spans(located)
    head = _find_shared("the JSON before the name", [span.head for span in spans])
    middle = _find_shared("the JSON between name and arguments", [span.texts[0] for span in spans])
    tail = _find_shared("the JSON after the arguments", [span.texts[1] for span in spans])
    return _build_spec(
        replace(frame, head=f"{frame.head}{head}", tail=f"{tail}{frame.tail}"), "json", middle,
        arguments_key=spans[0].key, is_text=spans[0].is_text,
    )  # fmt: skip


def _describe_named_json(located: Sequence[_Located], frame: _Frame) -> FormatSpec:
    middles = [re.sub(r"\A:\d+(?=\D)", f":{NUMBER}", span.texts[0]) for span in _build_spans(located)]
    middle = _find_shared("the text between name and arguments", middles)
    is_labeled = re.search(r"\w:\s*\Z", frame.head) and re.search(r"\w:\s*\Z", middle)
    body: Body = "labels" if is_labeled else "named json"
    if frame.head.startswith(harmony_messages.START):
        body, frame = "channels", replace(frame, between="")
    return _build_spec(frame, body, middle, is_text=_build_spans(located)[0].is_text)


def _describe_python(_located_calls: Sequence[_Located], frame: _Frame) -> FormatSpec:
    if frame.head.rstrip().endswith("["):
        frame = _Frame("", "", (frame.head, frame.tail), ", ")
    elif not frame.head and frame.section[0] and not frame.section[0].rstrip().endswith("["):
        frame = _Frame(*frame.section, between=frame.between)  # several calls between one pair of markers
    return _build_spec(frame, "python")


def _describe_gemma(located: Sequence[_Located], frame: _Frame) -> FormatSpec:
    quote = _find_shared("the quote", [span.quote for span in _build_spans(located) if span.quote] or ['"'])
    return _build_spec(frame, "gemma", quote=quote)


def _describe_yaml(located: Sequence[_Located], frame: _Frame) -> FormatSpec:
    texts = [span.texts for span in _build_spans(located) if span.texts]
    if not texts:
        raise CannotLearnError("no example has a call with arguments; add one")
    middle = _find_shared("the text between name and arguments", [each[0] for each in texts])
    indent = _find_shared("the indentation of the arguments", [each[1] for each in texts])
    return _build_spec(frame, "yaml", middle, indent=len(indent))


def _describe_pairs(located: Sequence[_Located], frame: _Frame) -> FormatSpec:
    firsts, openings, followings, lasts, nones = (list[str]() for _ in range(5))
    for each in located:
        ends = [*(span.start for span in each.spans[1:]), len(each.text)]
        for (name, arguments), span, end in zip(each.calls, each.spans, ends, strict=True):
            keys, after = [*arguments], each.text[span.end : end]
            if not keys:
                nones.append(after)
                continue
            firsts.append(span.texts[0])
            openings += span.texts[1::2]
            followings += [_hide(text, key) for text, key in zip(span.texts[2::2], keys, strict=False)]
            lasts.append(_hide(after, keys[-1]).replace(f"/{name}>", "/{name}>"))
    if not followings:
        raise CannotLearnError("no example has a call with two arguments; add one")
    first, opening = (
        _find_shared("the text before the first key", firsts),
        _find_shared("the text before a value", openings),
    )
    following = _find_shared("the text between two pairs", followings)
    last = reduce(find_shared_start, lasts).removesuffix(frame.section[1]).rstrip()
    pairs = KeyValueLayout(first, following, last, "", {"string": opening})
    pairs = replace(pairs, none=_find_text_without_pairs(pairs, nones, frame))
    between = {after[len(last) :].removesuffix(frame.head) for after in lasts if after.endswith(frame.head)}
    frame = replace(frame, tail="", between=between.pop() if len(between) == 1 else "\n")
    body: Body = "pairs"
    if frame.head.endswith("<function="):
        body = "function"
    elif re.search(r"[\w:.-]=\"\Z", frame.head) and re.search(r"[\w:.-]=\"\Z", first):
        body = "elements"
    elif "{key}" in following or "{name}" in last:
        body = "lines"
    return _build_spec(frame, body, pairs=pairs)


def _find_text_without_pairs(pairs: KeyValueLayout, nones: Sequence[str], frame: _Frame) -> str:
    """Return the text that follows the name in a call without arguments.

    The text comes from the example calls without arguments or, if there are none, is inferred from other calls.
    """
    if nones:
        return reduce(find_shared_start, nones).rstrip().removesuffix(frame.section[1])
    key_opening = pairs.following[len(pairs.value_close) :]
    return f"{pairs.first.removesuffix(key_opening)}{pairs.last[len(pairs.value_close) :]}"


def _hide(text: str, key: str) -> str:
    """Replace ``key`` with a placeholder in a closing tag at the start of ``text``."""
    return re.sub(rf"\A(\s*\W{{0,3}}/){re.escape(key)}(?!\w)", r"\1{key}", text)


_BODIES: dict[str, tuple[Locator, Describe]] = {
    "json": (locate_json, _describe_json),
    "named json": (locate_named_json, _describe_named_json),
    "gemma": (locate_gemma, _describe_gemma),
    "python": (locate_python, _describe_python),
    "yaml": (locate_yaml, _describe_yaml),
    "pairs": (locate_pairs, _describe_pairs),
}
