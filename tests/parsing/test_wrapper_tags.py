"""Tags that no format defines around calls are markup; without a call they are text."""

import pytest

from adapter.core.events import MarkupDelta, RejectedCall, TextDelta, ToolCall
from adapter.parsing.marker_set import ROUGH_SEARCH_LIMIT
from adapter.parsing.parser import parse
from tests.each import each
from tests.parsing.checks import read

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": name, "parameters": CITY} for name in ("get_weather", "search")]

TAGS = (
    "foo:function_calls",
    "tools",
    "function_calls",
    "tool_calls",
    "calls",
    "actions",
    "tool_use_block",
    "my:tool_calls",
)
MARKED = {
    "json in tags": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bern"}}\n</tool_call>',
    "function": "<tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n</function>\n</tool_call>",
    "bare function": '<function=get_weather>{"city": "Bern"}</function>',
    "invoke": '<invoke name="get_weather">\n<parameter name="city">Bern</parameter>\n</invoke>',
    "unknown namespace": '<a1:invoke name="get_weather">\n<a1:parameter name="city">Bern</a1:parameter>\n</a1:invoke>',
    "name and JSON": '[TOOL_CALLS]get_weather[ARGS]{"city": "Bern"}',
    "singular tag": '<function_call>{"name": "get_weather", "arguments": {"city": "Bern"}}</function_call>',
}
UNMARKED = {
    "object": '{"name": "get_weather", "arguments": {"city": "Bern"}}',
    "Python list": '[get_weather(city="Bern")]',
    "Python call": 'get_weather(city="Bern")',
    "named object": 'get_weather\n{"city": "Bern"}',
    "object after a colon": 'get_weather: {"city": "Bern"}',
    "fence": '```json\n{"name": "get_weather", "arguments": {"city": "Bern"}}\n```',
    "pairs": "get_weather\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>",
    "YAML": "name: get_weather\narguments:\n  city: Bern",
    "YAML with JSON": 'tool: get_weather\narguments: {"city": "Bern"}',
}


def _content(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def _cities(events):
    return [event.arguments["city"] for event in events if isinstance(event, ToolCall)]


@pytest.mark.parametrize("tag", TAGS)
def test_tags_around_marked_calls_are_markup(tag):
    def reads(call):
        text = f"I look.\n\n<{tag}>\n{call}\n{call.replace('Bern', 'Rome')}\n</{tag}>"
        events = read(text, tools=TOOLS)
        assert _cities(events) == ["Bern", "Rome"]
        assert _content(events).strip() == "I look."
        after = parse(f"<{tag}>{call}</{tag}>\nDone.", TOOLS)
        assert _cities(after.events) == ["Bern"]
        assert after.content.strip() == "Done."

    each(MARKED, reads)


@pytest.mark.parametrize("tag", [*TAGS, "TOOLCALL", "function_call", "tool_call"])
def test_call_without_markers_in_a_tag_that_announces_calls(tag):
    def reads(call):
        events = read(f"<{tag}>\n{call}\n</{tag}>\n", tools=TOOLS)
        assert _cities(events) == ["Bern"]
        assert _content(events).strip() == ""

    each(UNMARKED, reads)


def test_namespace_that_no_format_lists_needs_no_section():
    call = MARKED["unknown namespace"]
    events = read(f"Sure.\n{call}\n{call.replace('Bern', 'Rome')}", tools=TOOLS)
    assert _cities(events) == ["Bern", "Rome"]
    assert _content(events).strip() == "Sure."


TEXTS = {
    "list in HTML": "<ul>\n<li>tool</li>\n<li>call</li>\n</ul>\n<p>\nget_weather(city) is a function.\n</p>",
    "quoted object": '<pre>\n{"name": "get_weather", "arguments": {"city": "Bern"}}\n</pre>',
    "quoted result": '<tool_result>\n{"name": "get_weather", "arguments": {"city": "Bern"}}\n</tool_result>',
    "sentence": "Write <actions>get_weather(city='Bern')</actions> in one line.",
    "unknown tool": '<actions>\n{"name": "other", "arguments": {}}\n</actions>',
    "prose in a tag": "<actions>\nget_weather comes first, then search.\n</actions>",
    "markup language": "<xs:action name='get_weather'>\n<xs:call>Bern</xs:call>\n</xs:action>",
    "closing tags alone": "</actions>\n</foo:function_calls>",
    "known namespace": '<function_calls>\n<invoke nWrite">\n<para',
    "namespace in prose": "<foo:invoke is the spelling with a namespace.",
}


def test_tags_without_a_call_are_text():
    def stays(text):
        events = read(text, tools=TOOLS)
        assert _cities(events) == []
        assert _content(events) == text

    each(TEXTS, stays)


def test_closing_tag_is_markup_only_once():
    call = MARKED["json in tags"]
    turn = parse(f"<actions>\n{call}\n</actions>\nThen\n</actions>", TOOLS)
    assert turn.content == "\nThen\n</actions>"
    assert MarkupDelta("\n</actions>") in turn.events


def test_closing_tag_is_markup_after_a_sentence():
    events = read(f"<actions>\n{MARKED['json in tags']}\nI wait.\n</actions>\n</div>\nDone.", tools=TOOLS)
    assert _cities(events) == ["Bern"]
    assert MarkupDelta("\n</actions>") in events
    assert _content(events) == "\nI wait.\n</div>\nDone."


def test_closing_tag_is_markup_after_a_long_answer():
    """The search for markers then uses another pattern."""
    text = f"{'Word. ' * ROUGH_SEARCH_LIMIT}\n<actions>\n{MARKED['json in tags']}\nI wait.\n</actions>"
    turn = parse(text, [*TOOLS, {"name": "other"}])
    assert turn.content.endswith("Word.\nI wait.")


def test_list_with_one_call_keeps_it():
    text = '<tool_calls>[{"n": 1}, {"name": "get_weather", "arguments": {"city": "Bern"}}]</tool_calls>'
    assert _cities(read(text, tools=TOOLS)) == ["Bern"]


def test_many_nested_tags_cost_little():
    turn = parse("<tools>\n<calls>\n" * 20_000 + MARKED["json in tags"], TOOLS)
    assert _cities(turn.events) == ["Bern"]
    assert len([event for event in turn.events if isinstance(event, RejectedCall)]) <= 40_000
