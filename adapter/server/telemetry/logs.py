"""Log to standard error, as plain text, or as JSON lines that include one line per request."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

from adapter.core.events import Json
from adapter.server.telemetry.request_info import RequestInfo, get_current_request

_as_json = False


def log_message(note: str) -> None:
    """Log a message for the user of `adapter serve`."""
    if _as_json:
        _write("info", {"message": note})
    else:
        _write_line(note)


def use_json_logs() -> None:
    """Write all log messages as JSON from now on, including messages of libraries."""
    global _as_json
    _as_json = True
    logging.basicConfig(handlers=[_LogHandler()], level=logging.WARNING, force=True)


class RequestLogger:
    """An observer that logs one line for each request."""

    def on_start(self, _request: RequestInfo, _headers: Mapping[str, str]) -> None:
        pass

    def on_end(self, request: RequestInfo) -> None:
        stats = request.stats
        prompt, completion = stats.tokens or (None, None)
        fields: dict[str, Json] = {
            "message": f"{request.method} {request.route} {request.status}",
            "method": request.method,
            "route": request.route,
            "status": request.status,
            "seconds": round(request.seconds, 4),
            "first_piece_seconds": None if request.first_s is None else round(request.first_s, 4),
            "model": request.model,
            "format": request.format,
            "calls": stats.calls,
            "fixes": dict(stats.fixes),
            "refused_calls": dict(stats.rejected),
            "asked_again": dict(stats.asked_again),
            "dropped_calls": dict(stats.dropped),
            "left_out": request.dropped,
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "upstream_retries": request.retries,
            "error": request.error,
            "broken_off": not request.is_whole,
        }
        _write("info", {key: value for key, value in fields.items() if value not in (None, "", 0, {}, [], False)})


class _LogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = logging.Formatter().format(record)
        except (TypeError, ValueError):  # the arguments do not fit the message
            message = str(record.msg)
        _write(record.levelname.lower(), {"logger": record.name, "message": message})


def _write(level: str, fields: Mapping[str, Json]) -> None:
    """Write a line with a single call, because several workers share the stream."""
    head: dict[str, Json] = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level}
    if request := get_current_request().id:
        head["request_id"] = request
    _write_line(json.dumps(head | dict(fields)))


def _write_line(line: str) -> None:
    with suppress(OSError):  # a full disk, or a pipe that its reader closed, must not stop the server
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
