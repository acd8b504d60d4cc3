"""What the tools of foreign servers said they were when they were used last: a definition that changes is noticed.

One file for each server in the user's state folder: by tool the hash of its definition, and the definition itself as
far as it is short, to show what is different. A description is read by the model like a prompt, so that a server that
behaved when it was looked at can change what the model does later ("rug pull").
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from adapter.core.text.diffs import unified_diff

MAX_KEPT = 20_000
"""Characters of a definition that are kept to be shown; of a longer one only the hash is."""
MAX_FILE_BYTES = 64 << 20
"""Of the definitions of one server; a larger file is not read, and counts as none."""


class DefinitionPins:
    """The definitions of the server ``identity``; ``folder``: where they are kept."""

    def __init__(self, identity: str, folder: Path) -> None:
        self._file = folder / f"{hashlib.sha256(identity.encode(errors='surrogatepass')).hexdigest()[:16]}.json"
        self._writing = threading.Lock()
        self._pinned: dict[str, dict[str, str]] = {}
        with suppress(OSError, ValueError, RecursionError):
            if self._file.stat().st_size <= MAX_FILE_BYTES:
                read = json.loads(self._file.read_bytes())
                self._pinned = {
                    name: {key: str(text) for key, text in kept.items()}
                    for name, kept in read.items()
                    if isinstance(kept, dict)
                }
        self.is_known = bool(self._pinned)

    def describe_change(self, name: str, definition: Any) -> str:
        """How the tool's definition is other than it was, as a diff; "" when it is not, or was never seen."""
        text = _text(definition)
        kept = self._pinned.get(name)
        if kept is None:
            shown = _for_people(text) if len(text) <= MAX_KEPT else text[:MAX_KEPT]
            return f"a new tool of a server that was used before:\n{shown}" if self.is_known else ""
        if kept.get("hash") == _hash(text):
            return ""
        if len(text) > MAX_KEPT or not kept.get("text"):
            return "its definition has changed, and is too long to be shown"
        return "its definition has changed:\n" + unified_diff(_for_people(kept["text"]), _for_people(text), name)

    def save(self, definitions: dict[str, Any]) -> None:
        """Take these for what the tools are from now on. What cannot be written is asked about again next time."""
        with self._writing, suppress(OSError):
            for name, definition in definitions.items():
                text = _text(definition)
                self._pinned[name] = {"hash": _hash(text), "text": text if len(text) <= MAX_KEPT else ""}
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = self._file.with_suffix(f".{os.getpid()}.{threading.get_ident()}.new")
            new.write_text(json.dumps(self._pinned), encoding="utf-8")
            new.replace(self._file)


def _text(definition: Any) -> str:
    return json.dumps(definition, sort_keys=True, default=str)


def _for_people(text: str) -> str:
    """A value to a line. What is kept is text of ours, unless somebody changed the file."""
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
    except (ValueError, RecursionError):
        return text


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
