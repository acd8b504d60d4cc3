"""The YAML that models write as arguments is decoded as YAML 1.2 defines it; other YAML is refused."""

from __future__ import annotations

import pytest

from adapter.core.errors import FormatError
from adapter.core.yaml_subset import decode_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("city: Oslo\ndays: 3", {"city": "Oslo", "days": 3}),
        ("  city: Oslo  # a comment\n\n  # another\n  days: 0.5", {"city": "Oslo", "days": 0.5}),
        ("a: \"x: \\\"y\\\"\"\nb: 'it''s'", {"a": 'x: "y"', "b": "it's"}),
        ("a: true\nb: null\nc:\nd: ~", {"a": True, "b": None, "c": None, "d": None}),
        ("a: [1, \"b\"]\nb: {\"c\": 1}", {"a": [1, "b"], "b": {"c": 1}}),
        ("a:\n  b:\n    c: 1\n  d: 2\ne: 3", {"a": {"b": {"c": 1}, "d": 2}, "e": 3}),
        ("a:\n- 1\n- x y\nb: 2", {"a": [1, "x y"], "b": 2}),
        ("a:\n  - b: 1\n    c: 2\n  - b: 3", {"a": [{"b": 1, "c": 2}, {"b": 3}]}),
        ("a: |\n  one\n    two\n\n  three\nb: 1", {"a": "one\n  two\n\nthree\n", "b": 1}),
        ("a: |-\n  x: y\n  # no comment", {"a": "x: y\n# no comment"}),
        ("a: >-\n  one\n  two", {"a": "one two"}),
        ("url: http://x.y/z:80", {"url": "http://x.y/z:80"}),
        ("a: *.py\nb: @ada\nc: %d", {"a": "*.py", "b": "@ada", "c": "%d"}),
        ("\"a\\\"b\": \"x\u2028y\"\n'it''s': 1\n\"\\n\": 2", {'a"b': "x\u2028y", "it's": 1, "\n": 2}),
        ("version: 1.2.3", {"version": "1.2.3"}),
        ("", None),
    ],
)  # fmt: skip
def test_yaml_is_decoded(text, value):
    assert decode_yaml(text) == value


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2", "a: 1\n  b: 2", "a: [1, b", "a: 'x", "a: &x 1", "a: *x", "a: !!str 1", "words\na: 1"]
)
def test_other_yaml_is_refused(text):
    with pytest.raises(FormatError):
        decode_yaml(text)


def test_deep_nesting_is_refused():
    with pytest.raises(FormatError, match="nested"):
        decode_yaml("\n".join(" " * depth + "a:" for depth in range(1_000)))
