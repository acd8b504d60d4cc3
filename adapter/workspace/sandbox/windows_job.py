"""Job objects: Windows ends, limits and counts a program together with all its descendants.

A process that is created by a process of the job belongs to the job, and cannot leave it. Closing the last handle of
the job ends all its processes, so they also end with this process. Source: Job Objects (Microsoft Learn).
"""

from __future__ import annotations

import ctypes
import sys
from subprocess import Popen
from typing import Any

_ACTIVE_PROCESS, _JOB_MEMORY, _DIE_ON_UNHANDLED_EXCEPTION, _KILL_ON_JOB_CLOSE = 0x8, 0x200, 0x400, 0x2000
_BASIC_ACCOUNTING, _EXTENDED_LIMITS = 1, 9


class _ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION"""

    _fields_ = (
        *(("times", ctypes.c_int64 * 2), ("flags", ctypes.c_uint32), ("working_set", ctypes.c_size_t * 2)),
        *(("processes", ctypes.c_uint32), ("affinity", ctypes.c_size_t), ("priority", ctypes.c_uint32 * 2)),
        *(("io", ctypes.c_uint64 * 6), ("process_memory", ctypes.c_size_t), ("job_memory", ctypes.c_size_t)),
        ("peaks", ctypes.c_size_t * 2),
    )


class _Accounting(ctypes.Structure):
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION"""

    _fields_ = (
        ("times", ctypes.c_int64 * 4),
        ("page_faults", ctypes.c_uint32),
        ("total", ctypes.c_uint32),
        ("active", ctypes.c_uint32),
        ("terminated", ctypes.c_uint32),
    )


class JobObject:
    """A job of at most ``max_processes`` processes, which together use at most the machine's memory."""

    def __init__(self, max_processes: int) -> None:
        """Create the job. Raises OSError."""
        self._kernel: Any = _load_library("kernel32")
        self._handle: ctypes.c_void_p | None = ctypes.c_void_p(self._call("CreateJobObjectW", None, None))
        flags = _KILL_ON_JOB_CLOSE | _DIE_ON_UNHANDLED_EXCEPTION | _ACTIVE_PROCESS
        limits = _ExtendedLimits(flags=flags, processes=max_processes)
        kilobytes = ctypes.c_uint64()
        if self._kernel.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes)):
            limits.flags |= _JOB_MEMORY
            limits.job_memory = kilobytes.value * 1_024
        size = ctypes.sizeof(limits)
        self._call("SetInformationJobObject", self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), size)

    def adopt(self, process: Popen[bytes]) -> None:
        """Add a process that was created suspended, and let it run. Raises OSError."""
        handle = ctypes.c_void_p(int(process._handle))  # type: ignore[attr-defined]
        self._call("AssignProcessToJobObject", self._handle, handle)
        if _load_library("ntdll").NtResumeProcess(handle):
            raise OSError("the process could not be resumed")

    def count(self) -> int:
        """Return the number of running processes. Raises OSError."""
        numbers = _Accounting()
        size = ctypes.sizeof(numbers)
        self._call("QueryInformationJobObject", self._handle, _BASIC_ACCOUNTING, ctypes.byref(numbers), size, None)
        return int(numbers.active)

    def terminate(self) -> None:
        """End all processes. Thread-safe."""
        if self._handle is not None:
            self._kernel.TerminateJobObject(self._handle, 1)

    def close(self) -> None:
        """End all processes, and release the job."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._kernel.CloseHandle(handle)

    def _call(self, function: str, *arguments: object) -> int:
        result = int(self._kernel[function](*arguments))
        if not result:
            raise _build_last_error()
        return result


def _load_library(name: str) -> Any:
    if sys.platform == "win32":
        return ctypes.WinDLL(name, use_last_error=True)
    raise OSError(f"this system has no library {name}")


def _build_last_error() -> OSError:
    if sys.platform == "win32":
        return ctypes.WinError(ctypes.get_last_error())
    return OSError("this system has no job objects")
