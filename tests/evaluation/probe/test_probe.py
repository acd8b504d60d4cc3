"""A probe finds a model's best setup on a server, despite failures."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter.backends.chat_client import ChatClient, Usage
from adapter.backends.endpoint_discovery import Endpoint
from adapter.backends.model_queries import Model
from adapter.backends.probe_profiles import load_profile
from adapter.cli.probe_runner import run_probe
from adapter.cli.probe_settings import ProbeSettings
from adapter.core.errors import TransportError, UsageError
from adapter.evaluation.probe.probe_report_page import render_probe_report
from adapter.evaluation.probe.probe_task_runner import TaskOutcome, TaskRunner
from adapter.evaluation.probe.successive_halving import (
    NATIVE,
    STOPPED,
    Probe,
    SetupTrial,
    find_largest_fitting_rung,
    list_candidates,
    probe_model,
)
from adapter.evaluation.probe.tasks import TASKS, TOOL_SETS, TOOLS, ProbeCall, ProbeTask, is_valid
from adapter.parsing.formats import get_format
from adapter.prompting.calling_setup import CallingSetup
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.recorded_exchange import read_exchanges
from adapter.protocols.translation_options import TranslationOptions
from adapter.recording.view.view_page_data import build_exchanges_view
from tests.browser import chromium, prefer
from tests.live_upstream import LiveUpstream
from tests.scripted_server import delta

HERMES = get_format("hermes")
ASKED = {str(task.messages[0]["content"]): task for task in TASKS}
COMPACT = CallingSetup("hermes", "compact")
FREE = [NATIVE, CallingSetup("hermes", "trained"), COMPACT, CallingSetup("hermes", "small")]


def task_of(body: Any) -> Any:
    """The task that a request is about."""
    text = json.dumps(body["messages"], ensure_ascii=False)
    return next(task for asked, task in ASKED.items() if json.dumps(asked, ensure_ascii=False)[1:-1] in text)


def right_calls(task: Any) -> list[tuple[str, Any]]:
    return [
        (call.name, json.loads(json.dumps(call.arguments), object_hook=lambda value: value.get("one_of", [value])[0]))
        for call in task.expected
    ]


def needless(body: Any) -> tuple[str, Any]:
    """A call that was not requested."""
    made = {"find_order": {"order_number": 1}, "switch_light": {"room": "x", "on": True}}
    tool = task_of(body).tools[0]["function"]["name"]
    return tool, made.get(tool, {"city": "Rome"})


def clever(body: Any) -> Iterator[dict[str, Any]]:
    """A model that calls rightly when its prompt is the compact one, and else only talks."""
    calls = right_calls(task_of(body))
    knows = "Tools (arguments are strings" in json.dumps(body["messages"][0])
    yield delta(HERMES.encode_calls(calls) if knows and calls else "Well.")
    yield {**delta(finish_reason="stop"), "usage": {"prompt_tokens": 100, "completion_tokens": 10}}


def native(body: Any) -> Iterator[dict[str, Any]]:
    """A server that parses calls in pieces, and leaves one of them in the text."""
    task = task_of(body)
    if "tools" not in body:
        yield delta("Well.", "stop")
    elif task.name == "one call":
        yield delta(HERMES.encode_calls(right_calls(task)), "stop")
    else:
        for index, (name, arguments) in enumerate(right_calls(task)):
            text = json.dumps(arguments)
            yield delta(
                tool_calls=[
                    {"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": ""}}
                ]
            )
            for start in range(0, len(text), 7):
                yield delta(tool_calls=[{"index": index, "function": {"arguments": text[start : start + 7]}}])
        yield delta(None if task.expected else "Well.", "tool_calls" if task.expected else "stop")


def no_tools(body: Any) -> Iterator[dict[str, Any]]:
    if "tools" in body:
        yield {"error": {"message": "m does not support tools", "type": "api_error", "code": 400}}
    else:
        yield from clever(body)


def tried(answer: Any, setups: Any = tuple(FREE), **options: Any) -> Probe:
    with LiveUpstream(answer) as upstream, ChatClient(Endpoint(f"{upstream.url}/v1"), "m", patience_s=1) as client:
        return probe_model(TaskRunner(client), setups, **options)


def test_probe_finds_the_prompt_that_works():
    found = tried(clever)
    assert found.best is not None
    assert found.best.setup == COMPACT
    assert (found.best.score.right, found.best.score.tasks) == (24, 24)
    assert found.before.score.tasks == 24
    assert found.before.score.right == sum(not task.expected for task in TASKS)
    assert not found.ended
    assert found.best.score.prompt_tokens == 2400


def test_weaker_setups_get_fewer_tasks():
    """After two tasks each, only the best continue, which takes less than half of all tasks."""
    setups = list_candidates("hermes", can_constrain=True)
    found = tried(clever, setups)
    counts = [trial.score.tasks for trial in found.trials]
    assert min(counts) == 2
    assert max(counts) == 24
    assert sum(counts) < len(setups) * len(TASKS) * 0.5


def test_slow_machine_gets_fewer_tasks_for_all_setups():

    def trial(tasks: int, seconds: float) -> SetupTrial:
        return SetupTrial(COMPACT, [TaskOutcome(TASKS[0], True, True, "", Usage(0), seconds)] * tasks)

    assert find_largest_fitting_rung(4, [trial(0, 0)] * 3, share_s=1) == 4, "nothing is known yet"
    assert find_largest_fitting_rung(8, [trial(2, 5)] * 3, share_s=1000) == 8
    assert find_largest_fitting_rung(8, [trial(2, 5)] * 3, share_s=31) == 4
    assert find_largest_fitting_rung(8, [trial(2, 5)] * 3, share_s=-1) == 2


def test_native_calling_wins_if_it_is_best():
    """The server's calls and the one that it left in the text are all read."""
    found = tried(native)
    assert found.best is not None
    assert found.best.setup == NATIVE
    assert found.best.score.right == 24, [each.answer for each in found.best.outcomes if not each.right]


