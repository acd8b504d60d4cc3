"""`load_json` returns and raises the same as `json.loads`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.json.load import MAX_DEPTH, load_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(VALUES, st.booleans())
def test_any_value_is_decoded(value, ensure_ascii):
    text = json.dumps(value, ensure_ascii=ensure_ascii)
    assert repr(load_json(text)) == repr(json.loads(text))


def outcome(load: Any, text: str | bytes) -> str:
    try:
        return repr(load(text))
    except (ValueError, RecursionError) as error:
        return repr(error)


@pytest.mark.parametrize(
    "text",
    [
        '"\ud800"',
        r'"\ud800"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b"\xef\xbb\xbf1",
        "\ufeff1",
        '"é"'.encode("utf-16"),
        '{"a": 1, "a": 2}',
        "-0",
        "[NaN, Infinity, 1e400]",
        "9" * 5_000,
        "[" * MAX_DEPTH + "]" * MAX_DEPTH,
        "",
        "01",
        '"\x01"',
        "1 2",
    ],
    ids=repr,
)
def test_unusual_texts_give_the_same_value_or_error(text):
    assert outcome(load_json, text) == outcome(json.loads, text)


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 300, 100_000])
@pytest.mark.parametrize("value", ["1", r'"\ud800"'], ids=["number", "surrogate"])
def test_a_value_that_is_nested_too_deeply_is_an_error(value, levels):
    with pytest.raises(ValueError, match=f"more than {MAX_DEPTH} levels deep"):
        load_json("[" * levels + value + "]" * levels)
