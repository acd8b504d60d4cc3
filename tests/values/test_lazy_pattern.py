"""Patterns that are compiled on first use are as good as those that always are, and none of ours has a mistake."""

from __future__ import annotations

import copy
import pickle
import re
from importlib import import_module

import pytest

from adapter.values.lazy_pattern import _LazyPattern, lazy_pattern
from tests.test_layers import MODULES


def test_it_is_what_compile_gives():
    """Before its first use and after it."""
    lazy, compiled = lazy_pattern(r"(?P<a>\w)b", re.IGNORECASE), re.compile(r"(?P<a>\w)b", re.IGNORECASE)
    for _ in range(2):
        assert lazy.sub(r"<\1>", "abXBc") == compiled.sub(r"<\1>", "abXBc") == "<a><X>c"
        assert lazy.findall("abXBc", 1) == ["X"]
        assert (lazy.pattern, lazy.flags, lazy.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)


def test_it_has_nothing_else():
    """And what asks for more does not compile it."""
    lazy = lazy_pattern("(")
    assert not hasattr(lazy, "__iter__")
    assert not hasattr(lazy, "_nothing")
    with pytest.raises(re.error):
        lazy.match("")


@pytest.mark.parametrize("is_used", [False, True])
def test_it_travels(is_used):
    """To another process, too."""
    lazy = lazy_pattern("b+", re.IGNORECASE)
    assert not is_used or lazy.search("aB")
    for other in (pickle.loads(pickle.dumps(lazy)), copy.deepcopy(lazy)):
        assert other.findall("abBc") == ["bB"]


def test_all_of_ours_compile():
    """Which nothing else would say of a pattern that is rarely used."""
    users = [name for name, path in MODULES.items() if "= lazy_pattern(" in path.read_text(encoding="utf-8")]
    ours = [
        (module, name, value)
        for module in users
        for name, value in vars(import_module(module)).items()
        if isinstance(value, _LazyPattern)
    ]
    assert len({module for module, _, _ in ours}) == len(users)
    for module, name, lazy in ours:
        assert lazy.pattern, (module, name)
