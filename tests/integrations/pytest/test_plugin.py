"""The pytest plugin in separate runs: replay, recording, and errors for missing answers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest

from adapter import wrap
from adapter.protocols.recorded_exchange import read_exchanges
from tests.scripted_server import CHAT, ScriptedServer, as_json

HEAD = """
import asyncio

import pytest

from adapter.testing import assert_calls

TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Read a file.",
          "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}]

def ask(client, text="Read a.py", **more):
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="qwen3", messages=messages, tools=TOOLS, **more)

"""
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]


def call(path: str) -> str:
    return f'<tool_call>\n{{"name": "read_file", "arguments": {{"path": "{path}"}}}}\n</tool_call>'


def completion(content: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {"id": "chatcmpl-7", "object": "chat.completion", "created": 1795255059, "model": "m", "choices": choices}


def record(scripted: ScriptedServer, file: Path, *asked: tuple[str, str]) -> None:
    """Record answers to first messages, each in a separate conversation."""
    scripted.on(CHAT, *(as_json(200, completion(answer)) for _, answer in asked))
    with openai.OpenAI(base_url=f"{scripted.url}/v1", api_key="k", max_retries=0) as plain:
        client = wrap(plain, record=file)
        for text, _ in asked:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}], tools=TOOLS)


@pytest.fixture(autouse=True)
def _libraries_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep modules that an inner run imports; later tests would otherwise have duplicate classes."""

    def restore(_: object) -> None:
        for name in ("test_it", "test_agent", "my_agent"):
            sys.modules.pop(name, None)

    monkeypatch.setattr("_pytest.pytester.SysModulesSnapshot.restore", restore)


@pytest.fixture(autouse=True)
def _own_root(pytester: pytest.Pytester) -> None:
    """Configure the inner run in its own folder, or a configuration in a folder above would move its root there."""
    pytester.makeini("[pytest]")


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Runs the tests in a text, in this process."""

    def run(tests: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=HEAD + tests)
        return pytester.runpytest_inprocess("-p", "adapter.testing.plugin", "-p", "no:xdist", *options)

    return run


EVERY_WAY = """
def test_whole(replayed):
    answer = ask(replayed("said.jsonl"))
    assert_calls(answer, [("read_file", {"path": "a.py"})])
    assert answer.choices[0].message.content == "I look."

def test_streamed(replayed):
    chunks = [chunk.choices[0] for chunk in ask(replayed("said.jsonl"), stream=True)]
    (call,) = [call for each in chunks for call in each.delta.tool_calls or ()]
    assert call.function.arguments == '{"path": "a.py"}'
    assert chunks[-1].finish_reason == "tool_calls"

def test_async(async_replayed):
    assert_calls(asyncio.run(ask(async_replayed("said.jsonl"))), ["read_file"])

def test_response(replayed):
    response = replayed("said.jsonl").responses.create(
        model="m", input="Read a.py", tools=[{"type": "function", **TOOLS[0]["function"]}])
    assert_calls(response, [("read_file", {"path": "a.py"})])

def test_a_response_streamed(async_replayed):
    async def asked():
        stream = await async_replayed("said.jsonl").responses.create(
            model="m", input="Read a.py", tools=[{"type": "function", **TOOLS[0]["function"]}], stream=True)
        return [event async for event in stream]
    assert asyncio.run(asked())[-1].response.output[-1].name == "read_file"

def test_any_question_in_order(replayed):
    client = replayed("said.jsonl", in_order=True)
    assert_calls(ask(client, "What is the date?"), [("read_file", {"path": "a.py"})])
    assert_calls(ask(client, "Go on"), [("read_file", {"path": "b.py"})])

def test_each_answer_to_its_request(replayed):
    client = replayed("said.jsonl")
    assert_calls(ask(client, "Read b.py"), [("read_file", {"path": "b.py"})])
    assert_calls(ask(client), [("read_file", {"path": "a.py"})])
"""


def test_recording_supports_every_kind_of_request(run, scripted, pytester):
    """Whole and streamed, chat and responses, both clients; by request, and in order."""
    said = pytester.path / "said.jsonl"
    record(scripted, said, ("Read a.py", f"I look.\n{call('a.py')}"), ("Read b.py", call("b.py")))
    run(EVERY_WAY).assert_outcomes(passed=7)


MISSING = """
def test_another_question(replayed):
    ask(replayed("said.jsonl"), "Read c.py")

def test_asked_twice(replayed):
    client = replayed("said.jsonl")
    ask(client)
    ask(client)

def test_order_at_its_end(replayed):
    client = replayed("said.jsonl", in_order=True)
    for _ in range(3):
        ask(client)

def test_no_file(replayed):
    replayed("other.jsonl")

