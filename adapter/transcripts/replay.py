"""Runs transcripts again: the same text through today's parser, session and tools, in a fresh workspace.

What came from outside is in the record (`adapter.transcripts.recorded`). What comes out must equal what was recorded,
in every call, result, message and file; the first difference is reported.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from adapter.agent.agent import Agent
from adapter.conversation.session import Limits
from adapter.operations.approval import Rule
from adapter.transcripts.differences import first_difference
from adapter.transcripts.outcome import Replay
from adapter.transcripts.recorded import Commands, Record, RecordedChat, RecordedWorkspace, dialect_of, host_of
from adapter.transcripts.recording import Recording, restore
from adapter.transcripts.transcript import (
    InnerLine,
    Recorder,
    ResultLine,
    Transcript,
)
from adapter.values.errors import TransportError, UsageError


def update_file(path: Path, commands: Commands | None = None) -> None:
    """Write into a transcript what its recorded text gives today. Raises UsageError when it cannot be read."""
    transcript = Transcript.from_text(path.read_text(encoding="utf-8"), path.name)
    path.write_text(
        replace(transcript, lines=run_again(transcript, commands).lines).to_text(), encoding="utf-8", newline="\n"
    )


def replay(transcript: Transcript, name: str = "transcript", commands: Commands | None = None) -> Replay:
    """Run a transcript again without a model, and compare the results. Raises UsageError for what is none, and where
    ``commands`` need a sandbox and there is none."""
    if not isinstance(transcript, Transcript):
        raise UsageError(
            f"replay takes a Transcript, got {repr(transcript)[:80]}; Transcript.from_text(text) makes one of a file's"
        )
    again = run_again(transcript, commands)
    counts = [sum(line.kind == kind for line in again.lines) for kind in ("request", "call", "result")]
    difference = first_difference(transcript, again)
    if difference:
        missing = [line.unrecorded for line in transcript.lines if isinstance(line, ResultLine | InnerLine)]
        difference = "; ".join([difference, *filter(None, missing)])
    return Replay(name, counts[0], counts[1], counts[2], difference)


def run_again(transcript: Transcript, commands: Commands | None = None) -> Transcript:
    """The transcript that the recorded text gives today. Raises UsageError where ``commands`` need a sandbox and there
    is none."""
    header = transcript.header
    if header.is_chat:
        raise UsageError("the record of a chat holds no files to run it with: look at it with `adapter view`")
    written: list[str] = []
    recorder = Recorder(written.append, secrets=None)
    with tempfile.TemporaryDirectory(prefix="adapter-replay-") as folder:
        root, state = Path(folder, "workspace"), Path(folder, "state")
        root.mkdir()
        restore(header.files, root)
        record = Record(transcript, recorder, root)
        recording = Recording(recorder, root)
        workspace = RecordedWorkspace(
            root,
            dialect_of(header),
            header.approve,
            record.decide,
            header.known or header.tools,
            state=state,
            rules=[Rule.from_text(text) for text in header.rules],
            host=host_of(header, Path(folder), recording),
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
            RecordedChat(transcript),
            format=header.format,
            system=header.system,
            limits=Limits(turns=header.max_turns, call_turns=header.call_turns, context_tokens=header.context_tokens),
            observe=recording,
            guardrails=",".join(["off", *header.guardrails]),
            retries=header.retries,
            steps=header.steps,
        )
        recording.begin(agent, header.task, approve=header.approve)
        with suppress(TransportError):  # recorded as the end
            agent.run(header.task)
    return Transcript.from_text("".join(written))
