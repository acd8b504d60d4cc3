"""Build the page data of `adapter view` from an evaluation's results. Each run is shown as one exchange."""

from __future__ import annotations

from adapter.core.bounded_parsing import parse_json
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.recording.view.conversation_grouping import find_question
from adapter.recording.view.exchange_page_data import FAILED, ExchangeStats, build_span_row
from adapter.recording.view.view_page_data import PageData


def is_run_log(text: str) -> bool:
    """Return whether ``text`` is a results file of `adapter eval` (see `adapter.evaluation.run_log`)."""
    return text.startswith('{"eval"')


def view_runs(text: str, name: str) -> PageData:
    """Return the data of a page that shows the run log ``text``. Raises UsageError, which names the invalid line."""
    view, head = PageData(name, "eval results", "The conversation", goes_on=False), JsonObject()
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            row = parse_json(line) if line.strip() else {}
            if "eval" in row:
                head = row
            elif row:
                _add(view, row, str(head.get("model", "")))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(
                f"{name}, line {number}, is not a valid evaluation run ({reason}); "
                "pass a file that `adapter eval` wrote"
            ) from error
    return view


def _add(view: PageData, row: JsonObject, model: str) -> None:
    fault = str(row["fault"])
    calls = [call["function"]["name"] for message in row["messages"] for call in message.get("tool_calls") or ()]
    stats = ExchangeStats(None, float(row["seconds"]), int(row["prompt_tokens"]), int(row["written_tokens"]))
    view.add(
        title=f"{row['scenario']}, {row['way']}, run {row['number'] + 1}", model=model, figures=stats,
        marks=[FAILED if fault else "done", *(["refused calls"] if row["refused"] else [])], calls=calls,
        question=find_question(row["messages"]), prompt=view.add_messages(row["messages"]), notes=[fault],
        readings=[{"name": "The answer", "spans": [build_span_row("content", row["answer"])] if row["answer"] else []}],
        about=[
            ("model", model), ("way", row["way"]), ("kind", row["kind"]), ("answers", str(row["turns"])),
            ("calls", str(row["calls"])), ("refused", str(row["refused"])),
        ],
    )  # fmt: skip
