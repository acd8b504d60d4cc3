"""Tasks of other benchmarks, in a confined process, and the loops that run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from openai import OpenAI

from adapter.evaluation.scenario_runner import SdkHarness
from adapter.workspace.sandbox import landlock
from benchmarks.faulty_model import FaultyServer
from benchmarks.other_programs import confined
from benchmarks.other_suites import Suite, row

SUITE = """
import json, sys

def send(value):
    print(json.dumps(value), flush=True)

schema = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
tools = [{"type": "function", "function": {"name": "look_up", "description": "", "parameters": schema}}]
steps = [[{"name": "look_up", "arguments": {"key": "a"}}]]
send([{"name": n, "kind": "k", "system": "s", "user": f"Look up {n}", "tools": tools, "steps": steps, "answer": n}
      for n in ("one", "two")])
for line in sys.stdin:
    message = json.loads(line)
    if "start" in message:
        calls = []
    elif "call" in message:
        calls.append((message["call"]["name"], message["call"]["arguments"], message["turn"]))
        send({"result": "error: no such key" if calls[1:] else "found", "ok": not calls[1:]})
    else:
        right = calls == [("look_up", {"key": "a"}, 1)] and message == {"answer": "one", "refused": 0}
        send({"fault": "" if right else "wrong"})
"""


def test_suite_is_run_and_judged_by_its_own_process():
    """Its tools get the calls with the number of the answer, and its check gets the final answer."""
    command = [sys.executable, "-c", SUITE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        suite = Suite(process)
        scenarios = suite.scenarios()
        with FaultyServer(scenarios) as server, OpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
            harness = SdkHarness("direct", client, "m")
            runs = [harness.run(scenario, 0, suite.next_turn) for scenario in scenarios]
        process.kill()
    assert [run.fault for run in runs] == ["", "wrong"]
    assert row("direct", runs, ["k"])[:3] == ["direct", "1/2", "1/2"]


@pytest.mark.skipif(not landlock.get_abi(), reason="needs Landlock")
def test_program_is_confined(tmp_path):
    """It reads and writes only its folder, without network and our environment."""
    outside = tmp_path / "outside"
    outside.write_text("secret")
    code = f"""
import json, os, socket
for attempt in (
    lambda: open({str(outside)!r}).read(),
    lambda: open({str(outside)!r}, "w"),
    lambda: socket.create_connection(("127.0.0.1", 9), 1),
):
    try:
        attempt()
        print("allowed")
    except PermissionError:
        print("refused")
open("inside", "w").write("x")
print(json.dumps(list(os.environ)))
"""
    work = tmp_path / "work"
    work.mkdir()
    readable = [Path(sys.prefix), Path(sys.base_prefix)]
    with confined([sys.executable, "-c", code], work, readable) as process:
        lines, _ = process.communicate(timeout=60)
    *attempts, environment = lines.splitlines()
    assert attempts == ["refused", "refused", "refused"]
    assert not {"HOME", "LANG", "PATH", "TMPDIR"} ^ (set(json.loads(environment)) - {"LC_CTYPE"})
    assert (work / "inside").read_text() == "x"
