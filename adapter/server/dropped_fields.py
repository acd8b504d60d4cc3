"""Whoever drops something says so: in a header of the answer, once on stderr, and as a number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapter.protocols.dropped_fields import HEADER, as_header, header_safe
from adapter.server.telemetry.logs import log_message
from adapter.server.telemetry.request_info import current_request

MAX_TOLD = 1_000
"""Names that are counted. Clients make them up."""


class DroppedFields:
    """What has been left out of requests so far, by name."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def with_header(self, answer: ASGIApp, route: str, left_out: Sequence[str]) -> ASGIApp:
        """``answer`` with a header that names what was left out of its request."""
        if not left_out:
            return answer
        current_request().left_out += left_out
        for name in dict.fromkeys(map(header_safe, left_out)):
            self._count(f"{route}: {name}")
        named = (HEADER.encode("ascii"), as_header(left_out).encode("ascii"))

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message = {**message, "headers": [*message["headers"], named]}
                await send(message)

            await answer(scope, receive, sending)

        return app

    def _count(self, name: str) -> None:
        if name not in self.counts:
            if len(self.counts) >= MAX_TOLD:
                return
            log_message(f"left out of a request to {name}")
        self.counts[name] += 1
