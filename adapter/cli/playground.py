"""`adapter playground`: shows in the browser how a model's raw text is parsed."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

from adapter.cli.options import option
from adapter.core.errors import UsageError


def playground(
    port: Annotated[int, option("N", "Listen on this port; 0 picks a free one.", min=0, max=65535)] = 0,
) -> None:
    """Open a page that parses a model's raw text while you type."""
    from adapter.recording.view.page_server import PageServer
    from adapter.recording.view.playground_page import render_playground_page
    from adapter.recording.view.playground_parser import read_for_page

    try:
        server = PageServer(render_playground_page(), read_for_page, port)
    except OSError as error:
        raise UsageError(f"cannot listen on port {port}: {error.strerror}. Choose another port with --port.") from error
    with server, suppress(KeyboardInterrupt):
        print(server.address, flush=True)
        print("Open this address in a browser. Press Ctrl-C to stop.", file=sys.stderr)
        server.serve_forever()
