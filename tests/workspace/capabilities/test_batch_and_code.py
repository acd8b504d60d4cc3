"""Several calls in one batch, and calls from sandboxed Python: real files, real commands, every limit."""

from __future__ import annotations

import threading
import time

import pytest

from adapter.tools.function_tools import tool
from adapter.tools.operations.permissions import PermissionRule
from adapter.tools.tool import Tool
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from tests.hosted_dialect import HOSTED


@pytest.fixture
def workspace(directory, tmp_path):
    with Workspace(directory, HOSTED, "yolo", host=Host(state=str(tmp_path / "state"))) as workspace:
        yield workspace


def batch(workspace, *calls):
    return workspace.run("batch", {"tool_calls": [{"tool": name, "parameters": given} for name, given in calls]})


def meeting_tool() -> Tool:
    """Return a tool whose calls wait for each other: three must run at the same time."""
    together = threading.Barrier(3, timeout=100)

    @tool(effect="read")
    def meet(n: int) -> int:
        """Meet."""
        together.wait()
        return n

    return meet


# --------------------------------------------------------------------------- batch


def test_calls_run_in_parallel(tmp_path):
    """C189: three calls wait for each other, so running them in turn would never end."""
    with Workspace(tmp_path, HOSTED, tools=[meeting_tool()]) as workspace:
        assert batch(workspace, *(("meet", {"n": n}) for n in (3, 1, 2))).content == "3\n1\n2"


def test_writes_to_one_file_run_in_order(workspace, directory):
    """Twenty edits of one file, each of the line that the previous one wrote."""
    (directory / "a").write_text("0\n")
    edits = [("edit_file", {"path": "a", "old_content": str(n), "new_content": str(n + 1)}) for n in range(20)]
    assert batch(workspace, *edits).data == [True] * 20
    assert (directory / "a").read_text() == "20\n"


def test_batch_accepts_1_to_25_calls(workspace, directory):
    """C188: each surplus call is reported. An empty batch is an error."""
    (directory / "a").write_text("x")
    result = batch(workspace, *[("read_file", {"path": "a"})] * 27)
    assert result.data == [True] * 25 + [False] * 2
    assert "read_file was not run: a batch has at most 25 calls" in result.content
    assert "the batch is empty; give 1 to 25" in batch(workspace).content


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("batch", {"tool_calls": []}), ("code_execution", {"code": "1"}), ("exit", {})],
)
def test_batch_refuses_tools_that_must_be_separate(workspace, name, arguments):
    """Nested batches, also through code, and the end of the run."""
    result = batch(workspace, (name, arguments))
    assert result.data == [False]
    assert f"{name} cannot be part of a batch" in result.content


def test_approvals_are_asked_one_at_a_time(directory):
    """Each question is for one call."""
    at_once, most = [0], [0]

    def approve(approval):
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        time.sleep(0.02)
        at_once[0] -= 1
        return approval.paths != ("c",)

    with Workspace(directory, HOSTED, approve) as workspace:
        calls = [("run_command", {"command": f"echo {n}", "cwd": "."}) for n in "12"]
        calls += [("write_file", {"path": path, "content": path}) for path in "abcd"]
        result = batch(workspace, *calls)
    assert most == [1]
    assert result.data == [True, True, True, True, False, True]
    assert sorted(path.name for path in directory.iterdir()) == ["a", "b", "d"]


def test_nested_results_are_emitted_with_diffs(directory):
    seen: list[object] = []
    with Workspace(directory, HOSTED, "yolo", host=Host(events=seen.append)) as workspace:
        result = batch(workspace, ("write_file", {"path": "a", "content": "x\n"}))
    assert [event.name for event in seen] == ["write_file"]  # type: ignore[attr-defined]
    assert "+x" in result.diff


# ---------------------------------------------------------------------------- code


def code(workspace, text, **more):
    return workspace.run("code_execution", {"code": text, **more})


def test_code_returns_output_and_value(workspace, directory):
    """With keywords, positional arguments, or one dict. Results are text."""
    (directory / "a").write_text("one\ntwo\n")
    result = code(
        workspace,
        "text = await read_file(path='a')\n"
        "again = await read_file('a')\n"
        "third = await read_file({'path': 'a'})\n"
        "print(text == again == third)\n"
        "await write_file(path='b', content=text.upper())\n"
        "len(text.split())",
    )
    assert result.content == "True\nreturn: 2"
    assert (directory / "b").read_text() == "ONE\nTWO\n"