def test_server_that_refuses_tools_is_probed():
    found = tried(no_tools)
    assert "does not support tools" in found.before.refusal
    assert found.best is not None
    assert found.best.setup == COMPACT


def test_failing_server_gives_partial_results():
    asked = 0

    def dying(body: Any) -> Iterator[dict[str, Any]]:
        nonlocal asked
        asked += 1
        yield from clever(body) if asked <= 18 else [{"error": {"message": "out of memory", "code": 500}}]

    found = tried(dying)
    assert "out of memory" in found.ended
    assert found.best is not None
    assert found.best.setup == COMPACT


def test_setup_that_always_calls_ranks_lower():
    calling, able = CallingSetup("hermes", "small"), COMPACT

    def model(body: Any) -> Iterator[dict[str, Any]]:
        calls = right_calls(task_of(body)) or [needless(body)]
        if "Answer with one tool call." in json.dumps(body["messages"][0]):
            yield delta(HERMES.encode_calls(calls), "stop")
        else:
            yield delta(HERMES.encode_calls(calls) if task_of(body).name == "one call" else "Well.", "stop")

    found = tried(model, [NATIVE, calling, able], rungs=((len(TASKS), 2),))
    assert [trial.score.right for trial in found.trials[1:]] == [16, 9]
    assert found.best is not None
    assert found.best.setup == able


def test_setup_with_wrong_calls_ranks_above_one_without_calls():
    """After two tasks the one that talks has a right answer and the other none, and yet only that can become good."""
    talks, calls = COMPACT, CallingSetup("hermes", "small")

    def model(body: Any) -> Iterator[dict[str, Any]]:
        task = task_of(body)
        made = right_calls(task) if task.name != "one call" else [("read_file", {"path": "setup.md"})]
        is_calling = "Answer with one tool call." in json.dumps(body["messages"][0])
        made = made or [needless(body)] if is_calling else []
        yield delta(HERMES.encode_calls(made) if made else "Well.", "stop")

    found = tried(model, [NATIVE, talks, calls], rungs=((2, 1), (4, 1)))
    assert [trial.score.tasks for trial in found.trials[1:]] == [2, 4]
    assert found.best is not None
    assert found.best.setup == calls


def test_model_without_calls_has_no_best_setup():
    found = tried(lambda _: iter([delta("Well.", "stop")]))
    assert found.before.score.right > 0
    assert found.best is None


def test_interrupted_probe_gives_partial_results():
    """Ctrl-C, or the end of the time: the tasks that were done are kept."""

    def stop(_: SetupTrial, done: int, __: int) -> None:
        if done == 10:
            raise KeyboardInterrupt

    found = tried(clever, observe=stop)
    assert found.ended == STOPPED
    assert sum(trial.score.tasks for trial in found.trials) == 10
    assert "time limit" in tried(clever, time_limit_s=0).ended


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_task_accepts_only_its_expected_calls(task):
    calls = [ProbeCall(name, arguments) for name, arguments in right_calls(task)]
    content = "" if calls else "Well."
    assert all(is_valid(call, task.tools) for call in calls)
    assert task.is_right(calls, content)
    assert not task.is_right([*calls, ProbeCall("get_weather", {"city": "Rome"})], content)
    assert not task.is_right(calls[1:], "" if calls else "  ")


