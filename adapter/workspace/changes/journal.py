"""Where the records of changes are kept: outside the workspace, so that nothing in it can forge one.

::

    $XDG_STATE_HOME/toolcall-adapter/<workspace>/     ~/.local/state without the variable
        staging/ or moving/ or closing/               the change being made: transactions.py
        00000012-3456/                                a change that was made: number, bytes kept
            record.json, 0, 0.after, 1 ...            what was done, what was there before and after
        talks/ ...                                    what else is kept of this workspace
        batch                                         the number before a batch began
        room                                          written and removed, to see whether the disk is full
        rescued/                                      what could neither be put back nor thrown away

The open directory is also the lock: whoever holds it makes changes, and what a
dead process left half done is only ever repaired under it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapter.core.errors import ToolError
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.os_errors import FULL
from adapter.workspace.paths.resolved_path import NEW_FILE, OPEN_DIRECTORY

if sys.platform != "win32":  # where Root says so in words
    import fcntl

LOCK_WAIT_S = 5.0
"""For another process that is changing the same workspace."""
MAX_CHANGES = 1_000
"""Kept for undoing, in one workspace."""
MAX_KEPT_BYTES = 256 * 1024 * 1024
"""Kept for undoing, in one workspace; the oldest changes are forgotten first. A change larger than
this is made and cannot be undone."""
ROOM_BYTES = 1024 * 1024
"""Where less is free, nothing is kept of what is deleted: deleting is how room is made."""
MAX_AGE_S = 30 * 24 * 3600.0
"""Records of a workspace that nobody changed for so long are removed."""

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Of a file in the records that is read whole; what is larger was not written here."""
MAX_TIME = 253_402_300_799
"""Seconds since the epoch: the last ones of the year 9999, which can be shown as a date."""
_NUMBERED = re.compile(r"[0-9]{1,15}-[0-9]{1,15}")

RECORD = "record.json"
State: TypeAlias = Literal["staging", "moving", "closing"]
STATES: tuple[State, ...] = ("staging", "moving", "closing")


class ChangeStep(BaseModel):
    """One thing that happens to ``path``, components below the root joined by ``/``, none of them a link.

    ``directory`` is made; ``put`` brings a file or tree, over the old file where ``before`` says there
    is one; ``take`` takes away what is there; ``move`` renames to ``destination``.
    """

    model_config = ConfigDict(frozen=True)

    kind: Literal["directory", "put", "take", "move"]
    path: str
    destination: str = ""
    before: str | None = None
    """Fingerprint of what is there; None: nothing, or for ``take`` whatever there is."""
    after: str | None = None
    """Fingerprint of what is put; None when it is not known beforehand."""
    kept: bool = False
    """Whether what was there before is in the store."""


class ChangeRecord(BaseModel):
    """A change: what it is called, by whom it was made, and its steps in order."""

    model_config = ConfigDict(frozen=True)

    summary: str
    session: str
    time: float = Field(ge=0, le=MAX_TIME)
    steps: tuple[ChangeStep, ...]
    undoes: int | None = None
    """The change that this one takes back."""
    kept_as: Literal["change", "undo", "redo", "nothing"] = "change"
    """What it is once it was made: an undo is kept for as long as it can be taken back, too, which is a redo."""
    removes: tuple[str, ...] = ()
    """Directories to remove at the end if they are empty."""


def state_home() -> str:
    """Where programs of this user keep what should outlive them."""
    home = os.environ.get("XDG_STATE_HOME", "")
    return os.path.join(home if os.path.isabs(home) else os.path.expanduser("~/.local/state"), "toolcall-adapter")  # noqa: PTH111, PTH117, PTH118


