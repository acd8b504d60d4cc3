"""Retries within one exchange, of which the client sees only the final answer."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from adapter.backends.constraint_fields import WORDS_GRAMMAR, build_constraint_fields
from adapter.conversation.guardrails.candidate_answer import CandidateAnswer
from adapter.conversation.guardrails.guardrails import MAX_DROPPED
from adapter.conversation.guardrails.registry import parse_guardrails
from adapter.protocols.answer_translation import BufferedExchange, StreamedExchange
from adapter.protocols.anthropic_response import AnthropicWriter
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.exchange_guardrails import RetryPolicy, build_guard_headers, build_report
from adapter.protocols.openai_chat_response import BufferedCompletion
from adapter.protocols.recorded_exchange import Observation, RecordedExchange
from adapter.protocols.request_errors import RequestError
from adapter.protocols.sse import EventReader, encode_event
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import ConstraintSettings, TranslationOptions
from tests.model_text import call as written
from tests.protocols.test_wire import stream_of
from tests.scripted_server import delta
from tests.server.test_wrap import ASK, CALL, TOOLS, completion

CALLED = ("read_file", '{"path": "a.py"}')
BROKEN = '<tool_call>\n{"name": "read_file", "arguments": {"pa\n</tool_call>'
NAMELESS = '<tool_call>\n{"name": "reed_file", "arguments": {"path": "a.py"}}\n</tool_call>'


def request(asking: RetryPolicy = RetryPolicy(), **fields: Any) -> TranslatedRequest:  # noqa: B008  # it is frozen
    body = {"model": "qwen3", "messages": ASK, "tools": TOOLS, **fields}
    return translate_chat_request(body, TranslationOptions(retry_policy=asking))


def streamed(asked: TranslatedRequest, *answers: str) -> tuple[str, list[tuple[str, str]], list[str], list[Any]]:
    """Return content, calls, retries and the bodies of follow-up requests if the server sends ``answers``."""
    exchange, waiting, bodies, sent = StreamedExchange(asked, 0), list(answers), [], b""
    while True:
        sent += exchange.feed(stream_of(waiting.pop(0)))
        if (body := exchange.build_next_body()) is None:
            break
        bodies.append(body)
    assert not waiting
    return *read(sent + exchange.close()), bodies


def read(sent: bytes) -> tuple[str, list[tuple[str, str]], list[str]]:
    content, calls, told, ends = "", [], [], []
    for event in EventReader().feed(sent):
        if event == b"[DONE]":
            continue
        chunk = json.loads(event)
        told += chunk.get("adapter", {}).get("asked_again", [])
        (choice,) = chunk["choices"]
        content += choice["delta"].get("content") or ""
        calls += [
            (each["function"].get("name", ""), each["function"]["arguments"])
            for each in choice["delta"].get("tool_calls", ())
        ]
        ends += [choice["finish_reason"]] if choice["finish_reason"] else []
    assert ends == ["tool_calls" if calls else "stop"]
    return content, calls, told


def whole(asked: TranslatedRequest, *answers: str) -> tuple[str, list[tuple[str, str]], list[str], list[Any]]:
    exchange, waiting, bodies = BufferedExchange(asked), list(answers), []
    while True:
        answer = exchange.feed(json.dumps(completion(waiting.pop(0))).encode())
        if isinstance(answer, tuple):
            break
        bodies.append(answer)
    status, said = answer
    assert status == 200
    (choice,) = said["choices"]
    calls = [
        (each["function"]["name"], each["function"]["arguments"]) for each in choice["message"].get("tool_calls", ())
    ]
    assert choice["finish_reason"] == ("tool_calls" if calls else "stop")
    return choice["message"]["content"] or "", calls, said.get("adapter", {}).get("asked_again", []), bodies


BOTH = pytest.mark.parametrize("exchanged", [streamed, whole])
MENDED = [
    (BROKEN, "unreadable_call", ""),
    (f"I look.\n{BROKEN}", "unreadable_call", "I look."),
    (NAMELESS, "unknown_tool", ""),
    ('<tool_call>\n{"name": "read_file", "arguments": {}}\n</tool_call>', "wrong_arguments", ""),
    ("Let me read the file:", "announced_call", "Let me read the file:"),
    ("", "empty_answer", ""),
    ("<think>I have to read it.</think>", "empty_answer", ""),
    ("I don't have access to files.", "refusal", "I don't have access to files."),
]


@BOTH
@pytest.mark.parametrize(("wrong", "guardrail", "kept"), MENDED)
def test_retry_replaces_unusable_answer(exchanged, wrong, guardrail, kept):
    """The text before the call is sent once, followed by the call of the second answer, streamed or buffered."""
    content, calls, told, bodies = exchanged(request(), wrong, f"I read it now.\n{CALL}")
    assert (content.strip(), calls, told) == (kept or "I read it now.", [CALLED], [guardrail])
    (body,) = bodies
    shown = [message["content"] for message in body["messages"][-2:]]
    assert wrong.removeprefix("<think>I have to read it.</think>").strip() in shown[0]
    assert body["messages"][-1]["role"] == "user"


@BOTH
def test_good_answer_is_not_retried(exchanged):
    content, calls, told, bodies = exchanged(request(), f"I look.\n{CALL}")
    assert (content, calls, told, bodies) == ("I look.", [CALLED], [], [])


@pytest.mark.parametrize(
    "text",
    [
        f"I look.\n{CALL}",
        "The file has 3 lines.",
        f"<think>Hm.</think>{CALL}",
        "a: b\n\nc",
        f"{CALL}\n{CALL.replace('a.py', 'b.py')}",
        '{"name": "Bob", "age": 3}\nThat is all.',
        "```json\n[1, 2]\n```\nDone with it: `a` is `b`.",
    ],
)
def test_good_answer_has_same_bytes_without_guardrails(text):
    """Chunks are also sent at the same time."""
    on, off = (StreamedExchange(request(asking), 0) for asking in (RetryPolicy(), RetryPolicy(parse_guardrails("off"))))
    sent = stream_of(text)
    for at in range(0, len(sent), 7):
        assert on.feed(sent[at : at + 7]) == off.feed(sent[at : at + 7])
    assert on.close() == off.close()


INVENTED = f"It has 3 lines.\n\nUser: And b?\nAssistant: Of course.\n{CALL}\nDone, too."


@BOTH
def test_answer_ends_before_invented_turn(exchanged):
    """The invented text stays, its call is dropped and not retried; a faulty answer before it still is."""
    content, calls, told, bodies = exchanged(request(), INVENTED)
    assert content.startswith("It has 3 lines.")
    assert "Done, too." not in content
    assert (calls, told, bodies) == ([], [], [])
    assert exchanged(request(), f"{CALL}\n{INVENTED}")[1:] == ([CALLED], [], [])
    _, calls, told, _ = exchanged(request(adapter={"steps": {"required": ["read_file"]}}), INVENTED, CALL)
    assert (calls, told) == ([CALLED], ["missing_steps"])
    assert exchanged(request(RetryPolicy(parse_guardrails("off"))), INVENTED)[1] == [CALLED]


@BOTH
def test_repeated_call_is_retried_once(exchanged):
    """The client gets neither; if the model gives no answer, it gets the result."""
    function = {"name": CALLED[0], "arguments": CALLED[1]}
    made = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "a = 1"},
    ]
    mended, insisted = (request(messages=[*ASK, *made]) for _ in range(2))
    assert exchanged(mended, CALL, "It sets a.")[:3] == ("It sets a.", [], ["made_already"])
    assert exchanged(insisted, CALL, CALL)[:3] == ("a = 1", [], ["made_already"])


@BOTH
def test_failing_call_is_not_repeated_forever(exchanged):
    """After three equal errors, the client does not get the call any more."""
    function = {"name": CALLED[0], "arguments": CALLED[1]}
    messages: list[Any] = [*ASK]
    for number in range(3):
        call_id = f"c{number}"
        messages.append({"role": "assistant", "tool_calls": [{"id": call_id, "function": function}]})
        messages.append({"role": "tool", "tool_call_id": call_id, "content": "error: no such file"})
    insisted = exchanged(request(messages=messages[:-2]), CALL, CALL)
    assert insisted[1:3] == ([CALLED], ["failed_already"])
    assert exchanged(request(messages=messages), CALL, "There is no file.")[:2] == ("There is no file.", [])
    assert exchanged(request(messages=messages), CALL, CALL, CALL)[1:3] == ([], ["repeated_call"] * 2)


@BOTH
def test_retries_are_bounded(exchanged):
    """After two retries the last answer is used; a call of an unknown tool is left to the client."""
    _, calls, told, bodies = exchanged(request(), NAMELESS, NAMELESS, NAMELESS)
    assert [name for name, _ in calls] == ["reed_file"]
    assert told == ["unknown_tool"] * 2
    assert bodies[0]["messages"][-1] != bodies[1]["messages"][-1]


@pytest.mark.parametrize(
    "asking", [RetryPolicy(retries=0), RetryPolicy(parse_guardrails("off")), RetryPolicy(tokens=0)]
)
def test_retries_can_be_disabled(asking):
    content, calls, told, bodies = streamed(request(asking), "Let me read the file:")
    assert (content, calls, told, bodies) == ("Let me read the file:", [], [], [])


def test_retries_are_bounded_by_time():
    """Measured from the start of the request."""
    now = iter([0.0, 121.0]).__next__
    assert streamed(request(RetryPolicy(clock=now)), "Let me read the file:")[3] == []


@BOTH
def test_repeated_text_is_sent_once(exchanged):
    """The second answer has text without a call; its new part is sent."""
    content, calls, _, _ = exchanged(request(), "Let me read the file:", "Let me read the file: it is empty.")
    assert (content, calls) == ("Let me read the file:\n\nit is empty.", [])
    content, calls, _, _ = exchanged(request(), "Let me read the file:", "It is empty.")
    assert content == "Let me read the file:\n\nIt is empty."


@BOTH
def test_sent_call_is_not_retracted(exchanged):
    """A fault after it is text, as usual."""
    content, calls, told, bodies = exchanged(request(), f"{CALL}\n{BROKEN}")
    assert calls == [CALLED]
    assert (told, bodies) == ([], [])
    assert "read_file" in content


@BOTH
def test_rejected_retry_returns_first_answer(exchanged):
    if exchanged is whole:
        exchange = BufferedExchange(request())
        assert isinstance(exchange.feed(json.dumps(completion(f"I look.\n{NAMELESS}")).encode()), dict)
        said = exchange.give_up()
        assert said is not None
        (choice,) = said["choices"]
        assert choice["message"]["content"] == "I look."
        assert choice["message"]["tool_calls"][0]["function"]["name"] == "reed_file"
        return
    stream = StreamedExchange(request(), 0)
    sent = stream.feed(stream_of(f"I look.\n{NAMELESS}"))
    assert stream.build_next_body() is not None
    gave = stream.give_up()
    assert gave is not None
    content, calls, _ = read(sent + gave + stream.close())
    assert (content, calls[0][0]) == ("I look.", "reed_file")


STEPS = {"steps": {"required": ["read_file"]}}


@BOTH
def test_request_steps_are_enforced(exchanged):
    """The text of a rejected answer is never sent; the field is not forwarded to the server."""
    asked = request(adapter=STEPS)
    assert "adapter" not in asked.body
    content, calls, told, bodies = exchanged(asked, "It is done.", f"I read.\n{CALL}")
    assert (content, calls, told) == ("I read.", [CALLED], ["missing_steps"])
    assert "read_file" in bodies[0]["messages"][-1]["content"]


def test_steps_hold_text_until_call():
    """It is sent with the call; once the steps are done, text is not held."""
    stream = StreamedExchange(request(adapter=STEPS), 0)
    assert b"I look" not in stream.feed(stream_of("I look."))
    done = [
        *ASK,
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "read_file", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "text"},
    ]
    free = StreamedExchange(request(adapter=STEPS, messages=done), 0)
    assert b'"content":"I"' in free.feed(stream_of("It has 3 lines.")[:400])


def test_invalid_steps_are_rejected():
    with pytest.raises(RequestError, match="unknown tool 'reed_file' in steps"):
        request(adapter={"steps": {"required": ["reed_file"]}})


def test_record_contains_guardrail():
    """The follow-up is an exchange of its own."""
    seen: list[Any] = []
    body = {"model": "qwen3", "messages": ASK, "tools": TOOLS}
    asked = translate_chat_request(body, TranslationOptions(observation=Observation(observe=seen.append)))
    exchange = BufferedCompletion(asked)
    for text in ("", CALL):
        exchange.feed(completion(text))
        if text == "":
            continue
    assert [(each.asked_again, each.guardrail) for each in seen] == [(True, "empty_answer"), (False, "")]


def test_several_choices_are_not_retried():
    """It is unknown which of ``n`` is better."""
    guardrails = request(n=2).follow_up.guardrails
    assert guardrails is not None
    assert guardrails.judge(CandidateAnswer(""), "stop", str) is None


def definition(name: str, *required: str, **schema: Any) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in required}
    parameters = {"type": "object", "properties": properties, "required": list(required), **schema}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


LIGHTS = [definition("set_light", "room"), definition("set_heat", "room", "degrees", additionalProperties=False)]


def told(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


FLOODS = [
    (written("set_light", room="hall") * 7, {"name": "set_light", "guardrail": "repeated_in_answer", "count": 6}),
    (
        written("set_light", room="hall") + written("set_light") * 3,
        {"name": "set_light", "guardrail": "wrong_arguments", "count": 3},
    ),
    (
        written("set_light", room="hall") + written("set_light", room="<room>"),
        {"name": "set_light", "guardrail": "placeholder", "count": 1},
    ),
]


@BOTH
@pytest.mark.parametrize("stream_arguments", [False, True])
@pytest.mark.parametrize(("text", "dropped"), FLOODS)
def test_flood_after_a_call_does_not_reach_the_client(exchanged, stream_arguments, text, dropped):
    """Nor any part of it. Dropped calls are reported. The rest of a streamed flood is not received."""
    dropped = {**dropped, "count": min(dropped["count"], MAX_DROPPED + 1)}
    recorded: list[RecordedExchange] = []
    options = TranslationOptions(stream_arguments=stream_arguments, observation=Observation(recorded.append))
    asked = translate_chat_request({"model": "qwen3", "messages": told("Light the hall"), "tools": LIGHTS}, options)
    _, calls, again, _ = exchanged(asked, text)
    assert ([name for name, _ in calls if name], again) == (["set_light"], [])
    assert "".join(arguments for _, arguments in calls) == '{"room": "hall"}'
    assert build_report(None, recorded[-1].dropped) == {"dropped": [dropped]}
    assert asked.stats.dropped == {dropped["guardrail"]: dropped["count"]}


def test_dropped_calls_are_in_the_last_chunk_the_completion_and_the_header():
    asked = request(tools=LIGHTS, messages=told("Light the hall"))
    text, dropped = FLOODS[0]
    stream = StreamedExchange(asked, 0)
    events = EventReader().feed(stream.feed(stream_of(text)) + stream.close())
    chunks = [json.loads(each) for each in events if each != b"[DONE]"]
    assert stream.is_done
    assert [each["adapter"] for each in chunks if "adapter" in each] == [
        {"dropped": [{**dropped, "count": MAX_DROPPED + 1}]}
    ]
    answer = BufferedExchange(request(tools=LIGHTS, messages=told("Light the hall"))).feed(
        json.dumps(completion(text)).encode()
    )
    assert isinstance(answer, tuple)
    assert build_guard_headers(answer[1]) == {"x-adapter-dropped": "set_light:repeated_in_answer"}
    assert build_guard_headers({"adapter": {"dropped": [{"name": "a\r\nb", "guardrail": "c"}]}})[
        "x-adapter-dropped"
    ] == ("a??b:c")


@BOTH
@pytest.mark.parametrize(
    ("rooms", "sent"),
    [
        (("hall", "hall", "attic"), ["hall", "attic"]),
        (("hall", "hall", "attic", "attic", "kitchen"), ["hall", "attic", "kitchen"]),
        (("hall", "hall", "attic", "hall", "hall", "hall"), ["hall"]),
    ],
)
def test_dropped_call_costs_only_itself(exchanged, rooms, sent):
    """Unless the model floods: then nothing after the first dropped call is used."""
    text = "".join(written("set_light", room=room) for room in rooms)
    asked = request(tools=LIGHTS, messages=told("Light the hall, the attic and the kitchen"))
    _, calls, *_ = exchanged(asked, text)
    assert [json.loads(arguments)["room"] for name, arguments in calls if name] == sent


@BOTH
def test_number_of_calls_in_an_answer_is_limited(exchanged):
    text = "".join(written("set_light", room=room) for room in "abcdefghijkl")
    assert len(exchanged(request(tools=LIGHTS, messages=told("Light")), text)[1]) == 8
    limited = request(RetryPolicy(max_calls=3), tools=LIGHTS, messages=told("Light"))
    assert len(exchanged(limited, text)[1]) == 3
    off = request(RetryPolicy(parse_guardrails("off")), tools=LIGHTS, messages=told("Light"))
    assert len(exchanged(off, text)[1]) == 12


@BOTH
def test_call_without_required_arguments_is_never_sent(exchanged):
    """Not after the last retry either. Without retries, it is dropped at once."""
    bare = written("set_light")
    asked = request(tools=LIGHTS, messages=told("Light the hall"))
    assert exchanged(asked, bare, bare, bare)[:3] == ("", [], ["wrong_arguments"] * 2)
    asked = request(RetryPolicy(retries=0), tools=LIGHTS, messages=told("Light the hall"))
    assert exchanged(asked, f"I do it.\n{bare}")[:2] == ("I do it.", [])


@BOTH
def test_forbidden_argument_is_taken_out(exchanged):
    """At once if it is needless, else after the retries; a call that would then do something else is dropped."""
    heat = {"room": "hall", "degrees": "20"}
    asked = request(tools=LIGHTS, messages=told("Heat the hall to 20"))
    _, calls, again, _ = exchanged(asked, written("set_heat", **heat, why="cold"))
    assert ([json.loads(each) for _, each in calls], again) == ([heat], [])
    asked = request(tools=LIGHTS, messages=told("Heat the hall to 20"))
    _, calls, again, _ = exchanged(asked, *[written("set_heat", room="hall", degree="20")] * 3)
    assert (calls, again) == ([], ["wrong_arguments"] * 2)
    asked = request(tools=LIGHTS, messages=told("Heat the hall to 20"))
    _, calls, again, _ = exchanged(asked, *[written("set_heat", **heat, preview=True)] * 3)
    assert (calls, again) == ([], ["wrong_arguments"] * 2)


@BOTH
def test_copied_message_is_not_sent(exchanged):
    """Neither as a call's argument nor as the answer, which is then the last result."""
    function = {"name": "set_light", "arguments": '{"room": "hall"}'}
    made = [
        *told("Light the hall"),
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "The hall is lit."},
    ]
    repeat = written("set_light", room="hall")
    message = exchanged(request(tools=LIGHTS, messages=made), repeat, "It is lit.")[3][0]["messages"][-1]["content"]
    asked = request(tools=LIGHTS, messages=made)
    assert exchanged(asked, repeat, message, message)[:3] == ("The hall is lit.", [], ["made_already", "own_words"])
    asked = request(tools=LIGHTS, messages=made)
    copied = written("set_light", room=message)
    assert exchanged(asked, repeat, copied, copied)[:2] == ("The hall is lit.", [])


