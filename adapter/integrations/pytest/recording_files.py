"""Load a test's exchanges from a recording file, and replace them."""

from __future__ import annotations

import json
from pathlib import Path

from adapter.core.argument_checks import explain_read_error
from adapter.core.errors import UsageError
from adapter.protocols.recorded_exchange import RecordedExchange, is_exchange_recording, read_exchanges


def load_exchanges(file: Path, conversation: str) -> tuple[list[RecordedExchange], bool]:
    """Return the exchanges of ``conversation`` and True or, if the file contains none, all its exchanges and False.

    Raises UsageError if the file is not a recording.
    """
    exchanges = _read(file)
    own_exchanges = [exchange for exchange in exchanges if exchange.conversation == conversation]
    return (own_exchanges, True) if own_exchanges else (exchanges, False)


def replace_conversation(file: Path, conversation: str, recorded: Path) -> None:
    """Replace the exchanges of ``conversation`` in ``file`` with the exchanges in ``recorded``."""
    others = [exchange for exchange in _read(file) if exchange.conversation != conversation] if file.exists() else []
    own_exchanges = [exchange.model_copy(update={"conversation": conversation}) for exchange in _read(recorded)]
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    new.write_text(
        "".join(f"{json.dumps(exchange.model_dump(mode='json'))}\n" for exchange in [*others, *own_exchanges]),
        encoding="utf-8",
    )
    new.replace(file)


def _read(file: Path) -> list[RecordedExchange]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"recording {str(file)!r} not found; record it with --record-model") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the recording {str(file)!r}: {explain_read_error(error)}") from error
    if text.strip() and not is_exchange_recording(text):
        raise UsageError(
            f"{file.name} is not a recording; create one with `adapter serve --record` or `wrap(client, record=...)`"
        )
    return read_exchanges(text, file.name)
