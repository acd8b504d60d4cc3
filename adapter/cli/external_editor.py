"""Open text in the user's editor: ``$VISUAL``, ``$EDITOR`` or vi."""

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

NO_EDITOR = "no editor found: set $EDITOR (EDITOR=nano, EDITOR='code --wait')"


def edit_in_external_editor(text: str, name: str) -> str:
    """Open ``text`` in the editor, and return the edited text. ``name`` is a file name; editors infer the language from
    its suffix.

    Raises UsageError if no editor is found, the editor fails, or its result is not UTF-8.
    """
    words = _find_editor_command()
    with tempfile.TemporaryDirectory(prefix="adapter-edit-") as folder:
        suffix = re.search(r"\.[A-Za-z0-9]{1,16}$", name)
        file = Path(folder) / f"change{suffix[0] if suffix else ''}"
        file.write_text(text, encoding="utf-8", newline="")
        # A full-screen editor needs the terminal, even if our standard output is a pipe.
        screen = None if sys.stdout.isatty() else sys.stderr
        try:
            code = subprocess.run([*words, str(file)], stdin=sys.stdin, stdout=screen, check=False).returncode
            if code:
                raise UsageError(f"{words[0]} exited with code {code}; its text was ignored")
            return file.read_bytes().decode("utf-8")
        except OSError as error:
            raise UsageError(f"cannot run {words[0]}: {error.strerror}. Set $EDITOR to another editor.") from error
        except UnicodeDecodeError:
            raise UsageError(f"{words[0]} saved text that is not valid UTF-8; the text was ignored") from None


def _find_editor_command() -> list[str]:
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or shutil.which("vi") or ""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"$EDITOR is {command!r}, which is not a valid command line: {error}") from None
    if not words:
        raise UsageError(NO_EDITOR)
    return words
