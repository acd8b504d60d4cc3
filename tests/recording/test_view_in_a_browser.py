"""The page of `adapter view` in a real Chromium: its list, search and keys, and hostile text that stays text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapter.protocols.recorded_exchange import RecordedExchange
from adapter.recording.transcript import Transcript
from adapter.recording.view.view_page import render_view_page
from adapter.recording.view.view_page_data import PageData, ReparseOptions, build_exchanges_view, build_transcript_view
from tests.browser import prefer
from tests.picture import DOCS, pictures
from tests.recording.view.test_view_page_data import BARE, CALL, DRAFTED, READ, TRANSCRIPTS, exchange, hostile

pytestmark = pytest.mark.clients

WATCH = "window.alert = window.confirm = window.prompt = () => { window.hurt = 1; };"


def opened(chrome: Any, tmp_path: Path, view: PageData) -> None:
    file = tmp_path / "page.html"
    file.write_text(render_view_page(view.data), encoding="utf-8")
    chrome.get(file.as_uri())


def press(chrome: Any, *keys: str) -> None:
    for key in keys:
        chrome.switch_to.active_element.send_keys(key)


def texts(chrome: Any, selector: str) -> Sequence[str]:
    """Return the texts of the elements that match ``selector``, visible or not."""
    found: Sequence[str] = chrome.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector
    )
    return found


def test_exchange_shows_the_role_of_each_piece(chrome, tmp_path):
    """The prompt with escaped text, pieces by kind, calls with repairs, and rejected calls."""
    said = exchange(DRAFTED + CALL, said="Read <¤|im_end|> a.py", calls=(READ,))
    opened(chrome, tmp_path, build_exchanges_view([said], "said.jsonl"))
    assert chrome.title == "said.jsonl: recording"
    assert texts(chrome, "#shown .kind") == ["markup", "reasoning", "markup", "call"]
    assert texts(chrome, "#shown mark") == ["¤"]
    assert texts(chrome, ".call .made") == ['read_file {\n  "path": "a.py"\n}']
    assert texts(chrome, ".call li") == ["trailing-comma: a comma before a closing bracket was dropped"]
    assert texts(chrome, ".reasoning li") == ["no call: <tool_call>{}</tool_call>? – it is a draft in the reasoning"]
    assert texts(chrome, "details pre") == []
    chrome.find_element("css selector", "summary").click()
    wait = pytest.importorskip("selenium.webdriver.support.wait")
    opened_tools = "details details > summary"
    wait.WebDriverWait(chrome, 30).until(lambda _: texts(chrome, opened_tools) == ["read_file", "delete_file"])
    assert chrome.get_log("browser") == []


def test_five_thousand_are_found_by_keys_and_words(chrome, tmp_path):
    """Only visible rows are drawn; j, k, / and the list's keys move through the results."""
    every = [exchange("Done." if number % 5 else CALL, said=f"Question {number}") for number in range(5000)]
    opened(chrome, tmp_path, build_exchanges_view(every, "said.jsonl"))
    press(chrome, "j", "j", "k")
    assert texts(chrome, "#shown h2") == ["2. Done."]
    assert len(texts(chrome, ".row")) < 60
    press(chrome, "/", "READ_FILE", "\ue00c", "\ue010")  # Escape, End
    assert texts(chrome, "#count") == ["1000 of 5000"]
    assert texts(chrome, "#shown h2")[0].startswith("4996. read_file")
    rows = chrome.find_element("id", "rows")
    chosen = chrome.find_element("id", rows.get_attribute("aria-activedescendant"))
    assert (chosen.get_attribute("aria-posinset"), chosen.get_attribute("aria-selected")) == ("1000", "true")
    assert "4996 ·" in chosen.text
    assert chosen.is_displayed()
    assert "Question 4995" in texts(chrome, "#shown")[0]
    press(chrome, "/", "no such text")
    assert "Nothing fits" in texts(chrome, "#shown")[0]
    chrome.get(chrome.current_url.partition("#")[0] + "#77")
    chrome.refresh()
    assert texts(chrome, "#shown h2") == ["77. Done."]


def conversation(question: str, length: int) -> list[RecordedExchange]:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    exchanges = []
    for number in range(length):
        text = f"{question} {number}"
        exchanges.append(exchange(text, sent={"messages": list(messages)}, first_s=0.5, duration_s=1.0))
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": f"More {number}"}]
    return exchanges


def shown_lines(chrome: Any) -> list[str]:
    return [f"{text[:8]}" for text in texts(chrome, ".group .question, .row .title")]


