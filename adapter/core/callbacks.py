"""Check the program's own functions: which may be async, and what they return.

A function that decides something counts only with an answer of its documented type; one that only observes may return
anything that is not left to be awaited. Everything else raises UsageError, which names the function and its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ParamSpec, TypeGuard, TypeVar

from adapter.core.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")

MAX_SHOWN = 80
"""Characters of an answer that an error shows."""


def name_of(callback: object) -> str:
    """Return the qualified name of a function, or of the class of a callable object."""
    while (inner := getattr(callback, "__wrapped__", None) or _inside_partial(callback)) is not None:
        callback = inner
    named = callback if hasattr(callback, "__qualname__") else type(callback)
    module = getattr(named, "__module__", None)
    return f"{module}.{named.__qualname__}" if module else str(named.__qualname__)


def is_async(callback: object) -> bool:
    """Detect coroutine functions and async generators, also bound, partial, or as the ``__call__`` of an object."""
    from inspect import isasyncgenfunction, iscoroutinefunction

    while (inner := _inside_partial(callback)) is not None:
        callback = inner
    functions = (callback, getattr(type(callback), "__call__", None))  # noqa: B004
    return any(iscoroutinefunction(each) or isasyncgenfunction(each) for each in functions)


def require_sync(callback: object, role: str) -> None:
    """Raise UsageError unless ``callback`` is callable without ``await``. ``role``: what it is to the library."""
    if not callable(callback):
        raise UsageError(f"{role} must be a function, got {_shown(callback)}")
    if is_async(callback):
        raise UsageError(
            f"{role} {name_of(callback)} is async, and nothing awaits it here; pass a plain function, or use AsyncAgent"
        )


def wrong_answer(callback: object, role: str, answer: object, expected: str) -> UsageError:
    """Build the error for an answer that does not count. A coroutine is closed, so that Python does not warn of it."""
    return UsageError(f"{role} {name_of(callback)} returned {_shown(answer)}; expected {expected}")


def require_answer(callback: object, role: str, answer: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raise UsageError unless ``answer`` is one of ``kinds``."""
    if not isinstance(answer, kinds):
        raise wrong_answer(callback, role, answer, expected)


def require_items(callback: object, role: str, answer: object, kind: type, expected: str) -> None:
    """Raise UsageError unless ``answer`` is a sequence of ``kind``. A text is not a sequence of its letters here."""
    if not _is_list(answer) or not all(isinstance(each, kind) for each in answer):
        raise wrong_answer(callback, role, answer, expected)


def text_function(callback: Callable[P, str], role: str) -> Callable[P, str]:
    """Return ``callback``; what it returns raises UsageError unless it is a text."""
    require_sync(callback, role)

    def checked(*args: P.args, **kwargs: P.kwargs) -> str:
        text = callback(*args, **kwargs)
        require_answer(callback, role, text, str, "a text")
        return text

    return in_place_of(callback, checked)


def require_finished(callback: object, role: str, answer: object) -> None:
    """Raise UsageError for an observer's answer that would have to be awaited or iterated before anything happens."""
    if answer is not None and _is_unfinished(answer):
        raise wrong_answer(callback, role, answer, "a function that has finished when it returns")


def observer(callback: Callable[..., object], role: str) -> Callable[..., None]:
    """Return ``callback`` with its answers checked by `require_finished`. Its exceptions pass through."""
    require_sync(callback, role)

    def observe(*happening: object) -> None:
        require_finished(callback, role, callback(*happening))

    return in_place_of(callback, observe)


def tool_observer(callback: Callable[..., object], role: str) -> Callable[..., None]:
    """`observer`, for what is called while a tool runs: an exception becomes a UsageError, so that it is not taken
    for a failure of the tool."""
    observe = observer(callback, role)

    def observe_tool(*happening: object) -> None:
        try:
            observe(*happening)
        except UsageError:
            raise
        except Exception as error:
            raise failure(callback, role, error, "The call was given up") from error

    return in_place_of(callback, observe_tool)


def in_place_of(callback: object, function: Callable[P, T]) -> Callable[P, T]:
    """Return ``function``, which calls ``callback``, with a reference to it: `name_of` names that in errors."""
    function.__wrapped__ = callback  # type: ignore[attr-defined]
    return function


def failure(callback: object, role: str, error: Exception, consequence: str) -> UsageError:
    """Build the error for an exception that ``callback`` raised; raise it ``from`` that."""
    return UsageError(f"{role} {name_of(callback)} raised {type(error).__name__}: {error}. {consequence}")


def _inside_partial(callback: object) -> object:
    return callback.func if isinstance(callback, partial) else None


def _is_list(answer: object) -> TypeGuard[Sequence[object]]:
    return isinstance(answer, Sequence) and not isinstance(answer, str | bytes)


def _is_unfinished(answer: object) -> bool:
    return any(hasattr(type(answer), name) for name in ("__await__", "send", "asend"))


def _shown(answer: object) -> str:
    """``answer`` in an error. Nothing will await a coroutine any more."""
    if _is_unfinished(answer):
        close = getattr(answer, "close", None)
        if close is not None:
            close()
        return f"a {type(answer).__name__}, which is not awaited"
    text = repr(answer)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({type(answer).__name__})"
