"""Replay transcripts: run the recorded text through the current parser, session and tools in a new workspace.

Results of tools that cannot run again come from the transcript (`adapter.recording.replay_workspace`). Every call,
result, message and file must be equal to the recorded one. The first difference is reported.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from adapter.agent.agent import Agent
from adapter.conversation.session_steps import SessionLimits
from adapter.core.errors import TransportError, UsageError
from adapter.recording.recorder import SessionRecorder, restore
from adapter.recording.replay_result import ReplayResult
from adapter.recording.replay_workspace import (
    CommandReplayPolicy,
    RecordedResults,
    ReplayChat,
    ReplayWorkspace,
    build_dialect,
    build_host,
)
from adapter.recording.transcript import Transcript, TranscriptWriter
from adapter.recording.transcript_diff import find_first_difference
from adapter.recording.transcript_lines import NestedCallLine, ResultLine
from adapter.tools.operations.permissions import PermissionRule


def update_file(path: Path, commands: CommandReplayPolicy | None = None) -> None:
    """Replace the output in a transcript with the output of the current code. Raises UsageError if the file cannot be
    read."""
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
    """Return the transcript that the recorded text produces with the current code.

    Raises UsageError if ``commands`` need a sandbox and none is available.
    """
    header = transcript.header
    if header.is_chat:
        raise UsageError("a saved chat cannot be replayed, because it has no files; open it with `adapter view`")
    written: list[str] = []
    recorder = TranscriptWriter(written.append, secrets=None)
    with tempfile.TemporaryDirectory(prefix="adapter-replay-") as folder:
        root, state = Path(folder, "workspace"), Path(folder, "state")
        root.mkdir()
        restore(header.files, root)
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
        workspace.continue_as(header)
        if commands is not None:
            workspace.run_programs(commands)
        agent = Agent(
            workspace,
            ReplayChat(transcript),
            format=header.format,
            system=header.system,
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
        recording.begin(agent, header.task, approve=header.approve)
        with suppress(TransportError):  # the failure is recorded as the end of the run
            agent.run(header.task)
    return Transcript.from_text("".join(written))
