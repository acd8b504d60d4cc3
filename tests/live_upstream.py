"""A model server on loopback whose answers are written as a test goes: chunk by chunk, and seeing who hangs up."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tests.loopback import LoopbackServer, QuietHandler


class LiveUpstream(LoopbackServer):
    """``answer(body)`` gives the events of each chat, one by one; other requests are a 404.

    ``hung_up`` is set when somebody closes the connection before the answer is over. A dict becomes JSON, bytes go
    as they stand.
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
