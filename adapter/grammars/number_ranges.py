"""GBNF for the numbers between two bounds, digit by digit.

No number that comes out has more than `DIGITS` digits before the point or, but for small ones, more than `PLACES` after
it; the small ones between 0 and 1 may be written with an exponent.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

DIGITS, PLACES = 15, 9
MOST = 10**DIGITS - 1
_SMALL = '[1-9] ("." [0-9]{1,17})? [eE] "-" [1-9] [0-9]?'
"""A number between 0 and 1, however small."""
LARGE = '[1-9] ("." [0-9]{1,17})? [eE] "+"? [1-9] [0-9]?'
"""A number from 10 on."""


def integer_range_rule(lowest: int, highest: int) -> str:
    """The integers from ``lowest`` to ``highest``, both included and within `MOST`."""
    parts = []
    if lowest < 0:
        parts.append(f'"-" {_naturals(max(1, -highest), -lowest)}')
    if highest >= 0:
        parts.append(_naturals(max(0, lowest), highest))
    return _either(parts)


def decimal_range_rule(lowest: Decimal, highest: Decimal) -> str:
    """The numbers from ``lowest`` to ``highest``, both included and within `MOST`."""
    parts = []
    if lowest <= -1 and highest >= 0:
        parts.append(f'"-" {_SMALL}')
    if highest >= 1 and lowest <= 0:
        parts.append(_SMALL)
    if lowest < 0:
        parts.append(f'"-" {_unsigned(max(Decimal(0), -highest), -lowest)}')
    if highest >= 0:
        parts.append(_unsigned(max(Decimal(0), lowest), highest))
    return _either(parts)


def open_range_rule(lowest: Decimal | None, highest: Decimal | None) -> list[str]:
    """Ways to write numbers of any size with an exponent, where a bound is missing; the bounds never forbid one."""
    ways = [LARGE] if highest is None and (lowest is None or lowest <= 10) else []
    return ways + ([f'"-" {LARGE}'] if lowest is None and (highest is None or highest >= -10) else [])


def _naturals(lowest: int, highest: int) -> str:
    parts = []
    whole = []  # the lengths of which all are in
    for length in range(len(str(lowest)), len(str(highest)) + 1):
        first, last = 10 ** (length - 1) if length > 1 else 0, 10**length - 1
        if lowest <= first and last <= highest and length > 1:
            whole.append(length)
        else:
            parts.append(_digits(str(max(first, lowest)), str(min(last, highest))))
    if whole:
        parts.append(f"[1-9] [0-9]{{{whole[0] - 1},{whole[-1] - 1}}}")
    return _either(parts)


def _digits(lowest: str, highest: str) -> str:
    """Between two numbers of as many digits."""
    if not lowest.strip("0") and not highest.strip("9"):
        return f"[0-9]{{{len(lowest)}}}"
    if lowest == highest:
        return f'"{lowest}"'
    rest = len(lowest) - 1
    if lowest[0] == highest[0]:
        return f'"{lowest[0]}" {_digits(lowest[1:], highest[1:])}'
    first, last, parts = int(lowest[0]), int(highest[0]), []
    if lowest[1:].strip("0"):
        parts.append(f'"{first}" {_digits(lowest[1:], "9" * rest)}')
        first += 1
    if highest[1:].strip("9"):
        parts.append(f'"{last}" {_digits("0" * rest, highest[1:])}')
        last -= 1
    if first <= last:
        parts.append(f"[{first}-{last}]{f' [0-9]{{{rest}}}' if rest else ''}")
    return _either(parts)


def _unsigned(lowest: Decimal, highest: Decimal) -> str:
    step = Decimal(1).scaleb(-PLACES)
    low, low_places = _split(lowest.quantize(step, ROUND_CEILING))
    high, high_places = _split(highest.quantize(step, ROUND_FLOOR))
    parts = []
    if low_places.strip("0"):
        parts.append(f'"{low}." {_places(low_places, high_places if low == high else "9" * PLACES)}')
        low += 1
    if low < high:
        parts.append(f'{_naturals(low, high - 1)} ("." [0-9]{{1,{PLACES}}})?')
    if low <= high:
        more = f' ("." {_places("0" * PLACES, high_places)})?' if high_places.strip("0") else ""
        parts.append(f'"{high}"{more}')
    return _either(parts)


def _split(number: Decimal) -> tuple[int, str]:
    whole, _, places = f"{number:f}".partition(".")
    return int(whole), places.ljust(PLACES, "0")


def _places(lowest: str, highest: str) -> str:
    """One digit or more after the point, between ``lowest`` and ``highest``, which are as long as can be."""
    first, last, rest, parts = int(lowest[0]), int(highest[0]), len(lowest) - 1, []
    if first == last:
        return f'"{first}"{_further(lowest[1:], highest[1:])}'
    if lowest[1:].strip("0"):
        parts.append(f'"{first}"{_further(lowest[1:], "9" * rest)}')
        first += 1
    if highest[1:].strip("9"):
        parts.append(f'"{last}"{_further("0" * rest, highest[1:])}')
        last -= 1
    if first <= last:
        parts.append(f"[{first}-{last}] [0-9]{{0,{rest}}}")
    return _either(parts)


def _further(lowest: str, highest: str) -> str:
    """As many more digits as are left, or none where none are zeros."""
    if not highest.strip("0"):
        return ""
    further = _places(lowest, highest)
    return f" {further}" if lowest.strip("0") else f" ({further})?"


def _either(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"
