"""Run several calls in parallel. A failed call does not affect the other calls.

Results keep the order of the calls. Calls that write run one at a time and in order, so that two edits of one file both
apply. So do equal calls, so that a replay knows which of them got which recorded result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from adapter.core.errors import ToolError
from adapter.core.events import ToolResult
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools.operations import BatchCall, BatchResults, RunBatch
from adapter.tools.operations.nested_calls import MAX_BATCH


def run_batch(
    operation: RunBatch, call: Callable[[BatchCall], ToolResult], writes: Callable[[BatchCall], bool]
) -> BatchResults:
    """Run the calls and return one result per call. Raises ToolError if the batch has no calls."""
    if not operation.calls:
        raise ToolError(f"the batch is empty; give 1 to {MAX_BATCH} calls, each with a tool and its parameters")
    calls, surplus = operation.calls[:MAX_BATCH], operation.calls[MAX_BATCH:]
    lanes = _group_in_lanes(calls, writes)
    results: dict[int, ToolResult] = {}

    def run_lane(lane: Sequence[int]) -> None:
        for index in lane:
            results[index] = call(calls[index])

    with ThreadPoolExecutor(max_workers=len(lanes), thread_name_prefix="batch") as pool:
        for future in [pool.submit(copy_context().run, run_lane, lane) for lane in lanes]:
            future.result()
    ordered = [results[index] for index in range(len(calls))]
    return BatchResults((*ordered, *map(_build_surplus_result, surplus)))


def _group_in_lanes(calls: Sequence[BatchCall], writes: Callable[[BatchCall], bool]) -> list[list[int]]:
    """Group the indices of the calls into lanes, which run in parallel. Calls that write share a lane, and equal calls
    do so."""
    lanes: dict[str, list[int]] = {}
    for index, call in enumerate(calls):
        lanes.setdefault("" if writes(call) else repr(call), []).append(index)
    return list(lanes.values())


def _build_surplus_result(call: BatchCall) -> ToolResult:
    error = f"{escape_for_display(call.name)} was not run: a batch has at most {MAX_BATCH} calls. Use another batch"
    return ToolResult(call.name, ok=False, content=f"tool_error: {error}", error=error)