@BOTH
def test_call_shaped_answer_is_not_sent(exchanged):
    """It is retried once, and its text is held back; other JSON is an answer."""
    shaped = '{"name": "Switch it", "arguments": {"where": "hall"}}'
    asked = request(tools=LIGHTS, messages=told("Light the hall"))
    _, calls, again, _ = exchanged(asked, shaped, written("set_light", room="hall"))
    assert ([name for name, _ in calls], again) == (["set_light"], ["call_as_answer"])
    asked = request(tools=LIGHTS, messages=told("Light the hall"))
    assert exchanged(asked, shaped, shaped)[:2] == ("", [])
    other = '{"name": "Bob", "age": 3}'
    assert exchanged(request(tools=LIGHTS, messages=told("Who is it?")), other)[0] == other


def cut(asked: TranslatedRequest, text: str) -> tuple[str, list[tuple[str, str]], str]:
    """Return content, calls and finish reason of an answer that reached the token limit."""
    body = completion(text)
    body["choices"][0]["finish_reason"] = "length"
    found = BufferedExchange(asked).feed(json.dumps(body).encode())
    assert isinstance(found, tuple)
    _, answer = found
    (choice,) = answer["choices"]
    calls = choice["message"].get("tool_calls") or ()
    functions = [(each["function"]["name"], each["function"]["arguments"]) for each in calls]
    return choice["message"]["content"] or "", functions, choice["finish_reason"]


