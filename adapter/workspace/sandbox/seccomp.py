"""Build system call filters that restrict the address families of sockets, and the truncation of files.

Landlock restricts only TCP, and bubblewrap, if it shares the machine's network, also shares abstract Unix sockets. So
`socket` is filtered by its first argument. `socketpair` is not filtered, since it reaches no other process. io_uring is
blocked because it opens sockets without `socket`, and the kernel's keyring because it contains the user's secrets. The
call numbers of another architecture are blocked because they mean different calls.

Landlock before ABI 3 (Linux 6.2) does not restrict truncation: a program can empty any file by its path, or by opening
it for reading only. A filter sees no path, so it blocks both calls everywhere. Files that are opened for writing, which
Landlock restricts, can still be truncated.

The filter is classic BPF as read by seccomp(2): ``struct sock_filter`` (code, jump if true, jump if false, constant)
over ``struct seccomp_data`` (number at 0, architecture at 4, arguments from 16).
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Sequence

_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _ARGUMENT_SIZE = 0, 4, 16, 8
_X32 = 0x40000000
"""Lowest number of the x32 interface on x86-64."""
_IO_URING = (425, 426, 427)
_OPENAT2 = 437
_O_ACCMODE, _O_TRUNC = 0o3, 0o1000
_NOT_FOR_WRITING = (0, 3)
"""Access modes that need no right to write: reading, and the mode for `ioctl` alone."""
_MACHINES: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "x86_64": (0xC000003E, 41, (248, 249, 250)),
    "aarch64": (0xC00000B7, 198, (217, 218, 219)),
}
"""For each machine: AUDIT_ARCH, and the call numbers of `socket` and of add_key, request_key and keyctl."""
_TRUNCATING = {"x86_64": (76, ((2, 1), (257, 2), (304, 2))), "aarch64": (45, ((56, 2), (265, 2)))}
"""For each machine: the call number of `truncate`, and the call number and index of ``flags`` for open, openat and
open_by_handle_at."""

LOCAL = (1, 2, 10, 16)
"""Address families for programs in a private network, which contains no other machine: AF_UNIX, AF_INET, AF_INET6 and
AF_NETLINK, as Linux numbers them."""
INTERNET = LOCAL[1:]
"""Address families for programs in the machine's network. With Unix sockets, they could control running daemons."""


def build_socket_filter(
    families: Sequence[int], machine: str = platform.machine(), *, truncation: bool = True
) -> bytes | None:
    """Build a filter that allows `socket` only for ``families``. Return None for an unknown machine.

    ``truncation``: whether to allow the truncation of files that are not open for writing.
    """
    if machine not in _MACHINES:
        return None
    architecture, socket_number, keyring = _MACHINES[machine]
    refused = _REFUSE | errno.EPERM
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, refused),
        (_LOAD, 0, 0, _NUMBER),
        (_IF_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, refused),
    ]
    for number in (*_IO_URING, *keyring):
        lines += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, refused)]
    lines += () if truncation else _refuse_truncation(*_TRUNCATING[machine])
    lines += [(_IF_EQUAL, 1, 0, socket_number), (_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    for family in families:
        lines += [(_IF_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    lines.append((_RETURN, 0, 0, _REFUSE | errno.EACCES))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _refuse_truncation(truncate: int, opening: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the instructions that refuse truncation. They follow the instruction that loads the call number."""
    refuse = (_RETURN, 0, 0, _REFUSE | errno.EACCES)
    yield from ((_IF_EQUAL, 0, 1, truncate), refuse)
    yield from ((_IF_EQUAL, 0, 1, _OPENAT2), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS))  # its flags are out of reach
    for number, index in opening:
        tests = [line for mode in _NOT_FOR_WRITING for line in ((_IF_EQUAL, 0, 1, _O_TRUNC | mode), refuse)]
        flags = (_LOAD, 0, 0, _FIRST_ARGUMENT + index * _ARGUMENT_SIZE)
        body = [flags, (_AND, 0, 0, _O_TRUNC | _O_ACCMODE), *tests, (_RETURN, 0, 0, _ALLOW)]
        yield from ((_IF_EQUAL, 0, len(body), number), *body)