def test_conversations_are_folded_and_unfolded_by_keys_and_clicks(chrome, tmp_path):
    first, second = conversation("First", 3), conversation("Second", 2)
    mixed = [first[0], second[0], *first[1:], exchange("Done.", said="Alone"), second[1]]
    opened(chrome, tmp_path, build_exchanges_view(mixed, "f"))
    assert shown_lines(chrome) == ["First", "First 0", "First 1", "First 2", "Second", "Done."]
    assert texts(chrome, ".row:not(.inside) .question:not([hidden])") == ["Alone"]
    chrome.execute_script("document.getElementById('rows').focus()")
    press(chrome, "\ue011", "\ue012")  # Home: the first head; Left folds it
    assert shown_lines(chrome) == ["First", "Second", "Done."]
    active = "return document.getElementById(document.getElementById('rows').getAttribute('aria-activedescendant')).id"
    assert chrome.execute_script(active) == "group1"
    press(chrome, "\ue015", "\ue014", "\ue015")  # Down, Right: the second unfolds; Down: its first exchange
    assert shown_lines(chrome) == ["First", "Second", "Second 0", "Second 1", "Done."]
    assert texts(chrome, "#shown h2") == ["2. Second 0"]
    press(chrome, "\ue012")  # Left: from an exchange to the head
    assert chrome.execute_script(active) == "group2"
    chrome.find_element("id", "group1").click()
    assert len(shown_lines(chrome)) == 8
    chrome.find_element("id", "group2").click()
    press(chrome, "/", "second 1", "\ue00c")
    assert shown_lines(chrome) == ["Second 1"]
    assert texts(chrome, "#shown h2") == ["6. Second 1"]
    assert "2 messages as in exchange 2" in texts(chrome, "summary")


def test_question_is_repeated_only_for_another_conversation(chrome, tmp_path):
    """Two conversations with the same question both show it; exchanges of one conversation do not repeat it."""
    opened(chrome, tmp_path, build_exchanges_view([exchange(said="Same"), exchange(said="Same")], "f"))
    assert texts(chrome, ".question:not([hidden])") == ["Same", "Same"]
    text = (TRANSCRIPTS / "by-hand-six-turns.jsonl").read_text(encoding="utf-8")
    opened(chrome, tmp_path, build_transcript_view(Transcript.from_text(text), "f"))
    assert texts(chrome, ".question:not([hidden])") == ["Change the port from 8000 to 9000 everywhere"]


def test_address_holds_the_search(chrome, tmp_path):
    """And the filters. A link with them shows the same."""
    opened(chrome, tmp_path, build_exchanges_view([*conversation("First", 3), *conversation("Second", 3)], "f"))
    wait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait(chrome, 30)
    press(chrome, "/", "second & 1")
    chrome.find_element("id", "search").clear()
    press(chrome, "/", "second")
    chrome.find_element("id", "mark").send_keys("no")
    press(chrome, "\ue00c", "j")
    wait.until(lambda _: chrome.current_url.endswith("#5&search=second&mark=no+call"))
    link = chrome.current_url
    chrome.get("about:blank")
    chrome.get(link)
    assert texts(chrome, "#count") == ["3 of 6"]
    assert texts(chrome, "#shown h2") == ["5. Second 1"]
    chrome.execute_script("location.hash = '#1&search=first&tool=gone'")
    wait.until(lambda _: texts(chrome, "#count") == ["0 of 6"])
    chrome.execute_script("location.hash = '#2'")
    wait.until(lambda _: texts(chrome, "#shown h2") == ["2. First 1"])
    assert chrome.get_log("browser") == []


def test_divider_is_dragged_and_moved_by_keys(chrome, tmp_path):
    """It sets the width of the raw text, also for the next exchanges."""
    opened(chrome, tmp_path, build_exchanges_view([exchange(DRAFTED + CALL), exchange(CALL)], "f"))
    divider = chrome.find_element("css selector", ".divider")
    width = "return document.querySelector('.span.call > :first-child').offsetWidth"
    middle = chrome.execute_script(width)
    divider.send_keys("\ue014", "\ue014")  # Right
    assert divider.get_attribute("aria-valuenow") == "64"
    assert chrome.execute_script(width) > middle
    divider.send_keys("\ue011", "\ue012")  # Home, Left
    assert divider.get_attribute("aria-valuenow") == "15"
    actions = pytest.importorskip("selenium.webdriver").ActionChains(chrome)
    actions.click_and_hold(divider).move_by_offset(200, 0).release().move_by_offset(50, 0).perform()
    dragged = int(divider.get_attribute("aria-valuenow"))
    assert 30 < dragged < 50
    press(chrome, "j")
    assert chrome.find_element("css selector", ".divider").get_attribute("aria-valuenow") == str(dragged)
    assert texts(chrome, "#shown h2")[0].startswith("2. ")