def test_tasks_cover_all_kinds_of_calls():
    """One call, no call, nested values, edits, several calls, results; several sets of tools."""
    assert len({task.name for task in TASKS}) == len(TASKS) == 24
    assert sum(not task.expected for task in TASKS) == 8
    assert any(len(task.expected) > 1 for task in TASKS)
    assert sum(len(task.messages) > 1 for task in TASKS) == 3
    called = {call.name for task in TASKS for call in task.expected}
    assert {tool["function"]["name"] for tool in TOOLS} <= called
    for tools in TOOL_SETS:  # calls and none with each of them
        assert {bool(task.expected) for task in TASKS if tuple(task.tools) == tuple(tools)} == {True, False}


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "toolcall-adapter" / "profiles"


def test_probe_writes_a_profile_and_a_page(config, capsys):
    with LiveUpstream(clever) as upstream:
        assert run_probe(ProbeSettings(upstream.url, "m:1b", "hermes")) == 0
    message = capsys.readouterr()
    profile = load_profile(config / "m_1b.toml")
    assert profile.setup == COMPACT
    assert (profile.after.right, profile.before.right, profile.after.needless) == (24, 8, 0)
    assert "24 of 24 correct; the server alone: 8" in message.err
    assert "hermes, compact, off *" in message.out
    options = TranslationOptions(setup_of=lambda _: profile.setup)
    request = translate_chat_request(
        {"model": "x", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}, options
    )
    assert "Tools (arguments are strings" in request.body["messages"][0]["content"]
    html = (config / "m_1b.html").read_text(encoding="utf-8")
    assert "http" not in html.replace(upstream.url, "").replace("http-equiv", ""), "nothing is loaded from elsewhere"
    assert "default-src 'none'; style-src 'sha256-" in html


def test_probe_records_its_answers(config, tmp_path):
    file = tmp_path / "said.jsonl"
    with LiveUpstream(clever) as upstream:
        assert run_probe(ProbeSettings(upstream.url, "m:1b", "hermes", record=file)) == 0
    exchanges = read_exchanges(file.read_text(encoding="utf-8"), "said.jsonl")
    conversations = {each.conversation for each in exchanges}
    assert {f"{COMPACT.name}: {task.name}" for task in TASKS} <= conversations
    assert {each.model for each in exchanges} == {"m:1b"}
    shown = build_exchanges_view(exchanges, "said.jsonl").data["exchanges"]
    named = [each for each in shown if dict(each["about"])["conversation"].startswith(f"{COMPACT.name}: ")]
    assert sum("calls" in each["marks"] for each in named) == sum(bool(task.expected) for task in TASKS)


