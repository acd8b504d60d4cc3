"""The page of `adapter serve --view` in a real Chromium: live updates, and hostile text stays text."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from adapter.core.events import TextDelta, ToolCallProgress
from adapter.core.text.redaction import Redactor
from adapter.recording.view.live_exchanges import LiveExchanges
from tests.browser import prefer
from tests.recording.test_view_in_a_browser import WATCH, press, texts
from tests.recording.view.test_view_page_data import CALL, exchange, hostile
from tests.scripted_server import CHAT
from tests.server.test_live_view import API_KEY, page_of, viewed
from tests.server.test_serve_pages import ask
from tests.server.test_wrap import TOOLS
from tests.waiting import eventually

pytestmark = pytest.mark.clients


@pytest.fixture
def live() -> Iterator[LiveExchanges]:
    live = LiveExchanges(Redactor({}))
    yield live
    live.close()


def over(live: LiveExchanges, text: str, said: str = "Read a.py") -> None:
    whole = exchange(text, said=said)
    going = live.listen(whole.model_copy(update={"text": ""}))
    going.receive(whole.parse_turn().events)
    going.end(whole, "")


def test_running_exchange_is_shown_live(chrome):
    """With the key and a real server: its text as it comes, and finally the parsed result."""
    with viewed("--api-key", API_KEY) as (model, url, page, _), ThreadPoolExecutor() as threads:
        chrome.get(page)
        assert chrome.title == "The key of this server"
        press(chrome, "wrong", "\ue007")  # Enter
        assert texts(chrome, "[role=alert]") == ["That was not the key."]
        press(chrome, API_KEY, "\ue007")
        assert chrome.current_url == page
        chrome.get_log("browser")  # of the form, whose answer is a 401
        assert "No request with tools" in texts(chrome, "#shown")[0]
        body = {"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": TOOLS, "stream": True}
        asking = threads.submit(ask, url, CHAT, {"Authorization": f"Bearer {API_KEY}"}, "POST", body)
        assert model.next() == "a"
        eventually(lambda: texts(chrome, ".row .chip") == ["writing"])
        eventually(lambda: texts(chrome, "#shown h3") == ["Messages sent to the model", "The answer so far"])
        chrome.find_element("css selector", "#shown summary").click()
        model.may_end["a"].set()
        assert asking.result(100)[0] == 200
        eventually(lambda: texts(chrome, ".row .chip") == ["no call"])
        eventually(lambda: texts(chrome, "#shown h3")[1] == "The parsed answer")
        assert texts(chrome, ".content pre") == ["To a."]
        assert texts(chrome, "#shown h2") == ["1. To a."]
        assert len(texts(chrome, "details[open]")) == 1
        assert API_KEY not in chrome.page_source
        assert chrome.get_log("browser") == []


def test_selected_row_stays_in_place(chrome, live):
    """Whatever arrives; the newest is shown only if the user follows it."""
    with page_of(live) as address:
        for number in range(60):
            over(live, f"Answer {number}. ")
        chrome.get(address)
        eventually(lambda: texts(chrome, "#count") == ["60 of 60"])
        eventually(lambda: texts(chrome, "#shown h2") == ["60. Answer 59."])
        over(live, "Answer 60. ")
        eventually(lambda: texts(chrome, "#shown h2") == ["61. Answer 60."])
        press(chrome, "j", "j")
        assert texts(chrome, "#shown h2") == ["59. Answer 58."]
        assert not chrome.find_element("id", "follow").is_selected()
        chrome.execute_script("document.getElementById('rows').scrollTop = 1500")
        eventually(lambda: "40 ·" in "".join(texts(chrome, ".row")))
        top = "return [...document.querySelectorAll('.row')].find((each) => each.getBoundingClientRect().top >= 110).id"
        before = chrome.execute_script(top)
        for number in range(61, 66):
            over(live, f"Answer {number}. ")
        eventually(lambda: texts(chrome, "#count") == ["66 of 66"])
        assert chrome.execute_script(top) == before
        assert texts(chrome, "#shown h2") == ["59. Answer 58."]
        chosen = chrome.find_element("id", "rows").get_attribute("aria-activedescendant")
        assert chosen in (None, "row59")
        press(chrome, "/", "answer 7", "\ue00c")
        assert texts(chrome, "#count") == ["1 of 66"]


def test_search_filters_answers(chrome, live):
    """The full texts, which the page does not have; also new ones."""
    over(live, f"{'Words. ' * 100} The PORT is 8000.")
    over(live, "None.")
    with page_of(live) as address:
        chrome.get(address)
        eventually(lambda: texts(chrome, "#count") == ["2 of 2"])
        press(chrome, "/", "port is")
        eventually(lambda: texts(chrome, "#count") == ["1 of 2"])
        assert texts(chrome, "#shown h2")[0].startswith("1. Words.")
        over(live, f"{'Words. ' * 100} No port is free.")
        eventually(lambda: texts(chrome, "#count") == ["2 of 3"])


def test_live_page_works_without_javascript(chrome, live):
    """Links lead to the list, a search and an exchange; hostile text stays text."""
    over(live, CALL, said="Read a.py")
    for whole in hostile()[:40]:
        live.listen(whole).end(whole, "")
    live.listen(exchange(said="Unanswered")).end(None, "503: nobody there")
    with page_of(live) as address:
        chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            chrome.get(address)
            chrome.find_element("partial link text", "without it").click()
            assert len(chrome.find_elements("css selector", "nav a")) == 42
            chrome.find_element("name", "words").send_keys("read a.py\n")
            assert chrome.current_url.endswith("/plain?words=read+a.py")
            chrome.find_element("partial link text", "1. read_file").click()
            assert "trailing-comma" in chrome.find_element("tag name", "main").text
            chrome.find_element("link text", "All exchanges").click()
            chrome.find_element("partial link text", "42. 503").click()
            assert "No answer: 503: nobody there" in chrome.find_element("tag name", "main").text
            for number in range(2, 42):
                chrome.get(f"{address.partition('?')[0]}plain/{number}")
                assert chrome.find_elements("css selector", "main :is(img, svg, iframe, script, meta, style)") == []
        finally:
            chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
            chrome.get("about:blank")


def test_only_visible_rows_are_rendered(chrome, live):
    """Expired exchanges also disappear."""
    bounded = LiveExchanges(Redactor({}), max_kept=4_000)
    for number in range(5_000):
        bounded.listen(exchange(said=str(number))).end(exchange(f"Answer {number}. "), "")
    with page_of(bounded) as address:
        chrome.get(address)
        eventually(lambda: texts(chrome, "#count") == ["4000 of 4000"])
        assert len(texts(chrome, ".row")) < 60
        chrome.find_element("id", "rows").click()
        press(chrome, "\ue010")  # End
        eventually(lambda: texts(chrome, "#shown h2")[0].startswith("1001. "))
        over(bounded, "One more. ")
        eventually(lambda: "One more." in texts(chrome, ".row .title") or texts(chrome, "#count"))
        eventually(lambda: "5001" in str(chrome.execute_script("return every.at(-1).number")))
        assert texts(chrome, "#count") == ["4000 of 4000"]
    bounded.close()


def test_page_keeps_data_after_server_stops(chrome, live):
    """And reconnects when it is back, with other exchanges."""
    with page_of(live) as address:
        over(live, "Answer one. ")
        chrome.get(address)
        eventually(lambda: texts(chrome, "#shown h2") == ["1. Answer one."])
        port = int(address.partition("/view")[0].rpartition(":")[2])
    eventually(lambda: "does not answer" in texts(chrome, "#connection")[0])
    assert texts(chrome, "#shown h2") == ["1. Answer one."]
    other = LiveExchanges(Redactor({}))
    over(other, "Another one. ")
    over(other, "And another. ")
    with page_of(other, port) as address:
        eventually(lambda: "is another one" in texts(chrome, "#connection")[0])
        chrome.get(address)
        eventually(lambda: texts(chrome, "#count") == ["2 of 2"])
    other.close()


def test_answer_can_be_reparsed_with_another_policy(chrome, live):
    from tests.recording.view.test_view_page_data import BARE

    over(live, BARE)
    with page_of(live) as address:
        chrome.get(address)
        eventually(lambda: texts(chrome, ".readings h3") == ["The parsed answer"])
        chrome.find_element("id", "policy").send_keys("lenient")
        eventually(lambda: texts(chrome, ".readings h3") == ["As recorded", "Parsed again: lenient"])
        assert "read otherwise" in texts(chrome, "#shown .chip")


def test_live_page_escapes_hostile_text(chrome, live):
    """Over two hundred exchanges, viewed while running and when complete: nothing runs or loads except the page's
    script, and no element is added."""
    chrome.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    exchanges = hostile()[:-2]
    chrome.get_log("browser")  # of tests before
    with page_of(live) as address:
        chrome.get(address)
        for number, each in enumerate(exchanges, start=1):
            going = live.listen(each.model_copy(update={"text": ""}))
            going.receive(each.parse_turn().events)
            going.receive([TextDelta(f"{each.text} ", ""), ToolCallProgress(f"{each.text} ")])
            if number % 20 == 1:  # each look at one that comes takes a while
                eventually(lambda: f"{len(live.list_changes(0)['rows'])}. " in "".join(texts(chrome, "#shown h2")))
                eventually(lambda: "The answer so far" in texts(chrome, "#shown h3"))
            going.end(each, "") if number % 3 else going.end(None, each.text)
        eventually(lambda: texts(chrome, "#count") == [f"{len(exchanges)} of {len(exchanges)}"])
        found = chrome.execute_async_script(
            """
            const [count, done] = arguments, tags = new Set();
            const pause = () => new Promise((then) => setTimeout(then, 2));
            const is = (number) => document.querySelector("#shown h2").textContent.startsWith(`${number}. `);
            (async () => {
              sort.value = ""; find(); pick(0);
              for (let number = 1; number <= count; number++) {
                while (!is(number) || !looked.prompt) await pause();
                for (const _ of [1, 2]) {
                  for (const fold of document.querySelectorAll("details:not([open]) > summary")) fold.click();
                  await pause();
                }
                for (const element of document.body.querySelectorAll("*")) tags.add(element.tagName.toLowerCase());
                document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
              }
              const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
              return { tags: [...tags], hurt: window.hurt === undefined ? null : window.hurt,
                own: loaded.every((name) => name.startsWith(`${origin}/view/`)), scripts: document.scripts.length };
            })().then(done, (error) => done({ error: `${error}` }));
            """,
            len(exchanges),
        )
        assert "error" not in found
        assert (found["hurt"], found["own"], found["scripts"]) == (None, True, 2)
        assert {"script", "img", "svg", "iframe", "a", "base", "meta", "style"} & set(found["tags"]) == {"script"}
        assert [entry for entry in chrome.get_log("browser") if "/view/events" not in entry["message"]] == []


def test_live_page_supports_dark_mode_and_phones(chrome, live):
    over(live, f"{CALL} {'x' * 5_000}")
    with page_of(live) as address:
        chrome.get(address)
        prefer(chrome, "dark")
        eventually(lambda: texts(chrome, ".call .made"))
        metrics = {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True}
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        try:
            assert chrome.execute_script("return document.documentElement.scrollWidth") <= 360
        finally:
            chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
