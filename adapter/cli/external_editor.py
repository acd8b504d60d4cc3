"""Lets a person change a text in the editor of their own: ``$VISUAL``, ``$EDITOR``, or vi."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from adapter.core.errors import UsageError

NO_EDITOR = "no editor is known: set $EDITOR (EDITOR=nano, EDITOR='code --wait')"


def edit_in_external_editor(text: str, name: str) -> str:
    """``text`` as the person left it. ``name``: the file that it is of, by whose ending editors know the language.

    Raises UsageError when there is no editor, or it fails, or leaves what is no UTF-8.
    """
    words = _editor()
    with tempfile.TemporaryDirectory(prefix="adapter-edit-") as folder:
        ending = re.search(r"\.[A-Za-z0-9]{1,16}$", name)
        file = Path(folder) / f"change{ending[0] if ending else ''}"
        file.write_text(text, encoding="utf-8", newline="")
        # A program that fills the terminal must have it, also where our answer goes into a pipe.
        screen = None if sys.stdout.isatty() else sys.stderr
        try:
            code = subprocess.run([*words, str(file)], stdin=sys.stdin, stdout=screen, check=False).returncode
            if code:
                raise UsageError(f"{words[0]} ended with code {code}, so its text was not taken")
            return file.read_bytes().decode("utf-8")
        except OSError as error:
            raise UsageError(f"{words[0]} cannot be used: {error.strerror}. Set $EDITOR to another editor") from error
        except UnicodeDecodeError:
            raise UsageError(f"{words[0]} left a text that is not UTF-8; it was not taken") from None


def _editor() -> list[str]:
    stated = os.environ.get("VISUAL") or os.environ.get("EDITOR") or shutil.which("vi") or ""
    try:
        words = shlex.split(stated)
    except ValueError as error:
        raise UsageError(f"$EDITOR is {stated!r}, which is no command line: {error}") from None
    if not words:
        raise UsageError(NO_EDITOR)
    return words
