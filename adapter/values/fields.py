"""Classes that are made by naming their fields, at a tenth of what making a dataclass costs.

``@frozen`` is ``@dataclass(frozen=True, slots=True)`` and ``@mutable`` is ``@dataclass(slots=True)``, also for type
checkers and for `dataclasses.fields`, `replace` and `asdict`, without most of what `dataclasses.field` can say. To make
some dozens of dataclasses takes longer than to read a text with them: each has up to eight functions that are compiled
when its module is loaded, by a library that loads twenty more modules. Here one is compiled, the ``__init__``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T")


class _Made:
    """A default that is made anew for each value; ``init``: whether another can be given."""

    def __init__(self, factory: Callable[[], Any], init: bool) -> None:
        self.factory, self.init = factory, init

    def __repr__(self) -> str:
        return "<factory>"


def field(*, default_factory: Callable[[], T], init: bool = True) -> T:
    """A default that is made for each value. Without ``init`` it is the only one, neither compared nor shown."""
    return cast("T", _Made(default_factory, init))


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """``cls`` with its annotations as its fields, behind those of its base: its values never change and have a hash.

    What the class defines itself stays.
    """
    return cast("type[T]", _with_fields(cls, __eq__, __hash__, __setattr__, __delattr__))


@dataclass_transform(field_specifiers=(field,))
def mutable(cls: type[T]) -> type[T]:
    """``cls`` with its annotations as its fields, behind those of its base. What the class defines itself stays."""
    return cast("type[T]", _with_fields(cls, __eq__))


def replace(value: T, /, **changes: Any) -> T:
    """``value`` of a class of this module, with other fields."""
    names: tuple[str, ...] = value.__match_args__  # type: ignore[attr-defined]
    return type(value)(**{name: getattr(value, name) for name in names} | changes)


def _with_fields(cls: Any, *methods: Callable[..., Any]) -> Any:
    body = {name: each for name, each in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    hints = {name: hint for name, hint in cls.__annotations__.items() if not str(hint).startswith("ClassVar")}
    inherited, defaults = getattr(cls, "__fields__", ({}, {}))
    defaults = defaults | {name: body.pop(name) for name in hints if name in body}
    known = inherited | hints
    made: dict[str, Any] = {each.__name__: each for each in (*methods, __repr__, __getstate__, __setstate__)}
    made |= {name: _OfDataclass(name) for name in ("__dataclass_fields__", "__dataclass_params__")}
    made |= {"__replace__": replace, **body, "__slots__": tuple(hints), "__fields__": (known, defaults)}
    made["__match_args__"] = tuple(name for name in known if _is_given(defaults.get(name)))
    again = type(cls)(cls.__name__, cls.__bases__, made)  # slots are made with a class, never added
    again.__qualname__ = cls.__qualname__
    if "__init__" not in body:
        again.__init__ = _init(again, known, defaults)
    return again


def _is_given(default: object) -> bool:
    return default.init if isinstance(default, _Made) else True


def _init(cls: Any, hints: dict[str, Any], defaults: dict[str, Any]) -> Callable[..., None]:
    """What takes the fields that can be given, and sets each by its slot."""
    names: dict[str, Any] = {f"_set_{name}": getattr(cls, name).__set__ for name in hints}
    arguments, lines = ["self"], ["pass"]
    for name in hints:
        value, default = name, defaults.get(name)
        if isinstance(default, _Made):
            names[f"_make_{name}"] = default.factory
            value = f"_make_{name}() if {name} is _default_{name} else {name}" if default.init else f"_make_{name}()"
        if name in cls.__match_args__:
            arguments.append(f"{name}=_default_{name}" if name in defaults else name)
        lines.append(f"_set_{name}(self, {value})")
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    names |= {f"_default_{name}": default for name, default in defaults.items()}
    exec(f"def __init__({', '.join(arguments)}):\n  " + "\n  ".join(lines), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {name: hints[name] for name in cls.__match_args__} | {"return": None}
    return init


def _values(value: Any) -> tuple[Any, ...]:
    return tuple([getattr(value, name) for name in value.__match_args__])


def __eq__(self: object, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def __hash__(self: object) -> int:
    return hash(_values(self))


def __repr__(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{self.__class__.__qualname__}({shown})"


def __setattr__(_self: object, name: str, _value: object) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(_self: object, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def __getstate__(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__fields__[0]]


def __setstate__(self: Any, state: list[Any]) -> None:
    for name, each in zip(self.__fields__[0], state, strict=True):
        object.__setattr__(self, name, each)


class _OfDataclass:
    """An attribute by which `dataclasses` knows a class, made when it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, cls: Any) -> Any:
        import dataclasses

        hints, defaults = cls.__fields__
        fields = []
        for name, hint in hints.items():
            default = defaults.get(name, dataclasses.MISSING)
            told: Any = dataclasses.field(default=default)
            if isinstance(default, _Made):
                is_told = default.init
                told = dataclasses.field(default_factory=default.factory, init=is_told, repr=is_told, compare=is_told)
            fields.append((name, hint, told))
        twin: Any = dataclasses.make_dataclass(cls.__name__, fields, frozen=cls.__setattr__ is __setattr__)
        cls.__dataclass_fields__, cls.__dataclass_params__ = twin.__dataclass_fields__, twin.__dataclass_params__
        return getattr(cls, self._name)
