"""One tree of errors, sorted by who must act.

::

    AdapterError
    ├── FormatError       the model: its text is not a call that can be read
    ├── ToolError         the model: the call was read, but cannot be done as asked
    │   ├── EditError     ... because patches do not fit the file; lists every one
    │   └── DeniedError   ... because a rule, the approve mode or the user is against it
    ├── TransportError    the user: a server is down, refuses, or has no such model
    └── UsageError        the developer: our API or command line was misused

A message says what was got, what was expected, the nearest valid thing and the
next step. Model errors never reach a user as a traceback: they become results.
"""

from __future__ import annotations

from collections.abc import Sequence


class AdapterError(Exception):
    """Base of everything this package raises on purpose."""


class FormatError(AdapterError):
    """Text that was meant as a call and cannot be read as one."""


class ToolError(AdapterError):
    """A call that cannot be done. ``str(error)`` is for the model."""

    sandbox: str = ""
    """What confined what was begun and failed, as in `ToolResult.sandbox`; empty when nothing was."""


class EditError(ToolError):
    """Patches that do not fit. ``failures`` holds one sentence per failing patch, ``kinds`` what kind each is:
    "not found", "ambiguous", "already applied", "no change", "overlapping", "dependent", "breaks syntax", "invalid"."""

    def __init__(self, message: str, failures: Sequence[str] = (), kinds: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.failures, self.kinds = tuple(failures), tuple(kinds)


class DeniedError(ToolError):
    """A call that may not be done."""


class TransportError(AdapterError):
    """A model server that does not answer as it should. ``str(error)`` is for the user."""


class UsageError(AdapterError, ValueError):
    """Wrong use of the library or the command line."""
