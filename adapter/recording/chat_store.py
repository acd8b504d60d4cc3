"""The chats of one workspace that are kept: each a transcript of its own, which only its owner reads."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rapidfuzz import process

from adapter.core.errors import UsageError
from adapter.recording.transcript import Header, Transcript, UserMessageLine, dump_line

if sys.platform != "win32":  # where Root says so in words
    import fcntl

MAX_TALKS = 100
"""Kept of one workspace; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class SavedChat:
    """A chat. ``id``: when it began, by which the user names it."""

    id: str
    path: Path
    first: str
    """What the user said first."""
    messages: int


class ChatStore:
    """Those in ``folder``, which is there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def kept(self) -> list[SavedChat]:
        """The newest first: by when something was said last."""
        found = [self._read(path) for path in self._files()]
        return [kept for kept in found if kept is not None]

    def find(self, id: str | None) -> SavedChat:
        """The chat with this id, or the only one whose id begins so; the newest for None. Raises UsageError."""
        kept = self.kept()
        if not kept:
            raise UsageError("no chat of this folder is kept: begin one with `adapter chat`")
        if id is None:
            return kept[0]
        found = [each for each in kept if each.id == id] or [each for each in kept if each.id.startswith(id)]
        if len(found) == 1:
            return found[0]
        near = process.extractOne(id, [each.id for each in kept])[0]
        which = f"{len(found)} chats begin with {id!r}" if found else f"no chat {id!r} is kept of this folder"
        raise UsageError(f"{which}; did you mean {near}? `adapter chat --list` shows all")

    def begin(self) -> OpenChat:
        """A new one."""
        for path in self._files()[MAX_TALKS - 1 :]:
            path.unlink(missing_ok=True)
        name, number = time.strftime("%Y%m%d-%H%M%S"), 1
        while True:
            path = self._folder / f"{name}{f'-{number}' if number > 1 else ''}.jsonl"
            try:
                return OpenChat(path, os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                number += 1

    def _files(self) -> list[Path]:
        found = [path for path in self._folder.glob("*.jsonl") if path.is_file() and not path.is_symlink()]
        return sorted(found, key=lambda path: (path.stat().st_mtime, path.name), reverse=True)

    def _read(self, path: Path) -> SavedChat | None:
        """None for what is no chat, or was cut off before it began."""
        with path.open(encoding="utf-8", errors="replace") as file:
            try:
                header = Header.model_validate_json(file.readline())
            except ValueError:
                return None
            said = sum(line.startswith(_SAID) for line in file)
        return SavedChat(path.stem, path, header.task, said + 1)


_SAID = dump_line(UserMessageLine(text="")).partition(",")[0]
"""How the line of a further message begins."""


class OpenChat:
    """A chat that is being written. Nobody else writes it meanwhile; UsageError where somebody does."""

    def __init__(self, path: Path, flags: int = 0) -> None:
        self.id, self.path = path.stem, path
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)  # what cannot be written now is not tried again later
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise UsageError(f"the chat {self.id} is open in another program: end it there, or begin one") from None

    def transcript(self) -> Transcript:
        """What was written so far. A last line that was cut off, by a crash, is taken away. Raises UsageError."""
        text = self.path.read_text(encoding="utf-8", errors="replace")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            os.truncate(self.path, len(whole.encode()))
        return Transcript.from_text(whole, self.id)

    def writer(self, fails: Callable[[str], object]) -> Callable[[str], None]:
        """Writes a line, at once; ``fails`` is told, once, why that cannot be done any more."""
        is_broken = False

        def write(line: str) -> None:
            nonlocal is_broken
            if is_broken:
                return
            try:
                self._file.write(line.encode("utf-8", "replace"))
            except OSError as error:
                is_broken = True
                fails(f"the rest of this chat is not kept: {error.strerror}")

        return write

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
