"""Starts the program from the one file: the command line, or a Python file that one of its processes runs.

The program runs workers as ``sys.executable -I -X utf8 FILE``, which is this executable here.
"""

from __future__ import annotations

import os
import runpy
import sys

PYTHON_FLAGS = {"-I": 0, "-P": 0, "-S": 0, "-X": 1}
"""Options of Python that the program uses, with their number of values."""


def main() -> None:
    restore_library_path()
    arguments = sys.argv[1:]
    while arguments and arguments[0] in PYTHON_FLAGS:
        del arguments[: 1 + PYTHON_FLAGS[arguments[0]]]
    if len(arguments) == len(sys.argv) - 1 and arguments[:1] not in (["-c"], ["-m"]):
        from adapter.cli.main import main as run_command_line

        run_command_line()
        return
    kind, *rest = arguments
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(kind, run_name="__main__")


def restore_library_path() -> None:
    """Undo the change that PyInstaller makes to the environment, which other programs would inherit."""
    original = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    if original is not None:
        os.environ["LD_LIBRARY_PATH"] = original
    else:
        os.environ.pop("LD_LIBRARY_PATH", None)


main()
