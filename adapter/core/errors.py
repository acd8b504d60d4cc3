"""The package's exceptions, sorted by who must act.

::

    AdapterError
    ├── FormatError       the model: its text cannot be decoded as a call
    ├── ToolError         the model: the call was decoded, but failed
    │   ├── EditError     ... because patches do not match the file; lists each failure
    │   └── DeniedError   ... because a rule, the approval mode or the user denied it
    ├── TransportError    the user: a server is down, refuses, or does not have the model
    └── UsageError        the developer: wrong use of the API or the command line

A message names the actual value, the expected one, the nearest valid one and the next step. Errors for the model never
reach a user as a traceback: they become tool results.
"""

from __future__ import annotations

from collections.abc import Sequence


class AdapterError(Exception):
    """Base class of the errors that this package raises deliberately."""


class FormatError(AdapterError):
    """A tool call in the model's text cannot be decoded."""


class ToolError(AdapterError):
    """A tool call failed. ``str(error)`` is written for the model."""

    sandbox: str = ""
    """Description of the sandbox in which the operation failed, as in `ToolResult.sandbox`; "" if nothing was run."""


class EditError(ToolError):
    """Patches do not match the file. Nothing was written.

    ``failures`` has one sentence per failed patch. ``kinds`` are the failures' categories: "not found", "ambiguous",
    "already applied", "no change", "overlapping", "dependent", "breaks syntax", "invalid".
    """

    def __init__(self, message: str, failures: Sequence[str] = (), kinds: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.failures, self.kinds = tuple(failures), tuple(kinds)


class DeniedError(ToolError):
    """A rule, the approval mode or the user denied a tool call."""


class TransportError(AdapterError):
    """A model server is unreachable, or its response is unusable. ``str(error)`` is written for the user."""


class UsageError(AdapterError, ValueError):
    """The library or the command line was used incorrectly."""
