"""A model server on loopback whose test writes the answer chunk by chunk, and sees when the client disconnects."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tests.loopback import LoopbackServer, QuietHandler


class LiveUpstream(LoopbackServer):
    """``answer(body)`` yields the events of each chat; other requests are a 404.

    ``hung_up`` is set if the client closes the connection before the end. A dict is sent as JSON, bytes unchanged.
    """

    def __init__(self, answer: Callable[[Any], Iterator[dict[str, Any] | bytes]]) -> None:
        self.hung_up = threading.Event()
        super().__init__(_handler(self, answer))


def _handler(upstream: LiveUpstream, answer: Callable[[Any], Iterator[dict[str, Any] | bytes]]) -> type[QuietHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            events = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response_only(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                for event in events:
                    line = event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"
                    self.wfile.write(line)
                    self.wfile.flush()
            except OSError:
                upstream.hung_up.set()
            self.close_connection = True

    return Handler
