"""`adapter view`: the content of its page for recordings, transcripts and evals, and that none of it escapes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
from base64 import b64encode
from html import unescape
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adapter.cli.app import make_app
from adapter.core import package_data
from adapter.core.errors import UsageError
from adapter.evaluation.eval_view_data import view_runs
from adapter.protocols.recorded_exchange import RecordedCall, RecordedExchange
from adapter.recording.transcript import Transcript
from adapter.recording.transcript_lines import StoredFile
from adapter.recording.view.edit_diffs import EditDiffs
from adapter.recording.view.view_page import render_view_page
from adapter.recording.view.view_page_data import ReparseOptions, build_exchanges_view, build_transcript_view
from tests.command_line import started

TRANSCRIPTS = package_data.find_data_directory("fixtures") / "transcripts"
TOOLS = tuple(
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("read_file", "delete_file")
)
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py",}}\n</tool_call>'
READ = RecordedCall(name="read_file", arguments={"path": "a.py"})
DRAFTED = "<think>Or <tool_call>{}</tool_call>?</think>\n"
BARE = 'Look:\n```json\n{"name": "delete_file", "arguments": {"path": "a.py"}}\n```\nThat would do.'
HOSTILE = [
    "</script><script>window.hurt = 1</script>",
    "<img src=x onerror='window.hurt = 1'>",
    "<svg/onload=window.hurt=1>",
    "<!-- <script> -->",
    "--></script ><script>window.hurt = 1</script\t>",
    "<![CDATA[<script>window.hurt = 1</script>]]>",
    "javascript:window.hurt=1",
    "${window.hurt = 1} {{ 7 * 7 }} {% raw %}",
    '"});window.hurt = 1;//',
    "\u2028window.hurt = 1\u2029",
    "\u202egnp.exe\u202c \u2066hidden\u2069 \u200b\u00ad",
    "NUL \x00 ESC \x1b[2J BEL \x07 CR \r",
    "lone \ud800 surrogates \udfff",
    "__proto__ constructor toString",
    "</title></style></textarea><base href='https://example.invalid/'><meta http-equiv=refresh content=0>",
    "<a href='javascript:window.hurt=1' style='position:fixed;inset:0'>click</a><iframe srcdoc='<script>1</script>'>",
    "<" * 2000,
    "x" * 1_000_000,
]


def exchange(text: str = CALL, said: str = "Read a.py", **more: Any) -> RecordedExchange:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": said}]
    fields: dict[str, Any] = {
        "format": "hermes", "policy": "safe", "finish_reason": "stop", "model": "m", "tools": TOOLS,
        "sent": {"messages": messages, "seed": 1},
    }  # fmt: skip
    return RecordedExchange(text=text, **(fields | more))


def hostile() -> list[RecordedExchange]:
    """Each of over two hundred texts in turn as an answer, a question, a name, reasoning, an argument and a fault."""
    ways = (
        lambda text: exchange(text),
        lambda text: exchange(f"<think>{text}</think>\nDone."),
        lambda text: exchange(f"Tags: `{text}`\n> {text}"),
        lambda text: exchange(CALL.replace("a.py", json.dumps(text)[1:-1])),
        lambda text: exchange(f"<tool_call>{text}"),
        lambda text: exchange(f'<tool_call>{{"name": {json.dumps(text)}, "arguments": {{}}}}</tool_call>'),
        lambda text: exchange(said=text),
        lambda text: exchange(model=text[:300], reasoning=text, guardrail=text[:300], asked_again=True),
        lambda text: exchange(calls=(RecordedCall(name=text[:300], arguments={text[:300]: text[:300]}),)),
        lambda text: exchange(time=text, finish_reason=text[:300]),
        lambda text: exchange(tools=({"name": text[:300], "description": text},)),
        lambda text: exchange(sent={"prompt": text, text[:300]: text}),
    )
    short = [text for text in HOSTILE if len(text) < 10_000]
    return [way(text) for text in short for way in ways] + [way(HOSTILE[-1]) for way in ways[:2]]


class Elements(HTMLParser):
    """The elements of a page, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data


def spans(shown: dict[str, Any], reading: int = 0) -> list[tuple[str, str]]:
    return [(span["kind"], span["text"]) for span in shown["readings"][reading]["spans"]]


