"""Build the command that installs an optional extra, for the tool that installed this program: pip, uv or pipx."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = "toolcall-adapter"


def build_install_command(extra: str) -> str:
    """Return the command that installs ``extra`` in this program's environment.

    A file in the environment shows how the program was installed: ``uv-receipt.toml`` with `uv tool`,
    ``pipx_metadata.json`` with pipx. `uv tool install` replaces all extras, so the command repeats the installed ones.
    """
    environment = Path(sys.prefix)
    receipt = environment / "uv-receipt.toml"
    if receipt.is_file() or getattr(sys, "frozen", False):  # the standalone executable cannot be extended
        extras = ",".join(dict.fromkeys([*_read_extras(receipt), extra]))
        return f"uv tool install '{PACKAGE}[{extras}]'"
    if (environment / "pipx_metadata.json").is_file():
        return f"pipx inject {PACKAGE} '{PACKAGE}[{extra}]'"
    return f"pip install '{PACKAGE}[{extra}]'"


def _read_extras(receipt: Path) -> list[str]:
    import tomllib

    try:
        requirements = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]["requirements"]
        (requirement,) = [each for each in requirements if each["name"] == PACKAGE]
        return [str(extra) for extra in requirement.get("extras", ())]
    except (OSError, ValueError, LookupError, TypeError):  # a receipt in an unknown form
        return []
