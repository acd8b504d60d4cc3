"""axe-core, installed from npm, finds no fault on the pages, light and dark, wide and narrow."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from adapter.backends.model_queries import Model
from adapter.core.events import TextDelta
from adapter.core.text.redaction import Redactor
from adapter.evaluation.eval_view_data import view_runs
from adapter.evaluation.probe.probe_report_page import render_probe_report as page_of_probe
from adapter.recording.transcript import Transcript
from adapter.recording.view.live_exchanges import LiveExchanges
from adapter.recording.view.page_server import PageServer
from adapter.recording.view.playground_page import render_playground_page
from adapter.recording.view.playground_parser import read_for_page
from adapter.recording.view.view_page import render_view_page
from adapter.recording.view.view_page_data import PageData, ReparseOptions, build_exchanges_view, build_transcript_view
from tests.browser import prefer
from tests.clients.environments import Client
from tests.evaluation.probe.test_probe import clever, tried
from tests.recording.test_view_in_a_browser import texts
from tests.recording.view.test_view_page_data import BARE, CALL, DRAFTED, TRANSCRIPTS, exchange
from tests.server.test_live_view import page_of
from tests.server.test_viewing_in_a_browser import over
from tests.waiting import eventually

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

AXE = Client(name="axe-core", packages=("axe-core",), ways=(), is_node=True)


@pytest.fixture(scope="module")
def axe() -> str:
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    try:
        AXE.install()
    except RuntimeError as error:
        pytest.skip(f"axe-core cannot be had: {str(error)[-200:]}")
    return (AXE.folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def faults(chrome: Any, axe: str) -> list[str]:
    """Return all violations, with their elements."""
    chrome.execute_script(axe)
    found = chrome.execute_async_script("axe.run().then(arguments[0], (error) => arguments[0]({ error: `${error}` }))")
    assert "violations" in found, found
    return [
        f"{each['id']}: {node['target']} {node['html'][:200]} {node['failureSummary'][:300]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


@contextmanager
def file(tmp_path: Path, text: str) -> Iterator[str]:
    written = tmp_path / "page.html"
    written.write_text(text, encoding="utf-8")
    yield written.as_uri()


def recording() -> PageData:
    told = (exchange(DRAFTED + CALL, said="Read <¤|im_end|> a.py"), exchange(BARE), exchange("<tool_call>{", calls=()))
    return build_exchanges_view(told, "said.jsonl", ReparseOptions.from_names(None, "lenient"))


def transcript() -> PageData:
    text = (TRANSCRIPTS / "by-hand-six-turns.jsonl").read_text(encoding="utf-8")
    return build_transcript_view(Transcript.from_text(text), "run.jsonl")


@contextmanager
def live(key: str) -> Iterator[str]:
    """Return a page with a finished exchange, a running one, and one without an answer."""
    kept = LiveExchanges(Redactor({}))
    over(kept, DRAFTED + CALL)
    kept.listen(exchange()).end(None, "503: nobody there")
    kept.listen(exchange()).receive([TextDelta("I look into it. ", "I look into it. ")])
    with page_of(kept) as address:
        yield address.replace("?key=k", key)
    kept.close()


@contextmanager
def playground() -> Iterator[str]:
    with PageServer(render_playground_page(), read_for_page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.address
        server.shutdown()


PAGES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "a recording": lambda folder: file(folder, render_view_page(recording().data)),
    "a transcript": lambda folder: file(folder, render_view_page(transcript().data)),
    "nothing": lambda folder: file(folder, render_view_page(view_runs("", "none.jsonl").data)),
    "a probe": lambda folder: file(folder, page_of_probe(Model(name="m", base_url="u"), None, tried(clever))),
    "the playground": lambda _: playground(),
    "live": lambda _: live("?key=k"),
    "live, as links": lambda _: live("?key=k"),
    "live, one exchange as links": lambda _: live("?key=k"),
    "the form": lambda _: live("?wrong"),
}

LINKED = {"live, as links": "plain", "live, one exchange as links": "plain/1"}
"""Pages for browsers without JavaScript, by name: the path after the live page's."""


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(chrome, axe, tmp_path, name):
    with PAGES[name](tmp_path) as address:
        for scheme, width in product(("light", "dark"), (1280, 390)):
            prefer(chrome, scheme)
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            chrome.get("about:blank")
            if "?wrong" in address:
                chrome.delete_all_cookies()
            chrome.get(address)
            if name in LINKED:
                chrome.get(address.partition("?")[0] + LINKED[name])
            elif "?key" in address or name == "the playground":
                eventually(lambda: texts(chrome, ".readings"))
            for fold in chrome.find_elements("css selector", "#shown details > summary, main.plain details > summary"):
                fold.click()
            assert faults(chrome, axe) == []