def test_ctrl_c_writes_partial_results(config):
    """A process of its own, stopped after its third setup: exit code 130, the profile and the page are there."""

    def slow(body: Any) -> Iterator[dict[str, Any]]:
        time.sleep(0.02)
        yield from clever(body)

    with LiveUpstream(slow) as upstream:
        command = [sys.executable, "-m", "adapter", "probe", "--base-url", upstream.url, "--model", "m"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("hermes, compact, off: 4 of 4 correct ("):
                    break
            process.send_signal(signal.SIGINT)
            _, rest = process.communicate(timeout=60)
    assert process.returncode == 130, rest
    assert "stopped by the user" in rest
    assert load_profile(config / "m.toml").setup == COMPACT
    assert not load_profile(config / "m.toml").is_whole
    assert (config / "m.html").exists()


def test_ctrl_c_before_the_first_answer_is_no_fault_of_the_server(config, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(TaskRunner, "run", stop)
    with LiveUpstream(clever) as upstream, pytest.raises(KeyboardInterrupt):
        run_probe(ProbeSettings(upstream.url, "m", "hermes"))


def test_probe_output_is_escaped(config, capsys, monkeypatch):
    """A server's message may contain control characters."""

    run = TaskRunner.run

    def refuse(self: TaskRunner, task: ProbeTask, setup: CallingSetup) -> TaskOutcome:
        if setup.native:
            return run(self, task, setup)
        raise TransportError("\x1b[2J bad")

    monkeypatch.setattr(TaskRunner, "run", refuse)
    with LiveUpstream(clever) as upstream:
        run_probe(ProbeSettings(upstream.url, "m", "hermes"))
    shown = "".join(capsys.readouterr())
    assert r"\x1b[2J bad" in shown
    assert "\x1b" not in shown


def test_probe_refuses_a_folder_as_output_at_once(config, tmp_path, monkeypatch):
    monkeypatch.setattr(TaskRunner, "run", None)
    with LiveUpstream(clever) as upstream:
        for option in ("output", "page", "share"):
            with pytest.raises(UsageError, match=f"--{option} is the folder"):
                run_probe(ProbeSettings(upstream.url, "m", "hermes", **{option: tmp_path}))
        with pytest.raises(UsageError, match="--output is the folder"):
            run_probe(ProbeSettings(upstream.url, "m", "hermes", output=Path()))


def test_probe_without_a_correct_call_writes_no_profile(config, tmp_path, capsys):
    with LiveUpstream(lambda _: iter([delta("<script>alert(1)</script>", "stop")])) as upstream:
        settings = ProbeSettings(upstream.url, "m", page=tmp_path / "p.html", as_json=True)
        assert run_probe(settings) == 1
    assert not config.exists()
    message = json.loads(capsys.readouterr().out)
    assert message["profile"] is None
    assert {row["right"] for row in message["setups"]} <= {*range(1, 9)}
    assert "<script>" not in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_real_engine_is_probed(random_engine):
    held = CallingSetup("hermes", "small", "required")
    with ChatClient(random_engine.endpoint) as client:
        found = probe_model(TaskRunner(client, max_tokens=2500), [NATIVE, held], tasks=TASKS[:2], rungs=((2, 2),))
    native, required = found.trials
    assert len(native.outcomes) == 2 or native.refusal
    assert [outcome.valid for outcome in required.outcomes] == [True, True], [each.answer for each in required.outcomes]
    assert all(outcome.usage.prompt > 0 for outcome in required.outcomes)


@pytest.mark.clients
def test_probe_page_in_a_browser(tmp_path):
    found = tried(clever)
    file = tmp_path / "page.html"
    file.write_text(render_probe_report(Model(name="m <b>", base_url="u"), None, found), encoding="utf-8")
    with chromium(tmp_path) as chrome:
        chrome.get(file.as_uri())
        assert chrome.title == "Tool-calling setups for m <b>"
        assert chrome.find_element("css selector", "tr.best th").text == "hermes, compact, off (best)"
        plot = chrome.find_element("css selector", "svg[role=img]")
        assert "hermes, compact, off: 24 correct" in (
            plot.accessible_name + plot.find_element("tag name", "desc").get_attribute("textContent")
        )
        bar = chrome.find_element("css selector", "svg rect.right")
        assert bar.size["width"] > 100
        chrome.find_element("css selector", "details summary").click()
        assert chrome.find_element("css selector", "details pre").is_displayed()
        light = chrome.execute_script("return getComputedStyle(document.body).backgroundColor")
        prefer(chrome, "dark")
        assert chrome.execute_script("return getComputedStyle(document.body).backgroundColor") != light
        chrome.set_window_size(500, 800)
        assert chrome.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert chrome.get_log("browser") == []


def test_profile_is_plain_toml(config):
    with LiveUpstream(clever) as upstream:
        run_probe(ProbeSettings(upstream.url, "m", "hermes", output=Path(config) / "mine.toml"))
    profile = tomllib.loads((config / "mine.toml").read_text(encoding="utf-8"))
    use = {"format": "hermes", "style": "compact", "constraint": "off", "native": False, "own": False}
    assert profile["use"] == use
    assert profile["model"]["name"] == "m"


def test_setup_with_unneeded_calls_is_not_chosen():
    """Most tasks want a call; on other sets of tools most turns may want none."""
    calls, talks = CallingSetup("hermes", "small"), COMPACT
    calling = {task.name for task in TASKS if task.expected}

    def model(body: Any) -> Iterator[dict[str, Any]]:
        task = task_of(body)
        if "Answer with one tool call." in json.dumps(body["messages"][0]):
            made = [needless(body)] if not task.expected and task.name != "no call: a greeting" else right_calls(task)
        else:
            made = right_calls(task) if task.name in sorted(calling)[:12] else []
        yield delta(HERMES.encode_calls(made) if made else "Well.", "stop")

    found = tried(model, [NATIVE, calls, talks], rungs=((len(TASKS), 2),))
    scores = {trial.setup: trial.score for trial in found.trials}
    assert (scores[calls].needless, scores[talks].needless) == (7, 0)
    assert scores[calls].right == 17
    assert found.best is not None
    assert found.best.setup == talks


def test_probe_reports_refused_setups(config, capsys):
    """They are not dropped in silence."""
    with LiveUpstream(no_tools) as upstream:
        assert run_probe(ProbeSettings(upstream.url, "m", "hermes")) == 0
    message = capsys.readouterr().err
    assert "refused: server's own: " in message
    assert "does not support tools" in message
