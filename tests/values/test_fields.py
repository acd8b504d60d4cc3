"""Values of these classes are what those of dataclasses are."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any, ClassVar

import pytest

from adapter.values.fields import field, frozen, mutable, replace


@frozen
class Place:
    """Where something is."""

    path: str
    line: int = 1
    notes: tuple[str, ...] = ()
    KIND: ClassVar[str] = "place"

    @property
    def shown(self) -> str:
        return f"{self.path}:{self.line}"


@dataclasses.dataclass(frozen=True, slots=True)
class Twin:
    """Where something is."""

    path: str
    line: int = 1
    notes: tuple[str, ...] = ()
    KIND: ClassVar[str] = "place"


@frozen
class Named(Place):
    name: str = ""


class Other(Place):
    __slots__ = ()


@frozen
class Known:
    name: str
    tags: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list, init=False)


@mutable
class Count:
    of: str
    number: int = 0
    seen: list[str] = field(default_factory=list)


@frozen
class Nothing:
    pass


@frozen
class Alike:
    text: str

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


MADE = [((), {"path": "a"}), (("a", 2), {}), (("a",), {"notes": ("x",)})]


@pytest.mark.parametrize(("args", "named"), MADE)
def test_they_are_made_shown_and_counted_as_dataclasses_are(args: Any, named: Any) -> None:
    """By place and by name, with defaults."""
    one: Any = Place(*args, **named)
    twin = Twin(*args, **named)
    assert repr(one).removeprefix("Place") == repr(twin).removeprefix("Twin")
    assert hash(one) == hash(twin)
    assert dataclasses.asdict(one) == dataclasses.asdict(twin)
    assert one == Place(*args, **named)
    assert one != twin
    assert one != Place("b")
    assert one.shown == f"a:{one.line}"
    assert Place.KIND == "place"


@pytest.mark.parametrize("wrong", [{}, {"path": "a", "size": 1}])
def test_wrong_arguments_are_told_in_the_same_words(wrong: Any) -> None:
    """Of a missing one, and of one that there is not."""
    with pytest.raises(TypeError) as told:
        Place(**wrong)
    with pytest.raises(TypeError) as expected:
        Twin(**wrong)
    assert str(told.value) == str(expected.value).replace("Twin", "Place")


def test_nothing_can_be_set() -> None:
    """Neither a field nor anything else, by the error of dataclasses."""
    one: Any = Place("a")
    for name in ("path", "size"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(one, name, "b")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'path'"):
        del one.path
    assert not hasattr(one, "__dict__")


def test_dataclasses_takes_them() -> None:
    """All that it does with its own."""
    assert dataclasses.is_dataclass(Place)
    for told, expected in zip(dataclasses.fields(Named), (*dataclasses.fields(Twin), None), strict=True):
        if expected is None:
            assert (told.name, told.default) == ("name", "")
        else:
            assert (told.name, told.type, told.default) == (expected.name, expected.type, expected.default)
    assert inspect.signature(Place).parameters.keys() == inspect.signature(Twin).parameters.keys()


def test_a_dataclass_may_be_made_of_one() -> None:
    """That changes as little."""

    @dataclasses.dataclass(frozen=True)
    class Marked(Place):
        mark: str = "x"

    assert repr(Marked("a", 2)).endswith("Marked(path='a', line=2, notes=(), mark='x')")
    assert dataclasses.replace(Marked("a"), line=2) == Marked("a", 2)
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        dataclasses.dataclass(type("Loose", (Place,), {}))


@pytest.mark.parametrize("change", [replace, dataclasses.replace])
def test_a_value_with_another_field(change: Any) -> None:
    """By ours and by theirs."""
    assert change(Place("a"), line=3) == Place("a", 3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        change(Place("a"), size=3)


def test_classes_made_of_them() -> None:
    """Have their fields, and are equal to none of another class."""
    assert Named("a", name="x") == Named("a", 1, (), "x")
    assert repr(Named("a")) == "Named(path='a', line=1, notes=(), name='')"
    assert Other("a") != Place("a")
    assert repr(Other("a", 2)) == "Other(path='a', line=2, notes=())"
    assert dataclasses.replace(Other("a"), line=2) == Other("a", 2)
    match Named("a", 7, name="b"):
        case Named(path, line, _, name):
            assert (path, line, name) == ("a", 7, "b")


def test_defaults_that_are_made() -> None:
    """For each value anew; what is no argument is neither compared nor shown, and is not taken over."""
    one, other = Known("a"), Known("a")
    one.kept.append("x")
    assert one == other
    other.tags.append("y")
    assert one != other
    assert repr(one) == "Known(name='a', tags=[])"
    again = dataclasses.replace(one, name="b")
    assert (again.name, again.tags is one.tags, again.kept) == ("b", True, [])
    assert repr(inspect.signature(Known)) == "<Signature (name: 'str', tags: 'list[str]' = <factory>) -> None>"


def test_those_that_change() -> None:
    """Are compared as they are, and have no hash."""
    one, other = Count("a"), Count("a")
    one.number += 1
    assert one != other
    other.number = 1
    assert one == other
    assert one.seen is not other.seen
    assert repr(one) == "Count(of='a', number=1, seen=[])"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
    with pytest.raises(AttributeError):
        one.size = 1  # type: ignore[attr-defined]


def test_what_a_class_does_of_a_new_value() -> None:
    """It may refuse it."""

    @frozen
    class Positive:
        number: int

        def __post_init__(self) -> None:
            if self.number < 0:
                raise ValueError("negative")

    assert Positive(1).number == 1
    with pytest.raises(ValueError, match="negative"):
        replace(Positive(1), number=-1)


def test_a_class_keeps_its_own_methods() -> None:
    """Equality, for one."""
    one = Alike("a")
    assert one == one
    assert one != Alike("a")
    assert {one: 1}[one] == 1
    assert Nothing() == Nothing()
    assert repr(Nothing()) == "Nothing()"


@pytest.mark.parametrize(
    "one", [Place("a", 2, ("x",)), Named("a", name="b"), Other("a"), Known("a", ["x"]), Count("a", 2)]
)
def test_they_are_copied(one: Any) -> None:
    """Flat, deep, and by pickle."""
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert again == one
        assert type(again) is type(one)
    if hasattr(copy, "replace"):
        assert copy.replace(Place("a"), line=2) == Place("a", 2)