def test_no_recording(replayed):
    replayed("test_it.py")

def test_folder(replayed):
    replayed(".")

def test_another_route(replayed):
    replayed("said.jsonl").models.list()
"""


def test_missing_answer_fails_the_test_with_the_difference(run, scripted, pytester):
    """Shows the nearest request, the difference and the recording command, without SDK errors or retries."""
    record(scripted, pytester.path / "said.jsonl", ("Read a.py", call("a.py")), ("What's up?", "Nothing."))
    result = run(MISSING)
    result.assert_outcomes(failed=7)
    result.stdout.fnmatch_lines([
        "said.jsonl has no answer to request 1. The nearest is exchange 1 (- recorded, + requested):",
        '-  "content": "Read a.py"',
        '+  "content": "Read c.py"',
        "To record it again: pytest 'test_it.py::test_another_question' --record-model URL?#MODEL]",
        "said.jsonl has no more answers for request 2: it has 1 answer to this request",
        "said.jsonl has no more answers for request 3: it has 2 answers",
        "recording '*other.jsonl' not found; *",
        "test_it.py is not a recording; *",
        "cannot read the recording '*': Is a directory",
        "GET /v1/models: a recording only answers chat completions and responses",
    ])  # fmt: skip


AGENT = """
def test_two_steps(replayed):
    client = replayed("said/here.jsonl")
    messages = [{"role": "user", "content": "Read a.py"}]
    answer = client.chat.completions.create(model="any", messages=messages, tools=TOOLS)
    assert_calls(answer, ["read_file"])
    (made,) = answer.choices[0].message.tool_calls
    messages += [answer.choices[0].message, {"role": "tool", "tool_call_id": made.id, "content": "print(1)"}]
    assert client.chat.completions.create(model="any", messages=messages, tools=TOOLS).choices[0].message.content

def test_another(async_replayed):
    assert_calls(asyncio.run(ask(async_replayed("said/here.jsonl"), "Read b.py")), ["read_file"])
"""


def test_new_recording_replays(run, scripted, pytester, monkeypatch):
    """A conversation with results, whose calls get other ids; a test's part of a file is replaced, the rest stays."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecretindeed000000")
    answers = [call("a.py"), "It prints sk-verysecretindeed000000.", call("b.py")]
    scripted.on(CHAT, *(as_json(200, completion(each)) for each in answers))
    run(AGENT, "--record-model", f"{scripted.url}#small").assert_outcomes(passed=2)
    assert {body["model"] for body in scripted.bodies()} == {"small"}
    said = pytester.path / "said" / "here.jsonl"
    first = said.read_text(encoding="utf-8")
    assert "verysecret" not in first
    run(AGENT).assert_outcomes(passed=2)
    scripted.replies[CHAT].clear()
    scripted.on(CHAT, as_json(200, completion(call("b.py"))))
    run(AGENT, "--record-model", scripted.url, "-k", "another").assert_outcomes(passed=1, deselected=1)
    before, after = (read_exchanges(text, "said") for text in (first, said.read_text(encoding="utf-8")))
    assert after[:2] == before[:2]
    assert [each.conversation for each in after] == ["test_it.py::test_two_steps"] * 2 + ["test_it.py::test_another"]
    assert after[2].time > before[2].time


SEVERAL = """
PATHS = []

@pytest.mark.answers(3)
def test_each(replayed):
    answer = ask(replayed("said.jsonl"))
    PATHS.append(answer.choices[0].message.tool_calls[0].function.arguments)

@pytest.mark.answers(2)
def test_each_in_order(replayed):
    PATHS.append(ask(replayed("said.jsonl", in_order=True)).choices[0].message.tool_calls[0].function.arguments)

def test_they_were_others():
    assert PATHS == ['{"path": "%s.py"}' % name for name in "abcab"]

@pytest.mark.answers(5)
def test_too_many(replayed):
    ask(replayed("said.jsonl"))
"""


def test_a_test_runs_on_each_of_several_answers(run, scripted, pytester):
    """Recorded by any means: the same request, several times."""
    record(scripted, pytester.path / "said.jsonl", *(("Read a.py", call(f"{name}.py")) for name in "abc"))
    result = run(SEVERAL, "-v")
    result.assert_outcomes(passed=9, failed=2)
    result.stdout.fnmatch_lines(["*::test_each?answer1] PASSED*", "*::test_too_many?answer5] FAILED*"])


