"""Recordings of `adapter serve --record` and ``wrap(record=...)``, and their replay."""

from __future__ import annotations

import contextlib
import itertools
import json
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from typer.testing import CliRunner

from adapter import wrap
from adapter.cli.app import make_app
from adapter.core.errors import UsageError
from adapter.core.events import Event, JsonObject
from adapter.core.text.redaction import Redactor
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.openai_chat_response import DIED, BufferedCompletion, StreamedCompletion
from adapter.protocols.recorded_exchange import Observation, RecordedCall, RecordedExchange, read_exchanges
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import ConstraintSettings, TranslationOptions
from adapter.recording.exchange_log import SYNC_CHARACTERS, ExchangeLog, describe_difference, reparse_calls
from tests.grammars.test_constrained_retries import BROKEN, GOOD, enforce
from tests.live_upstream import LiveUpstream
from tests.scripted_server import CHAT, ScriptedServer, as_json, as_stream, delta
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving
from tests.waiting import eventually

SECRET = "hunter2-very-secret"
SECOND = CALL.replace("a.py", "b.py")
QUOTED = "Tags like `<tool_call>` are mine to write.\n"


@pytest.fixture
def client(scripted: ScriptedServer):
    with openai.OpenAI(base_url=f"{scripted.url}/v1", api_key="client-key-of-mine", max_retries=0) as client:
        yield client


def written(file: Path) -> list[RecordedExchange]:
    return read_exchanges(file.read_text(encoding="utf-8"), file.name)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(make_app(), arguments)
    return result.exit_code, result.output


CALLS = ConstraintSettings(mode="arguments", enforce=enforce)


def observed(request: TranslatedRequest) -> tuple[TranslatedRequest, list[RecordedExchange]]:
    heard: list[RecordedExchange] = []
    observation = replace(request.observation, observe=heard.append)
    return replace(request, observation=observation), heard


def asked(**options: Any) -> tuple[TranslatedRequest, list[RecordedExchange]]:
    return observed(
        translate_chat_request({"model": "m", "messages": ASK, "tools": TOOLS}, TranslationOptions(**options))
    )


def streamed_in(request: TranslatedRequest, *deltas: dict[str, Any], reason: str | None = "stop") -> None:
    answer = StreamedCompletion(request)
    for each in deltas:
        answer.feed({"choices": [{"index": 0, "delta": each}]})
    if reason:
        answer.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    answer.close()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_server_adds_a_line_for_each_answer(scripted, tmp_path, monkeypatch, stream):
    """The request, the answer and its result, without keys, even if they arrive in pieces."""
    monkeypatch.setenv("MY_API_KEY", SECRET)
    text = f"{QUOTED}The key is {SECRET}.\n{CALL}"
    answer = as_stream(*map(delta, text), delta(finish_reason="stop")) if stream else as_json(200, completion(text))
    scripted.on(CHAT, answer, answer)
    file = tmp_path / "said.jsonl"
    with serving(scripted.url, "--record", str(file)) as url, openai.OpenAI(base_url=url, api_key="k") as client:
        for _ in range(2):
            given = client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS, stream=stream)
            _ = list(given) if stream else given
    first, second = written(file)
    times = ("time", "first_s", "reasoning_s", "calls_s", "duration_s")
    assert second.model_copy(update={key: getattr(first, key) for key in times}) == first
    assert 0 < (first.first_s or 0) <= (first.duration_s or 0)
    assert first.time < second.time
    assert (first.prompt_tokens, first.written_tokens) == ((None, None) if stream else (5, 2))
    assert first.text == text.replace(SECRET, "[redacted MY_API_KEY]")
    assert first.sent["messages"][-1]["content"] == "Read a.py"
    assert [(call.name, call.arguments) for call in first.calls] == [("read_file", {"path": "a.py"})]
    assert (first.finish_reason, first.model, first.format) == ("stop", "qwen3", "hermes")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_wrapped_client_records(scripted, client, tmp_path):
    """The same lines, appended to a file."""
    file = tmp_path / "said.jsonl"
    scripted.on(CHAT, as_json(200, completion(f"With client-key-of-mine.\n{CALL}")), as_json(200, completion("No.")))
    for _ in range(2):
        wrap(client, record=file).chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS)
    first, second = written(file)
    assert "client-key-of-mine" not in first.text
    assert (len(first.calls), second.text, second.calls) == (1, "No.", ())


