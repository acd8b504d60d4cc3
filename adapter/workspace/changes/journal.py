"""Store records for undo and crash recovery outside the workspace, so that programs run in it cannot forge a record.

::

    $XDG_STATE_HOME/toolcall-adapter/<workspace>/     ~/.local/state without the variable
        staging/ or moving/ or closing/               the change in progress: transactions.py
        00000012-3456/                                a finished change: number, bytes stored
            record.json, 0, 0.after, 1 ...            its steps, with the content before and after
        talks/ ...                                    other data of this workspace
        batch                                         number of the last change before the current batch
        room                                          written and removed to test for free space
        rescued/                                      content that could be neither restored nor removed

A process locks the open directory while it makes changes or repairs an interrupted change.
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
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapter.core.errors import ToolError
from adapter.core.file_lock import try_lock
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.open_flags import NEW_FILE
from adapter.workspace.paths.os_errors import FULL
from adapter.workspace.paths.resolved_path import hold_descriptor

LOCK_WAIT_S = 5.0
"""Maximum wait for another process that is changing the same workspace, in seconds."""
MAX_CHANGES = 1_000
"""Maximum number of changes stored per workspace."""
MAX_KEPT_BYTES = 256 * 1024 * 1024
"""Maximum total size of the changes stored per workspace, in bytes; the oldest are dropped first. A single change that
is larger can be made but not undone."""
ROOM_BYTES = 1024 * 1024
"""Minimum free space to record a deletion, in bytes. With less, deletions are not recorded, but still possible."""
MAX_AGE_S = 30 * 24 * 3600.0
"""Maximum age of a workspace's last change, in seconds. After that, the records are removed."""

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Maximum size of a journal file read at once, in bytes. The journal never writes a larger one."""
MAX_STEPS_BYTES = 4 * 1024 * 1024
"""Maximum size of a change's record, in bytes: about ten thousand files. Decoded, it takes thirty times the memory."""
MAX_SUMMARY = 10_000
"""Maximum length of a change's summary, in characters. Longer ones are cut."""
MAX_PATH = 4_096
"""Maximum length of a path in a record, in characters. Operating systems reject longer ones."""
MAX_TIME = 253_402_300_799
"""Latest time, in seconds since the epoch: the end of the year 9999. Later times cannot be formatted as dates."""
_NUMBERED = re.compile(r"[0-9]{1,15}-[0-9]{1,15}")
_WORKSPACE_KEY = re.compile(r"[0-9a-f]{16}")
_Path: TypeAlias = Annotated[str, Field(max_length=MAX_PATH)]

RECORD = "record.json"
State: TypeAlias = Literal["staging", "moving", "closing"]
STATES: tuple[State, ...] = ("staging", "moving", "closing")


class ChangeStep(BaseModel):
    """One step of a change. ``path``: components below the root joined by ``/``, none of them a link.

    ``kind``: ``directory`` creates a directory at ``path``. ``put`` writes a file or tree, and replaces the existing
    content if ``before`` is set. ``take`` removes the path. ``move`` renames it to ``destination``.
    """

    model_config = ConfigDict(frozen=True)

    kind: Literal["directory", "put", "take", "move"]
    path: _Path
    destination: _Path = ""
    before: str | None = None
    """Fingerprint of the old content. None: the path does not exist, or for ``take``, any content is allowed."""
    after: str | None = None
    """Fingerprint of the new content; None if it is not known before the change."""
    kept: bool = False
    """True if the old content is in the journal."""


class ChangeRecord(BaseModel):
    """The record of a change: its summary, session, time and ordered steps."""

    model_config = ConfigDict(frozen=True)

    summary: Annotated[str, Field(max_length=MAX_SUMMARY + 10)]  # with the prefix of an undo
    session: Annotated[str, Field(max_length=64)]
    time: float = Field(ge=0, le=MAX_TIME)
    steps: tuple[ChangeStep, ...]
    undoes: int | None = None
    """Number of the change undone by this change."""
    kept_as: Literal["change", "undo", "redo", "nothing"] = "change"
    """Kind of the finished change. An undo is stored as long as it can be redone."""
    removes: tuple[_Path, ...] = ()
    """Directories to remove at the end, if empty."""