def test_exchange_has_the_role_of_each_piece():
    """With repairs by name, and the reason for each rejected call."""
    (shown,) = build_exchanges_view([exchange(f"{DRAFTED}{CALL}", calls=(READ,))], "said.jsonl").data["exchanges"]
    assert [kind for kind, _ in spans(shown)] == ["markup", "reasoning", "markup", "call"]
    call = shown["readings"][0]["spans"][-1]
    assert call["call"] == 'read_file {\n  "path": "a.py"\n}'
    assert [name for name, _ in call["fixes"]] == ["trailing-comma"]
    (rejected,) = shown["readings"][0]["spans"][1]["rejected"]
    assert rejected == ["<tool_call>{}</tool_call>?", "it is a draft in the reasoning"]
    assert shown["marks"] == ["calls", "fixes", "rejected"]
    assert (shown["calls"], shown["notes"]) == ([["read_file", 1]], [])


def test_reasoning_removed_by_the_server_comes_first():
    """Reasoning from a separate field."""
    (shown,) = build_exchanges_view([exchange("Done.", reasoning="Hm.")], "f").data["exchanges"]
    assert spans(shown) == [("reasoning", "Hm."), ("content", "Done.")]


def test_exchange_has_its_seconds_and_tokens():
    """Recorded seconds and tokens, also as numbers for sorting. Unknown ones are empty."""
    took = exchange(first_s=0.5, duration_s=2.5, prompt_tokens=1200, written_tokens=40, retry=1)
    first, second = build_exchanges_view([took, exchange()], "f").data["exchanges"]
    assert first["cost"] == "1,200 + 40 tokens, 2.5 s"
    assert dict(first["about"])["written"] == "40 tokens, 20 a second"
    assert first["figures"] == {
        "first_s": 0.5, "duration_s": 2.5, "prompt_tokens": 1200, "written_tokens": 40, "retry": 1,
    }  # fmt: skip
    assert "retry" in first["marks"]
    assert (second["cost"], second["figures"]) == ("", {})


