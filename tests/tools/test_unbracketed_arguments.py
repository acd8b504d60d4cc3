"""Arguments without the brackets of JSON: pairs, or the only text that a tool needs."""

from __future__ import annotations

import pytest

from adapter.parsing.parser import parse
from adapter.tools.tool_set import ToolSet
from adapter.tools.unbracketed_arguments import parse_plain_arguments
from tests.parsing.formats.test_wild import definition_of

SEARCH = "search(query, limit?: integer, tags?: string[], exact?: boolean)"
NOW = "now(zone?)"
SAVE = "save(path, content)"


@pytest.mark.parametrize(
    ("tool", "text", "expected"),
    [
        (SEARCH, "query=a b, limit=3", {"query": "a b", "limit": 3}),
        (SEARCH, "query: a, b\nlimit: 3\n", {"query": "a, b", "limit": 3}),
        (SEARCH, "- query: a\n- exact: true", {"query": "a", "exact": True}),
        (SEARCH, '"query": "a, limit: 1", "tags": ["x", "y"]', {"query": "a, limit: 1", "tags": ["x", "y"]}),
        (SEARCH, "query='a', limit=3", {"query": "a", "limit": 3}),
        (SEARCH, 'query="a" and "b", limit=3', {"query": '"a" and "b"', "limit": 3}),
        (SEARCH, "`query=a`", {"query": "a"}),
        (SEARCH, "a == b, c: d", {"query": "a == b, c: d"}),
        (SEARCH, "A=1 query=2", {"query": "A=1 query=2"}),
        (SEARCH, '"a b"', {"query": "a b"}),
        (SEARCH, "query=a, query=b", None),
        (SEARCH, "None", None),
        (SEARCH, "two\nlines", None),
        (SEARCH, "query: string\nlimit: integer", None),
        (NOW, "None", {}),
        (NOW, "", {}),
        (SAVE, "a.py", None),
        (SAVE, "path=a.py; content=x = 1", {"path": "a.py", "content": "x = 1"}),
    ],
)
def test_plain_arguments(tool, text, expected):
    (known,) = ToolSet([definition_of(tool)]).values()
    found = parse_plain_arguments(text, known)
    assert (found[0] if found is not None else None) == expected


@pytest.mark.parametrize("arguments", ['"a b"', '["a b"]', '"query: a b"', '"`a b`"', '{"query": "a b"}'])
def test_arguments_of_a_call_in_json(arguments):
    for name, key in (("name", "arguments"), ("action", "action_input")):
        turn = parse(f'<tool_call>{{"{name}": "search", "{key}": {arguments}}}</tool_call>', [definition_of(SEARCH)])
        assert [call.arguments for call in turn.calls] == [{"query": "a b"}]


@pytest.mark.parametrize("arguments", ['["a", "b"]', "5", '"{a"', "[1]"])
def test_other_values_are_no_arguments(arguments):
    turn = parse(f'<tool_call>{{"name": "search", "arguments": {arguments}}}</tool_call>', [definition_of(SEARCH)])
    assert turn.calls == ()
    assert turn.invalid
