"""Replay the recordings in files, and report the results.

Recorded exchanges require only the parser. The agent and the workspace are loaded only for transcripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.core.argument_checks import explain_read_error
from adapter.core.errors import UsageError
from adapter.protocols.recorded_exchange import RecordedExchange, is_exchange_recording, read_exchanges
from adapter.recording.replay_result import ReplayResult

if TYPE_CHECKING:
    from adapter.recording.replay_workspace import CommandReplayPolicy


def replay_file(path: Path, commands: CommandReplayPolicy | None = None) -> ReplayResult:
    """Replay the transcript or the exchanges in ``path``.

    ``commands`` is the policy for running recorded programs again; without it, no program runs. A file that cannot be
    read or replayed is reported as a difference, not as an exception.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if is_exchange_recording(text):
            return replay_exchanges(read_exchanges(text, path.name), path.stem)
        from adapter.recording.replay import replay
        from adapter.recording.transcript import Transcript

        return replay(Transcript.from_text(text, path.name), path.stem, commands)
    except (UsageError, OSError, UnicodeDecodeError) as error:
        return ReplayResult(path.stem, 0, 0, 0, f"cannot be replayed: {explain_read_error(error)}", is_unreadable=True)


def replay_exchanges(exchanges: Sequence[RecordedExchange], name: str) -> ReplayResult:
    """Parse recorded exchanges again, and compare the calls with the recorded calls."""
    from adapter.recording.exchange_log import describe_difference

    differences = (
        f"exchange {number}: {text}" for number, each in enumerate(exchanges, 1) if (text := describe_difference(each))
    )
    return ReplayResult(name, len(exchanges), sum(len(each.calls) for each in exchanges), 0, next(differences, ""))


def find_transcripts(paths: Sequence[Path]) -> list[Path]:
    """Return the files in ``paths``, and the ``*.jsonl`` files in its folders. Raises UsageError if there are none."""
    found: list[Path] = []
    for path in paths:
        try:
            is_folder, is_file = path.is_dir(), path.is_file()
        except OSError as error:  # a name that is too long for a file
            raise UsageError(f"cannot read the transcript {path}: {explain_read_error(error)}") from error
        if is_folder:
            found += sorted(path.rglob("*.jsonl"))
        elif is_file:
            found.append(path)
        else:
            raise UsageError(f"transcript {path} not found")
    if not found:
        raise UsageError(f"no *.jsonl transcripts were found in {', '.join(map(str, paths))}")
    return found
