"""Convert the regular expression in a JSON Schema's ``pattern`` to a GBNF rule for JSON strings.

`adapter.grammars.regex_parser` documents the supported patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adapter.grammars.regex_parser import (
    ANY,
    MOST_TIMES,
    Alternation,
    Anchor,
    CharSet,
    Concat,
    Node,
    Ranges,
    Repeat,
    UnsupportedPattern,
    parse_regex,
    subtract_ranges,
)


def build_string_rule(
    pattern: str, shortest: int = 0, longest: int | None = None, *, is_bare: bool = False
) -> str | None:
    """Return a GBNF expression for the content of a JSON string that matches the pattern, or None if this is not
    possible.

    ``shortest`` and ``longest`` limit the length in characters. ``is_bare``: whether the value is verbatim text between
    tags instead of a JSON string. It then excludes ``<`` and line breaks, which a parser could take for part of a tag.
    """
    try:
        node = _resolve_anchors(parse_regex(pattern))
        if isinstance(node, Repeat) and isinstance(node.item, CharSet) and (node.most is None or node.most >= shortest):
            node = Repeat(node.item, max(node.fewest, shortest), node.most)
        low, high = _measure_lengths(node)
        if longest is not None and low > longest:
            return None
        if longest is not None and (high is None or high > longest):
            node = _limit_length(node, longest)
        elif low < shortest:
            return None
        return _build_expression(node, _build_bare_characters if is_bare else _build_characters)
    except (UnsupportedPattern, RecursionError):
        return None


def _resolve_anchors(node: Node) -> Node:
    """Convert a pattern that may match anywhere in a string to one for the whole string: an end without an anchor gets
    free text."""
    if isinstance(node, Alternation):
        return Alternation(tuple(map(_add_free_text, node.choices)))
    return _add_free_text(node)


def _add_free_text(node: Node) -> Node:
    items = list(node.items if isinstance(node, Concat) else (node,))
    anything = Repeat(CharSet(ANY), 0, None)
    before: list[Node] = [anything]
    after: list[Node] = [anything]
    while items and items[0] == Anchor("^"):
        before, items = [], items[1:]
    while items and items[-1] == Anchor("$"):
        after, items = [], items[:-1]
    items = [*before, *items, *after]
    return items[0] if len(items) == 1 else Concat(tuple(items))


def _measure_lengths(node: Node) -> tuple[int, int | None]:
    """Return the lengths of the shortest and the longest match; None for the longest means unlimited."""
    match node:
        case CharSet():
            return 1, 1
        case Anchor():
            raise UnsupportedPattern  # an anchor in the middle
        case Repeat(item, fewest, most):
            low, high = _measure_lengths(item)
            return low * fewest, None if most is None or high is None else high * most
        case Concat(items):
            both = [_measure_lengths(item) for item in items]
            return sum(low for low, _ in both), _sum([high for _, high in both])
        case Alternation(choices):
            both = [_measure_lengths(choice) for choice in choices]
            highs = [high for _, high in both]
            return min(low for low, _ in both), None if None in highs else max(high or 0 for high in highs)


def _sum(numbers: Sequence[int | None]) -> int | None:
    return None if None in numbers else sum(number or 0 for number in numbers)


def _limit_length(node: Node, longest: int) -> Node:
    """Limit a match to ``longest`` characters by capping all repetitions at the same, largest possible maximum."""
    times, too_many = 0, longest + 1
    if (_measure_lengths(_cap_repetitions(node, times))[1] or 0) > longest:
        raise UnsupportedPattern
    while too_many - times > 1:
        middle = (times + too_many) // 2
        if (_measure_lengths(_cap_repetitions(node, middle))[1] or 0) <= longest:
            times = middle
        else:
            too_many = middle
    return _cap_repetitions(node, times)


def _cap_repetitions(node: Node, times: int) -> Node:
    match node:
        case Repeat(item, fewest, most):
            return Repeat(
                _cap_repetitions(item, times), fewest, max(fewest, min(times, times if most is None else most))
            )
        case Concat(items):
            return Concat(tuple(_cap_repetitions(item, times) for item in items))
        case Alternation(choices):
            return Alternation(tuple(_cap_repetitions(choice, times) for choice in choices))
        case _:
            return node


def _build_expression(node: Node, characters: Callable[[Ranges], str]) -> str:
    match node:
        case CharSet(ranges):
            return characters(ranges)
        case Repeat(item, fewest, most):
            expression = (
                _build_expression_or_none(item, characters) if fewest == 0 else _build_expression(item, characters)
            )
            if most == 0 or expression is None:
                return '""'
            return f"({expression}){{{fewest},{'' if most is None else min(most, MOST_TIMES)}}}"
        case Concat(items):
            return " ".join(_build_expression(item, characters) for item in items) or '""'
        case Alternation(choices):
            expressions = [
                expression
                for choice in choices
                if (expression := _build_expression_or_none(choice, characters)) is not None
            ]
            if not expressions:
                raise UnsupportedPattern
            return f"({' | '.join(expressions)})"
        case Anchor():
            raise UnsupportedPattern


def _build_expression_or_none(node: Node, characters: Callable[[Ranges], str]) -> str | None:
    """Return the expression for ``node``, or None if a grammar cannot express it."""
    try:
        return _build_expression(node, characters)
    except UnsupportedPattern:
        return None


_IN_JSON = {ord('"'): r'"\\\""', ord("\\"): r'"\\\\"', 10: r'"\\n"', 13: r'"\\r"', 9: r'"\\t"'}
"""GBNF for the characters that a JSON string must escape."""


def _build_characters(ranges: Ranges) -> str:
    escaped = [text for code, text in _IN_JSON.items() if any(first <= code <= last for first, last in ranges)]
    return _build_class(subtract_ranges(ranges, tuple((code, code) for code in sorted(_IN_JSON))), escaped)


def _build_bare_characters(ranges: Ranges) -> str:
    return _build_class(subtract_ranges(ranges, ((9, 13), (ord("<"), ord("<")))), [])


def _build_class(plain: Ranges, escaped: list[str]) -> str:
    inside = "".join(
        _format_code(first) if first == last else f"{_format_code(first)}-{_format_code(last)}" for first, last in plain
    )
    parts = [*([f"[{inside}]"] if inside else []), *escaped]
    if not parts:
        raise UnsupportedPattern
    return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"


def _format_code(code: int) -> str:
    if 0x30 <= code < 0x3A or 0x41 <= code < 0x5B or 0x61 <= code < 0x7B:
        return chr(code)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
