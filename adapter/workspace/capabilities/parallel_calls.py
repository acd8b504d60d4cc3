"""Several calls at once: results in the order of the calls, failures beside successes.

Calls that write are made one after another in their order, so that two edits
of one file both arrive; everything else runs at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from adapter.core.errors import ToolError
from adapter.core.events import ToolResult
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools.operations import BatchCall, BatchResults, RunBatch
from adapter.tools.operations.nested_calls import MAX_BATCH


def run_batch(
    operation: RunBatch, call: Callable[[BatchCall], ToolResult], writes: Callable[[BatchCall], bool]
) -> BatchResults:
    """One result per call. Raises ToolError for a batch without calls."""
    if not operation.calls:
        raise ToolError(f"the batch is empty; give 1 to {MAX_BATCH} calls, each with a tool and its parameters")
    made, left_out = operation.calls[:MAX_BATCH], operation.calls[MAX_BATCH:]
    lanes = _lanes(made, writes)
    results: dict[int, ToolResult] = {}

    def run_lane(lane: Sequence[int]) -> None:
        for index in lane:
            results[index] = call(made[index])

    with ThreadPoolExecutor(max_workers=len(lanes), thread_name_prefix="batch") as pool:
        for done in [pool.submit(run_lane, lane) for lane in lanes]:
            done.result()
    ordered = [results[index] for index in range(len(made))]
    return BatchResults((*ordered, *map(_not_run, left_out)))


def _lanes(calls: Sequence[BatchCall], writes: Callable[[BatchCall], bool]) -> list[list[int]]:
    """Indices that go one after another; the writing calls share one lane."""
    writing = [index for index, call in enumerate(calls) if writes(call)]
    others = [[index] for index in range(len(calls)) if index not in writing]
    return [*([writing] if writing else []), *others]


def _not_run(call: BatchCall) -> ToolResult:
    error = (
        f"a batch runs at most {MAX_BATCH} calls; {escape_for_display(call.name)} was not run. Make it in another batch"
    )
    return ToolResult(call.name, ok=False, content=f"tool_error: {error}", error=error)
