"""Runs transcripts again: the same text through today's parser, session and tools, in a fresh workspace.

Nothing is asked of any server. What comes out must equal what was recorded, in
every call, result, message and file; the first difference is reported.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from adapter.agent import Agent
from adapter.approval import Approval, Decision, Rule
from adapter.errors import ToolError, TransportError, UsageError
from adapter.events import HasCalls, Json, ToolResult
from adapter.host import Capability, Host
from adapter.operations import AgentReport, Question, RunAgent
from adapter.recording import Recording, restore
from adapter.secrets import REDACTED
from adapter.session import Limits, Message
from adapter.transcript import ApprovalLine, CallLine, ChunkLine, EndLine, Line, Recorder, ResultLine, Transcript
from adapter.transport import Chunk, Usage
from adapter.workspace import Workspace

OUTSIDE: frozenset[Capability | None] = frozenset({"questions", "agents", "search", "docs", "web"})
"""What answers differently another day."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How running one transcript again came out. ``difference`` is empty when all was equal."""

    name: str
    turns: int
    calls: int
    results: int
    difference: str = ""

    @property
    def is_equal(self) -> bool:
        return not self.difference


class _RecordedChat:
    """Answers with a transcript's chunks, in their own boundaries, and stops as the recorded conversation did."""

    def __init__(self, transcript: Transcript) -> None:
        self._answers = list(transcript.answers())
        self._end = next((line for line in transcript.lines if isinstance(line, EndLine)), None)

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:  # noqa: ARG002
        if not self._answers:
            raise TransportError("the conversation asks for one answer more than was recorded")
        for line in self._answers.pop(0):
            usage = None if line.prompt_tokens is None else Usage(line.prompt_tokens)
            yield Chunk(line.text, line.reasoning, line.finish_reason, usage=usage)
        if self._end is not None and not self._answers:
            if self._end.reason == "interrupted":
                raise KeyboardInterrupt
            if self._end.reason == "failed":
                raise TransportError(self._end.content)


class _OutOfReach:
    """A capability that exists only so that its tools are there: their results are the recorded ones."""

    kinds: Mapping[str, str] = {}

    def ask(self, questions: Sequence[Question]) -> Sequence[Sequence[str]]:
        raise ToolError(f"{len(questions)} questions inside a batch are not recorded")

    def run(self, task: RunAgent, workspace: Workspace) -> AgentReport:  # noqa: ARG002
        raise ToolError(f"the sub-agent {task.description!r} inside a batch is not recorded")


class _Replayed(Workspace):
    """A workspace in which what came from outside it comes from the record, the user's answers on the way included."""

    recorded: Iterator[tuple[int, ResultLine]]
    """Each result, with the number of questions before it."""
    ask_again: Callable[[], Decision]

    def run_calls(self, turn: HasCalls, atomic: bool = False) -> list[ToolResult]:
        if atomic:
            raise UsageError("a recorded conversation has no batches")
        results = []
        for call in turn.calls:
            questions, line = next(self.recorded, (0, None))
            tool = self.tools.match(call.name)
            if line is not None and tool is not None and tool.needs in OUTSIDE:
                for _ in range(questions):
                    self.ask_again()
                error = None if line.ok else line.content.removeprefix("tool_error: ")
                results.append(ToolResult(line.name, line.ok, line.content, error, call.id))
            else:
                results.append(replace(self.run(call.name, call.arguments), call_id=call.id))
        return results


def replay_file(path: Path) -> Replay:
    """Run the transcript in ``path`` again. A file that cannot be read or run is a difference, not an exception."""
    try:
        return replay(Transcript.from_text(path.read_text(encoding="utf-8"), path.name), path.stem)
    except (UsageError, OSError, UnicodeDecodeError) as error:
        return Replay(path.stem, 0, 0, 0, f"cannot be replayed: {error}")


def update_file(path: Path) -> None:
    """Write into a transcript what its recorded text gives today. Raises UsageError when it cannot be read."""
    transcript = Transcript.from_text(path.read_text(encoding="utf-8"), path.name)
    path.write_text(replace(transcript, lines=run_again(transcript).lines).to_text(), encoding="utf-8", newline="\n")


def replay(transcript: Transcript, name: str = "transcript") -> Replay:
    """Run ``transcript`` again and compare."""
    again = run_again(transcript)
    counts = [sum(line.kind == kind for line in again.lines) for kind in ("request", "call", "result")]
    return Replay(name, counts[0], counts[1], counts[2], first_difference(transcript, again))


def run_again(transcript: Transcript) -> Transcript:
    """The transcript that the recorded text gives today."""
    header = transcript.header
    written: list[str] = []
    decisions = iter([line for line in transcript.lines if isinstance(line, ApprovalLine)])
    recorder = Recorder(written.append, secrets=None)

    def decide(approval: Approval | None = None) -> Decision:
        line = next(decisions, None)
        decision = Decision(line is not None and line.granted, line is not None and line.remembered)
        tool = approval.tool if approval is not None else line.tool if line is not None else ""
        recorder.approval(tool, decision.allowed, decision.remember)
        return decision

    with tempfile.TemporaryDirectory(prefix="adapter-replay-") as folder:
        root, state = Path(folder, "workspace"), Path(folder, "state")
        root.mkdir()
        restore(header.files, root)
        recording = Recording(recorder, root)
        rules = [Rule.from_text(text) for text in header.rules]
        host = Host(questions=_OutOfReach(), agents=_OutOfReach(), state=str(state), media=frozenset(header.media))
        workspace = _Replayed(
            root, header.dialect, header.approve, decide, header.tools, state=state, rules=rules, host=host
        )
        workspace.recorded, workspace.ask_again = _results(transcript.lines), decide
        agent = Agent(
            workspace,
            _RecordedChat(transcript),
            format=header.format,
            system=header.system,
            limits=Limits(turns=header.max_turns, call_turns=header.call_turns, context_tokens=header.context_tokens),
            observe=recording,
        )
        recording.begin(agent, header.task, approve=header.approve)
        with suppress(TransportError):  # recorded as the end
            agent.run(header.task)
    return Transcript.from_text("".join(written))


def _results(lines: Sequence[Line]) -> Iterator[tuple[int, ResultLine]]:
    questions = 0
    for line in lines:
        if isinstance(line, ApprovalLine):
            questions += 1
        elif isinstance(line, ResultLine):
            yield questions, line
            questions = 0


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
    """What must be equal: everything but the text, which is given; of redacted transcripts not the ids."""
    rows = [line.model_dump(mode="json") for line in lines if not isinstance(line, ChunkLine)]
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


def transcripts_in(paths: Sequence[Path]) -> list[Path]:
    """The transcripts that ``paths`` name: files, and all ``*.jsonl`` below folders. Raises UsageError for none."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(path.rglob("*.jsonl"))
        elif path.is_file():
            found.append(path)
        else:
            raise UsageError(f"no transcript at {path}")
    if not found:
        raise UsageError(f"no *.jsonl transcripts in {', '.join(map(str, paths))}")
    return found
