"""`Turn.explain`: the role of each piece of a text, and the reason."""

from __future__ import annotations

import pytest

from adapter.core.rejection_codes import REJECTION_REASONS
from adapter.dialects import get_dialect
from adapter.parsing.parser import parse

TOOLS = get_dialect("blade").tools
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
BARE = '{"name": "read_file", "arguments": {"path": "a.py"}}'


def test_spans_cover_the_text_with_their_roles():
    text = f"<think>Hm.</think>Look:\n{CALL}\n<tool_call>{{oops}}</tool_call>\nDone."
    spans = parse(text, TOOLS).explain()
    assert "".join(span.text for span in spans) == text
    assert [span.kind for span in spans] == [
        "markup", "reasoning", "markup", "content", "markup", "call", "markup", "invalid", "content",
    ]  # fmt: skip
    assert [(span.text, span.call.name) for span in spans if span.call] == [(CALL, "read_file")]
    assert ["the call has no name" in span.error for span in spans if span.error] == [True]


def test_text_before_an_unopened_closing_marker_was_reasoning():
    """The opening marker was in the prompt."""
    spans = parse("Hm.\n</think>\nHi.", TOOLS).explain()
    assert [(span.kind, span.text) for span in spans if span.kind != "markup"] == [
        ("reasoning", "Hm."),
        ("content", "Hi."),
    ]


REJECTED = {
    "inline-code": [f"Write `{CALL}` so."],
    "quotation": ["> " + CALL.replace("\n", "\n> "), f'The "{CALL}" of old.', f"| a | {CALL} |"],
    "code-fence": [f"```python\n{CALL}\n```", f"```xml\nAn example:\n{CALL}\n```", f"~~~\n{CALL}\n~~~"],
    "echoed-result": [f"<tool_response>\n{CALL}\n</tool_response>"],
    "later-turn": [f"Hi.<|im_start|>user\n{CALL}"],
    "reasoning": [f"<think>\nMaybe {CALL}\n</think>\nNo.", f"<think>\n`{CALL}`\n</think>\nNo."],
    "no-body": ["Some models write <tool_call> before a call."],
    "text-follows": [f"{BARE}\nThat is the call.", f"```json\n{BARE}\n```\nThat is the call."],
    "unknown-tool": ['Look:\n{"name": "launch", "arguments": {}}'],
    "in-text": [f"Sure: {BARE}"],
    "unknown-form": ['-> read_file(path="a.py")'],
    "placeholder": ['{"name": "read_file", "arguments": {"path": "<path>"}}'],
}


@pytest.mark.parametrize(("reason", "text"), [(reason, text) for reason in REJECTED for text in REJECTED[reason]])
def test_explain_lists_rejected_calls(reason, text):
    """With the position and the reason."""
    turn = parse(text, TOOLS)
    assert not turn.calls
    assert not turn.invalid
    assert reason in [each.reason for each in turn.rejected]
    first = turn.rejected[0]
    assert text[first.start :].startswith(("<tool_call>", "{", "```", "read_file"))


def test_the_policy_is_a_reason():
    """For text that `strict` rejects."""
    assert [each.reason for each in parse(BARE, TOOLS, policy="strict").rejected] == ["no-markers"]


def test_every_reason_is_tested():
    """A new reason needs a text that shows it."""
    assert set(REJECTED) | {"no-markers"} == set(REJECTION_REASONS)


def test_an_answer_in_json_is_not_a_candidate():
    """It does not resemble a call."""
    assert parse('{"name": "Ada", "age": 36}', TOOLS).rejected == ()


def test_a_notebook_shows_a_small_table_in_which_all_text_is_escaped():
    html = parse(f"<think>1 < 2</think><b>Hi</b>\n{CALL}\n<tool_call>{{oops}}</tool_call>", TOOLS)._repr_html_()
    assert html.startswith("<table><tr><th>content</th><td><pre>&lt;b&gt;Hi&lt;/b&gt;")
    assert "<tr><th>reasoning</th><td><pre>1 &lt; 2</pre></td></tr>" in html
    assert "<tr><th>call read_file</th><td><pre>{&quot;path&quot;: &quot;a.py&quot;}</pre></td></tr>" in html
    assert html.count("<tr>") == 4