def test_unwritable_record_is_reported_at_the_start(client, tmp_path):
    with pytest.raises(UsageError, match="Is a directory"):
        wrap(client, record=tmp_path)


def test_a_record_that_fails_later_takes_no_answer_away(scripted, client, tmp_path, caplog):
    """If the disk is gone, the conversation continues."""
    file = tmp_path / "sub" / "said.jsonl"
    file.parent.mkdir()
    wrapped = wrap(client, record=file)
    file.unlink()
    file.parent.rmdir()
    scripted.on(CHAT, as_json(200, completion(CALL)))
    answer = wrapped.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS)
    assert answer.choices[0].message.tool_calls
    assert "cannot record an exchange" in caplog.text


def test_a_large_exchange_is_written_in_the_background(tmp_path):
    """Credentials in a long text are searched in another thread; the line is complete at the end."""
    log = ExchangeLog(tmp_path / "said.jsonl", Redactor({}))
    for text in ("x " * SYNC_CHARACTERS, "short"):
        sent: JsonObject = {"messages": [{"role": "user", "content": text}]}
        log(RecordedExchange(format="hermes", policy="safe", sent=sent, tools=(), text=text))
    log._background.shutdown()
    assert sorted(len(line.text) for line in written(tmp_path / "said.jsonl")) == [5, 2 * SYNC_CHARACTERS]


def test_reasoning_that_the_server_split_off_is_kept():
    request, heard = asked()
    streamed_in(request, {"reasoning_content": "Hm. "}, {"reasoning_content": "Yes."}, {"content": CALL})
    assert [(each.reasoning, each.text) for each in heard] == [("Hm. Yes.", CALL)]
    assert heard[0].parse_turn().calls


USAGE = {"choices": [], "usage": {"prompt_tokens": 90, "completion_tokens": 7}}
TIMINGS = {"timings": {"cache_n": 80, "prompt_n": 10, "predicted_n": 7}}


@pytest.mark.parametrize(("last", "after"), [({}, [USAGE]), (TIMINGS, []), ({}, [])], ids=["usage", "timings", "none"])
def test_figures_are_the_clocks_and_the_servers(last, after):
    """Seconds from the request to the first chunk and to the end; also tokens that the server reports later."""
    request, heard = asked(retry_policy=RetryPolicy(clock=itertools.count(100.0, 0.5).__next__))
    answer = StreamedCompletion(request)
    for text in (QUOTED, CALL):
        answer.feed({"choices": [{"index": 0, "delta": {"content": text}}]})
    answer.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **last})
    assert heard == []
    for chunk in after:
        answer.feed(chunk)
    answer.close(has_ended=True)
    answer.cancel()
    (exchange,) = heard
    assert (exchange.first_s, exchange.retry) == (0.5, 0)
    assert (exchange.calls_s, exchange.duration_s) == ((1.0,), 1.5)
    tokens = (90, 7) if last or after else (None, None)
    assert (exchange.prompt_tokens, exchange.written_tokens) == tokens


