"""Run all calls of one answer atomically: if a call fails, all of them are reverted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from adapter.core.errors import ToolError
from adapter.core.events import Json, ToolCall, ToolResult
from adapter.workspace.paths.os_errors import convert_os_errors
from adapter.workspace.tool_results import build_error_result
from adapter.workspace.workspace_context import WorkspaceContext


class _CallFailed(ToolError):
    """Raised to revert a batch after a call failed; the call's result has the reason."""


def run_atomically(
    context: WorkspaceContext,
    calls: Sequence[ToolCall],
    run: Callable[[str, Mapping[str, Json] | str], ToolResult],
    check: Callable[[ToolCall], None],
) -> list[ToolResult]:
    """Run all calls with ``run``, as one change. If one fails, revert them all and return an error for each.

    ``check`` raises ToolError for a call that could not be reverted.
    """
    results: list[ToolResult] = []
    seen = context.read_tracker.save()
    try:
        for call in calls:
            check(call)
        with convert_os_errors("no call was run"), context.history.combine_changes():
            for call in calls:
                result = run(call.name, call.arguments)
                results.append(replace(result, call_id=call.id))
                if not result.ok:
                    raise _CallFailed(f"{call.name} failed: {result.error}")
    except ToolError as error:
        context.read_tracker.restore(seen)
        left = "".join(f". But {note}" for note in context.history.take_notes())
        reason = ToolError(
            f"no call of this answer took effect, because {error}{left}. Correct that call and send all calls again"
        )
        answers = [replace(build_error_result(call.name, reason), call_id=call.id) for call in calls]
        if isinstance(error, _CallFailed):
            answers[len(results) - 1] = results[-1]
        return answers
    return results
