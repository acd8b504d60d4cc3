"""Run the tasks of another benchmark for `benchmarks.other_suites`, in an environment with only that benchmark.

    python suite_runner.py toolcallbench | tool-eval-bench | forge

The first line of the output is a JSON list of the tasks. Then the program answers lines of JSON: ``{"start": NAME}``
begins a task, ``{"call": {...}, "turn": 1}`` is answered with ``{"result": "...", "ok": true}``, and ``{"answer":
"...", "refused": 0}`` with ``{"fault": ""}``, the verdict of the benchmark's own check. It needs no network.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Protocol


class Suite(Protocol):
    def tasks(self) -> list[dict[str, Any]]: ...

    def start(self, name: str) -> None: ...

    def call(self, name: str, arguments: dict[str, Any], turn: int) -> tuple[str, bool]: ...

    def end(self, answer: str, refused: int) -> str:
        """Return the fault of the run, "" if it succeeded. ``refused``: number of calls with wrong names or arguments,
        which were not passed on."""
        ...


class ToolCallBench:
    """Its tools work in a copy of its repository. The reference solutions are the steps of a scripted model."""

    MAX_CALLS = 12

    def __init__(self) -> None:
        from toolcallbench import config, models, tasks

        self._data = config.data_dir()
        self._tasks = {task.id: task for task in tasks.load_tasks(self._data / "tasks")}
        self._new_transcript = models.Transcript

    def tasks(self) -> list[dict[str, Any]]:
        from toolcallbench import runner

        return [
            {
                "name": task.id, "kind": task.group, "system": runner.SYSTEM_PROMPT, "user": task.prompt.strip(),
                "tools": runner.TOOL_SPECS,
                "steps": [
                    [{"name": call["tool"], "arguments": call.get("args", {})} for call in step["calls"]]
                    for step in task.reference if "calls" in step
                ],
                "answer": next((step["final"] for step in task.reference if "final" in step), "Done."),
            }
            for task in self._tasks.values()
        ]  # fmt: skip

    def start(self, name: str) -> None:
        from toolcallbench.tools import ToolExecutor

        self._task, self._transcript = self._tasks[name], self._new_transcript()
        self._folder = tempfile.TemporaryDirectory()
        self._root = Path(self._folder.name, "repo")
        shutil.copytree(self._data / "fixtures" / "repo", self._root)
        self._executor = ToolExecutor(self._root)

    def call(self, name: str, arguments: dict[str, Any], turn: int) -> tuple[str, bool]:
        from toolcallbench import models, runner

        calls = self._transcript.calls
        calls.append(runner._execute(models.RawToolCall(name, arguments), turn, len(calls) + 1, self._executor))
        return calls[-1].result, calls[-1].ok

    def end(self, answer: str, refused: int) -> str:
        from toolcallbench import checks, models, runner

        transcript = self._transcript
        for _ in range(refused):
            index = len(transcript.calls) + 1
            transcript.calls.append(models.CallRecord(index, index, "", {}, False, False, "invalid_args", ""))
        transcript.final_text, transcript.hit_limit = answer, len(transcript.calls) > self.MAX_CALLS
        transcript.text_tool_call = bool(runner.TEXT_CALL_RE.search(answer))
        result = checks.evaluate(self._task, transcript, self._root, self._data / "fixtures" / "repo")
        self._folder.cleanup()
        return "" if result.passed else str(result.failure_type)


class ToolEvalBench:
    """Its standard scenarios with one user message, tools, and nothing else in the request. Its tools are mocks."""

    def __init__(self) -> None:
        from tool_eval_bench.domain.tools import UNIVERSAL_TOOLS
        from tool_eval_bench.evals.scenarios import ALL_SCENARIOS

        self._usual = UNIVERSAL_TOOLS
        self._scenarios = {each.id: each for each in ALL_SCENARIOS if self._fits(each)}

    @staticmethod
    def _fits(scenario: Any) -> bool:
        further = (
            scenario.follow_up_messages, scenario.tool_choice_override, scenario.response_format_override,
            scenario.tool_choice_after_first_call,
        )  # fmt: skip
        return not any(further) and scenario.tools_override != []

    def tasks(self) -> list[dict[str, Any]]:
        from tool_eval_bench.runner.orchestrator import _initial_messages

        return [
            {
                "name": each.id, "kind": each.category.name, "user": each.user_message,
                "system": _initial_messages(each.user_message)[0]["content"],
                "tools": self._usual if each.tools_override is None else each.tools_override,
            }
            for each in self._scenarios.values()
        ]  # fmt: skip

    def start(self, name: str) -> None:
        from tool_eval_bench.domain import scenarios, tools

        self._scenario, self._state = self._scenarios[name], scenarios.ScenarioState()
        self._state.meta["reference_date"] = tools.BENCHMARK_REFERENCE_DATE
        self._state.meta["reference_day"] = tools.BENCHMARK_REFERENCE_DAY

    def call(self, name: str, arguments: dict[str, Any], turn: int) -> tuple[str, bool]:
        from tool_eval_bench.domain.scenarios import ToolCallRecord, ToolResultRecord

        id = f"call_{len(self._state.tool_calls)}"
        record = ToolCallRecord(id, name, json.dumps(arguments), arguments, turn)
        self._state.tool_calls.append(record)
        result = self._scenario.handle_tool_call(self._state, record)
        self._state.tool_results.append(ToolResultRecord(id, name, result))
        return result if isinstance(result, str) else json.dumps(result), True

    def end(self, answer: str, refused: int) -> str:  # noqa: ARG002
        self._state.final_answer = answer
        self._state.assistant_messages.append(answer)
        if not answer.strip() and not self._state.tool_calls:
            return "no answer and no call"
        result = self._scenario.evaluate(self._state)
        return "" if result.status.name == "PASS" else f"{result.status.name.lower()}: {result.summary}"


class Forge:
    """The scenarios in the source of Forge's release. A run succeeds if its last tool was called with the facts."""

    def __init__(self) -> None:
        source = importlib.import_module("tests.eval.scenarios")
        self._scenarios = {each.name: each for each in source.ALL_SCENARIOS}

    def tasks(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name, "kind": (each.tags or ["other"])[0], "user": each.user_message,
                "system": self._begin(each)[0].build_system_prompt(),
                "tools": [
                    {
                        "type": "function",
                        "function": {
                            "name": spec.name, "description": spec.description, "parameters": spec.get_json_schema(),
                        },
                    }
                    for spec in self._begin(each)[0].get_tool_specs()
                ],
            }
            for name, each in self._scenarios.items()
        ]  # fmt: skip

    @staticmethod
    def _begin(scenario: Any) -> tuple[Any, Any]:
        """Return the workflow of a new run and the check of its state, or None."""
        if scenario.build_workflow is not None:
            built: tuple[Any, Any] = scenario.build_workflow()
            return built
        return scenario.workflow, scenario.validate_state

    def start(self, name: str) -> None:
        self._scenario = self._scenarios[name]
        self._workflow, self._check_state = self._begin(self._scenario)
        self._last: dict[str, Any] | None = None

    def call(self, name: str, arguments: dict[str, Any], turn: int) -> tuple[str, bool]:  # noqa: ARG002
        if name in self._workflow.terminal_tools:
            self._last = arguments
        try:
            return str(self._workflow.get_callable(name)(**arguments)), True
        except Exception as error:  # noqa: BLE001  # how its tools report errors to the model
            return str(error), False

    def end(self, answer: str, refused: int) -> str:  # noqa: ARG002
        if self._last is None:
            return "the last tool was not called"
        has_facts = self._scenario.validate is None or self._scenario.validate(self._last)
        is_right = self._check_state is None or self._check_state()
        return "" if has_facts and is_right else "wrong facts or state"


SUITES: dict[str, type[Suite]] = {"toolcallbench": ToolCallBench, "tool-eval-bench": ToolEvalBench, "forge": Forge}


def main() -> None:
    suite, output = SUITES[sys.argv[1]](), sys.stdout
    sys.stdout = sys.stderr  # the benchmark's own output must not mix with the messages

    def send(value: object) -> None:
        print(json.dumps(value), file=output, flush=True)

    send(suite.tasks())
    for line in sys.stdin:
        match json.loads(line):
            case {"start": name}:
                suite.start(name)
            case {"call": call, "turn": turn}:
                result, ok = suite.call(call["name"], call["arguments"], turn)
                send({"result": result, "ok": ok})
            case {"answer": answer, "refused": refused}:
                send({"fault": suite.end(answer, refused)})


if __name__ == "__main__":
    main()
