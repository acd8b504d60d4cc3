"""The command line: ``adapter parse | read | derive | prompt | edit | undo | run | chat | mcp | serve | probe ...``.

Data goes to stdout in UTF-8, everything for people to stderr. Exit codes: 0 done, 1 not
done (nothing found, a difference, a model that gave up), 2 wrong use, 3 no
model server, 130 stopped with Ctrl-C. The command that is asked for is loaded alone, and imports
what it needs when it runs. What models and files say is printed with its control characters
spelled out; ``--json`` has every character, escaped.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from contextlib import suppress
from typing import NoReturn

from adapter.cli.fast_path import parse_fast_arguments
from adapter.cli.terminal_output import print_escaped
from adapter.core.errors import AdapterError, TransportError, UsageError


def main() -> None:
    """Run the command line; errors of ours become one message and an exit code."""
    _open_what_is_closed()
    _write_any_character()
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
        sys.stderr.close()  # the reader of our output has gone; that is no error of ours
        ended = error.__context__
        raise SystemExit(ended.code if isinstance(ended, SystemExit) else 0) from None
    except OSError as error:
        if error.errno not in _FULL:
            place = "" if error.filename is None else f"{os.fsdecode(error.filename)!r}: "
            _fail(
                AdapterError(f"{place}{error.strerror or error}. {_ADVICE.get(error.errno or 0, _CHECK)}"),
                2 if error.errno in _PATHS else 1,
            )
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what waits there would fail once more
        _fail(AdapterError(f"cannot write: {error.strerror}. Make room, or write elsewhere."), 1)
    except KeyboardInterrupt:
        print("Aborted.", file=sys.stderr)
        raise SystemExit(130) from None


def _run(arguments: list[str]) -> None:
    fast = parse_fast_arguments(arguments[2:]) if arguments[1:2] == ["parse"] else None
    if fast is not None:
        from adapter.cli import parse_output

        parse_output.print_parse_result(**fast)  # type: ignore[arg-type]  # a test compares them with what Typer passes
        return
    from adapter.cli.app import make_app, requested_command

    make_app(requested_command(arguments))()


def _open_what_is_closed() -> None:
    """A stream that the shell closed (``>&-``) leads nowhere; else the next file that is opened took its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123  # for as long as the program runs


def _write_any_character() -> None:
    """Whatever the locale says, but for what a terminal cannot show, which is spelled out."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and (encoding := codecs.lookup(stream.encoding).name) != "utf-8":
            is_told = stream.isatty() and encoding != "ascii"
            with suppress(OSError):  # of a terminal opened in an odd way: then it stays as it was
                stream.reconfigure(encoding=encoding if is_told else "utf-8", errors="backslashreplace")


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PATHS = (errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP)
"""A path that cannot be meant: wrong use, where the others are the machine's faults."""
_UNWRITABLE = (
    "Give a place that you may use; HOME, or XDG_STATE_HOME, XDG_CACHE_HOME and XDG_CONFIG_HOME, name those of the "
    "program's own files."
)
_ADVICE = dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _UNWRITABLE)
_CHECK = "Check the path, and that this user may use it."


def _fail(error: AdapterError, code: int) -> NoReturn:
    from adapter.core.text.redaction import Redactor

    print_escaped(f"adapter: {Redactor(os.environ).redact(str(error))}", to_stderr=True)
    raise SystemExit(code)
