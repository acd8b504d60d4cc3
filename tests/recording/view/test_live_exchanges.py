"""Live data about exchanges: in the end the same as from a recording, within limits."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from adapter.core.events import TextDelta, ToolCall, ToolCallProgress
from adapter.core.text.redaction import Redactor
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.openai_chat_response import BufferedCompletion, StreamedCompletion
from adapter.protocols.recorded_exchange import Observation, RecordedExchange
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import ConstraintSettings, TranslationOptions
from adapter.recording.view.live_answer import MAX_TAIL, MAX_TAIL_EVENTS
from adapter.recording.view.live_exchanges import MAX_ROWS, LiveExchanges
from adapter.recording.view.view_page_data import ReparseOptions, build_exchanges_view
from tests.grammars.test_constrained_retries import BROKEN, GOOD, enforce
from tests.recording.view.test_view_page_data import BARE, CALL, DRAFTED, exchange, hostile
from tests.server.test_wrap import ASK, TOOLS

SECRET = "hunter2-very-secret"
SAID = {
    "a call with a fix": CALL,
    "drafts": f"{DRAFTED}I look.\n{CALL}",
    "words": "Done.",
    "no call": BARE,
    "a broken one": "<tool_call>{</tool_call> and more",
    "very many": CALL * 60,
}


@pytest.fixture
def live() -> Iterator[LiveExchanges]:
    live = LiveExchanges(Redactor({"MY_PASSWORD": SECRET}))
    yield live
    live.close()


def request(live: LiveExchanges, **options: Any) -> tuple[TranslatedRequest, list[RecordedExchange]]:
    heard: list[RecordedExchange] = []
    made = translate_chat_request(
        {"model": "m", "messages": ASK, "tools": TOOLS},
        TranslationOptions(observation=Observation(listen=live.listen), **options),
    )
    return replace(made, observation=replace(made.observation, observe=heard.append)), heard


def said(answer: StreamedCompletion, text: str, step: int = 7) -> None:
    for at in range(0, len(text), step):
        answer.feed({"choices": [{"index": 0, "delta": {"content": text[at : at + step]}}]})


def finished(answer: StreamedCompletion) -> None:
    answer.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    answer.close()


def rows(live: LiveExchanges, since: int = 0) -> list[Any]:
    found: list[Any] = live.list_changes(since)["rows"]
    return found


def detail(live: LiveExchanges, number: int = 1, **more: Any) -> Any:
    found = live.build_detail(number, **more)
    assert found is not None
    return found


@pytest.mark.parametrize("text", SAID.values(), ids=SAID)
@pytest.mark.parametrize("reasoning", ["", "Hm."], ids=["", "reasoning apart"])
def test_in_the_end_it_is_as_in_a_recording(live, text, reasoning):
    """The row, the role of each piece, the prompt and the tools."""
    asked, heard = request(live)
    answer = StreamedCompletion(asked)
    if reasoning:
        answer.feed({"choices": [{"index": 0, "delta": {"reasoning_content": reasoning}}]})
    said(answer, text)
    finished(answer)
    (row,) = rows(live)
    shown = detail(live)
    recorded = heard[0].model_copy(update={"time": dict(shown["about"])["time"]})
    data = build_exchanges_view([recorded], "f").data
    (expected,) = data["exchanges"]
    assert {key: shown[key] for key in expected} == expected
    assert {key: row[key] for key in expected.keys() & row.keys()} == {
        key: expected[key] for key in expected.keys() & row.keys()
    }
    assert (shown["parts"], shown["is_over"], shown["number"]) == (data["parts"], True, 1)


def test_an_answer_is_seen_while_it_comes(live):
    """From the request on: its text, a call in progress, and the parsed call."""
    asked, _ = request(live)
    answer = StreamedCompletion(asked)
    (row,) = rows(live)
    assert (row["marks"], row["title"], row["is_over"], row["model"]) == (["waiting"], "", False, "m")
    assert detail(live)["readings"][0]["spans"] == []
    assert [part["text"] for part in detail(live)["parts"]][-1].startswith("{")
    said(answer, "I look into a file. ")
    (row,) = rows(live, row["version"])
    assert (row["marks"], row["title"], row["cost"]) == (["writing"], "I look into a", "19 characters so far")
    said(answer, CALL[:60])
    pieces = detail(live, answer_only=True)["readings"][0]["spans"]
    assert [piece["kind"] for piece in pieces] == ["content", "writing"]
    assert '"name": "read_file"' in pieces[1]["text"]
    bare = live.listen(exchange())
    bare.receive([ToolCallProgress('{"name": "read_file", ', "read_file")])
    assert rows(live)[-1]["title"] == "read_file"
    said(answer, CALL[60:])
    row = rows(live, row["version"])[-1]
    assert (row["marks"], row["calls"]) == (["writing", "calls", "fixes"], [["read_file", 1]])
    shown = detail(live, answer_only=True)
    assert shown["readings"][0]["spans"][-1]["call"].startswith("read_file {")
    assert "prompt" not in shown


@pytest.mark.parametrize(
    "text",
    [
        f"The password is {SECRET}. It stays so.",
        f"As I said: sk-{'a1B2' * 8}\nis the key of {'x' * 9_000} and sk-{'c3D4' * 8} another one.",
        f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEow ' * 900}\n-----END RSA PRIVATE KEY-----\nThat was it.",
        f'<tool_call>\n{{"name": "read_file", "arguments": {{"path": "{SECRET} /a"}}}}\n</tool_call>',
        f"Words before it {'and more ' * 200}{SECRET} {'and after ' * 2_000}",
    ],
    ids=["a variable", "a shape", "a key file", "an argument", "long before the end"],
)
def test_a_secret_is_never_seen(live, text):
    """At no point of the answer, nor in the request or an error."""
    asked, _ = request(live)
    asked = replace(asked, body={**asked.body, "messages": [{"role": "user", "content": f"It is {SECRET} again."}]})
    answer = StreamedCompletion(asked)
    hidden = {SECRET, f"sk-{'a1B2' * 8}", f"sk-{'c3D4' * 8}", "MIIEow"}
    step = max(7, len(text) // 60)
    for at in range(0, len(text), step):
        said(answer, text[at : at + step], step)
        seen = f"{rows(live)} {detail(live, answer_only=True)}"
        assert not any(secret in seen or secret[:12] in seen for secret in hidden), at
    finished(answer)
    failed = StreamedCompletion(asked)
    failed.feed({"error": {"message": f"the password {SECRET} is wrong"}})
    seen = f"{rows(live)} {detail(live)} {detail(live, 2)}"
    assert not any(secret in seen for secret in hidden)
    assert "the password [redacted MY_PASSWORD] is wrong" in seen


def test_live_rows_mark_retries_and_missing_answers(live):
    asked, _ = request(live, constraints=ConstraintSettings(mode="arguments", enforce=enforce))
    whole = BufferedCompletion(asked)
    for text in (BROKEN["no JSON"], GOOD):
        whole.feed({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]})
    gone = StreamedCompletion(asked)
    gone.cancel("503: nobody there")
    first, second, third = sorted(rows(live), key=lambda row: int(row["number"]))
    assert any(mark.startswith("asked again") for mark in first["marks"])
    assert "retry" in second["marks"]
    assert (third["marks"], third["title"]) == (["no answer"], "503: nobody there")
    shown = detail(live, 3)
    assert (shown["notes"], shown["readings"]) == (["No answer: 503: nobody there"], [])


def test_it_is_read_again_otherwise(live):
    """As with `adapter view --policy`."""
    asked, _ = request(live)
    answer = StreamedCompletion(asked)
    said(answer, BARE.replace("delete_file", "read_file"))
    finished(answer)
    shown = detail(live, options=ReparseOptions.from_names(None, "lenient"))
    assert [reading["name"] for reading in shown["readings"]] == ["As recorded", "Parsed again: lenient"]
    assert "read otherwise" in shown["marks"]


def test_search_finds_text_of_finished_answers(live):
    """Also in their reasoning."""
    for text, reasoning in (("The Port is 8000.", ""), ("None.", "Maybe the PORT?"), ("None.", "")):
        live.listen(exchange()).end(exchange(text, reasoning=reasoning), "")
    live.listen(exchange()).receive([TextDelta("The port ", "The port ")])
    assert live.search("pOrt") == [1, 2]
    assert live.search("no such") == []


class Page:
    """The state of a browser that applies changes."""

    def __init__(self, live: LiveExchanges) -> None:
        self._live, self.version = live, 0
        self.rows: dict[int, Any] = {}

    def look(self) -> bool:
        """Return whether there may be more."""
        changes = self._live.list_changes(self.version)
        self.version = changes["version"]
        self.rows |= {row["number"]: row for row in changes["rows"]}
        self.rows = {number: row for number, row in self.rows.items() if row["version"] >= changes["oldest"]}
        return bool(changes["is_part"])


def one_after_the_other(live: LiveExchanges, chance: random.Random) -> Iterator[None]:
    """Yield exchanges that begin, continue and end in any order."""
    going: list[Any] = []
    for number in range(400):
        if not going or chance.random() < 0.4:
            going.append(live.listen(exchange(said=str(number))))
        each = chance.choice(going)
        each.receive([TextDelta(f"{number} ", f"{number} ")])
        if chance.random() < 0.4:
            going.remove(each)
            over = exchange(str(number)) if chance.random() < 0.8 else None
            each.end(over, "" if over else "broken")
        yield
    for each in going:
        each.end(exchange(), "")


@pytest.mark.parametrize("seed", range(3))
def test_a_page_that_looks_now_and_then_knows_all_in_the_end(seed):
    """Whatever it missed. Exchanges that are no longer kept disappear."""
    live, chance = LiveExchanges(Redactor({}), max_kept=40), random.Random(seed)
    page = Page(live)
    for _ in one_after_the_other(live, chance):
        if chance.random() < 0.1:
            page.look()
    while page.look():
        pass
    fresh = Page(live)
    fresh.look()
    assert page.rows == fresh.rows
    assert len(fresh.rows) == 40
    assert all(row["is_over"] for row in fresh.rows.values())
    assert live.build_detail(1) is None
    assert detail(live, max(fresh.rows))["is_over"]
    live.close()


def test_rows_come_so_many_at_a_time_and_the_oldest_go():
    """By the time of the last change, limited by number and bytes. A change brings one back."""
    live = LiveExchanges(Redactor({}), max_bytes=60_000)
    waiting = live.listen(exchange(said="the first"))
    for number in range(MAX_ROWS + 20):
        live.listen(exchange(said=str(number))).end(exchange(said=random.Random(number).randbytes(500).hex()), "")
    live.close(wait=True)
    page = Page(live)
    while page.look():
        pass
    assert 20 < len(page.rows) < 150
    assert MAX_ROWS + 21 in page.rows
    assert 1 not in page.rows
    waiting.receive([TextDelta("At last. ", "At last. ")])
    page.look()
    assert page.rows[1]["title"] == "At last."


def test_live_detail_shows_the_end_of_a_long_response(live):
    """No more of the text is kept."""
    going = live.listen(exchange())
    for number in range(3 * MAX_TAIL_EVENTS):
        going.receive([TextDelta(f"{number} some words ", f"{number} some words ")])
    (piece,) = detail(live, answer_only=True)["readings"][0]["spans"]
    assert len(piece["text"]) == MAX_TAIL
    assert piece["text"].endswith(f"{3 * MAX_TAIL_EVENTS - 1} some words ")
    assert rows(live)[0]["title"].startswith("0 some words 1 some words")


def test_hidden_characters_are_escaped_in_live_data():
    """Lone surrogates, directions and control characters, as a question, an answer, a name or an error."""
    live, exchanges = LiveExchanges(Redactor({})), hostile()[:-2]
    shown = []
    for number, each in enumerate(exchanges, start=1):
        going = live.listen(each)
        going.receive(each.parse_turn().events)
        seen = f"{rows(live)[-1:]} {live.build_detail(number)}"
        going.end(*((each, "") if number % 5 else (None, each.text)))
        shown.append(live.build_detail(number))
        assert not set("\u202e\x1b\x00\ud800\u2066") & set(f"{seen} {rows(live)[-1:]} {shown[-1]}")
    live.close(wait=True)
    assert [live.build_detail(number) for number in range(1, len(exchanges) + 1)] == shown
    assert 10_000 < live.size < 1_000_000


def test_names_and_reasons_are_bounded_too(live):
    """A hundred thousand calls of different tools, names of a megabyte, and such an error."""
    going = live.listen(exchange(model="m" * 1_000_000))
    going.receive([ToolCall(str(each), f"tool{each}", {}, "") for each in range(1_000)])
    going.receive([ToolCall("1", "n" * 1_000_000, {}, "")])
    going.end(None, "no " * 1_000_000)
    live.listen(exchange()).receive([ToolCall("1", "n" * 1_000_000, {}, "")])
    assert len(str(live.list_changes(0))) < 10_000


def test_many_threads_may_tell_and_look_at_once(live):
    """Each exchange ends complete."""
    over = threading.Event()

    def tell(number: int) -> None:
        going = live.listen(exchange(said=str(number)))
        for each in range(50):
            going.receive([TextDelta(f"{number}w{each} ", f"{number}w{each} ")])
        going.end(exchange(f"{number} is done"), "")

    def look() -> Page:
        page = Page(live)
        while not over.is_set():
            page.look()
            for number in list(page.rows)[-3:]:
                live.build_detail(number)
        page.look()
        return page

    with ThreadPoolExecutor(10) as threads:
        looking = [threads.submit(look) for _ in range(2)]
        list(threads.map(tell, range(60)))
        over.set()
        pages = [each.result() for each in looking]
    assert [sorted(page.rows) for page in pages] == [list(range(1, 61))] * 2
    assert all(row["is_over"] for page in pages for row in page.rows.values())