def test_calls_in_code_run_in_parallel(tmp_path):
    """`asyncio.gather` over calls that wait for each other."""
    with Workspace(tmp_path, HOSTED, tools=[meeting_tool()]) as workspace:
        text = "import asyncio\nawait asyncio.gather(meet(1), meet(2), meet(3))"
        assert code(workspace, text).content == 'return: ["1", "2", "3"]'


def test_failing_call_raises_in_code(workspace):
    text = "try:\n    await read_file(path='none')\nexcept RuntimeError as error:\n    print(error)"
    assert "none does not exist" in code(workspace, text).content
    result = code(workspace, "print('so far')\nawait read_file(path='none')")
    assert not result.ok
    assert "none does not exist" in result.content
    assert "so far" in result.content


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 +", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("open('/etc/passwd').read()", "Error"),
        ("import socket", "Error"),
        ("import subprocess", "Error"),
        ("__import__('os').system('true')", "Error"),
        ("def f(n): return n and f(n - 1)\nf(150)", "RecursionError"),
        ("x = 'x' * 200_000_000", "MemoryError"),
        ("x = [0]\nwhile True:\n    x = x + x", "MemoryError"),
        ("nope()", "NameError"),
        ("'\ud800'", "not valid UTF-8"),
        ("print('done')\n{(1, 2): 3}", "its value cannot be written as JSON"),
        ("print('done')\n10**5000", "its value cannot be written as JSON"),
        ("await read_file('a', limit=10**5000)", "ValueError"),
        ("await read_file({(1, 2): 3})", "keys must be str"),
        ("await read_file({1: 2})", "read_file: "),
        ("await read_file(path=b'a')", "not JSON serializable"),
        ("await batch(tool_calls=[])", "batch cannot be called from code"),
        ("await code_execution(code='1')", "code_execution cannot be called from code"),
        ("await exit()", "exit cannot be called from code"),
        ("await read_file('a', 'b')", "read_file takes 1 arguments"),
        ("for _ in range(600):\n    await list_directory()", "Error"),
        ("while True:\n    print('x' * 10_000)", "printed more than 1,000,000"),
    ],
)
def test_failing_code_is_explained(workspace, text, said):
    """C191: no file, no network, no process, and limits on memory, depth, output and calls."""
    result = code(workspace, text, timeout=20)
    assert not result.ok
    assert said in result.content
    assert len(result.content) < 60_000


@pytest.mark.parametrize(
    "text",
    [
        "while True:\n    pass",
        "await run_command(command='sleep 600', cwd='.')",
        "import asyncio\nawait asyncio.sleep(600)",
    ],
)
def test_code_is_stopped_at_its_timeout(workspace, text):
    """C193: computing, waiting for a command, sleeping: the command is stopped with it."""
    result = code(workspace, text, timeout=1)
    assert not result.ok or "timed out" in result.content


def test_timeout_is_reduced_to_maximum(workspace):
    """D17: to 300 s, with a note."""
    assert code(workspace, "1", timeout=301).notes == ("the timeout was reduced to 300 s",)
    assert code(workspace, "1", timeout=300).notes == ()
    assert "the timeout must be more than 0" in code(workspace, "1", timeout=0).content


def test_approvals_in_code_pause_its_deadline(directory):
    """The session's modes and rules apply. Waiting for the user does not count."""

    timeout = 2

    def approve(approval):
        time.sleep(timeout + 0.2)
        return True

    with Workspace(directory, HOSTED, approve, rules=[PermissionRule.from_text("deny write_file(b)")]) as workspace:
        if not code(workspace, "await write_file(path='a', content='x')", timeout=timeout).ok:
            timeout = 20  # a busy machine
            assert code(workspace, "await write_file(path='a', content='x')", timeout=timeout).ok
        assert "forbids it" in code(workspace, "await write_file(path='b', content='x')").content
    with Workspace(directory, HOSTED) as workspace:
        assert "no approver is available" in code(workspace, "await write_file(path='c', content='x')").content
    assert [path.name for path in directory.iterdir()] == ["a"]


def test_code_runs_inside_a_running_event_loop(workspace):
    import asyncio

    async def main():
        return code(workspace, "1 + 1").content

    assert asyncio.run(main()) == "return: 2"
