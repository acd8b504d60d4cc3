"""Name the command that adds an extra to this installation: with pip, uv or pipx, whichever installed the program."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = "toolcall-adapter"


def build_install_command(extra: str) -> str:
    """Return the command that installs ``extra`` where this program runs.

    Each tool leaves a file in the environments that it creates: `uv tool` ``uv-receipt.toml``, pipx
    ``pipx_metadata.json``. `uv tool install` replaces the extras, so those that are installed are repeated.
    """
    environment = Path(sys.prefix)
    receipt = environment / "uv-receipt.toml"
    if receipt.is_file() or getattr(sys, "frozen", False):  # nothing can be added to the one file
        extras = ",".join(dict.fromkeys([*_read_extras(receipt), extra]))
        return f"uv tool install '{PACKAGE}[{extras}]'"
    if (environment / "pipx_metadata.json").is_file():
        return f"pipx inject {PACKAGE} '{PACKAGE}[{extra}]'"
    return f"pip install '{PACKAGE}[{extra}]'"


def _read_extras(receipt: Path) -> list[str]:
    import tomllib

    try:
        requirements = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]["requirements"]
        (own,) = [each for each in requirements if each["name"] == PACKAGE]
        return [str(extra) for extra in own.get("extras", ())]
    except (OSError, ValueError, LookupError, TypeError):  # an unknown form of the receipt
        return []
