"""Entry point of the command line: run a command, and convert errors to messages and exit codes.

Data goes to stdout in UTF-8; messages to the user go to stderr. Exit codes: 0 success, 1 failure (no call found, a
difference, a model that gave up), 2 wrong usage, 3 no model server, 130 stopped with Ctrl-C. Only the requested command
is imported. Control characters in text from models and files are made visible. In ``--json`` output, they are JSON
escapes.
"""

from __future__ import annotations

import codecs
import errno
import gc
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from adapter.cli.escaped_output import print_escaped
from adapter.cli.shell_completion import split_words_to_complete
from adapter.core.errors import AdapterError, TransportError, UsageError


def main() -> None:
    """Run the command line. An `AdapterError` or `OSError` is reported as one message and an exit code."""
    _reopen_closed_streams()
    _configure_encodings()
    try:
        try:
            _run(sys.argv)
        finally:
            sys.stdout.flush()
    except TransportError as error:
        _fail(error, 3)
    except UsageError as error:
        _fail(error, 2)
    except AdapterError as error:
        _fail(error, 1)
    except BrokenPipeError as error:
        sys.stderr.close()  # the reader of our output closed the pipe, which is not an error
        exiting = error.__context__
        raise SystemExit(exiting.code if isinstance(exiting, SystemExit) else 0) from None
    except OSError as error:
        if error.errno not in _DISK_FULL:
            path = "" if error.filename is None else f"{os.fsdecode(error.filename)!r}: "
            advice = _PERMISSION_ADVICE if error.errno in _PERMISSION else _PATH_ADVICE
            _fail(AdapterError(f"{path}{error.strerror or error}. {advice}"), 2 if error.errno in _INVALID_PATH else 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # flushing stdout would fail again
        _fail(AdapterError(f"cannot write: {error.strerror}. Free some space, or write to another disk."), 1)
    except KeyboardInterrupt:
        print("Aborted.", file=sys.stderr)
        raise SystemExit(130) from None


def _run(arguments: list[str]) -> None:
    fast = parse_fast_arguments(arguments[2:]) if arguments[1:2] == ["parse"] else None
    if fast is not None:
        gc.disable()  # parsing creates almost no reference cycles, and collections would take 5 % of its time
        from adapter.cli import parse_output

        parse_output.print_parse_result(**fast)  # type: ignore[arg-type]  # a test compares them with Typer's
        return
    from adapter.cli.app import find_requested_command, make_app

    if words := split_words_to_complete(os.environ):
        os.environ["TERMINAL_WIDTH"] = "1000"  # Typer wraps descriptions, and fish treats each line as a candidate
    make_app(find_requested_command(words or arguments))()


def _reopen_closed_streams() -> None:
    """Connect streams that the shell closed (``>&-``) to the null device. Otherwise, the next opened file would get a
    standard stream's file descriptor."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123  # open until exit


def _configure_encodings() -> None:
    """Write UTF-8 in any locale, but keep a terminal's own encoding. Characters that it lacks are escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and (encoding := codecs.lookup(stream.encoding).name) != "utf-8":
            keeps_encoding = stream.isatty() and encoding != "ascii"
            with suppress(OSError):  # some terminals cannot be reconfigured
                stream.reconfigure(encoding=encoding if keeps_encoding else "utf-8", errors="backslashreplace")


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_INVALID_PATH = (errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP)
"""Error numbers for invalid paths. Their exit code is 2; all others have exit code 1."""
_PERMISSION = (errno.EACCES, errno.EPERM, errno.EROFS)
_PERMISSION_ADVICE = (
    "Choose a path that you may access. To move the program's own files, set HOME, or XDG_STATE_HOME, XDG_CACHE_HOME "
    "and XDG_CONFIG_HOME."
)
_PATH_ADVICE = "Check the path and its permissions."


def _fail(error: AdapterError, code: int) -> NoReturn:
    from adapter.core.text.redaction import Redactor

    with suppress(OSError):  # the message cannot be written; the exit code still holds
        print_escaped(f"adapter: {Redactor(os.environ).redact(str(error))}", to_stderr=True)
    raise SystemExit(code)


OPTIONS = {"--format": "format", "--dialect": "dialect", "--finish-reason": "finish_reason", "--policy": "policy"}
"""Maps each option of `adapter parse` that takes a value to the argument of `print_parse_result`."""


def parse_fast_arguments(words: Sequence[str]) -> dict[str, str | bool] | None:
    """Parse the words after ``adapter parse`` without importing Typer, which is slow. Return the arguments of
    `print_parse_result`, or None if the words need Typer."""
    arguments: dict[str, str | bool] = {}
    rest = iter(words)
    for word in rest:
        value = next(rest, None) if word in OPTIONS else word
        name = "as_json" if word == "--json" else OPTIONS.get(word, "file")
        if value is None or name in arguments or (value.startswith("-") and value != "-" and name != "as_json"):
            return None
        arguments[name] = name == "as_json" or value
    return arguments