@pytest.fixture
def scriptless(chrome: Any) -> Iterator[Any]:
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    yield chrome
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chrome.get("about:blank")


def test_page_works_without_javascript(scriptless, tmp_path):
    """Conversations are folders, and links lead to exchanges, earlier exchanges and tools."""
    took = exchange(DRAFTED + CALL, calls=(READ,), said="Alone", first_s=0.5, calls_s=(1.5,), duration_s=2.0)
    opened(scriptless, tmp_path, build_exchanges_view([*conversation("First", 3), took], "f"))

    def link(text: str) -> Any:
        return scriptless.find_element("partial link text", text)

    assert not scriptless.find_element("id", "finding").is_displayed()
    assert not scriptless.find_element("css selector", "nav details a").is_displayed()
    scriptless.find_element("css selector", "nav summary").click()
    link("2. First 1").click()
    assert scriptless.current_url.endswith("#2")
    shown = scriptless.find_element("id", "2").text
    assert "Messages as in exchange 1: 2" in shown
    assert "More 0" in shown
    link("4. read_file").click()
    shown = scriptless.find_element("id", "4").text
    assert "call read_file 0.50 to 1.50 s" in shown.replace("\n", " ")
    assert "trailing-comma: a comma" in shown
    scriptless.find_element("id", "4").find_element("partial link text", "Tools: 2").click()
    assert scriptless.current_url.endswith("#tools1")


def test_hostile_text_stays_text_without_javascript(scriptless, tmp_path):
    opened(scriptless, tmp_path, build_exchanges_view(hostile(), "f"))
    elements = scriptless.find_elements("css selector", ".plain :is(img, svg, iframe, base, script, meta, style)")
    assert elements == []


def test_timeline_shows_each_phase(chrome, tmp_path):
    took = exchange(CALL, calls=(READ,), first_s=0.5, reasoning_s=1.0, calls_s=(1.5,), duration_s=2.0)
    opened(chrome, tmp_path, build_exchanges_view([took, exchange()], "f"))
    assert texts(chrome, ".phase") == ["until the first part", "reasoning", "call read_file", "until the end"]
    assert texts(chrome, ".seconds")[2] == "1.00 to 1.50 s"
    widths = "return [...document.querySelectorAll('.bar')].map((bar) => Math.round(bar.offsetWidth / 10))"
    assert len(set(chrome.execute_script(widths))) == 1
    press(chrome, "j")
    assert texts(chrome, ".timeline") == []


def test_marks_tools_and_models_are_filters(chrome, tmp_path):
    """Each shows its number of matches; one without choices is hidden."""
    opened(chrome, tmp_path, build_exchanges_view([exchange(), exchange(BARE), exchange("Done.", model="other")], "f"))
    assert texts(chrome, "#tool option") == ["any", "read_file (1)"]
    assert "rejected (1)" in texts(chrome, "#mark option")
    press(chrome, "\ue004")  # Tab
    chrome.find_element("id", "model").send_keys("o")
    assert texts(chrome, ".row .title") == ["Done."]
    opened(chrome, tmp_path, build_exchanges_view([exchange("Done.")], "f"))
    assert not chrome.find_element("id", "tool").is_displayed()
    assert not chrome.find_element("id", "model").is_displayed()


def test_transcript_shows_diffs_and_new_parts_of_prompts(chrome, tmp_path):
    """Repeated parts of the prompt are folded."""
    text = (TRANSCRIPTS / "by-hand-six-turns.jsonl").read_text(encoding="utf-8")
    opened(
        chrome,
        tmp_path,
        build_transcript_view(Transcript.from_text(text), "f", ReparseOptions.from_names(None, "strict")),
    )
    press(chrome, "j")
    assert "4 messages as in exchange 2" not in texts(chrome, "summary")
    assert "2 messages as in exchange 1" in texts(chrome, "summary")
    assert texts(chrome, ".diff .removed")[-1:] == ["-port = 8000\n"]
    assert texts(chrome, ".readings h3") == ["As recorded", "Parsed again: strict"]


