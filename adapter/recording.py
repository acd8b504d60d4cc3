"""Writes transcripts of real conversations, with the workspace they began in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from adapter.agent import Agent, Observed
from adapter.approval import Approval, Approver, Decision, decided
from adapter.errors import UsageError
from adapter.events import ToolResult, Turn
from adapter.session import Done, Query
from adapter.transcript import Header, Recorder, StoredFile
from adapter.transport import Chunk

MAX_FILES = 500
"""Of the workspace that a transcript holds."""
MAX_BYTES = 1_000_000
"""A transcript holds its workspace; a larger one belongs in a copy made for the recording."""


def snapshot(root: Path, cleaned: Callable[[bytes], bytes] = bytes) -> dict[str, StoredFile]:
    """The files below ``root``, ``cleaned``, by relative path and without `.git` and links.

    Raises UsageError for too many.
    """
    files: dict[str, StoredFile] = {}
    size = 0
    for path in _files(root):
        content = path.read_bytes()
        size += len(content)
        if len(files) >= MAX_FILES or size > MAX_BYTES:
            raise UsageError(
                f"{root} is too large to record: a transcript holds the whole workspace, "
                f"at most {MAX_FILES} files and {MAX_BYTES:,} bytes. Record in a smaller copy, or leave out --record."
            )
        files[path.relative_to(root).as_posix()] = _stored(cleaned(content), path.stat().st_mode & 0o777)
    return files


def restore(files: dict[str, StoredFile], root: Path) -> None:
    """Write the files of a snapshot below an empty ``root``."""
    for name, stored in files.items():
        path = root / name
        if not path.resolve().is_relative_to(root.resolve()):
            raise UsageError(f"the transcript's file {name!r} lies outside its workspace; it was not written")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_content(stored))
        path.chmod(stored.mode)


def workspace_hash(root: Path, cleaned: Callable[[bytes], bytes] = bytes) -> str:
    """One hash over the names and the ``cleaned`` contents of all files below ``root``."""
    digest = hashlib.sha256()
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        digest.update(
            f"{name}\0{hashlib.sha256(cleaned(path.read_bytes())).hexdigest()}\n".encode("utf-8", "surrogateescape")
        )
    return f"sha256:{digest.hexdigest()}"


def _files(root: Path) -> Iterable[Path]:
    found = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in found if ".git" not in path.relative_to(root).parts)


def _stored(content: bytes, mode: int) -> StoredFile:
    try:
        return StoredFile(text=content.decode(), mode=mode)
    except UnicodeDecodeError:
        return StoredFile(base64=base64.b64encode(content).decode(), mode=mode)


def _content(stored: StoredFile) -> bytes:
    return base64.b64decode(stored.base64) if stored.base64 is not None else (stored.text or "").encode()


class Recording:
    """Observes an agent and records it. ``header`` must be written before the agent runs."""

    def __init__(self, recorder: Recorder, root: Path) -> None:
        self._recorder, self._root = recorder, root
        self._cleaned = recorder.secrets.redact_bytes if recorder.secrets is not None else bytes

    def begin(self, agent: Agent, task: str, *, approve: str, model: str = "", server: str = "") -> None:
        """Write the header: the settings and the workspace as they are now."""
        self._recorder.header(
            Header(
                task=task,
                system=agent.system,
                dialect=agent.workspace.dialect.name,
                format=agent.format.name,
                tools=tuple(agent.workspace.tools),
                model=model,
                server=server,
                approve=approve,
                rules=tuple(map(str, agent.workspace.rules)),
                media=tuple(sorted(agent.workspace.host.media)),
                max_turns=agent.limits.turns,
                call_turns=agent.limits.call_turns,
                context_tokens=agent.limits.context_tokens,
                files=snapshot(self._root, self._cleaned),
                workspace=workspace_hash(self._root, self._cleaned),
            )
        )

    def asking(self, ask: Approver) -> Approver:
        """``ask``, its decisions recorded."""

        def recorded(approval: Approval) -> bool | Decision:
            answer = ask(approval)
            decision = decided(answer)
            self._recorder.approval(approval.tool, decision.allowed, decision.remember)
            return answer

        return recorded

    def __call__(self, happening: Observed) -> None:
        match happening:
            case Query():
                self._recorder.request(happening)
            case Chunk():
                tokens = happening.usage.prompt if happening.usage else None
                self._recorder.chunk(happening.text, happening.reasoning, happening.finish_reason, tokens)
            case Turn():
                self._recorder.turn(happening)
            case ToolResult():
                self._recorder.result(happening)
            case Done():
                self._recorder.end(happening, workspace_hash(self._root, self._cleaned))
            case _:
                pass
