"""Compare two transcripts, and describe the first difference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from adapter.core.events import Json
from adapter.core.text.redaction import REDACTED
from adapter.recording.transcript import Transcript
from adapter.recording.transcript_lines import ApprovalLine, CallLine, ChunkLine, Line, NestedCallLine


def find_first_difference(expected: Transcript, got: Transcript) -> str:
    """Describe the first line that differs from the expected transcript. Return "" if all lines are equal."""
    if expected.header.workspace and expected.header.workspace != got.header.workspace:
        return "the workspace could not be restored as it was recorded"
    # Ids are derived from the text of a call, so redaction changes them.
    is_redacted = REDACTED in expected.to_text()
    wanted, found = _list_comparable_lines(expected.lines, is_redacted), _list_comparable_lines(got.lines, is_redacted)
    for number, (expected_row, actual_row) in enumerate(zip(wanted, found, strict=False), start=1):
        if expected_row != actual_row:
            return f"step {number} ({expected_row['kind']}): {_describe_difference(expected_row, actual_row)}"
    if len(wanted) != len(found):
        run, rest = ("recorded", wanted[len(found) :]) if len(wanted) > len(found) else ("new", found[len(wanted) :])
        return f"step {min(len(wanted), len(found)) + 1}: only in the {run} run: {_shorten_json(rest[0])}"
    return ""


def _list_comparable_lines(lines: Sequence[Line], is_redacted: bool) -> list[dict[str, Json]]:
    """Return the lines to compare, without chunks, nested calls and times.

    Call ids are replaced by numbers if the transcript is redacted. Consecutive approvals are sorted, because calls of a
    batch run at the same time.
    """
    compared: list[Line] = []
    compared_lines = (line for line in lines if not isinstance(line, ChunkLine | NestedCallLine))
    for is_question, group in groupby(compared_lines, key=lambda line: isinstance(line, ApprovalLine)):
        compared += sorted(group, key=repr if is_question else lambda _line: "")
    rows = [line.model_dump(mode="json", exclude={"at_s"}) for line in compared]
    if not is_redacted:
        return rows
    text = json.dumps(rows)
    for number, line in enumerate(line for line in lines if isinstance(line, CallLine)):
        text = text.replace(line.id, f"call_{number}")
    renamed: list[dict[str, Json]] = json.loads(text)
    return renamed


def _describe_difference(expected_row: dict[str, Json], actual_row: dict[str, Json]) -> str:
    if expected_row["kind"] != actual_row["kind"]:
        return f"recorded {_shorten_json(expected_row)}, now {_shorten_json(actual_row)}"
    key = next(key for key in expected_row if expected_row[key] != actual_row.get(key))
    return f"{key}: recorded {_shorten_json(expected_row[key])}, now {_shorten_json(actual_row.get(key))}"


def _shorten_json(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:197] + "..."
