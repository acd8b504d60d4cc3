"""Check the types of arguments to public functions, so that errors name the function that the user called."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from adapter.core.errors import UsageError


@runtime_checkable
class PathLike(Protocol):
    """Any object with a path, like `os.PathLike`, but without the import of `os`."""

    def __fspath__(self) -> str | bytes: ...


PATH = (str, PathLike)
NONE = type(None)

_TYPE_NAMES: Mapping[type, str] = {
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
"""Maximum number of characters of a value in an error message."""


def check_types(function: str, /, **arguments: tuple[object, *tuple[Any, ...]]) -> None:
    """Raise UsageError for the first argument that has the wrong type or is a path with a NUL character.

    ``function`` is the name of the function that was called. Each keyword argument is a parameter's name with a tuple:
    the value that was passed, and the allowed types. Example: ``check_types("parse", text=(text, str))``.
    """
    for name, (value, *types) in arguments.items():
        if not any(_is_instance(value, each) for each in types):
            expected = " or ".join(_TYPE_NAMES.get(each, each.__name__) for each in types)
            raise UsageError(f"{function}: {name} must be {expected}, got {format_value(value)}")
        if PathLike in types and isinstance(value, str | PathLike) and "\0" in str(value):
            raise UsageError(f"{function}: {name} must be a path without NUL characters, got {format_value(value)}")


def format_value(value: object) -> str:
    """Return a value and its type for an error message, shortened if necessary: ``3 (int)``."""
    if value is None:
        return "None"
    text = repr(value)
    short = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
    return short if isinstance(value, str) else f"{short} ({type(value).__name__})"


def _is_instance(value: object, expected: type) -> bool:
    if isinstance(value, bool):
        return expected is bool
    if expected is float:
        return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    if expected is Iterable and isinstance(value, str | bytes):
        return False
    return isinstance(value, expected)


def explain_read_error(error: Exception) -> str:
    """Return why a file could not be read, in words for the user."""
    match error:
        case OSError(strerror=str(message)):
            return message
        case UnicodeDecodeError():
            return f"it is not UTF-8 text (byte {error.object[error.start]:#04x} at position {error.start})"
        case RecursionError():
            return "the value is nested too deeply"
        case _ if "null byte" in str(error):
            return "a path cannot contain NUL characters"
        case _:
            return str(error)
