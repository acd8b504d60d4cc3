"""The playground in a real Chromium: typing, streaming, links and cases, and hostile text that stays text."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from adapter.recording.view.page_server import PageServer
from adapter.recording.view.playground_page import render_playground_page
from adapter.recording.view.playground_parser import read_for_page
from tests.browser import chromium
from tests.recording.test_view_in_a_browser import WATCH, texts

pytestmark = pytest.mark.clients

ENTER = """const field = document.getElementById(arguments[0]);
field.value = arguments[1];
field.dispatchEvent(new Event("input", { bubbles: true }));"""


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory):
    with chromium(tmp_path_factory.mktemp("browser")) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with PageServer(render_playground_page(), read_for_page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.address
        server.shutdown()


def until(chrome, holds) -> None:
    wait = pytest.importorskip("selenium.webdriver.support.wait")
    wait.WebDriverWait(chrome, 30).until(lambda _: holds())


def test_typed_text_is_parsed(chrome, address):
    """With the format, repairs and errors. A wrong tool definition is explained."""
    chrome.get(address)
    chrome.execute_script(
        ENTER, "text", '<tool_call>{"name": "get_weather", "arguments": {"city": "Bern",}}</tool_call>'
    )
    until(chrome, lambda: "Bern" in texts(chrome, "#calls")[0])
    assert texts(chrome, "#summary") == ["Format: hermes callsfixes"]
    assert texts(chrome, ".call li") == ["trailing-comma: a comma before a closing bracket was dropped"]
    chrome.execute_script(ENTER, "tools", "[1")
    until(chrome, lambda: texts(chrome, "#summary.wrong"))
    assert chrome.get_log("browser") == []


def test_link_restores_the_input(chrome, address):
    chrome.get(address)
    chrome.execute_script(ENTER, "text", "Grüße, 🙂 <tool_call>")
    chrome.execute_script(ENTER, "policy", "strict")
    until(chrome, lambda: "Grüße" in texts(chrome, "#spans")[0])
    link = chrome.current_url
    chrome.get("about:blank")
    chrome.get(link)
    until(chrome, lambda: "Grüße" in texts(chrome, "#spans")[0])
    found = chrome.execute_script("return [text.value, policy.value]")
    assert found == ["Grüße, 🙂 <tool_call>", "strict"]


def test_stream_ends_with_the_whole_text(chrome, address):
    """Meanwhile, part of a call is held back."""
    chrome.get(address)
    until(chrome, lambda: "Oslo" in texts(chrome, "#calls")[0])
    chrome.execute_script(
        "window.seen = new Set();"
        "new MutationObserver(() => document.querySelectorAll('.kind').forEach((each) => seen.add(each.textContent)))"
        ".observe(document.getElementById('spans'), { childList: true, subtree: true })"
    )
    chrome.find_element("id", "play").click()
    until(chrome, lambda: texts(chrome, "#play") == ["Stream it"] and "coat" in texts(chrome, "#calls")[0])
    assert "held" in chrome.execute_script("return [...seen]")
    assert "held" not in texts(chrome, ".kind")


def test_case_is_shown(chrome, address):
    chrome.get(address)
    until(chrome, lambda: "Oslo" in texts(chrome, "#calls")[0])
    chrome.find_element("id", "report").click()
    assert chrome.find_element("id", "case_text").text.startswith("text = ")


def test_hostile_text_stays_text(chrome, address):
    """Also from a link."""
    chrome.get(address)
    chrome.execute_script(WATCH)
    chrome.execute_script(ENTER, "text", "<img src=x onerror=alert(1)></script><script>alert(2)</script>")
    until(chrome, lambda: "onerror" in texts(chrome, "#spans")[0])
    assert chrome.execute_script("return [window.hurt, document.querySelectorAll('img').length]") == [None, 0]
    chrome.get("about:blank")
    chrome.get(f"{address}#not-base64!")
    until(chrome, lambda: "Oslo" in texts(chrome, "#calls")[0])
    assert chrome.get_log("browser") == []
