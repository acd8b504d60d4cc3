"""The playground without a server, in a real Chromium: the parser runs in the page, without further requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from docs.playground_site import site_files
from tests.browser import chromium
from tests.recording.test_playground_in_a_browser import ENTER, until
from tests.recording.test_view_in_a_browser import texts

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


class _Handler(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("playground")
    try:
        files = site_files()
    except RuntimeError as error:
        pytest.skip(str(error))
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


def test_parser_runs_in_the_page(site, tmp_path, record_property):
    with chromium(tmp_path) as chrome:
        chrome.get(site)
        until(chrome, lambda: "Oslo" in texts(chrome, "#calls")[0])
        loaded = chrome.execute_script("return document.body.dataset.loadedMs")
        record_property("loaded_ms", loaded)
        chrome.execute_script(ENTER, "text", 'Hi {"name": "get_weather", "arguments": {"city": "Bern",}}')
        until(chrome, lambda: "Bern" in texts(chrome, "#spans")[0])
        asked = chrome.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)")
        assert all(address.startswith(site.removesuffix("index.html")) for address in asked)
        assert chrome.get_log("browser") == []
