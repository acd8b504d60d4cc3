"""`adapter eval` measures correctly, loses no results when it is stopped, and shows all of them."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapter.cli.eval_runner import run_eval
from adapter.cli.eval_settings import EvalSettings
from adapter.core.errors import TransportError, UsageError
from adapter.core.version import __version__
from adapter.evaluation.eval_report_page import render_eval_report
from adapter.evaluation.eval_scores import aggregate_runs, compute_wilson_interval, count_discordant_pairs
from adapter.evaluation.run_log import RunLog
from adapter.evaluation.scenario_runner import EvalRun
from adapter.evaluation.suite_loader import load_built_in, load_suite
from benchmarks.faulty_model import FaultyServer, model_name
from tests.command_line import adapter, started
from tests.live_upstream import LiveUpstream

SCENARIOS = load_built_in()
HOSTILE = '</pre></script><script>alert(1)</script><img src="http://evil.example/x">\x1b[2J\u202e'


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with FaultyServer(SCENARIOS) as server:
        yield server


def settings(server, **more):
    return EvalSettings(server.url, "qwen3-simulated", names=["one order", "tell somebody", "a flight"], **more)


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_perfect_model_completes_every_scenario(model, tmp_path, capsys):
    assert run_eval(settings(model, ways=["bare", "ours", "agent"])) == 0
    said = capsys.readouterr()
    assert "only ours: 0, only bare: 0" in said.out
    assert len(re.findall(r"100 % \(44-100\)", said.out)) == 3
    head, *runs = rows(tmp_path / "eval-qwen3-simulated.jsonl")
    assert head == {"eval": 1, "model": "qwen3-simulated", "temperature": 0.0, "max_tokens": 512, "seed": 1,
                    "constraint": "auto", "version": __version__}  # fmt: skip
    assert len(runs) == 9
    assert all(run["done"] and run["messages"][-1]["role"] == "assistant" for run in runs)
    assert {(run["way"], run["turns"], run["calls"]) for run in runs if run["scenario"] == "tell somebody"} == {
        (way, 3, 2) for way in ("bare", "ours", "agent")
    }
    assert all(run["prompt_tokens"] > 50 for run in runs)
    html = (tmp_path / "eval-qwen3-simulated.html").read_text()
    assert "3 of 3" in html
    assert "http" not in html.replace(model.url, "").replace("http-equiv", ""), "nothing is loaded from elsewhere"
    assert "default-src 'none'; style-src 'sha256-" in html


@pytest.mark.parametrize("way", ["ours", "agent"])
def test_guardrail_options_reach_ours_and_agent(model, tmp_path, way):
    asked = {}
    given: dict[str, dict[str, Any]] = {"on": {}, "off": {"guardrails": "off"}, "none": {"retries": 0}}
    for name, more in given.items():
        some = settings(model, ways=[way], results=tmp_path / f"{name}.jsonl", **more)
        erring = model_name(1.0, 1, 0, f"{way}_{name}", "announced")
        assert run_eval(replace(some, names=["one order"], model=erring)) == 0
        asked[name] = model.model.told[erring].requests
    assert asked["on"] > asked["off"] == asked["none"] == 1
    assert rows(tmp_path / "off.jsonl")[0]["guardrails"] == "off"
    assert rows(tmp_path / "none.jsonl")[0]["retries"] == 0
    with pytest.raises(UsageError, match="unknown guardrail 'of'"):
        run_eval(settings(model, guardrails="of"))


def test_recorded_runs_are_not_repeated(model, tmp_path, capsys):
    """The same command asks nothing; more runs or another way add to it; another sampling is refused."""
    assert run_eval(settings(model, ways=["bare"])) == 0
    model.model.told.clear()
    assert run_eval(settings(model, ways=["bare"], as_json=True)) == 0
    assert not model.model.told
    said = capsys.readouterr()
    assert "3 of 3 runs found in" in said.err
    assert json.loads(said.out[said.out.index("{") :])["ways"]["bare"]["done"] == 3
    assert run_eval(settings(model, ways=["bare", "ours"], runs=2)) == 0
    runs = rows(tmp_path / "eval-qwen3-simulated.jsonl")[1:]
    assert sorted({(run["way"], run["number"]) for run in runs}) == [
        ("bare", 0), ("bare", 1), ("ours", 0), ("ours", 1),
    ]  # fmt: skip
    assert len(runs) == 12
    with pytest.raises(UsageError, match=r"temperature 0\.0, which cannot be combined with 0\.7"):
        run_eval(settings(model, temperature=0.7))


@pytest.mark.parametrize(("how", "way"), [(signal.SIGINT, "bare"), (signal.SIGINT, "agent"), (signal.SIGKILL, "bare")])
def test_interrupted_evaluation_continues(model, tmp_path, how, way):
    """Ctrl-C gives the table and 130; after either, the rest is run and nothing twice."""
    model.first_s = 0.03
    words = ["eval", "--base-url", model.url, "--model", "qwen3-simulated", "--way", way, "--kind", "steps"]
    results = tmp_path / "eval-qwen3-simulated.jsonl"
    with started(*words) as run:
        until = time.monotonic() + 60
        while time.monotonic() < until and not (results.exists() and results.read_bytes().count(b"\n") > 2):
            time.sleep(0.01)
        assert run.process.pid is not None
        os.kill(run.process.pid, how)
        run.process.join(60)
        assert run.process.exitcode == (130 if how == signal.SIGINT else -signal.SIGKILL)
        if how == signal.SIGINT:
            assert "stopped by the user; run the same command again to continue" in run.stderr.read_text()
            assert (tmp_path / "eval-qwen3-simulated.html").exists()
    before = results.read_text().splitlines()
    assert 3 <= len(before) < 8
    model.first_s = 0.0
    done = adapter(*words)
    assert done.returncode == 0, done.stderr
    lines = results.read_text().splitlines()
    assert lines[: len(before)] == before
    assert len({row["scenario"] for row in map(json.loads, lines[1:])}) == len(lines) - 1 == 7
    assert "100 %" in done.stdout


def test_truncated_line_is_run_again(tmp_path):
    path = tmp_path / "r.jsonl"
    run = EvalRun("one order", "steps", "bare", 0)
    scenario = next(each for each in SCENARIOS if each.name == run.scenario)
    with RunLog(path, {"model": "m"}) as log:
        log.add(run, scenario)
        with pytest.raises(UsageError, match="in use by another evaluation"):
            RunLog(path, {"model": "m"})
    whole = path.read_bytes()
    for cut in range(len(whole) - 1, 0, -7):
        path.write_bytes(whole[:cut])
        with RunLog(path, {"model": "m"}) as log:
            assert log.get(scenario, "bare", 0) is None
            log.add(run, scenario)
        assert path.read_bytes() == whole, cut
    with RunLog(path, {"model": "m"}) as log:
        assert log.get(scenario, "bare", 0) == run
        assert log.get(replace(scenario, user="Another task"), "bare", 0) is None
    for text, said in [
        (b"notes of mine", "is not a run log"),
        (b"a\nb\n", "line 1, is not a valid evaluation run"),
        (whole + b"{}\n" + b"x", "line 3, is not a valid evaluation run"),
        (b'{"eval": 1, "model": "n"}\n', "model 'n'"),
    ]:
        path.write_bytes(text)
        with pytest.raises(UsageError, match=said):
            RunLog(path, {"model": "m"})
        assert path.read_bytes() == text


def test_time_limit_ends_the_evaluation(model, capsys):
    model.first_s = 0.2
    assert run_eval(settings(model, ways=["bare"], time_limit=0.5)) == 0
    assert "the time limit of 0.5 s was reached; run the same command again" in capsys.readouterr().err
    model.first_s = 0.0
    assert run_eval(settings(model, ways=["bare"])) == 0
    assert "3 of 3" in capsys.readouterr().err


def test_lost_server_keeps_earlier_runs(model, tmp_path, capsys):
    """The runs before are kept; without any it is an error."""
    with FaultyServer(SCENARIOS) as other:
        write, asked = other.model.write, []

        def last(body):
            asked.append(1)
            if len(asked) == 3:
                other._http.socket.close()
                raise ConnectionResetError
            return write(body)

        other.model.write = last  # type: ignore[method-assign]
        given = EvalSettings(other.url, "qwen3-simulated", ways=["bare"], names=["one order", "a flight", "two cities"])
        assert run_eval(given) == 0
    assert "the connection to the server was lost" in capsys.readouterr().err
    assert len(rows(tmp_path / "eval-qwen3-simulated.jsonl")) == 2
    with pytest.raises(TransportError):
        run_eval(replace(given, results=tmp_path / "new.jsonl"))


def test_server_without_tools_fails_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json

    with ScriptedServer() as server:
        server.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
        server.on(CHAT, as_json(400, {"error": {"message": "m does not support tools"}}))
        given = EvalSettings(server.url, "m", ways=["bare"], names=["one order"])
        assert run_eval(given) == 0
        (run,) = rows(tmp_path / "eval-m.jsonl")[1:]
        assert not run["done"]
        assert "does not support tools" in run["fault"]
        server.replies[CHAT].clear()
        server.on(CHAT, as_json(401, {"error": {"message": "no key"}}))
        with pytest.raises(TransportError, match="401"):
            run_eval(replace(given, results=tmp_path / "new.jsonl"))


def test_hostile_text_is_escaped(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def answer(_body):
        yield {"choices": [{"index": 0, "delta": {"content": HOSTILE}, "finish_reason": "stop"}]}

    with LiveUpstream(answer) as upstream:  # it streams whatever was asked for: no answer that a client could read
        name = json.dumps(HOSTILE.replace("\x1b", "").replace("\u202e", ""))
        (tmp_path / "s.toml").write_text(
            f"[[tool]]\nname = 'x'\n[[scenario]]\nname = {name}\nkind = '[bold]<b>'\nuser = 'u'\n"
            "tools = ['x']\nanswer = 'a'\nholds = ['b']\n"
        )
        assert run_eval(EvalSettings(upstream.url, "m", ways=["bare"], suite="s.toml")) == 0
    said = capsys.readouterr().out
    assert "[bold]<b>" in said
    assert "\x1b" not in said
    run = EvalRun("one order", "steps", HOSTILE, 0, HOSTILE, HOSTILE, messages=[
        {"role": HOSTILE, "content": HOSTILE}, {"role": "assistant", "content": [{"text": HOSTILE}]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": HOSTILE, "arguments": HOSTILE}}]},
        {"role": "tool", "content": "x" * 100_000},
    ])  # fmt: skip
    for html in (
        (tmp_path / "eval-m.html").read_text(),
        render_eval_report(HOSTILE, HOSTILE, {"seed": 1}, SCENARIOS, [run], [HOSTILE], HOSTILE),
    ):
        assert "<script" not in html
        assert "<img" not in html
        assert len(html) < 100_000
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", html)
    assert (tmp_path / "eval-m.html").stat().st_mode & 0o777 == 0o600


def test_invalid_settings_are_refused_at_the_start(model, tmp_path):
    given = EvalSettings(model.url, "m", ways=["bare"])
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ways": ("best",)}, "unknown --way 'best'; expected bare, ours, agent"),
        ({"also": ("x",)}, "expected NAME=URL"),
        ({"also": ("bare=http://127.0.0.1:1",)}, "with an unused name"),
        ({"kinds": ("magic",)}, "unknown scenario or kind 'magic'"),
        ({"names": ("magic",)}, "unknown scenario or kind 'magic'"),
        ({"suite": "nothing.toml"}, "cannot read nothing.toml"),
        ({"constraint": "much"}, "unknown constraint"),
        ({"ways": ("ours",), "profile": "nothing"}, "nothing"),
        ({"results": Path("/dev/null/x")}, "cannot write /dev/null/x"),
        ({"results": Path("same"), "page": Path("same")}, "name the same file, same"),
    ]
    for wrong, said in cases:
        with pytest.raises(UsageError, match=re.escape(said)):
            run_eval(replace(given, **wrong))
    assert [each.name for each in tmp_path.iterdir()] == []
    assert not model.model.told


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--runs", "0"], 2, "greater than or equal to 1"),
        (["--way", "best"], 2, "unknown --way 'best'"),
        (["--base-url", "http://127.0.0.1:9/v1"], 3, "nothing answers at"),
    ],
)
def test_eval_exit_codes(model, words, code, said):
    done = adapter("eval", "--base-url", model.url, "--model", "m", *words)
    assert done.returncode == code, done.stderr
    assert said in " ".join(done.stderr.replace("│", "").split())
    assert "Traceback" not in done.stderr


def test_eval_list_prints_the_scenarios(model):
    done = adapter("eval", "--list", "--kind", "stateful")
    assert done.returncode == 0, done.stderr
    assert re.search(r"stateful +swap two boxes +3 +6", done.stdout)
    assert len(done.stdout.splitlines()) == 7


def test_intervals_and_discordant_pairs():
    """Wilson's values as published (Newcombe 1998, tables I: 81 of 263, 0 of 20, 15 of 148)."""
    for (successes, tries), bounds in {
        (81, 263): (0.2553, 0.3662), (0, 20): (0.0, 0.1611), (15, 148): (0.0624, 0.1605), (0, 0): (0.0, 1.0),
    }.items():  # fmt: skip
        assert compute_wilson_interval(successes, tries) == pytest.approx(bounds, abs=5e-5)
    runs = [
        EvalRun("s", "k", way, number, "" if done else "no", turns=2)
        for way, dones in {"a": (1, 1, 0, 0), "b": (1, 0, 1, 1), "c": (1,)}.items()
        for number, done in enumerate(dones)
    ]
    assert count_discordant_pairs(runs, "a", "b") == (1, 2)
    assert count_discordant_pairs(runs, "a", "c") == (0, 0)
    assert (aggregate_runs(runs).done, aggregate_runs(runs).runs, aggregate_runs(runs).turns) == (6, 9, 2.0)
    assert aggregate_runs([]).share == 0.0


def test_failing_user_suite_is_reported(model, tmp_path):
    """A world or a check that raises: one message with the scenario, no traceback."""
    suite = (
        "from adapter.evaluation.scenario import ExpectedCall, Scenario, tool\n"
        "class World:\n    def look(self): return {}[1]\n"
        "def solve():\n    yield [ExpectedCall('look')]\n    return 'x'\n"
        "def check(world, made, answer): return answer[99]\n"
        "SCENARIOS = [Scenario('s', 'k', 'Look.', [tool('look')], World, solve, check)]\n"
    )
    (tmp_path / "world.py").write_text(suite)
    (tmp_path / "check.py").write_text(suite.replace("{}[1]", "'nothing'"))
    for file, said in (
        ("world.py", "the world of 's' failed at look({}) with KeyError: 1"),
        ("check.py", "the check of 's'"),
    ):
        with FaultyServer(load_suite(str(tmp_path / "check.py"))) as other:
            done = adapter(
                "eval", "--base-url", other.url, "--suite", file, "--way", "bare", "--results", f"{file}.jsonl"
            )
        assert done.returncode == 2, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr
