"""What the server says on standard error: plain words, or lines of JSON, of which each request has one."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from adapter.core.events import Json
from adapter.server.telemetry.request_info import RequestInfo, current_request

_as_json = False


def log_message(note: str) -> None:
    """A note to whoever started the server."""
    if _as_json:
        _write("info", {"message": note})
    else:
        print(note, file=sys.stderr, flush=True)


def use_json_logs() -> None:
    """From here on all is JSON, what libraries log as well."""
    global _as_json
    _as_json = True
    logging.basicConfig(handlers=[_LogHandler()], level=logging.WARNING, force=True)


class RequestLogger:
    """An observer that writes a line for each request."""

    def begun(self, _seen: RequestInfo, _headers: Mapping[str, str]) -> None:
        pass

    def ended(self, seen: RequestInfo) -> None:
        account = seen.account
        read, written = account.tokens or (None, None)
        said: dict[str, Json] = {
            "message": f"{seen.method} {seen.route} {seen.status}",
            "method": seen.method,
            "route": seen.route,
            "status": seen.status,
            "seconds": round(seen.seconds, 4),
            "first_piece_seconds": None if seen.first_s is None else round(seen.first_s, 4),
            "model": seen.model,
            "format": seen.format,
            "calls": account.calls,
            "fixes": dict(account.fixes),
            "refused_calls": dict(account.rejected),
            "asked_again": dict(account.asked_again),
            "left_out": seen.left_out,
            "prompt_tokens": read,
            "completion_tokens": written,
            "upstream_retries": seen.retries,
            "error": seen.error,
            "broken_off": not seen.is_whole,
        }
        _write("info", {key: value for key, value in said.items() if value not in (None, "", 0, {}, [], False)})


class _LogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = logging.Formatter().format(record)
        except (TypeError, ValueError):  # what is logged does not fit its own words
            message = str(record.msg)
        _write(record.levelname.lower(), {"logger": record.name, "message": message})


def _write(level: str, said: Mapping[str, Json]) -> None:
    """One line, in one piece: several workers write to the same place."""
    head: dict[str, Json] = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level}
    if request := current_request().id:
        head["request_id"] = request
    sys.stderr.write(json.dumps(head | dict(said)) + "\n")
    sys.stderr.flush()