def test_first_whole_call_of_a_truncated_answer_is_kept():
    """If the answer continued after it; a call that may itself be cut is not."""
    read = '{"name": "read_file", "arguments": {"path": "a.py"}}'
    for text in (f"{read} and then and then", f"<tool_call>\n{read}\n{read[:20]}", f"{read}\n\nThen I will"):
        assert cut(request(), text) == ("", [CALLED], "tool_calls"), text
    for text in (read[:-1], f"<tool_call>\n{read}", "I will and then I will"):
        assert cut(request(RetryPolicy(retries=0)), text)[1:] == ([], "length"), text


@pytest.mark.parametrize("split", [True, False], ids=["split by the server", "in the text"])
@pytest.mark.parametrize(
    ("again", "shown"),
    [
        ("Where is a.py?", ""),
        ("\nWhere is a.py?\n", ""),
        ("Where is", ""),
        ("Where is b.py?", "Where is b.py?"),
        ("Where is a.py? Here.", "Where is a.py? Here."),
        ("Here.", "Here."),
    ],
)
def test_reasoning_of_a_retry_is_shown_if_it_is_new(split, again, shown):
    """A second thinking block would repeat the first one."""

    def thinking(reasoning: str, text: str) -> bytes:
        if not split:
            return stream_of(f"<think>{reasoning}</think>{text}")
        return b"".join(encode_event(delta(None, reasoning_content=each)) for each in reasoning) + stream_of(text)

    exchange = StreamedExchange(request(), 0, AnthropicWriter("m", "id"))
    sent = exchange.feed(thinking("Where is a.py?", "I will read it now."))
    assert exchange.build_next_body() is not None
    sent += exchange.feed(thinking(again, CALL)) + exchange.close()
    starts = [event["content_block"]["type"] for event in events(sent) if event["type"] == "content_block_start"]
    assert starts == ["thinking", "text", *(["thinking"] if shown else []), "tool_use"]
    deltas = [event["delta"] for event in events(sent) if event["type"] == "content_block_delta"]
    thought = "".join(each.get("thinking", "") for each in deltas)
    assert thought == "Where is a.py?" + (f"\n\n{shown}" if shown else "")


