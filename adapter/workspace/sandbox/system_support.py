"""Refuse commands on systems where they cannot be supervised."""

from __future__ import annotations

import sys

from adapter.core.errors import ToolError


def check_system() -> None:
    """Raise ToolError on Windows, where no process can be supervised."""
    if sys.platform == "win32":
        raise ToolError(
            "commands do not run on Windows, because their processes could not be confined or ended; nothing was run. "
            "Use the file tools, or ask the user to run adapter in WSL"
        )
