"""Check the callbacks that a program passes in: whether they are async, and what type they return.

A callback that makes a decision must return its documented type. An observer may return anything but an unfinished
coroutine or generator. Otherwise, UsageError names the function and its return value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ParamSpec, TypeGuard, TypeVar

from adapter.core.argument_checks import format_value
from adapter.core.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")


def get_name(callback: object) -> str:
    """Return the qualified name of a function, or of a callable object's class."""
    while (inner := getattr(callback, "__wrapped__", None) or _unwrap_partial(callback)) is not None:
        callback = inner
    named = callback if hasattr(callback, "__qualname__") else type(callback)
    module = getattr(named, "__module__", None)
    return f"{module}.{named.__qualname__}" if module else str(named.__qualname__)


def is_async(callback: object) -> bool:
    """Return whether ``callback`` is a coroutine function or async generator. Bound methods, partials and ``__call__``
    methods are recognized."""
    from inspect import isasyncgenfunction, iscoroutinefunction

    while (inner := _unwrap_partial(callback)) is not None:
        callback = inner
    functions = (callback, getattr(type(callback), "__call__", None))  # noqa: B004
    return any(iscoroutinefunction(each) or isasyncgenfunction(each) for each in functions)


def require_sync(callback: object, role: str) -> None:
    """Raise UsageError if ``callback`` is not callable or is async. ``role`` describes it in the message."""
    if not callable(callback):
        raise UsageError(f"{role} must be a function, got {_format_result(callback)}")
    if is_async(callback):
        raise UsageError(
            f"{role} {get_name(callback)} is async, but it is never awaited; pass a plain function or use AsyncAgent"
        )


def build_result_error(callback: object, role: str, result: object, expected: str) -> UsageError:
    """Return an error for a callback that returned ``result`` instead of ``expected`` (a description). ``role`` says
    what the callback is for. If ``result`` is a coroutine, it is closed, to avoid Python's warning."""
    return UsageError(f"{role} {get_name(callback)} returned {_format_result(result)}; expected {expected}")


def require_result(callback: object, role: str, result: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raise UsageError unless ``result`` is an instance of ``kinds``. In the message, ``role`` describes the callback
    and ``expected`` the allowed results."""
    if not isinstance(result, kinds):
        raise build_result_error(callback, role, result, expected)


def require_items(callback: object, role: str, result: object, kind: type, expected: str) -> None:
    """Raise UsageError unless ``result`` is a sequence whose items are all of type ``kind``. A string is not a sequence
    here. ``role`` and ``expected`` describe the callback and the allowed results in the message."""
    if not _is_list(result) or not all(isinstance(each, kind) for each in result):
        raise build_result_error(callback, role, result, expected)


def wrap_text_function(callback: Callable[P, str], role: str) -> Callable[P, str]:
    """Wrap ``callback`` so that it raises UsageError unless it returns a string."""
    require_sync(callback, role)

    def call_checked(*args: P.args, **kwargs: P.kwargs) -> str:
        text = callback(*args, **kwargs)
        require_result(callback, role, text, str, "a string")
        return text

    return set_wrapped(callback, call_checked)


def require_finished(callback: object, role: str, result: object) -> None:
    """Raise UsageError if an observer returned a coroutine or generator, which would never run."""
    if result is not None and _is_unfinished(result):
        raise build_result_error(callback, role, result, "a synchronous function")


def wrap_observer(callback: Callable[..., object], role: str) -> Callable[..., None]:
    """Wrap ``callback`` so that `require_finished` checks its result. Its exceptions are not caught."""
    require_sync(callback, role)

    def observe(*event: object) -> None:
        require_finished(callback, role, callback(*event))

    return set_wrapped(callback, observe)


def wrap_tool_observer(callback: Callable[..., object], role: str) -> Callable[..., None]:
    """Wrap an observer that is called while a tool runs. Its exceptions become UsageErrors, so that they are not
    mistaken for a failure of the tool."""
    observe = wrap_observer(callback, role)

    def observe_tool(*event: object) -> None:
        try:
            observe(*event)
        except UsageError:
            raise
        except Exception as error:
            raise build_callback_error(callback, role, error, "The call was abandoned") from error

    return set_wrapped(callback, observe_tool)


def set_wrapped(callback: object, function: Callable[P, T]) -> Callable[P, T]:
    """Return ``function`` with its ``__wrapped__`` set, so that errors name ``callback`` instead of ``function``."""
    function.__wrapped__ = callback  # type: ignore[attr-defined]
    return function


def build_callback_error(callback: object, role: str, error: Exception, consequence: str) -> UsageError:
    """Return an error for ``error``, an exception that ``callback`` raised. ``consequence`` is the message's last
    sentence. The caller raises the result ``from error``."""
    return UsageError(f"{role} {get_name(callback)} raised {type(error).__name__}: {error}. {consequence}")


def _unwrap_partial(callback: object) -> object:
    return callback.func if isinstance(callback, partial) else None


def _is_list(result: object) -> TypeGuard[Sequence[object]]:
    return isinstance(result, Sequence) and not isinstance(result, str | bytes)


def _is_unfinished(result: object) -> bool:
    return any(hasattr(type(result), name) for name in ("__await__", "send", "asend"))


def _format_result(result: object) -> str:
    if _is_unfinished(result):
        close = getattr(result, "close", None)
        if close is not None:
            close()
        return f"a {type(result).__name__}, which is not awaited"
    return format_value(result)