@pytest.mark.parametrize(("again", "shown"), [("Where?", "Where?"), ("Here.", "Where?\n\nHere.")])
def test_whole_answers_have_the_reasoning_of_all_attempts(again, shown):
    exchange = BufferedExchange(request())
    assert isinstance(exchange.feed(json.dumps(completion("<think>Where?</think>I will read it now.")).encode()), dict)
    answer = exchange.feed(json.dumps(completion(f"<think>{again}</think>{CALL}")).encode())
    assert isinstance(answer, tuple)
    assert answer[1]["choices"][0]["message"]["reasoning_content"] == shown


def events(sent: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in sent.split(b"\n") if line.startswith(b"data: ")]


@BOTH
def test_answer_without_anything_for_the_client_is_written_in_words(exchanged):
    """If the server can forbid calls, and only once. There is no result to show instead."""
    settings = ConstraintSettings(enforce=partial(build_constraint_fields, "llama.cpp"))
    options = TranslationOptions(retry_policy=RetryPolicy(), constraints=settings)
    body = {"model": "qwen3", "tools": LIGHTS, "messages": told("Light the hall")}
    bare = written("set_light")
    answers = bare, bare, bare, "There is no hall."
    content, calls, again, bodies = exchanged(translate_chat_request(body, options), *answers)
    assert (content, calls, again) == ("There is no hall.", [], ["wrong_arguments"] * 2)
    assert bodies[-1]["grammar"] == WORDS_GRAMMAR
    assert exchanged(translate_chat_request(body, options), bare, bare, bare, bare)[:2] == ("", [])


def test_a_stop_string_of_the_client_does_not_cut_the_call_again():
    asked = request(stop=["}"])
    content, calls, told, (body,) = streamed(asked, CALL[: CALL.index("}")], CALL)
    assert ("}" in asked.body["stop"], "}" in body["stop"]) == (True, False)
    assert (content, calls, told) == ("", [CALLED], ["unreadable_call"])
