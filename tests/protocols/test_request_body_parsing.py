"""Request bodies are decoded like `json.loads` decodes them, within limits."""

from __future__ import annotations

import json

import pytest

from adapter.core.json.load import MAX_DEPTH
from adapter.protocols.request_body_parsing import read_body
from adapter.protocols.request_errors import RequestError


@pytest.mark.parametrize(
    "content",
    [
        b'{"a": "\\ud800"}',
        b'{"a": "\xed\xa0\x80"}',
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": "é"}'.encode("utf-16"),
        b'{"a": 1, "a": 2, "b": {"b": 3}}',
        b'{"a": [NaN, -Infinity, -0, -0.0, 1e400, 5e-324, 123456789012345678901234567890]}',
    ],
    ids=["escaped surrogate", "surrogate", "byte order mark", "UTF-16", "equal keys", "numbers"],
)
def test_a_body_is_decoded_like_json_loads(content):
    assert repr(read_body(content)) == repr(json.loads(content))


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 01}', b'{"a": "\x01"}', b'{"a": 1} b', b'{"a": "\xff"}'])
def test_the_error_for_invalid_json_is_that_of_json_loads(content):
    with pytest.raises(ValueError) as expected:  # noqa: PT011  # UnicodeDecodeError is also one
        json.loads(content)
    with pytest.raises(RequestError) as raised:
        read_body(content)
    assert str(raised.value) == f"the request body is not valid JSON: {expected.value}"


@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1, 300, 100_000])
def test_only_bodies_with_the_maximum_depth_are_accepted(levels):
    content = b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)
    if levels <= MAX_DEPTH:
        assert read_body(content) == json.loads(content)
    else:
        with pytest.raises(RequestError, match="levels deep"):
            read_body(content)
