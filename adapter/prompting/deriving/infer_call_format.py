"""Infer the specification of a format from a few rendered calls."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product

from adapter.core.events import Json, JsonObject
from adapter.core.text.split_around import split_around
from adapter.parsing.bodies.format_compiler import UnsupportedLayoutError, find_json_around
from adapter.parsing.bodies.format_spec import ID, NUMBER, Body, FormatSpec, KeyValueLayout
from adapter.prompting.deriving.probes import (
    KEY,
    NAME,
    NO_ARGUMENTS,
    ONE_CALL,
    OTHER_KEY,
    OTHER_NAME,
    OTHER_VALUE,
    TWO_ARGUMENTS,
    TWO_CALLS,
    VALUE,
    Call,
    find_shared_end,
    find_shared_start,
    is_special,
    split_tokens,
)
from adapter.prompting.deriving.prompt_layout import CannotDeriveError, PromptFrame

MAX_STARTS = 200
"""Maximum number of braces and quotes that are tried as the start of the arguments."""


def infer_call_format(frame: PromptFrame, name: str) -> FormatSpec:
    """Infer the format of calls, without the turn that contains them. Raises CannotDeriveError if no layout fits."""
    one, two = _render(frame, ONE_CALL), _render(frame, TWO_ARGUMENTS)
    if one is None or two is None:
        raise CannotDeriveError("the template renders a call, but rejects one with two arguments")
    if one.find(KEY) < one.find(NAME):
        raise CannotDeriveError(f"the arguments come before the name, which no parser supports: {one!r}")
    found = _infer_json(frame, one, two) or _infer_gemma(one) or _infer_python(one, two) or _infer_pairs(frame, two)
    return _with_section(frame, replace(found, name=name), one)


def _render(frame: PromptFrame, calls: Sequence[Call]) -> str | None:
    """Render ``calls`` with their ids and numbers replaced by `ID` and `NUMBER`."""
    text = frame.render_calls(calls)
    if text is None:
        return None
    for number, (name, _) in enumerate(calls):
        text = text.replace(f"{name}:{number}", f"{name}:{NUMBER}")
        if not frame.conversations.conventions.named_ids:
            text = text.replace(frame.conversations.conventions.build_call_id(name, number), ID)
    return text


# ------------------------------------------------------------------- one call


def _infer_json(frame: PromptFrame, one: str, two: str) -> FormatSpec | None:
    """Infer a format with JSON arguments. The arguments are in an object with the name, or follow the name."""
    found = _find_arguments(one, {KEY: VALUE})
    if found is None:
        return None
    start, end, is_text = found
    at = one.index(NAME)
    head, middle, tail = one[:at], one[at + len(NAME) : start], one[end:]
    body: Body = "named json"
    arguments_key = "arguments"
    try:
        _, _, value = find_json_around(one.replace(ID, "0").replace(NUMBER, "0"), NAME)
    except UnsupportedLayoutError:
        if re.search(r"\w:\s*\Z", head) and re.search(r"\w:\s*\Z", middle):
            body = "labels"
    else:
        body, arguments_key = "json", _find_arguments_key(value)
    if body == "named json" and re.match(r"\s*\w", head):
        line = split_tokens(frame.lead)
        start = max((index for index, token in enumerate(line) if is_special(token)), default=len(line))
        body, head = "channels", f"{''.join(line[start:])}{head}"
    colon, comma, indent = _infer_json_style(two, is_text)
    return FormatSpec(
        "", body, head, middle, tail, arguments_key=arguments_key, colon=colon, comma=comma, indent=indent,
        is_text=is_text,
    )  # fmt: skip


def _find_arguments(text: str, arguments: JsonObject) -> tuple[int, int, bool] | None:
    """Return the start and the end of the JSON arguments in ``text``, and whether they are inside a JSON string."""
    decoder = json.JSONDecoder()
    for found in islice(re.finditer(r"[{\"]", text), MAX_STARTS):
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        if value == arguments:
            return found.start(), end, False
        if isinstance(value, str) and value.lstrip().startswith("{") and _load(value) == arguments:
            return found.start(), end, True
    return None


def _load(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _find_arguments_key(value: Json) -> str:
    """Return the key of the arguments in the object that contains the name. Return "" if the name itself is the key."""
    if isinstance(value, list):
        return _find_arguments_key(value[0]) if value else "arguments"
    if not isinstance(value, dict):
        return "arguments"
    if NAME in value:
        return ""
    for key, inner in value.items():
        if inner == {KEY: VALUE} or (isinstance(inner, str) and _load(inner) == {KEY: VALUE}):
            return str(key)
    nested = [inner for inner in value.values() if isinstance(inner, dict | list)]
    return _find_arguments_key(nested[0]) if nested else "arguments"


def _infer_json_style(two: str, is_text: bool) -> tuple[str, str, int | None]:
    """Return the colon, the comma and the indent that the template writes in arguments."""
    arguments = {KEY: VALUE, OTHER_KEY: OTHER_VALUE}
    for indent, colon, comma in product((None, 4, 2), (": ", ":"), (", ", ",")):
        text = json.dumps(arguments, separators=(comma, colon), indent=indent)
        if (json.dumps(text) if is_text else text) in two:
            return colon, comma, indent
    return ": ", ", ", None


def _infer_gemma(one: str) -> FormatSpec | None:
    match = re.fullmatch(
        rf"(?P<head>.*)call:{NAME}\{{{KEY}:(?P<quote>\S+?){VALUE}(?P=quote)\}}(?P<tail>.*)", one, re.DOTALL
    )
    if match is None:
        return None
    return FormatSpec("", "gemma", match["head"], tail=match["tail"], quote=match["quote"])


def _infer_python(one: str, two: str) -> FormatSpec | None:
    match = re.fullmatch(rf"(?P<head>.*){NAME}\({KEY}=(?P<quote>[\"']){VALUE}(?P=quote)\)(?P<tail>.*)", one, re.DOTALL)
    if match is None or not re.search(rf"{VALUE}[\"'], ?{OTHER_KEY}=", two):
        return None
    return FormatSpec("", "python", match["head"], tail=match["tail"])


_TYPED_VALUES: JsonObject = {
    "zqcount": 31337,
    "zqratio": 0.5,
    "zqflag": True,
    "zqlist": [31337, "zqitem"],
    "zqmap": {"zqinner": 31337},
}
_KINDS = dict(zip(_TYPED_VALUES, ("integer", "number", "boolean", "array", "object"), strict=True))


def _infer_pairs(frame: PromptFrame, two: str) -> FormatSpec:
    """Infer a format that writes keys and values separately. Raises CannotDeriveError if the template writes no such
    pairs."""
    pieces = split_around(two, NAME, KEY, VALUE, OTHER_KEY, OTHER_VALUE)
    if pieces is None:
        raise CannotDeriveError(f"the name, keys and values do not occur in this order: {two!r}")
    head, first, opening, following, other_opening, last = pieces
    if opening != other_opening:
        raise CannotDeriveError(f"two keys are separated from their values by {opening!r} and {other_opening!r}")
    none = _render(frame, NO_ARGUMENTS)
    none = none.partition(NAME)[2] if none is not None and NAME in none else ""
    openings = {"string": opening, **_find_openings(frame, head, first, last)}
    bases = set(openings.values())
    if bases == {opening}:
        openings = {"string": opening}
    body: Body = "pairs"
    if head.endswith("<function="):
        body = "function"
    elif re.search(r"[\w:.-]=\"\Z", head) and re.search(r"[\w:.-]=\"\Z", first):
        body = "elements"
    pairs = KeyValueLayout(first, following, last, none, openings)
    before, after = find_shared_start(first, none), find_shared_end(last, none)
    if none:
        pairs = replace(pairs, in_place=(before, after))
    return FormatSpec("", body, head, pairs=pairs)


def _find_openings(frame: PromptFrame, head: str, first: str, last: str) -> dict[str, str]:
    """Return the text between a key and its value, by the value's JSON type. Omit types whose values are not written as
    JSON."""
    openings = {}
    for key, value in _TYPED_VALUES.items():
        text = _render(frame, [(NAME, {key: value})])
        start = f"{head}{NAME}{first}{key}"
        if text is None or not text.startswith(start) or not text.endswith(last):
            continue
        inner = text[len(start) : len(text) - len(last)]
        for colon, comma in ((": ", ", "), (":", ",")):
            encoded = json.dumps(value, separators=(comma, colon))
            if inner.endswith(encoded):
                openings[_KINDS[key]] = inner[: len(inner) - len(encoded)]
                break
    return openings


# ------------------------------------------------------------------- several calls


def _with_section(frame: PromptFrame, found: FormatSpec, one: str) -> FormatSpec:
    """Separate the text around a section of several calls from the head and tail of a single call."""
    both = _render(frame, TWO_CALLS)
    head, tail = found.head, found.pairs.last if found.pairs is not None else found.tail
    if both is None or OTHER_NAME not in both:
        return _with_list(found, one)
    after = both.partition(VALUE)[2]
    gap = after[len(_find_value_end(found, after)) :].partition(OTHER_NAME)[0]
    if NUMBER not in head and '"0"' in head and '"1"' in gap:
        head, gap = _renumber(head, "0"), _renumber(gap, "1")
    if found.body == "gemma":
        gap = gap.removesuffix("call:")
    own_head, own_tail = find_shared_end(head, gap), find_shared_start(tail, gap)
    if len(own_head) + len(own_tail) > len(gap):
        own_tail = gap[: len(gap) - len(own_head)]
    opening, closing = head[: len(head) - len(own_head)], tail[len(own_tail) :]
    between = gap[len(own_tail) : len(gap) - len(own_head)]
    if not both.startswith(opening) or not both.endswith(closing):
        raise CannotDeriveError(f"several calls are not rendered as a sequence of single calls: {both!r}")
    pairs = found.pairs
    if pairs is not None:
        none, in_place = pairs.none, pairs.in_place
        if none.endswith(closing):
            none = none[: len(none) - len(closing)]
        if in_place is not None and in_place[1].endswith(closing):
            in_place = (in_place[0], in_place[1][: len(in_place[1]) - len(closing)])
        pairs = replace(pairs, last=own_tail, none=none, in_place=in_place)
        own_tail = ""
    return replace(found, head=own_head, tail=own_tail, pairs=pairs, section=(opening, closing), between=between)


def _find_value_end(found: FormatSpec, after: str) -> str:
    """Return the part of ``after`` that belongs to the arguments. ``after`` is the text after the value of the first
    call."""
    if found.pairs is not None:
        return ""
    if found.body == "python":
        return after[:2]
    if found.body == "gemma":
        return f"{found.quote}}}"
    text = json.dumps({KEY: VALUE}, separators=(found.comma, found.colon), indent=found.indent)
    return (json.dumps(text) if found.is_text else text).partition(VALUE)[2]


def _renumber(text: str, digit: str) -> str:
    before, _, after = text.rpartition(f'"{digit}"')
    return f'{before}"{NUMBER}"{after}'


def _with_list(found: FormatSpec, one: str) -> FormatSpec:
    """Infer the section for a template that accepts only one call. If the call is in a list, assume that the list can
    contain several calls."""
    if found.body == "json":
        start, end, value = find_json_around(one.replace(ID, "0").replace(NUMBER, "0"), NAME)
        if isinstance(value, list) and ID not in one:
            inner = one.index("{", start)
            close = one.rindex("}", 0, end) + 1
            return replace(
                found,
                head=found.head[inner:],
                tail=found.tail[: len(found.tail) - (len(one) - close)],
                section=(one[:inner], one[close:]),
                between=", ",
            )
    if found.body == "python":
        opening = found.head.rindex("[") + 1 if "[" in found.head else 0
        closing = found.tail.find("]") if "]" in found.tail else len(found.tail)
        return replace(
            found,
            head=found.head[opening:],
            tail=found.tail[:closing],
            section=(found.head[:opening], found.tail[closing:]),
            between=", ",
        )
    return replace(found, between="" if found.body in ("named json", "channels") else "\n")