def find_state_home() -> str:
    """Return this user's directory for persistent data (https://specifications.freedesktop.org/basedir-spec/)."""
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA", "")):
        return os.path.join(local, "toolcall-adapter")  # noqa: PTH118
    home = os.environ.get("XDG_STATE_HOME", "")
    return os.path.join(home if os.path.isabs(home) else os.path.expanduser("~/.local/state"), "toolcall-adapter")  # noqa: PTH111, PTH117, PTH118


class ChangeJournal:
    """The journal of the workspace with the real path ``root``.

    ``inode`` distinguishes the directory from an earlier one with the same path, which has another journal.
    No directory is created before the first change. If none can be created in ``home``, a temporary one is used.
    ``notes`` then reports that a change interrupted by a crash cannot be repaired.
    """

    def __init__(self, root: str, inode: int, home: str | None = None) -> None:
        self.home = os.path.realpath(home or find_state_home())
        key = hashlib.sha256(f"{root}\0{inode}".encode(errors="surrogateescape")).hexdigest()[:16]
        self._directory = os.path.join(self.home, key)  # noqa: PTH118 - os.path throughout
        self._temporary = ""
        self._mutex = threading.RLock()
        self._store_fd = -1
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
        """Return whether the journal's directory contains one of ``names``. Does not take the lock."""
        return any(os.path.lexists(os.path.join(self.directory, name)) for name in names)  # noqa: PTH118

    def has_room(self) -> bool:
        """Return whether there is space for a record: False if the disk or the quota is full. Raises OSError if the
        test fails for any other reason."""
        if not self.exists:
            parent = self._directory
            while not os.path.isdir(parent):  # noqa: PTH112
                parent = os.path.dirname(parent)  # noqa: PTH120
            return shutil.disk_usage(parent).free >= ROOM_BYTES
        with self.lock_journal() as store_fd:
            try:
                write_bytes(store_fd, "room", bytes(ROOM_BYTES))
            except OSError as error:
                if error.errno not in FULL:
                    raise
                return False
            finally:
                tree_ops.remove("room", store_fd)
        return True

    def close(self) -> None:
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = ""

    @contextmanager
    def lock_journal(self) -> Iterator[int]:
        """Lock the journal's directory against other threads and processes, and yield its descriptor."""
        with self._mutex:
            if self._store_fd >= 0:
                yield self._store_fd
                return
            self._store_fd = self._open()
            try:
                with lock_directory(self._store_fd, "the workspace"):
                    yield self._store_fd
            finally:
                store_fd, self._store_fd = self._store_fd, -1
                calls.close(store_fd)

    def create_directory(self, name: str) -> str:
        """Create and return a directory for other data of this workspace. It is removed together with the records."""
        calls.close(self._open())
        os.utime(self.directory)  # its new time prevents removal
        path = os.path.join(self.directory, name)  # noqa: PTH118
        os.makedirs(path, 0o700, exist_ok=True)  # noqa: PTH103
        return path

    def _open(self) -> int:
        if not self.exists:
            self._make()
        return calls.open_root(self.directory)

    def _make(self) -> None:
        try:
            os.makedirs(self._directory, 0o700, exist_ok=True)  # noqa: PTH103
        except OSError as error:
            try:
                self._temporary = tempfile.mkdtemp(prefix="toolcall-adapter-")
            except OSError:
                raise ToolError(
                    f"{error.strerror}: cannot record changes in {self.home}. "
                    "Nothing was changed. The user can choose another directory with XDG_STATE_HOME"
                ) from error
            self.notes.append(
                "changes can be undone only until the program ends, and a crash during a change cannot be repaired: "
                f"{error.strerror} ({self.home}); the user can choose another directory with XDG_STATE_HOME"
            )
        else:
            remove_expired(self.home, self._directory)


