"""GBNF rules for numbers between two bounds, digit by digit.

Numbers have at most `DIGITS` digits before the decimal point and `PLACES` digits after it. Small numbers between 0 and
1 may have an exponent.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

DIGITS, PLACES = 15, 9
MAX_NUMBER = 10**DIGITS - 1
"""Maximum absolute value of a bound."""
_SMALL = '[1-9] ("." [0-9]{1,17})? [eE] "-" [1-9] [0-9]?'
"""Expression for a number between 0 and 1, with an exponent."""
LARGE = '[1-9] ("." [0-9]{1,17})? [eE] "+"? [1-9] [0-9]?'
"""Expression for a number of at least 10, with an exponent."""


def build_integer_range(lowest: int, highest: int) -> str:
    """Return a rule for the integers from ``lowest`` to ``highest`` (inclusive), both within `MAX_NUMBER`."""
    parts = []
    if lowest < 0:
        parts.append(f'"-" {_build_natural_range(max(1, -highest), -lowest)}')
    if highest >= 0:
        parts.append(_build_natural_range(max(0, lowest), highest))
    return _wrap_in_group(parts)


def build_decimal_range(lowest: Decimal, highest: Decimal) -> str:
    """Return a rule for the numbers from ``lowest`` to ``highest`` (inclusive), both within `MAX_NUMBER`."""
    parts = []
    if lowest <= -1 and highest >= 0:
        parts.append(f'"-" {_SMALL}')
    if highest >= 1 and lowest <= 0:
        parts.append(_SMALL)
    if lowest < 0:
        parts.append(f'"-" {_build_unsigned_range(max(Decimal(0), -highest), -lowest)}')
    if highest >= 0:
        parts.append(_build_unsigned_range(max(Decimal(0), lowest), highest))
    return _wrap_in_group(parts)


def build_open_range(lowest: Decimal | None, highest: Decimal | None) -> list[str]:
    """Return rules for large numbers with an exponent: a rule for positive numbers if there is no upper bound, and a
    rule for negative numbers if there is no lower bound. A rule is left out if the other bound would exclude some of
    its numbers."""
    rules = [LARGE] if highest is None and (lowest is None or lowest <= 10) else []
    return rules + ([f'"-" {LARGE}'] if lowest is None and (highest is None or highest >= -10) else [])


def _build_natural_range(lowest: int, highest: int) -> str:
    parts = []
    full_lengths = []  # numbers of digits for which the range contains every number
    for length in range(len(str(lowest)), len(str(highest)) + 1):
        first, last = 10 ** (length - 1) if length > 1 else 0, 10**length - 1
        if lowest <= first and last <= highest and length > 1:
            full_lengths.append(length)
        else:
            parts.append(_build_equal_length_range(str(max(first, lowest)), str(min(last, highest))))
    if full_lengths:
        parts.append(f"[1-9] [0-9]{{{full_lengths[0] - 1},{full_lengths[-1] - 1}}}")
    return _wrap_in_group(parts)


def _build_equal_length_range(lowest: str, highest: str) -> str:
    """Return a rule for the range between two numbers with the same number of digits."""
    if not lowest.strip("0") and not highest.strip("9"):
        return f"[0-9]{{{len(lowest)}}}"
    if lowest == highest:
        return f'"{lowest}"'
    rest = len(lowest) - 1
    if lowest[0] == highest[0]:
        return f'"{lowest[0]}" {_build_equal_length_range(lowest[1:], highest[1:])}'
    any_rest = f" [0-9]{{{rest}}}" if rest else ""
    return _split_by_first_digit(
        lowest, highest, lambda low, high: f" {_build_equal_length_range(low, high)}", any_rest
    )


def _build_unsigned_range(lowest: Decimal, highest: Decimal) -> str:
    step = Decimal(1).scaleb(-PLACES)
    low, low_places = _split_places(lowest.quantize(step, ROUND_CEILING))
    high, high_places = _split_places(highest.quantize(step, ROUND_FLOOR))
    parts = []
    if low_places.strip("0"):
        parts.append(f'"{low}." {_build_fraction_range(low_places, high_places if low == high else "9" * PLACES)}')
        low += 1
    if low < high:
        parts.append(f'{_build_natural_range(low, high - 1)} ("." [0-9]{{1,{PLACES}}})?')
    if low <= high:
        more = f' ("." {_build_fraction_range("0" * PLACES, high_places)})?' if high_places.strip("0") else ""
        parts.append(f'"{high}"{more}')
    return _wrap_in_group(parts)


def _split_places(number: Decimal) -> tuple[int, str]:
    digits, _, places = f"{number:f}".partition(".")
    return int(digits), places.ljust(PLACES, "0")


def _build_fraction_range(lowest: str, highest: str) -> str:
    """Return a rule for the digits after the decimal point, between the bounds ``lowest`` and ``highest``, which have
    the same number of digits."""
    if lowest[0] == highest[0]:
        return f'"{lowest[0]}"{_build_fraction_rest(lowest[1:], highest[1:])}'
    return _split_by_first_digit(lowest, highest, _build_fraction_rest, f" [0-9]{{0,{len(lowest) - 1}}}")


def _build_fraction_rest(lowest: str, highest: str) -> str:
    """Return a rule for the remaining digits after the decimal point, between two bounds. If ``lowest`` consists of
    zeros, the digits may be omitted."""
    if not highest.strip("0"):
        return ""
    further = _build_fraction_range(lowest, highest)
    return f" {further}" if lowest.strip("0") else f" ({further})?"


def _split_by_first_digit(lowest: str, highest: str, rest_of: Callable[[str, str], str], any_rest: str) -> str:
    """Return a rule for the digits between two bounds, with alternatives for the lowest first digit, the highest, and
    those between. ``rest_of`` builds the rule for the remaining digits from their bounds. ``any_rest`` is the rule for
    unbounded remaining digits."""
    first, last, rest, parts = int(lowest[0]), int(highest[0]), len(lowest) - 1, []
    if lowest[1:].strip("0"):
        parts.append(f'"{first}"{rest_of(lowest[1:], "9" * rest)}')
        first += 1
    if highest[1:].strip("9"):
        parts.append(f'"{last}"{rest_of("0" * rest, highest[1:])}')
        last -= 1
    if first <= last:
        parts.append(f"[{first}-{last}]{any_rest}")
    return _wrap_in_group(parts)


def _wrap_in_group(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"