def test_it_is_there_in_the_dark_and_on_a_phone(chrome, tmp_path):
    """With other colors, and nothing wider than the window."""
    opened(chrome, tmp_path, build_exchanges_view([exchange(DRAFTED + CALL + "x" * 5000)], "f" * 200))
    background = "return getComputedStyle(document.body).backgroundColor"
    prefer(chrome, "light")
    light = chrome.execute_script(background)
    prefer(chrome, "dark")
    assert chrome.execute_script(background) != light
    chrome.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        assert chrome.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_hostile_text_stays_text(chrome, tmp_path):
    """Over two hundred texts, each selected and opened: nothing runs or is loaded, and no element is added."""
    chrome.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    exchanges = hostile()
    opened(chrome, tmp_path, build_exchanges_view(exchanges, "</title><script>window.hurt = 1</script>"))
    found = chrome.execute_async_script(
        """
        const [count, done] = arguments, tags = new Set();
        const pause = () => new Promise((then) => setTimeout(then, 1));
        (async () => {
          for (let number = 0; number < count; number++) {
            for (const _ of [1, 2]) {  // what is folded within what is folded
              for (const fold of document.querySelectorAll("details:not([open]) > summary")) fold.click();
              for (const more of document.querySelectorAll("#shown button")) more.click();
              await pause();
            }
            for (const element of document.body.querySelectorAll("*")) tags.add(element.tagName.toLowerCase());
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
          }
          const place = document.querySelector("#shown h2").textContent;
          return { tags: [...tags], hurt: window.hurt === undefined ? null : window.hurt, place,
            loaded: performance.getEntriesByType("resource").length, scripts: document.scripts.length };
        })().then(done);
        """,
        len(exchanges),
    )
    assert found["hurt"] is None
    assert found["place"].startswith(f"{len(exchanges)}. ")
    assert (found["loaded"], found["scripts"]) == (0, 2)
    assert {"script", "img", "svg", "iframe", "a", "base", "meta", "style"} & set(found["tags"]) == {"script"}
    assert chrome.get_log("browser") == []


def test_a_very_long_line_is_shown_when_asked_for(chrome, tmp_path):
    """A million characters: first only the beginning."""
    opened(chrome, tmp_path, build_exchanges_view([exchange("x" * 1_000_000)], "f"))
    assert len(texts(chrome, ".content pre")[0]) == 20_000
    chrome.find_element("css selector", ".content button").click()
    assert len(texts(chrome, ".content pre")[0]) == 1_000_000


def test_the_pictures_in_the_docs_can_be_made_anew():
    """With `python -m tests.generate --pictures`. They are small, and have the size of the current page."""
    for name, made in pictures():
        kept = (DOCS / f"{name}.png").read_bytes()
        assert made[:24] == kept[:24]  # as PNG, its width and height
        assert len(kept) < 100_000


def test_very_many_pieces_are_shown_some_at_a_time(chrome, tmp_path):
    """Several hundred calls or rejected calls of one answer, and more on request."""
    opened(
        chrome, tmp_path, build_exchanges_view([exchange(CALL * 15_000), exchange(f"`{'<tool_call>' * 2000}`")], "f")
    )
    assert texts(chrome, ".row .called")[0] == "read_file × 15,000"
    assert len(texts(chrome, ".span")) == 300
    assert texts(chrome, "section button") == ["Show more of 1,701 pieces"]
    chrome.find_element("css selector", ".split > div > div > button").click()
    assert len(texts(chrome, ".span")) == 600
    assert texts(chrome, "section button") == ["Show more of 1,401 pieces"]
    press(chrome, "j")
    assert texts(chrome, "li button") == ["Show more of 1,700 remarks"]
    chrome.find_element("css selector", "li button").click()
    assert len(texts(chrome, ".remarks li")) == 601


def test_the_slowest_and_the_longest_come_first_when_asked_for(chrome, tmp_path):
    """Exchanges below a bound are left out. Without times, there is nothing to sort."""
    took = [exchange(duration_s=seconds, written_tokens=tokens) for seconds, tokens in ((1.0, 9), (3.0, 5), (2.0, 7))]
    opened(chrome, tmp_path, build_exchanges_view([*took, exchange()], "f"))
    order = chrome.find_element("id", "sort")

    def numbers() -> list[str]:
        return [text.partition(" ")[0] for text in texts(chrome, ".row div:first-child")]

    assert not chrome.find_element("id", "least").is_displayed()
    order.send_keys("by seconds")
    assert numbers() == ["2", "3", "1", "4"]
    chrome.find_element("id", "least").send_keys("1.5")
    assert numbers() == ["2", "3"]
    order.send_keys("newest")
    assert numbers() == ["4", "3", "2", "1"]
    opened(chrome, tmp_path, build_exchanges_view([exchange()], "f"))
    assert not chrome.find_element("id", "sort").is_displayed()