def remove_expired(home: str, current: str) -> None:
    """Remove the records of other workspaces whose last change is older than ``MAX_AGE_S``."""
    with suppress(OSError), os.scandir(home) as scan:
        for entry in scan:
            if not _WORKSPACE_KEY.fullmatch(entry.name) or entry.path == current:
                continue  # other data, such as the pinned definitions of MCP servers
            if time.time() - entry.stat(follow_symlinks=False).st_mtime < MAX_AGE_S:
                continue
            with (
                suppress(OSError),
                hold_descriptor(calls.open_root(entry.path)) as directory,
                hold_descriptor(calls.open_lock_file(directory)) as lock_file,
            ):
                if try_lock(lock_file):
                    shutil.rmtree(entry.path, ignore_errors=True)


def lock(descriptor: int, display_path: str) -> None:
    """Lock an open file or directory until it is closed. Raises ToolError if that takes more than ``LOCK_WAIT_S``."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            raise ToolError(f"{display_path} is being written by another program; try again later")
        time.sleep(0.01)


@contextmanager
def lock_directory(dirfd: int, display_path: str) -> Iterator[None]:
    """Lock an open directory against other processes during the ``with`` body. Raises ToolError as `lock` does."""
    with hold_descriptor(calls.open_lock_file(dirfd)) as lock_file:
        lock(lock_file, display_path)
        yield


def sync_directory(dirfd: int) -> None:
    """Make renames in the directory durable, if the file system supports it."""
    with suppress(OSError):
        calls.fsync(dirfd)


def write_record(store: int, state: str, record: ChangeRecord, durable: bool) -> None:
    """Write ``record`` atomically to the directory ``state`` of the journal. Raises ToolError if it is too large."""
    data = record.model_dump_json().encode()
    if len(data) > MAX_STEPS_BYTES:
        raise ToolError(f"a change of {len(record.steps):,} paths at once cannot be recorded; make several changes")
    with open_subdirectory(store, state) as descriptor:
        write_bytes(descriptor, RECORD + ".new", data, durable)
        calls.rename(RECORD + ".new", descriptor, RECORD, descriptor)
        if durable:
            sync_directory(descriptor)


def read_record(store: int, name: str) -> ChangeRecord | None:
    """Return a record, or None if it is missing or unreadable, for instance because the process died while writing."""
    status = tree_ops.find_status(name, store)
    if status is None or not stat.S_ISDIR(status.st_mode):
        return None
    with open_subdirectory(store, name) as descriptor:
        data = read_bytes(descriptor, RECORD, MAX_STEPS_BYTES)
    try:
        return ChangeRecord.model_validate_json(data or b"")
    except ValidationError:
        return None


def write_bytes(dirfd: int, name: str, data: bytes, durable: bool = False) -> None:
    tree_ops.remove(name, dirfd)
    with hold_descriptor(calls.open_file(name, dirfd, NEW_FILE, 0o600)) as descriptor:
        tree_ops.write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)


def read_bytes(dirfd: int, name: str, max_bytes: int = MAX_RECORD_BYTES) -> bytes | None:
    """Return the content of a journal file, or None if it is missing, or larger than ``max_bytes``."""
    status = tree_ops.find_status(name, dirfd)
    if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
        return None
    return tree_ops.read_file(name, dirfd)


def open_subdirectory(store: int, name: str) -> AbstractContextManager[int]:
    return hold_descriptor(calls.open_directory(name, store))


def list_changes(store: int) -> dict[int, str]:
    """Return the directory names of the finished changes by number, oldest first."""
    names = filter(_NUMBERED.fullmatch, tree_ops.list_names(store))
    return {int(name.partition("-")[0]): name for name in names}


def drop_oldest(store: int) -> None:
    """Remove the oldest changes until the remaining ones are within the limits."""
    total = 0
    for rank, name in enumerate(reversed(list(list_changes(store).values()))):
        total += int(name.partition("-")[2])
        if rank >= MAX_CHANGES or total > MAX_KEPT_BYTES:
            tree_ops.remove(name, store)
