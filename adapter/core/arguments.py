"""Check the types of arguments of public functions, so that a mistake is reported where it was made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from adapter.core.errors import UsageError


@runtime_checkable
class PathLike(Protocol):
    """`os.PathLike`, which this folder does not import."""

    def __fspath__(self) -> str | bytes: ...


PATH = (str, PathLike)
NONE = type(None)

_WORDS: Mapping[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "True or False",
    PathLike: "a path",
    Mapping: "a dict",
    Iterable: "a list",
    Callable: "a function",  # type: ignore[dict-item]
    NONE: "None",
}
MAX_SHOWN = 60
"""Characters of a wrong value in a message."""


def check_types(function: str, /, **arguments: tuple[object, *tuple[Any, ...]]) -> None:
    """Raise UsageError for the first argument whose value has none of the types that follow it.

    A string does not count as an iterable, a boolean not as a number, and a path has no NUL character.
    """
    for name, (value, *types) in arguments.items():
        if not any(_is(value, each) for each in types):
            expected = " or ".join(_WORDS.get(each, each.__name__) for each in types)
            raise UsageError(f"{function}: {name} must be {expected}, got {shown(value)}")
        if PathLike in types and isinstance(value, str | PathLike) and "\0" in str(value):
            raise UsageError(f"{function}: {name} must be a path without NUL characters, got {shown(value)}")


def shown(value: object) -> str:
    """A wrong value and its type, for a message: ``3 (int)``."""
    if value is None:
        return "None"
    text = repr(value)
    short = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
    return short if isinstance(value, str) else f"{short} ({type(value).__name__})"


def _is(value: object, expected: type) -> bool:
    if isinstance(value, bool):
        return expected is bool
    if expected is float:
        return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    if expected is Iterable and isinstance(value, str | bytes):
        return False
    return isinstance(value, expected)


def reason(error: Exception) -> str:
    """Describe why a file could not be read, without the terms of Python's libraries."""
    match error:
        case OSError(strerror=str(said)):
            return said
        case UnicodeDecodeError():
            return f"it is not UTF-8 text (byte {error.object[error.start]:#04x} at position {error.start})"
        case RecursionError():
            return "it is nested too deeply"
        case _ if "null byte" in str(error):
            return "a path has no NUL characters"
        case _:
            return str(error)
