"""Replay transcripts by running the recorded text through the current parser, session and tools, in a new workspace.

The results of tools that cannot run again come from the transcript (`adapter.recording.replay_workspace`). Every call,
result, message and file must be equal to the recorded one. The first difference is reported.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from adapter.agent.agent import Agent
from adapter.backends.stream_chunks import Chunk
from adapter.conversation.message_rendering import Message
from adapter.conversation.session_steps import AskModel, SessionLimits
from adapter.core.errors import TransportError, UsageError
from adapter.core.events import Json
from adapter.core.text.redaction import REDACTED
from adapter.protocols.usage import Usage
from adapter.recording.recorded_results import RecordedResults
from adapter.recording.replay_result import ReplayResult
from adapter.recording.replay_workspace import CommandReplayPolicy, ReplayWorkspace, build_dialect, build_host
from adapter.recording.session_recorder import SessionRecorder, restore_snapshot
from adapter.recording.transcript import Transcript, TranscriptWriter
from adapter.recording.transcript_lines import (
    ApprovalLine,
    CallLine,
    ChunkLine,
    EndLine,
    Header,
    Line,
    NestedCallLine,
    RequestLine,
    ResultLine,
)
from adapter.tools.operations.permissions import PermissionRule
from adapter.tools.tool_set import ToolSet


def update_file(path: Path, commands: CommandReplayPolicy | None = None) -> None:
    """Replace a transcript's output with the current code's output. Raises UsageError if the file cannot be read."""
    transcript = Transcript.from_text(path.read_text(encoding="utf-8"), path.name)
    path.write_text(
        replace(transcript, lines=rerun_session(transcript, commands).lines).to_text(), encoding="utf-8", newline="\n"
    )


def replay(
    transcript: Transcript, name: str = "transcript", commands: CommandReplayPolicy | None = None
) -> ReplayResult:
    """Replay a transcript without a model, and report the first difference from the recording.

    Raises UsageError if ``transcript`` is not a Transcript, or if ``commands`` need a sandbox and none is available.
    """
    if not isinstance(transcript, Transcript):
        raise UsageError(
            f"replay expects a Transcript, got {repr(transcript)[:80]}; use Transcript.from_text for the text of a file"
        )
    rerun = rerun_session(transcript, commands)
    counts = [sum(line.kind == kind for line in rerun.lines) for kind in ("request", "call", "result")]
    difference = find_first_difference(transcript, rerun)
    if difference:
        missing = [line.unrecorded for line in transcript.lines if isinstance(line, ResultLine | NestedCallLine)]
        difference = "; ".join([difference, *filter(None, missing)])
    return ReplayResult(name, counts[0], counts[1], counts[2], difference)


def rerun_session(transcript: Transcript, commands: CommandReplayPolicy | None = None) -> Transcript:
    """Run the recorded text through the current code, and return the transcript of this run.

    Raises UsageError for a saved chat, or if ``commands`` need a sandbox and none is available.
    """
    header = transcript.header
    if header.is_chat:
        raise UsageError("a saved chat cannot be replayed, because it has no files; open it with `adapter view`")
    written: list[str] = []
    recorder = TranscriptWriter(written.append, secrets=None)
    with tempfile.TemporaryDirectory(prefix="adapter-replay-") as folder:
        root, state = Path(folder, "workspace"), Path(folder, "state")
        root.mkdir()
        restore_snapshot(header.files, root)
        record = RecordedResults(transcript, recorder, root)
        recording = SessionRecorder(recorder, root)
        workspace = ReplayWorkspace(
            root,
            build_dialect(header),
            header.approve,
            record.decide,
            header.known or header.tools,
            state=state,
            rules=[PermissionRule.from_text(text) for text in header.rules],
            host=build_host(header, Path(folder), recording),
            edits=header.edits,
            encoding=header.encoding,
            sandbox="none" if commands is None else "require",
        )
        workspace.record, workspace.own = record, frozenset(tool.name for tool in header.own_tools)
        workspace.apply_parent_settings(header)
        if commands is not None:
            workspace.allow_programs(commands)
        agent = _ReplayAgent(
            workspace,
            _ReplayChat(transcript),
            format=header.format,
            system=None if header.max_tools else header.system,
            max_tools=header.max_tools,
            limits=SessionLimits(
                turns=header.max_turns,
                calls=header.max_calls,
                tool_turns=header.call_turns,
                context_tokens=header.context_tokens,
            ),
            observe=recording,
            guardrails=",".join(["off", *header.guardrails]),
            retries=header.retries,
            steps=header.steps,
        )
        agent.recorded = header
        agent.request = next((line for line in transcript.lines if isinstance(line, RequestLine)), None)
        recording.begin(agent, header.task, approve=header.approve)
        with suppress(TransportError):  # the failure is recorded as the end of the run
            agent.run(header.task)
    return Transcript.from_text("".join(written))


class _ReplayAgent(Agent):
    """An agent whose properties that depend on the model server are taken from the recording."""

    recorded: Header
    request: RequestLine | None = None
    """The first recorded request."""

    @property
    def shows_calls(self) -> bool:
        return self.recorded.shows_calls

    @property
    def tools(self) -> ToolSet:
        tools, offered = super().tools, self.recorded.offered
        return ToolSet(tools[name] for name in offered if name in tools) if offered else tools

    def _shorten_tools(self, task: str) -> None:
        super()._shorten_tools(task)
        first = self.request.messages[:1] if self.request is not None else ()
        self.system = next((str(message["content"]) for message in first if message["role"] == "system"), self.system)

    def _classify(self, query: AskModel) -> AskModel:
        if self.request is None or not self.request.classified or self._session is None:
            return query
        return self._session.classify_request(query, self.request.classified)


class _ReplayChat:
    """A chat that streams the recorded chunks, and ends or fails as the recorded conversation did."""

    def __init__(self, transcript: Transcript) -> None:
        self._answers = list(transcript.answers)
        self._end = next((line for line in transcript.lines if isinstance(line, EndLine)), None)

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:  # noqa: ARG002
        if not self._answers:
            raise TransportError("the conversation requests more answers than were recorded")
        for line in self._answers.pop(0):
            usage = None if line.prompt_tokens is None else Usage(line.prompt_tokens, line.written_tokens or 0)
            yield Chunk(line.text, line.reasoning, line.finish_reason, usage=usage)
        if self._end is not None and not self._answers:
            if self._end.reason == "interrupted":
                raise KeyboardInterrupt
            if self._end.reason == "failed":
                raise TransportError(self._end.content)


def find_first_difference(expected: Transcript, got: Transcript) -> str:
    """Describe the first line that differs from the expected transcript. Return "" if all lines are equal."""
    if expected.header.workspace and expected.header.workspace != got.header.workspace:
        return "the workspace could not be restored as it was recorded"
    # Redaction changes the ids, because they are derived from the call's text.
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

    If the transcript is redacted, call ids are replaced by numbers. Consecutive approvals are sorted, because calls in
    a batch run at the same time.
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
