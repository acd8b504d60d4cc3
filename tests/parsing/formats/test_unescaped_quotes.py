"""Code and JSON in a string whose quotes are not escaped are kept whole, or the call is refused."""

from __future__ import annotations

from itertools import product

import pytest

from adapter import parse

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("path", "content", "mode")},
                "required": ["path", "content"],
            },
        },
    }
]
PIECES = [
    'print("hi")',
    '{"a": "b", "c": ["d", "e"]}',
    '[{"a": {}}, "", "mode: x"]',
    'if x == "y": print("z")',
    'call("a", "b")',
    's = "a" + "b"',
    '"""doc"""',
    '# say "hi", "there"',
    'd["k"] = "v"',
    'it\'s "ok"',
]
ORDERS = [("path", "content"), ("content", "path"), ("content", "path", "mode"), ("mode", "content")]


@pytest.mark.parametrize(
    ("name", "call", "argument"),
    [
        ("hermes", '<tool_call>\n{"name": "write_file", "arguments": {%s}}\n</tool_call>', '"%s": "%s"'),
        ("pythonic", "[write_file(%s)]", '%s="%s"'),
    ],
)
def test_unescaped_text_is_whole_or_refused(name, call, argument):
    """Never half a text, never a member of it as an argument; most texts are read."""
    read = total = 0
    for first, second, order in product(PIECES, PIECES, ORDERS):
        values = dict.fromkeys(order, "a.txt") | {"content": f"{first}\n{second}"}
        text = call % ", ".join(argument % pair for pair in values.items())
        calls = parse(text, TOOLS, name, "stop").calls
        total += 1
        read += len(calls)
        assert [each.arguments for each in calls] in ([], [values]), text
    assert read > 0.8 * total
