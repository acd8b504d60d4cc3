"""Remember (pin) the tool definitions of third-party MCP servers, to detect changes.

The user's state folder has one file per server. The file contains the hash of each tool's definition and, for diffs,
the definition itself unless it is long. Models treat descriptions like a prompt, so a server that was harmless when it
was approved can change a model's behavior later ("rug pull").
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from adapter.core.text.diffs import render_unified_diff

MAX_STORED = 20_000
"""Maximum length of a stored definition, in characters. For a longer definition, only the hash is stored."""
MAX_FILE_BYTES = 64 << 20
"""Maximum size of a server's file, in bytes. A larger file is ignored."""


class DefinitionPins:
    """The pinned definitions of the server ``identity``, stored in ``folder``."""

    def __init__(self, identity: str, folder: Path) -> None:
        self._file = folder / f"{hashlib.sha256(identity.encode(errors='surrogatepass')).hexdigest()[:16]}.json"
        self._lock = threading.Lock()
        self._pinned: dict[str, dict[str, str]] = {}
        with suppress(OSError, ValueError, RecursionError):
            if self._file.is_file() and self._file.stat().st_size <= MAX_FILE_BYTES:
                stored = json.loads(self._file.read_bytes())
                self._pinned = {
                    name: {key: str(text) for key, text in pinned.items()}
                    for name, pinned in (stored.items() if isinstance(stored, dict) else ())
                    if isinstance(pinned, dict)
                }
        self.is_known = bool(self._pinned)

    def describe_change(self, name: str, definition: Any) -> str:
        """Describe the change to a tool's definition with a diff. Return "" if nothing changed, or if the server is
        new."""
        text = _to_json(definition)
        pinned = self._pinned.get(name)
        if pinned is None:
            shown = _format_json(text) if len(text) <= MAX_STORED else text[:MAX_STORED]
            return f"a new tool from a known server:\n{shown}" if self.is_known else ""
        if pinned.get("hash") == _hash(text):
            return ""
        if len(text) > MAX_STORED or not pinned.get("text"):
            return "its definition has changed and is too long to show"
        return "its definition has changed:\n" + render_unified_diff(
            _format_json(pinned["text"]), _format_json(text), name
        )

    def save(self, definitions: dict[str, Any]) -> None:
        """Pin definitions, given by tool name. If they cannot be stored, changes are reported again next time."""
        with self._lock, suppress(OSError):
            for name, definition in definitions.items():
                text = _to_json(definition)
                self._pinned[name] = {"hash": _hash(text), "text": text if len(text) <= MAX_STORED else ""}
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = self._file.with_suffix(f".{os.getpid()}.{threading.get_ident()}.new")
            new.write_text(json.dumps(self._pinned), encoding="utf-8")
            new.replace(self._file)


def _to_json(definition: Any) -> str:
    return json.dumps(definition, sort_keys=True, default=str)


def _format_json(text: str) -> str:
    """Format JSON with one value per line. Text that is not JSON is returned unchanged, because the user may have
    edited the file."""
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
    except (ValueError, RecursionError):
        return text


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
