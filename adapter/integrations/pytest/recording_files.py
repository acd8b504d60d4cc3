"""Recordings as files that tests own: read for a test, and its part written anew."""

from __future__ import annotations

import json
from pathlib import Path

from adapter.core.errors import UsageError
from adapter.protocols.recorded_exchange import RecordedExchange, holds_exchanges, read_exchanges


def load_exchanges(file: Path, conversation: str) -> tuple[list[RecordedExchange], bool]:
    """Those of ``conversation``, where ``file`` has any, and True; else all. Raises UsageError for another file."""
    exchanges = _read(file)
    own = [each for each in exchanges if each.conversation == conversation]
    return (own, True) if own else (exchanges, False)


def replace_conversation(file: Path, conversation: str, recorded: Path) -> None:
    """Put what ``recorded`` holds in the place of what ``file`` has of ``conversation``; the rest stays."""
    kept = [each for each in _read(file) if each.conversation != conversation] if file.exists() else []
    own = [each.model_copy(update={"conversation": conversation}) for each in _read(recorded)]
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    new.write_text("".join(f"{json.dumps(each.model_dump(mode='json'))}\n" for each in [*kept, *own]), encoding="utf-8")
    new.replace(file)


def _read(file: Path) -> list[RecordedExchange]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"there is no recording {str(file)!r}") from error
    if text.strip() and not holds_exchanges(text):
        raise UsageError(
            f"{file.name} is no recording; `adapter serve --record` and `wrap(client, record=...)` write those"
        )
    return read_exchanges(text, file.name)
