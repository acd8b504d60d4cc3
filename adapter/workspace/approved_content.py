"""Remember the content approved by the user, such as a tools file or a skill, by its hash in the state directory."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 4 << 20
"""Maximum size of the file of hashes, in bytes. A larger file is ignored, and all content then needs approval again."""


class ApprovedContent:
    """Hashes of all approved content of one ``kind``, such as ``skills``, in a file in the directory ``home``."""

    def __init__(self, home: str, kind: str) -> None:
        self._file = Path(home, f"trusted-{kind}")

    def holds(self, content: bytes) -> bool:
        """Return whether exactly this content was approved."""
        with suppress(OSError, UnicodeDecodeError):
            if self._file.stat().st_size <= MAX_BYTES:
                return hashlib.sha256(content).hexdigest() in self._file.read_text(encoding="utf-8").split()
        return False

    def add(self, content: bytes) -> None:
        """Remember the content as approved. If it cannot be stored, the user is asked again next time."""
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._file.open("a", encoding="utf-8") as opened:
                opened.write(f"{hashlib.sha256(content).hexdigest()}\n")