def test_several_answers_to_one_request(run, scripted, pytester):
    answer = completion(call("a.py"))
    answer["choices"].append({**answer["choices"][0], "index": 1, "message": {"role": "assistant", "content": "No."}})
    scripted.on(CHAT, as_json(200, answer))
    with openai.OpenAI(base_url=f"{scripted.url}/v1", api_key="k", max_retries=0) as plain:
        client = wrap(plain, record=pytester.path / "two.jsonl")
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Read a.py"}], tools=TOOLS, n=2)
    tests = """
def test_whole(replayed):
    called, text = ask(replayed("two.jsonl"), n=2).choices
    assert called.message.tool_calls[0].function.arguments == '{"path": "a.py"}'
    assert (text.index, text.message.content) == (1, "No.")

def test_streamed(replayed):
    choices = [choice for chunk in ask(replayed("two.jsonl"), n=2, stream=True) for choice in chunk.choices]
    assert {each.index: each.finish_reason for each in choices if each.finish_reason} == {0: "tool_calls", 1: "stop"}
"""
    run(tests).assert_outcomes(passed=2)


def test_answers_are_for_tests_that_replay(run):
    """A marker that does nothing is a mistake."""
    result = run("@pytest.mark.answers(3)\ndef test_it(tmp_path):\n    pass\n")
    result.stdout.fnmatch_lines(["*@pytest.mark.answers(k) is for tests that use `replayed`*"])
    result = run("@pytest.mark.answers('all')\ndef test_it(replayed):\n    pass\n")
    result.stdout.fnmatch_lines(["*takes the number of answers, got ('all',)*"])


def test_recording_with_xdist_is_rejected(pytester, scripted):
    """The model may serve one request at a time, and there is one file."""
    pytest.importorskip("xdist")
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest_inprocess("-p", "adapter.testing.plugin", "-n2", "--record-model", scripted.url)
    result.stderr.fnmatch_lines(["*--record-model records one test at a time; remove -n"])


def test_old_recordings_are_read(run, pytester, scripted):
    """They contain only the requests as sent, so they are replayed in order."""
    said = pytester.path / "said.jsonl"
    record(scripted, said, ("Read a.py", call("a.py")))
    (line,) = map(json.loads, said.read_text(encoding="utf-8").splitlines())
    said.write_text(json.dumps({key: value for key, value in line.items() if key != "messages"}), encoding="utf-8")
    tests = "def test_it(replayed):\n    assert_calls(ask(replayed('said.jsonl', in_order=True)), ['read_file'])\n"
    run(tests).assert_outcomes(passed=1)


def test_unused_plugin_imports_nothing():
    """Every run of pytest imports it, wherever the package is installed."""
    plugin = "adapter.integrations.pytest.plugin"
    code = f"import sys, pytest; had = {{*sys.modules}}; import {plugin}; print(*{{*sys.modules}} - had)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(loaded) == [
        *("adapter", "adapter.core", "adapter.core.version", "adapter.integrations", "adapter.integrations.pytest"),
        *("adapter.integrations.pytest.assertions", "adapter.integrations.pytest.plugin"),
    ]


PAGE = (Path(__file__).parents[3] / "docs" / "testing.md").read_text(encoding="utf-8")
OTHER = """

def test_another_port(replayed):
    ASK[0]["content"] = "Change the port to 7000"
    replayed("tests/answers.jsonl").chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS)

def test_other_calls(replayed):
    answer = replayed("tests/answers.jsonl", in_order=True).chat.completions.create(model="", messages=ASK, tools=TOOLS)
    assert_calls(answer, [("apply_edit", {"path": "settings.ini", "old_text": ANY, "new_text": "port = 7000"})])
"""


def test_documentation_page_examples_work(pytester, scripted):
    """Its test is recorded and replayed, and the shown failures are real."""
    (test,) = re.findall(r"<!-- test: \S+ -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    edit = {"path": "settings.ini", "old_text": "port = 8000", "new_text": "port = 9000"}
    said = json.dumps({"name": "apply_edit", "arguments": edit})
    scripted.on(CHAT, as_json(200, completion(f"<tool_call>\n{said}\n</tool_call>")))
    tools = [{"type": "function", "function": {"name": "apply_edit", "parameters": {"type": "object"}}}]
    pytester.makepyfile(my_agent=f"TOOLS = {tools}", test_agent=test + OTHER)
    ours = ("-p", "adapter.testing.plugin", "-p", "no:xdist")
    recorded = pytester.runpytest_inprocess(*ours, "--record-model", scripted.url, "-k", "port_is_edited")
    recorded.assert_outcomes(passed=1, deselected=2)
    result = pytester.runpytest_inprocess(*ours)
    result.assert_outcomes(passed=1, failed=2)
    shown = "\n".join(line.removeprefix("E       ") for line in result.outlines)
    for output in re.findall(r"<!-- output: [^>]* -->\n```\n(.*?)```", PAGE, re.DOTALL):
        assert output in shown
