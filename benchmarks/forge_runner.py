"""Run Forge's own loop for `benchmarks.guardrails`, in an environment with `forge-guardrails` and without this project.

The program reads a line of JSON for each run. It writes ``{"call": {...}}`` and receives ``{"result": "...", "ok":
true}``, and ends with ``{"ended": {"answer": ..., "fault": ...}}``. As in Forge's guide, text answers are calls of its
tool ``respond``, which ends a run; the scenario's required tools are its required steps. If a tool finds nothing, it
raises Forge's `ToolResolutionError`; wrong arguments raise any other exception.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any


def ask(name: str, arguments: dict[str, Any]) -> str:
    from forge import ToolResolutionError

    print(json.dumps({"call": {"name": name, "arguments": arguments}}), flush=True)
    told = json.loads(sys.stdin.readline())
    if told["ok"]:
        return str(told["result"])
    raise (TypeError if "arguments" in told["result"][:40] else ToolResolutionError)(told["result"])


async def run(task: dict[str, Any]) -> dict[str, str]:
    from forge import (
        ContextManager,
        ForgeError,
        OpenAICompatClient,
        TieredCompact,
        ToolDef,
        ToolSpec,
        Workflow,
        WorkflowRunner,
        respond_tool,
    )

    tools = {"respond": respond_tool()}
    for each in task["tools"]:
        function = each["function"]
        spec = ToolSpec.from_json_schema(function["name"], function["description"], function["parameters"])

        def perform(_name: str = function["name"], /, **arguments: Any) -> str:
            return ask(_name, arguments)

        tools[spec.name] = ToolDef(spec=spec, callable=perform)
    workflow = Workflow(
        name="scenario",
        description="A scenario",
        tools=tools,
        required_steps=task["required"],
        terminal_tool="respond",
        system_prompt_template=task["system"].replace("{", "{{").replace("}", "}}"),
    )
    context = ContextManager(strategy=TieredCompact(keep_recent=2), budget_tokens=task["context"])
    client = OpenAICompatClient(task["model"], task["base_url"])
    runner = WorkflowRunner(client=client, context_manager=context, max_iterations=task["max_turns"])
    try:
        return {"answer": str(await runner.run(workflow, task["user"])), "fault": ""}
    except ForgeError as error:
        return {"answer": "", "fault": f"{type(error).__name__}: {error}"[:300]}


def main() -> None:
    loop = asyncio.new_event_loop()
    for line in sys.stdin:
        print(json.dumps({"ended": loop.run_until_complete(run(json.loads(line)))}), flush=True)


if __name__ == "__main__":
    main()