def test_transcript_has_the_time_of_each_answer():
    """From the seconds of its lines, which older transcripts lack."""
    text = (TRANSCRIPTS / "by-hand-six-turns.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert all(not each["time"] for each in build_transcript_view(Transcript.from_text(text), "f").data["exchanges"])
    rows[0]["time"] = "2026-11-23T09:00:00.000+00:00"
    for number, row in enumerate(row for row in rows if row["kind"] in ("request", "chunk")):
        row["at_s"] = number * 0.5
    last = max(place for place, row in enumerate(rows[: len(rows) // 2]) if row["kind"] == "chunk")
    rows[last] |= {"prompt_tokens": 90, "written_tokens": 7}
    again = Transcript.from_text("\n".join(map(json.dumps, rows)))
    exchanges = build_transcript_view(again, "f").data["exchanges"]
    assert exchanges[0]["time"] == "2026-11-23 09:00:00"
    assert all(each["figures"]["first_s"] == 0.5 <= each["figures"]["duration_s"] for each in exchanges)
    assert exchanges[0]["time"] < exchanges[-1]["time"]
    assert [each["figures"].get("written_tokens") for each in exchanges].count(7) == 1


def test_spans_beyond_the_limit_are_merged():
    """The rest is one piece, so the text is complete and the page stays small."""
    many, marked = build_exchanges_view([exchange(CALL * 3000), exchange(f"`{'<tool_call>' * 3000}`")], "f").data[
        "exchanges"
    ]
    found = spans(many)
    assert (len(found), "".join(text for _, text in found)) == (2001, CALL * 3000)
    assert "1,000 more spans with 1,000 calls" in many["readings"][0]["spans"][-1]["error"]
    assert many["calls"] == [["read_file", 3000]]
    assert sum(len(span["rejected"]) for span in marked["readings"][0]["spans"]) == 2000


def test_prompt_is_the_one_sent_and_occurs_once():
    """Messages, tool definitions and all other fields. Parts that several exchanges share are in the page once."""
    data = build_exchanges_view([exchange(), exchange(said="Now b.py")], "f").data
    first, second = data["exchanges"]
    told = [(data["parts"][place]["role"], data["parts"][place]["text"]) for place in second["prompt"]]
    assert told == [("system", "Be brief."), ("user", "Now b.py")]
    assert first["prompt"][0] == second["prompt"][0]
    assert first["tools"] == second["tools"]
    assert [data["parts"][place]["role"] for place in first["tools"]] == ["read_file", "delete_file"]
    assert json.loads(data["parts"][first["settings"][0]]["text"]) == {"seed": 1}


def test_calls_that_are_read_otherwise_today_are_noted():
    """The record has the calls that the client got."""
    (shown,) = build_exchanges_view([exchange(calls=())], "f").data["exchanges"]
    assert "read otherwise" in shown["marks"]
    assert "recorded no call, now read_file" in shown["notes"][0]


def test_answers_are_read_again_beside_how_they_were_read():
    """With another policy or format."""
    (shown,) = build_exchanges_view([exchange(BARE)], "f", ReparseOptions.from_names(None, "lenient")).data["exchanges"]
    assert [reading["name"] for reading in shown["readings"]] == ["As recorded", "Parsed again: lenient"]
    assert [[kind for kind, _ in spans(shown, number)].count("call") for number in (0, 1)] == [0, 1]
    assert "read otherwise" in shown["marks"]
    (shown,) = build_exchanges_view([exchange()], "f", ReparseOptions.from_names("qwen3-coder", "strict")).data[
        "exchanges"
    ]
    assert shown["readings"][1]["name"] == "Parsed again: qwen3_coder, strict"
    with pytest.raises(UsageError, match="unknown policy 'mild'"):
        ReparseOptions.from_names(None, "mild")


def test_a_transcript_shows_results_and_diffs():
    """The result of each call, and the lines that an edit changed."""
    text = (TRANSCRIPTS / "by-hand-six-turns.jsonl").read_text(encoding="utf-8")
    exchanges = build_transcript_view(Transcript.from_text(text), "f").data["exchanges"]
    assert len(exchanges) == 6
    assert [result["ok"] for result in exchanges[2]["results"]] == [False]
    assert "failed" in exchanges[2]["marks"]
    (diff,) = exchanges[1]["results"][0]["diffs"]
    assert diff.startswith("--- a/settings.ini\n+++ b/settings.ini\n@@ -1,4 +1,4 @@\n")
    assert "-port = 8000\n" in diff
    assert not any(shown["notes"] for shown in exchanges)


@pytest.mark.parametrize("file", sorted(TRANSCRIPTS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_transcript_is_shown_as_it_was_read(file):
    """All shipped ones: the text is complete, and parsed as when it was recorded."""
    transcript = Transcript.from_text(file.read_text(encoding="utf-8"))
    exchanges = build_transcript_view(transcript, file.name).data["exchanges"]
    said = ["".join(line.text for line in answer) for answer in transcript.answers]
    assert ["".join(text for kind, text in spans(shown)) for shown in exchanges] == said
    assert not any(shown["notes"] for shown in exchanges)


def test_files_are_followed_from_edit_to_edit():
    """A file that is overwritten is compared with its previous content. If that is unknown, only the patch is shown."""
    from adapter.dialects import get_dialect

    tools = get_dialect("blade").tools
    edited = EditDiffs({"a": StoredFile(text="1\n2\n3\n")})

    def diffs(name: str, changed: dict[str, StoredFile | None] | None = None, **arguments: str) -> list[str]:
        return edited.render_diffs(tools[name], arguments, changed or {})

    assert "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n" in diffs("apply_edit", path="a", old_text="2", new_text="two")[0]
    assert "-two\n+2\n" in diffs("write_file", path="a", content="1\n2\n3\n")[0]
    assert diffs("read_file", path="a") == []
    assert "-2\n" in diffs("run_command", {"a": StoredFile(text="1\n3\n")}, command="sed", cwd=".")[0]
    assert diffs("apply_edit", path="a", old_text="lost", new_text="found")[0].endswith("-lost\n+found\n")


def test_runs_of_an_eval_are_shown():
    """An unfinished one has its reason. Other lines are named."""
    row = {
        "done": False, "scenario": "s", "kind": "k", "way": "ours", "number": 0, "fault": "no call", "answer": "Hm.",
        "turns": 1, "calls": 0, "refused": 0, "prompt_tokens": 10, "written_tokens": 2, "seconds": 1.5,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Do it"}, {"type": "image_url"}]}],
    }  # fmt: skip
    lines = '{"eval": 1, "model": "m"}\n' + json.dumps(row) + "\n"
    (shown,) = (data := view_runs(lines, "f").data)["exchanges"]
    assert (shown["title"], shown["model"], shown["marks"], shown["notes"]) == (
        "s, ours, run 1", "m", ["failed"], ["no call"],
    )  # fmt: skip
    assert shown["cost"] == "10 + 2 tokens, 1.5 s"
    assert data["parts"][0]["text"] == "Do it\n[image_url, 21 characters]"
    with pytest.raises(UsageError, match="f, line 3, is not a valid evaluation run"):
        view_runs(lines + "[]x\n", "f")


def test_page_data_cannot_leave_its_element():
    """Whatever the texts are, the page has the same elements, and its policy allows only its own script.

    The part for browsers without JavaScript has text and links within the page for each exchange.
    """
    texts = [
        render_view_page(build_exchanges_view(exchanges, name).data)
        for exchanges, name in (([exchange()], "f"), (hostile(), "</script><script>.jsonl"))
    ]
    links = texts[1].partition('<noscript class="plain">')[2].partition("</noscript>")[0]
    assert {tag for tag, _ in Elements(links).found} <= {
        "nav", "details", "summary", "ul", "li", "a", "span", "article", "h2", "h3", "dl", "div", "dt", "dd", "p",
        "pre", "code", "section",
    }  # fmt: skip
    assert {name for _, names in Elements(links).found for name in names} == {"aria-label", "class", "href", "id"}
    assert set(re.findall(r'href="(.*?)\d+"', links)) == {"#", "#tools"}
    assert len(re.findall('href="', links)) == len(re.findall(r'href="#(tools)?\d+"', links))
    plain, shown = (Elements(re.sub("(?s)<noscript.*</noscript>", "", text)) for text in texts)
    assert shown.found == plain.found
    data, script = shown.scripts
    assert script == plain.scripts[1]
    assert set("<>&") & set(data) == set()
    assert data.isascii()
    assert len(json.loads(data)["exchanges"]) == len(hostile()) > 200
    text = unescape(render_view_page(build_exchanges_view([exchange()], "f").data))
    assert not re.search(r"(src|href(?!=\"#)|action)=|url\(|@import|https?:", text)
    for kind, body in (("script", script), ("style", text.partition("<style>")[2].partition("</style>")[0])):
        assert f"{kind}-src 'sha256-{b64encode(hashlib.sha256(body.encode()).digest()).decode()}'" in text


def test_page_escapes_hidden_characters():
    """Directions, zero widths and control characters become visible."""
    (shown,) = build_exchanges_view([exchange("a\u202eb\x00\ud800")], "f").data["exchanges"]
    assert spans(shown) == [("content", "a\\u202eb\\x00\\ud800")]


def view(*arguments: str) -> None:
    result = CliRunner().invoke(make_app(["view"]), ["view", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def written(tmp_path: Path, exchanges: list[RecordedExchange], *options: str) -> Path:
    """Return the page that the command writes."""
    file, out = tmp_path / "said.jsonl", tmp_path / "page.html"
    file.write_text("".join(json.dumps(each.model_dump()) + "\n" for each in exchanges), encoding="utf-8")
    view(str(file), "--html", str(out), *options)
    return out


def test_the_command_writes_the_page_for_its_owner_alone(tmp_path):
    """It contains conversations."""
    out = written(tmp_path, [exchange()], "--policy", "strict")
    assert out.stat().st_mode & 0o777 == 0o600
    assert "Parsed again: strict" in out.read_text(encoding="utf-8")


def test_a_file_of_another_kind_is_refused(tmp_path):
    """With the expected kinds."""
    file = tmp_path / "notes.txt"
    file.write_text("hello")
    with pytest.raises(UsageError, match=r"is not a valid transcript line \(it is not (valid )?JSON.*"):
        view(str(file), "--html", "x")
    file.write_text('{"eval": 1}\n')
    with pytest.raises(UsageError, match="omit --format and --policy"):
        view(str(file), "--html", "x", "--policy", "safe")


def test_it_is_served_to_this_machine_alone(tmp_path):
    """Only at the printed address, until Ctrl-C is pressed."""
    file = tmp_path / "said.jsonl"
    file.write_text(json.dumps(exchange().model_dump()) + "\n", encoding="utf-8")
    with started("view", file) as run:
        assert run.first_lines() == "Press Ctrl-C to stop.\n"
        address = run.stdout.read_text(encoding="utf-8").strip()
        place = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[\w-]{22}/)", address)
        assert place is not None
        found = {}
        for path in (place[2], "/", "/favicon.ico", f"{place[2]}x", "/../etc/passwd", "/%E9"):
            connection = HTTPConnection("127.0.0.1", int(place[1]), timeout=30)
            connection.putrequest("GET", path)
            connection.endheaders()
            answer = connection.getresponse()
            found[path] = (answer.status, answer.read().decode())
            connection.close()
        assert found.pop(place[2]) == (200, render_view_page(build_exchanges_view([exchange()], "said.jsonl").data))
        assert {status for status, _ in found.values()} == {404}
        assert run.process.pid is not None
        os.kill(run.process.pid, signal.SIGINT)
        run.process.join(60)
        assert run.process.exitcode == 0
        assert run.stderr.read_text(encoding="utf-8") == "Press Ctrl-C to stop.\n"
