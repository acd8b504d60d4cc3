"""Calls that take effect together: all of one answer, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from adapter.core.errors import ToolError
from adapter.core.events import Json, ToolCall, ToolResult
from adapter.workspace.context import WorkspaceContext
from adapter.workspace.paths.os_errors import os_errors_explained
from adapter.workspace.tool_results import error_result


class _CallFailed(ToolError):
    """A call of a batch failed: its own result says why."""


def run_atomically(
    desk: WorkspaceContext,
    calls: Sequence[ToolCall],
    run: Callable[[str, Mapping[str, Json] | str], ToolResult],
    check: Callable[[ToolCall], None],
) -> list[ToolResult]:
    """All calls as one change, or a result for each that says why not.

    ``check`` raises ToolError for a call that could not be taken back.
    """
    results: list[ToolResult] = []
    seen = desk.seen.saved()
    try:
        for call in calls:
            check(call)
        with os_errors_explained("no call was run"), desk.history.batch():
            for call in calls:
                result = run(call.name, call.arguments)
                results.append(replace(result, call_id=call.id))
                if not result.ok:
                    raise _CallFailed(f"{call.name} failed: {result.error}")
    except ToolError as error:
        desk.seen.restore(seen)
        left = "".join(f". But {note}" for note in desk.history.take_notes())
        reason = ToolError(
            f"no call of this answer took effect, because {error}{left}. Correct that, and send all again"
        )
        answers = [replace(error_result(call.name, reason), call_id=call.id) for call in calls]
        if isinstance(error, _CallFailed):
            answers[len(results) - 1] = results[-1]
        return answers
    return results
