"""What came out otherwise than it was recorded: the first line of two transcripts that differs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from adapter.core.events import Json
from adapter.core.text.redaction import REDACTED
from adapter.recording.transcript import (
    ApprovalLine,
    CallLine,
    ChunkLine,
    Line,
    NestedCallLine,
    Transcript,
)


def first_difference(expected: Transcript, got: Transcript) -> str:
    """The first line that is not as recorded, in words; "" when all are equal."""
    if expected.header.workspace and expected.header.workspace != got.header.workspace:
        return "the workspace could not be restored as it was recorded"
    # Ids are made from the text of a call: of redacted text they are others.
    is_redacted = REDACTED in expected.to_text()
    wanted, found = _compared(expected.lines, is_redacted), _compared(got.lines, is_redacted)
    for number, (want, have) in enumerate(zip(wanted, found, strict=False), start=1):
        if want != have:
            return f"step {number} ({want['kind']}): {_describe_difference(want, have)}"
    if len(wanted) != len(found):
        which, rest = ("recorded", wanted[len(found) :]) if len(wanted) > len(found) else ("new", found[len(wanted) :])
        return f"step {min(len(wanted), len(found)) + 1}: only in the {which} run: {_short(rest[0])}"
    return ""


def _compared(lines: Sequence[Line], is_redacted: bool) -> list[dict[str, Json]]:
    """What must be equal: everything but what is given, text and results inside of others, and when it was; if redacted
    not the ids.

    Of questions without a result between them no order is right: calls of a batch run at the same time.
    """
    compared: list[Line] = []
    told = (line for line in lines if not isinstance(line, ChunkLine | NestedCallLine))
    for is_question, group in groupby(told, key=lambda line: isinstance(line, ApprovalLine)):
        compared += sorted(group, key=repr if is_question else lambda _line: "")
    rows = [line.model_dump(mode="json", exclude={"at_s"}) for line in compared]
    if not is_redacted:
        return rows
    text = json.dumps(rows)
    for number, line in enumerate(line for line in lines if isinstance(line, CallLine)):
        text = text.replace(line.id, f"call_{number}")
    renamed: list[dict[str, Json]] = json.loads(text)
    return renamed


def _describe_difference(want: dict[str, Json], have: dict[str, Json]) -> str:
    if want["kind"] != have["kind"]:
        return f"recorded {_short(want)}, now {_short(have)}"
    key = next(key for key in want if want[key] != have.get(key))
    return f"{key}: recorded {_short(want[key])}, now {_short(have.get(key))}"


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:197] + "..."
