"""Report dropped request fields in a response header, once on stderr, and as a metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.protocols.dropped_fields import HEADER, sanitize_for_header, to_header
from adapter.server.asgi_messages import with_headers
from adapter.server.telemetry.logs import log_message
from adapter.server.telemetry.request_info import get_current_request

MAX_NAMES = 1_000
"""Maximum number of field names that are counted, because clients can send any name."""


class DroppedFieldsReport:
    """Counts dropped request fields by route and name."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def with_header(self, answer: ASGIApp, route: str, dropped: Sequence[str]) -> ASGIApp:
        """Return an app that sends the response of ``answer`` with a header that lists the dropped fields."""
        if not dropped:
            return answer
        get_current_request().dropped += dropped
        for name in dict.fromkeys(map(sanitize_for_header, dropped)):
            self._count(f"{route}: {name}")
        header = (HEADER.encode("ascii"), to_header(dropped).encode("ascii"))

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await answer(scope, receive, with_headers(send, header))

        return app

    def _count(self, name: str) -> None:
        if name not in self.counts:
            if len(self.counts) >= MAX_NAMES:
                return
            log_message(f"dropped from a request to {name}")
        self.counts[name] += 1
