"""The user's directories for this program's configuration and cache, on each platform."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def find_config_directory() -> Path:
    """Return the user's directory for this program's configuration."""
    if base := os.environ.get("XDG_CONFIG_HOME"):
        return Path(base) / "toolcall-adapter"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "toolcall-adapter"
    return Path.home() / ".config" / "toolcall-adapter"


def find_cache_directory() -> Path:
    """Return the user's directory for this program's cache."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "toolcall-adapter"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "toolcall-adapter" / "Cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "toolcall-adapter"
