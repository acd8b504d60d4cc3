"""Text that looks like a call but that no format reads gets a reason, and prose gets none."""

import pytest

from adapter import parse
from adapter.dialects import load_tools_for_parsing
from adapter.parsing.unrecognized_calls import SEARCHED

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {key: {}}}}}
    for name, key in (("get_weather", "city"), ("search", "query"), ("fs.read_file", "path"))
]
JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'


def reasons(text, tools=TOOLS):
    turn = parse(text, tools)
    assert not turn.calls
    assert not turn.invalid
    return {text[each.start : each.end]: each.reason for each in turn.rejected}


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (f"Sure: {JSON}", JSON),
        (f"I will send {JSON} now.", JSON),
        ('See {"id": 3, "name": "search"}.', '{"id": 3, "name": "search"}'),
        ('Let me try {"search": {"query": "x"}}', '{"search": {"query": "x"}}'),
        ('I will call get_weather(city="Paris") now.', 'get_weather(city="Paris")'),
        ('I call get_weather(city="(a)", days=[1]) now.', 'get_weather(city="(a)", days=[1])'),
        ('Then fs.read_file("a.py") follows.', 'fs.read_file("a.py")'),
        ('I would use search: {"query": "x"} here.', 'search: {"query": "x"}'),
    ],
)
def test_a_call_inside_a_sentence_is_in_text(text, call):
    assert reasons(text) == {call: "in-text"}


@pytest.mark.parametrize(
    "text",
    [
        "```yaml\ntool: get_weather\ncity: Paris\n```",
        "```yaml\nname: search\narguments:\n  query: x\n```",
        "<tool_callsearch\n<arg_key>query</arg_key>\n<arg_value>x</arg_value>",
        "&lt;tool_call&gt;search&lt;arg_key&gt;query&lt;/arg_key&gt;",
        "<invocation><fn>search</fn><query>x</query></invocation>",
        '<use tool="search"><query>x</query></use>',
        "<|go|>search query: x",
        '`search`:\n{"query": "x"}',
        'functions.search#0{"query": "x"}',
        '@search("x")',
        "search query=x",
        "$ search --query=x",
    ],
)
def test_call_of_unknown_form_is_explained(text):
    assert list(reasons(text).values()) in (["unknown-form"], ["no-body"])  # the body's marker may be known


@pytest.mark.parametrize(
    "text",
    [
        "I will search the web and get_weather for you: it rains.",
        "Use `search` to find it (it takes a query).",
        "- search: finds pages\n- get_weather: tells the weather",
        "```search\nx = 1\n```",
        'An answer: {"name": "Ada", "age": 36}',
        "research(query=1) and search-engine(1)",
        "",
    ],
)
def test_prose_that_only_names_a_tool_has_no_reason(text):
    assert reasons(text) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('`get_weather(city="Paris")`', "inline-code"),
        ('> get_weather(city="Paris") is the call', "quotation"),
        ('Like this:\n```python\nx = get_weather(city="Paris")\n```\nDone.', "code-fence"),
    ],
)
def test_a_quoted_call_has_the_reason_of_quoted_calls(text, reason):
    assert reason in reasons(text).values()


def test_without_tools_json_with_a_name_and_arguments_is_found():
    assert reasons(f"Sure: {JSON}", None) == {JSON: "in-text"}
    assert reasons('I call get_weather(city="Paris") now.', None) == {}


def test_an_alias_is_a_name():
    assert reasons("Now cat(path='x') it.", load_tools_for_parsing("blade")) == {"cat(path='x')": "in-text"}


def test_an_answer_with_a_call_is_searched_too():
    """A lost marker must not hide a call because another one was read."""
    turn = parse(f"Sure: {JSON}\n<tool_call>{JSON}</tool_call>\nget_weather<arg_key>city</arg_key>", TOOLS)
    assert len(turn.calls) == 1
    assert [each.reason for each in turn.rejected] == ["in-text", "unknown-form"]


def test_both_ends_of_a_long_answer_are_searched():
    call = 'get_weather(city="Paris")'
    text = f"I call {call}. {'word ' * SEARCHED} I call {call}."
    turn = parse(text, TOOLS)
    assert [each.start for each in turn.rejected] == [7, text.rindex(call)]


@pytest.mark.parametrize("piece", ["get_weather(1 ", 'search {"', '{"name": "search", "arguments": '])
def test_many_open_calls_are_one_apparent_call_each_line(piece):
    assert len(parse(piece * 500, TOOLS).rejected) <= 1
    assert len(parse(f"word {piece}\n" * 100, TOOLS).rejected) <= 100


@pytest.mark.parametrize(
    "text", ['fetch_page\n{"url": "x"}', 'I look.\nfetchPage {"url": "x"}', 'get_wether{"city": "x"}']
)
def test_name_of_no_tool_above_its_arguments_is_an_unknown_tool(text):
    assert [*reasons(text).values()] == ["unknown-tool"]


@pytest.mark.parametrize("text", ['Result:\n{"url": "x"}', 'config\n{"url": "x"}', "my_function\n{ return 1; }"])
def test_word_above_an_answer_is_no_unknown_tool(text):
    assert reasons(text) == {}
