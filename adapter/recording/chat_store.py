"""Save the chats of a workspace. Each chat is a transcript file that only its owner can read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rapidfuzz import process

from adapter.core.errors import UsageError
from adapter.core.file_lock import try_lock
from adapter.recording.transcript import Transcript, dump_line
from adapter.recording.transcript_lines import Header, UserMessageLine

MAX_CHATS = 100
"""Maximum number of saved chats per workspace. The oldest chats are deleted first."""


@dataclass(frozen=True, slots=True)
class SavedChat:
    """A saved chat. The user selects it by its ``id``, which is its start time."""

    id: str
    path: Path
    first: str
    """The user's first message."""
    messages: int


class ChatStore:
    """The saved chats in a folder, which must exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_chats(self) -> list[SavedChat]:
        """Return the saved chats, starting with the most recently used."""
        chats = [self._read(path) for path in self._list_files()]
        return [chat for chat in chats if chat is not None]

    def find(self, id: str | None) -> SavedChat:
        """Return the chat whose id is or begins with ``id``. If ``id`` is None, return the most recently used chat.

        Raises UsageError if no chat matches, or more than one.
        """
        chats = self.list_chats()
        if not chats:
            raise UsageError("this folder has no saved chat; start one with `adapter chat`")
        if id is None:
            return chats[0]
        found = [each for each in chats if each.id == id] or [each for each in chats if each.id.startswith(id)]
        if len(found) == 1:
            return found[0]
        near = process.extractOne(id, [each.id for each in chats])[0]
        which = f"the ids of {len(found)} chats begin with {id!r}" if found else f"this folder has no saved chat {id!r}"
        raise UsageError(f"{which}; did you mean {near}? `adapter chat --list` shows all chats.")

    def begin(self) -> OpenChat:
        """Create and open a chat file. If there are too many chats, delete the oldest."""
        for path in self._list_files()[MAX_CHATS - 1 :]:
            path.unlink(missing_ok=True)
        name, number = time.strftime("%Y%m%d-%H%M%S"), 1
        while True:
            path = self._folder / f"{name}{f'-{number}' if number > 1 else ''}.jsonl"
            try:
                return OpenChat(path, os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                number += 1

    def _list_files(self) -> list[Path]:
        found = [path for path in self._folder.glob("*.jsonl") if path.is_file() and not path.is_symlink()]
        return sorted(found, key=lambda path: (path.stat().st_mtime, path.name), reverse=True)

    def _read(self, path: Path) -> SavedChat | None:
        """Return the chat in a file; None if the file is not a chat or its header is incomplete."""
        with path.open(encoding="utf-8", errors="replace") as file:
            try:
                header = Header.model_validate_json(file.readline())
            except ValueError:
                return None
            count = sum(line.startswith(_USER_LINE) for line in file)
        return SavedChat(path.stem, path, header.task, count + 1)


_USER_LINE = dump_line(UserMessageLine(text="")).partition(",")[0]
"""The start of a line with a user message. The first message is in the header instead."""


class OpenChat:
    """An open chat file, locked against other writers. Raises UsageError if another program has locked it."""

    def __init__(self, path: Path, flags: int = 0) -> None:
        self.id, self.path = path.stem, path
        descriptor = os.open(
            path, os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | flags, 0o600
        )
        self._file = os.fdopen(descriptor, "r+b", buffering=0)  # unbuffered: a failed write is not retried later
        if not try_lock(descriptor):
            self._file.close()
            raise UsageError(f"chat {self.id} is open in another program; end it there, or start a new one")

    def read_transcript(self) -> Transcript:
        """Return the chat so far. Removes a truncated last line. Raises UsageError for an invalid file."""
        text = self.path.read_text(encoding="utf-8", errors="replace")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            os.truncate(self.path, len(whole.encode()))
        return Transcript.from_text(whole, self.id)

    def create_writer(self, fails: Callable[[str], object]) -> Callable[[str], None]:
        """Return a function that writes a line immediately. After the first failure, it calls ``fails`` once with a
        message, and writes nothing more."""
        is_broken = False

        def write(line: str) -> None:
            nonlocal is_broken
            if is_broken:
                return
            try:
                self._file.write(line.encode("utf-8", "replace"))
            except OSError as error:
                is_broken = True
                fails(f"the rest of this chat is not saved: {error.strerror}")

        return write

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