class ChangeJournal:
    """The records of the workspace with the real path ``root``.

    Nothing is made on disk before the first change. Where no directory can be made in ``home``, a
    temporary one is used: then a crash cannot be repaired, and ``notes`` says so.
    """

    def __init__(self, root: str, inode: int, home: str | None = None) -> None:
        self.home = os.path.realpath(home or state_home())
        key = hashlib.sha256(f"{root}\0{inode}".encode(errors="surrogateescape")).hexdigest()[:16]
        self._directory = os.path.join(self.home, key)  # noqa: PTH118 - these modules speak os
        self._temporary = ""
        self._mutex = threading.RLock()
        self._held = -1
        self.notes: list[str] = []

    @property
    def directory(self) -> str:
        return self._temporary or self._directory

    @property
    def is_temporary(self) -> bool:
        return bool(self._temporary)

    @property
    def exists(self) -> bool:
        return os.path.isdir(self.directory)  # noqa: PTH112

    def holds(self, *names: str) -> bool:
        """Whether one of ``names`` is there, looked at without the lock."""
        return any(os.path.lexists(os.path.join(self.directory, name)) for name in names)  # noqa: PTH118

    def has_room(self) -> bool:
        """Whether something can be kept here: not on a full disk, or when a quota is used up. Raises OSError."""
        if not self.exists:
            above = self._directory
            while not os.path.isdir(above):  # noqa: PTH112
                above = os.path.dirname(above)  # noqa: PTH120
            free = os.statvfs(above)
            return free.f_bavail * free.f_frsize >= ROOM_BYTES
        with self.locked() as held:
            try:
                write_bytes(held, "room", bytes(ROOM_BYTES))
            except OSError as error:
                if error.errno not in FULL:
                    raise
                return False
            finally:
                tree_ops.remove("room", held)
        return True

    def close(self) -> None:
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = ""

    @contextmanager
    def locked(self) -> Iterator[int]:
        """A descriptor of the directory. Nobody else, thread or process, changes anything meanwhile."""
        with self._mutex:
            if self._held >= 0:
                yield self._held
                return
            self._held = self._open()
            try:
                lock(self._held, "the workspace")
                yield self._held
            finally:
                held, self._held = self._held, -1
                os.close(held)

    def folder(self, name: str) -> str:
        """A folder for what else is kept of this workspace, and goes with its records."""
        os.close(self._open())
        os.utime(self.directory)  # it is in use
        made = os.path.join(self.directory, name)  # noqa: PTH118
        os.makedirs(made, 0o700, exist_ok=True)  # noqa: PTH103
        return made

    def _open(self) -> int:
        if not self.exists:
            self._make()
        return os.open(self.directory, OPEN_DIRECTORY)

    def _make(self) -> None:
        try:
            os.makedirs(self._directory, 0o700, exist_ok=True)  # noqa: PTH103
        except OSError as error:
            try:
                self._temporary = tempfile.mkdtemp(prefix="toolcall-adapter-")
            except OSError:
                raise ToolError(
                    f"{error.strerror}: no record of the change can be kept in {self.home}. "
                    "Nothing was changed. The user can name another place in XDG_STATE_HOME"
                ) from error
            self.notes.append(
                f"changes can be undone until the program ends, and a crash not repaired: {error.strerror} "
                f"({self.home}); the user can name another place in XDG_STATE_HOME"
            )
        else:
            forget_old(self.home, self._directory)


def forget_old(home: str, but: str) -> None:
    """Remove the records of workspaces that were not changed for ``MAX_AGE_S``."""
    with suppress(OSError), os.scandir(home) as scan:
        for entry in scan:
            if entry.path == but or time.time() - entry.stat(follow_symlinks=False).st_mtime < MAX_AGE_S:
                continue
            with suppress(OSError):
                descriptor = os.open(entry.path, OPEN_DIRECTORY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(entry.path, ignore_errors=True)
                finally:
                    os.close(descriptor)


def lock(descriptor: int, shown: str) -> None:
    """Take the lock of an open file or directory, which ends with it. Raises ToolError after ``LOCK_WAIT_S``."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ToolError(f"{shown} is being written by another program; try again later") from None
            time.sleep(0.01)
        else:
            return


def sync_directory(dirfd: int) -> None:
    """Make renames in the directory durable, where the file system can."""
    with suppress(OSError):
        os.fsync(dirfd)


# ------------------------------------------------------------------------- records


def write_record(store: int, state: str, record: ChangeRecord, durable: bool) -> None:
    """Write the record of ``store/state`` whole or not at all."""
    with inside(store, state) as descriptor:
        write_bytes(descriptor, RECORD + ".new", record.model_dump_json().encode(), durable)
        os.rename(RECORD + ".new", RECORD, src_dir_fd=descriptor, dst_dir_fd=descriptor)
        if durable:
            sync_directory(descriptor)


def read_record(store: int, name: str) -> ChangeRecord | None:
    """None when there is none that can be read: it was being written when the process died, or is none of ours."""
    status = tree_ops.status_of(name, store)
    if status is None or not stat.S_ISDIR(status.st_mode):
        return None
    with inside(store, name) as descriptor:
        data = read_bytes(descriptor, RECORD)
    try:
        return ChangeRecord.model_validate_json(data or b"")
    except ValidationError:
        return None


def write_bytes(dirfd: int, name: str, data: bytes, durable: bool = False) -> None:
    tree_ops.remove(name, dirfd)
    descriptor = os.open(name, NEW_FILE, 0o600, dir_fd=dirfd)
    try:
        tree_ops.write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_bytes(dirfd: int, name: str) -> bytes | None:
    """What is in a file of ours; None where there is none."""
    status = tree_ops.status_of(name, dirfd)
    if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > MAX_RECORD_BYTES:
        return None
    return tree_ops.read_file(name, dirfd)


@contextmanager
def inside(store: int, name: str) -> Iterator[int]:
    descriptor = os.open(name, OPEN_DIRECTORY, dir_fd=store)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def numbered(store: int) -> dict[int, str]:
    """The directory of each change that was made, by number, oldest first."""
    found = {}
    for name in tree_ops.names_in(store):
        if _NUMBERED.fullmatch(name):
            found[int(name.partition("-")[0])] = name
    return found


def forget_surplus(store: int) -> None:
    """Remove the oldest changes above the limits."""
    total = 0
    for rank, name in enumerate(reversed(list(numbered(store).values()))):
        total += int(name.partition("-")[2])
        if rank >= MAX_CHANGES or total > MAX_KEPT_BYTES:
            tree_ops.remove(name, store)
