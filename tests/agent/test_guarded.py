"""The agent loop with guardrails: retries, history and ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.agent.agent import Agent
from adapter.agent.retry_constraint import find_named_values
from adapter.backends.chat_client import Chunk
from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.conversation.session_steps import AskModel, Finished, RunTools
from adapter.core.errors import UsageError
from adapter.dialects import get_dialect
from adapter.tools.function_tools import tool
from adapter.tools.tool_set import ToolSet
from tests.model_text import Script, call


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word} means something"


@tool
def submit(text: str) -> str:
    """Hand the answer in."""
    return "thanks"


def run(tmp_path: Any, script: Script, **settings: Any) -> Finished:
    with Agent(tmp_path, script, tools=[look_up, submit], approve="yolo", **settings) as agent:
        return agent.run("What does foo mean?")


def test_rejected_answer_is_removed_after_a_better_one(tmp_path):
    """The next prompt begins like the one before, for the prompt cache."""
    script = Script("Let me check the word:", call("look_up", word="foo"), "It means something.")
    assert run(tmp_path, script).content == "It means something."
    first, again, last = script.seen
    assert "without doing it" in str(again[-1]["content"])
    assert "Let me check" in str(again[-2]["content"])
    assert "Let me check" not in str(last)
    assert "without doing it" not in str(last)
    assert last[: len(first)] == first


def test_observer_sees_retries(tmp_path):
    seen: list[Any] = []
    run(tmp_path, Script("", "It means something."), observe=seen.append)
    assert [each.again for each in seen if isinstance(each, AskModel)] == ["", "empty_answer"]


def test_disabled_guardrails_accept_every_answer(tmp_path):
    """An empty answer is then accepted."""
    assert run(tmp_path, Script(""), guardrails="off") == Finished("answered", "")
    assert run(tmp_path, Script(""), retries=0).content == ""


def test_empty_answers_end_as_stuck(tmp_path):
    """After three retries."""
    script = Script("", "", "", "")
    assert run(tmp_path, script).reason == "stuck"
    assert len({str(messages[-1]["content"]) for messages in script.seen}) == 4


def test_invalid_call_is_reported_and_valid_ones_run(tmp_path):
    """Valid calls are not retried."""
    broken = '<tool_call>\n{"name": "look_up", "arguments": {"wo\n</tool_call>'
    script = Script(call("look_up", word="foo") + "\n" + broken, "It means something.")
    assert run(tmp_path, script).reason == "answered"
    assert "foo means something" in str(script.seen[1])


STEPS = {"required": ["look_up"], "before": {"submit": ["look_up"]}, "ends_with": ["submit"]}


def test_steps_are_enforced_and_end_the_run(tmp_path):
    """Early answers and early ends are rejected; the last step ends the run without another query."""
    script = Script(
        "It means nothing.", call("submit", text="x"), call("look_up", word="foo"), call("submit", text="y")
    )
    assert run(tmp_path, script, steps=STEPS).reason == "exited"
    assert script.answers == []
    assert "look_up" in str(script.seen[1][-1]["content"])
    assert "first call look_up" in str(script.seen[2][-1]["content"])


def test_steps_with_unknown_tools_raise_at_construction(tmp_path):
    with pytest.raises(UsageError, match="unknown tool 'lookup' in steps"):
        run(tmp_path, Script(), steps={"required": ["lookup"]})
    with pytest.raises(UsageError, match="unknown guardrail 'nonsense'"):
        run(tmp_path, Script(), guardrails="nonsense")


def test_flood_of_calls_is_not_run(tmp_path):
    """The observer learns which calls were dropped; the model does not see them."""
    seen: list[Any] = []
    script = Script("\n".join([call("look_up", word="foo")] * 9 + ["<tool_call>\n{}\n</tool_call>"]), "Something.")
    assert run(tmp_path, script, observe=seen.append).content == "Something."
    (to_run,) = [each for each in seen if isinstance(each, RunTools)]
    assert (len(to_run.calls), {each.guardrail for each in to_run.dropped}) == (1, {"repeated_in_answer"})
    assert str(script.seen[1]).count("<tool_call>") == str(script.seen[0]).count("<tool_call>") + 1


def test_repeating_model_ends_with_the_result(tmp_path):
    """It gets one retry. Its own answer is preferred."""
    again = call("look_up", word="foo")
    assert run(tmp_path, Script(again, again, again)) == Finished("repetition", "foo means something")
    assert run(tmp_path, Script(again, again, "It means something.")) == Finished("answered", "It means something.")


def test_error_of_our_own_tool_is_not_an_argument(tmp_path):
    """The lines of the file that it shows are."""
    (tmp_path / "a.md").write_text("one two three four five\n")
    edit = {"path": "a.md", "old_content": "six seven eight nine", "new_content": "x"}
    copied = {
        "path": "a.md",
        "old_content": "five",
        "new_content": "old_content was not found, and nothing resembles it",
    }
    shown = {"path": "a.md", "old_content": "one two three four five", "new_content": "one two three four 5"}
    script = Script(*(call("edit_file", **each) for each in (edit, copied, shown)), "I changed the last word.")
    with Agent(tmp_path, script, approve="yolo") as agent:
        agent.run("Fix a.md")
    assert "Do not copy" in str(script.seen[2][-1]["content"])
    assert (tmp_path / "a.md").read_text() == "one two three four 5\n"


def test_first_whole_call_of_a_truncated_answer_is_run(tmp_path):
    """The model repeats itself until the token limit."""
    body = '{"name": "look_up", "arguments": {"word": "foo"}}'
    script = Script(f"<tool_call>\n{body}\n{body}\n{body[:9]}", "It means something.", finish_reason="length")
    assert run(tmp_path, script).content == "It means something."
    assert "foo means something" in str(script.seen[1])


class LongScript(Script):
    """Streams its answers line by line, and counts the lines that were received."""

    lines = 0

    def stream(self, messages: Any, *, stop: Any = ()) -> Any:
        self.seen.append(list(messages))
        for line in self.answers.pop(0).splitlines(keepends=True):
            self.lines += 1
            yield Chunk(line)
        yield Chunk("", finish_reason="stop")


@pytest.mark.parametrize("has_markers", [True, False])
def test_flood_of_calls_is_not_received_to_its_end(tmp_path, has_markers):
    """Qwen2.5-Coder-0.5B once wrote calls of each tool, without markers, until it was stopped after four minutes."""
    written = (
        call("look_up", word="foo") if has_markers else json.dumps({"name": "look_up", "arguments": {"word": "foo"}})
    )
    script, seen = LongScript(f"{written}\n" * 3000, "It means something."), list[Any]()
    assert run(tmp_path, script, observe=seen.append) == Finished("answered", "It means something.")
    assert script.lines < 120
    assert [len(each.calls) for each in seen if isinstance(each, RunTools)] == [1]


def test_answer_that_repeats_its_text_ends(tmp_path):
    """Qwen2.5-Coder-0.5B wrote one sentence, or objects that are no calls, until the context was full. After a call,
    they are not shown to it again."""
    script = LongScript("", "It means something.")
    script.answers[0] = "The tool is not the tool that I want to call now.\n" * 3000
    run(tmp_path, script)
    assert script.lines < 50
    junk = "\n".join(json.dumps({"type": name, "arguments": {"of": name * 9}}) for name in "abcdefgh")
    script = LongScript(f"{call('look_up', word='foo')}\n{junk}\n" * 300, "It means something.")
    script = LongScript("", "It means something.")
    script.answers[0] = call("look_up", word="foo") + f"\n{junk}" * 300
    assert run(tmp_path, script) == Finished("answered", "It means something.")
    assert script.lines < 50
    assert "aaaaaaaaa" not in str(script.seen[1])
    listed = "\n".join(f"{number}. The word foo means something." for number in range(100))
    assert run(tmp_path, LongScript(call("look_up", word="foo"), listed)).content == listed


def test_broken_call_that_repeats_itself_ends(tmp_path):
    """Qwen2.5-Coder-0.5B wrote lists with keys until the context was full. Regular data in a string is no fault."""
    head = '<tool_call>\n{"name": "look_up", "arguments": {"word": '
    patch = '"old_text": "port", "new_text": "9090", "start_line": 1, "end_line": 2'
    listed = ", ".join(f'{{{patch}, "end": {number}}}' for number in range(900))
    unknown = head.replace('"word": ', f'"word": "foo", "patches": [{listed}')
    for text in (f"{head}[{f'[{patch}], ' * 400}", f"{head}[{f'{{{patch}}}, ' * 400}", unknown):
        script = LongScript("", "It means something.")
        script.answers[0] = text.replace(", ", ",\n")
        assert run(tmp_path, script).content == "It means something."
        assert script.lines < 400
    table = call("look_up", word="0, 0, 0, 0, 0, 0\n" * 900)
    script, seen = LongScript(table.replace("\\n", "\\n\n"), "It means something."), list[Any]()
    run(tmp_path, script, observe=seen.append)
    assert [len(each.calls) for each in seen if isinstance(each, RunTools)] == [1]


def test_call_of_an_unknown_tool_is_not_received_to_its_end(tmp_path):
    """Qwen2.5-Coder-0.5B wrote a call that listed all tools as its arguments, for four minutes."""
    listed = "\n".join(
        f'{{"function": {{"name": "f{number}", "description": "It does it."}}}},' for number in range(900)
    )
    for head in ('```json\n{"name": "look_up", "arguments": [', '{"name": "list_it_all", "arguments": {"tools": ['):
        script = LongScript("", call("look_up", word="foo"), "It means something.")
        script.answers[0] = f"{head}\n{listed}"
        assert run(tmp_path, script).content == "It means something."
        assert script.lines < 60


def test_long_answer_without_surplus_calls_is_received(tmp_path):
    """Also one with more calls than usual, for the values of the request."""
    words = [f"foo{number}" for number in range(40)]
    text = "".join(call("look_up", word=word) for word in words)
    seen: list[Any] = []
    with Agent(tmp_path, LongScript(text, "Done with the 40."), tools=[look_up], observe=seen.append) as agent:
        agent.run(f"Look up {', '.join(words)}")
    assert [len(each.calls) for each in seen if isinstance(each, RunTools)] == [40]


def test_folder_of_a_command_is_no_file_of_the_request():
    tools = ToolSet([get_dialect("blade").tools["run_command"]])
    history = CallHistory("Run a.py and save what it prints in b.txt")
    assert find_named_values(history, tools) == {}
    assert find_named_values(history, tools, is_small=True) == {("run_command", "cwd"): ["."]}


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        ("run the tests with python3 -m unittest and tell me how many failed", "python3 -m unittest"),
        ("Run `python3 check.py` and tell me what it prints", "python3 check.py"),
        ("Run test_join.py with python3. Which value did it expect?", "python3 test_join.py"),
        ("Run pytest -q, please", "pytest -q"),
        ("Run npm run build:all in web", "npm run build:all"),
        ("Execute `make test` and fix the errors", "make test"),
        ("Make a file and go on", ""),
        ("Write a poem about python with rhymes", ""),
        ("Run the tests", ""),
        ("Run python.exe", ""),
    ],
)
def test_command_of_the_request_is_run(request_, command):
    tools = ToolSet([get_dialect("blade").tools["run_command"]])
    choices = find_named_values(CallHistory(request_), tools, is_small=True)
    assert [*choices.get(("run_command", "command"), [""])] == [command]


@pytest.mark.parametrize(
    ("request_", "source", "destination", "other"),
    [
        ("Put b/report.csv into the folder archive.", "b/report.csv", "archive/report.csv", "b/report.csv"),
        ("Move a.csv to old/a.csv", "a.csv", "old/a.csv", "a.csv"),
        ("Verschieb die Fotos (a.jpg, b.jpg) in den Ordner urlaub", "a.jpg", "urlaub/a.jpg", "b.jpg"),
        ("into old/ goes a.csv", "a.csv", "old/a.csv", "old/"),
    ],
)
def test_file_is_moved_to_a_path_or_folder_of_the_request(request_, source, destination, other):
    """A model was limited to the paths of the request, so that it could only move the file to itself."""
    tools = ToolSet([get_dialect("blade").tools["move_file"]])
    choices = find_named_values(CallHistory(request_), tools)
    assert choices["move_file", "source"] == [source]
    assert destination in choices["move_file", "destination"]
    assert other not in choices["move_file", "destination"]


def test_file_of_the_request_is_found_in_the_folder_that_an_error_suggests():
    tools = ToolSet([get_dialect("blade").tools["delete_file"]])
    error = "tool_error: a.txt does not exist (did you mean 'data/a.txt'?)"
    failed = PastCall("delete_file", {"path": "a.txt"}, error, ok=False)
    choices = find_named_values(CallHistory("Delete a.txt in the folder data", (failed,)), tools)
    assert choices == {("delete_file", "path"): ["data/a.txt"]}


def test_deletion_is_limited_to_the_files_that_the_request_does_not_keep():
    tools = ToolSet([get_dialect("blade").tools[name] for name in ("delete_file", "read_file")])
    choices = find_named_values(CallHistory("Delete a.log but keep b.log"), tools)
    assert choices == {("delete_file", "path"): ["a.log"], ("read_file", "path"): ["a.log", "b.log"]}


@pytest.mark.parametrize(
    ("request_", "is_small", "choices"),
    [
        ("In a.md, set the size to 8", False, {"path": ["a.md"]}),
        ("In b.md, set the size to 8", True, {"path": ["b.md"]}),
        ('Fix the typo "smal" in a.md: "small"', True, {"old_text": ["smal"], "new_text": ["small"]}),
        ('Fix the typo "smal" in a.md: "small"', False, {"path": ["a.md"]}),
        ('Replace "a" by "b" or "c" in b.md', True, {"path": ["b.md"]}),
        ("Move b.md to b/a.md", True, {"source": ["b.md"], "path": ["b.md", "b/a.md"]}),
        ("Fix the typo", True, {}),
    ],
)
def test_enforced_call_takes_the_values_of_the_request(request_, is_small, choices):
    blade = get_dialect("blade").tools
    tools = ToolSet([blade["apply_edit"], blade["move_file"]])
    read = PastCall("read_file_range", {"path": "a.md"}, "1: # Tools\n2: }\n3:   size = 7")
    listed = PastCall("read_file", {"path": "c.yaml"}, "nuts:\n  - oak\n  - pear\n")
    found = find_named_values(CallHistory(request_, (read, listed)), tools, is_small=is_small)
    values = {key[1]: list(allowed) for key, allowed in found.items()}
    assert {name: values[name] for name in choices} == choices
    assert ("old_text" in values) == ("old_text" in choices)