@pytest.mark.parametrize("in_field", [False, True], ids=["in the text", "in a field"])
def test_times_of_reasoning_and_calls_are_recorded(in_field):
    """With a clock that advances by a second per chunk. Both calls are timed, although the second is a repetition."""
    now = [100.0]
    request, heard = asked(retry_policy=RetryPolicy(clock=lambda: now[0]))
    answer = StreamedCompletion(request)
    thought = [{"reasoning_content": "Hm."}] if in_field else [{"content": "<think>Hm."}]
    texts = [*(() if in_field else ("</think>",)), CALL, CALL]
    for piece in [*thought, *({"content": text} for text in texts)]:
        now[0] += 1
        answer.feed({"choices": [{"index": 0, "delta": piece}]})
    answer.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    answer.close()
    (exchange,) = heard
    assert (exchange.first_s, exchange.reasoning_s) == (1.0, 1.0)
    assert exchange.calls_s == ((2.0, 3.0) if in_field else (3.0, 4.0))


class Heard:
    """A listener that keeps its events."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def __call__(self, exchange: RecordedExchange) -> Heard:
        self.told.append(("asked", exchange.retry))
        return self

    def receive(self, events: Sequence[Event]) -> None:
        self.told += [event.raw or getattr(event, "text", "") for event in events]

    def end(self, exchange: RecordedExchange | None, why: str) -> None:
        self.told.append(("ended", exchange.calls if exchange else why))


def test_listener_gets_each_exchange_from_its_request_on():
    """The chunks, the retries, and failed requests."""
    heard = Heard()
    answer = StreamedCompletion(asked(observation=Observation(listen=heard))[0])
    assert heard.told == [("asked", 0)]
    answer.feed({"choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}}]})
    answer.feed({"choices": [{"index": 0, "delta": {"content": "I look.\n"}}]})
    assert heard.told[1:] == ["Hm.", "I look."]
    answer.feed({"choices": [{"index": 0, "delta": {"content": CALL}, "finish_reason": "stop"}]})
    answer.close()
    assert "".join(each for each in heard.told if isinstance(each, str) and each != "Hm.").endswith(CALL)
    assert heard.told[-1] == ("ended", (RecordedCall(name="read_file", arguments={"path": "a.py"}),))
    for error, why in (({"error": {"message": "no memory"}}, "no memory"), (None, DIED)):
        heard = Heard()
        answer = StreamedCompletion(asked(observation=Observation(listen=heard))[0])
        if error:
            answer.feed(error)
        answer.close()
        answer.cancel()
        assert heard.told == [("asked", 0), ("ended", why)]
    heard = Heard()
    whole = BufferedCompletion(asked(constraints=CALLS, observation=Observation(listen=heard))[0])
    for text in (BROKEN["no JSON"], GOOD):
        whole.feed({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]})
    assert [told for told in heard.told if isinstance(told, tuple)][:3] == [("asked", 0), ("ended", ()), ("asked", 1)]


def test_a_line_of_before_has_no_figures():
    line = '{"kind": "exchange", "format": "hermes", "policy": "safe", "sent": {}, "tools": [], "text": "No."}'
    (exchange,) = read_exchanges(line, "f")
    assert (exchange.first_s, exchange.duration_s, exchange.prompt_tokens, exchange.retry) == (None, None, None, 0)
    assert (exchange.reasoning_s, exchange.calls_s) == (None, ())


def test_an_answer_that_broke_off_is_recorded_as_such():
    """With the text before the server died."""
    request, heard = asked()
    streamed_in(request, {"content": CALL[:40]}, reason=None)
    assert [(each.text, each.finish_reason, each.calls) for each in heard] == [(CALL[:40], "incomplete", ())]
    assert reparse_calls(heard[0]) == ()
    assert not heard[0].parse_turn().calls


@pytest.mark.parametrize("by", ["serve", "wrap"])
def test_an_answer_that_the_client_left_is_recorded_as_such(tmp_path, by):
    """People often look for exactly these."""
    file = tmp_path / "said.jsonl"

    def answer(_: Any) -> Iterator[dict[str, Any]]:
        yield delta("I look.")
        for number in itertools.count():  # no loop that would end the reasoning
            yield delta(reasoning_content=f" {number}")

    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(LiveUpstream(answer))
        client = stack.enter_context(openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="k"))
        if by == "serve":
            client.base_url = stack.enter_context(serving(upstream.url, "--record", str(file)))
        else:
            client = wrap(client, record=file)
        with client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS, stream=True) as stream:
            assert any(chunk.choices[0].delta.content == "I look." for chunk in stream)
        assert upstream.hung_up.wait(60)
        eventually(lambda: file.exists() and written(file))  # the server records it after that
    (exchange,) = written(file)
    assert (exchange.text, exchange.finish_reason, exchange.calls) == ("I look.", "abandoned", ())
    assert describe_difference(exchange) == ""


def test_an_answer_that_was_asked_for_again_is_a_line_of_its_own():
    """The rejected one without calls, and the one that the client got."""
    request, heard = asked(constraints=CALLS)
    whole = BufferedCompletion(request)
    for text in (BROKEN["no JSON"], GOOD):
        whole.feed({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]})
    assert [(each.text, each.asked_again, len(each.calls)) for each in heard] == [
        (BROKEN["no JSON"], True, 0),
        (GOOD, False, 1),
    ]
    assert [describe_difference(each) for each in heard] == ["", ""]


@pytest.mark.parametrize(
    "text", [CALL, f"{CALL}\n{CALL.replace('a.py', 'b.py')}", "No call.", CALL[:40], QUOTED + CALL]
)
@pytest.mark.parametrize("reason", ["stop", "length", None])
@pytest.mark.parametrize("constraint", [None, "prefer"])
def test_the_same_text_gives_the_same_calls_again(text, reason, constraint):
    """Only the line is needed."""
    request, heard = asked(constraints=ConstraintSettings(mode=constraint, enforce=enforce))
    streamed_in(request, {"content": text}, reason=reason)
    (exchange,) = (RecordedExchange.model_validate_json(each.model_dump_json()) for each in heard)
    assert describe_difference(exchange) == ""
    assert bool(exchange.calls) == (CALL in text)


def test_replay_compares_exchanges(tmp_path):
    """As with transcripts: a difference is named, and changes the exit code."""
    request, heard = asked()
    streamed_in(request, {"content": CALL})
    lines = [heard[0], heard[0].model_copy(update={"calls": ()})]
    file = tmp_path / "said.jsonl"
    file.write_text("".join(json.dumps(each.model_dump(mode="json")) + "\n" for each in lines[:1]))
    assert run("replay", str(file)) == (0, "said  turns  1  calls  1  equal\n1 of 1 equal\n")
    file.write_text("".join(json.dumps(each.model_dump(mode="json")) + "\n" for each in lines))
    code, output = run("replay", str(file))
    assert code == 1
    assert 'said: exchange 2: recorded no call, now read_file({"path": "a.py"})' in output


def test_one_exchange_is_explained(tmp_path):
    """A quoted tag is rejected and a call is parsed, with the tools of the client."""
    request, heard = asked()
    streamed_in(request, {"content": QUOTED + CALL})
    file = tmp_path / "said.jsonl"
    file.write_text(json.dumps(heard[0].model_dump(mode="json")) + "\n")
    code, output = run("parse", str(file), "--exchange", "1", "--explain")
    assert code == 0
    assert "it is in inline code" in output
    assert 'read_file({"path": "a.py"})' in output
    code, output = run("parse", str(file), "--exchange", "1", "--json")
    assert [call["name"] for call in json.loads(output)["calls"]] == ["read_file"]


def test_an_exchange_that_is_not_there_is_named(tmp_path):
    file = tmp_path / "said.jsonl"
    file.write_text("")
    result = CliRunner().invoke(make_app(), ["parse", str(file), "--exchange", "1"])
    assert "has 0 exchanges" in str(result.exception)
    file.write_text('{"kind": "exchange"}\n')
    result = CliRunner().invoke(make_app(), ["parse", str(file), "--exchange", "1"])
    assert "line 1, is not a recorded exchange ('format' is missing)" in str(result.exception)
