"""The translation without a server: for any split, streamed or buffered, nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.core.json.load import load_json
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import parse
from adapter.prompting.calling_setup import CallingSetup
from adapter.protocols import anthropic_request, ollama
from adapter.protocols.answer_translation import BufferedExchange, StreamedExchange
from adapter.protocols.anthropic_response import AnthropicWriter
from adapter.protocols.chat_request_translation import needs_translation, translate_chat_request
from adapter.protocols.conversation_cache import VerbatimCallCache
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.ollama import build_extra_fields, convert_to_native, convert_to_openai
from adapter.protocols.openai_chat_response import BufferedCompletion, StreamedCompletion
from adapter.protocols.openai_errors import relay_error
from adapter.protocols.request_errors import RequestError, build_error_body
from adapter.protocols.sse import EventReader, LineReader, encode_event
from adapter.protocols.template_prompt import convert_to_chat
from adapter.protocols.tool_call_deltas import NativeCalls
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import (
    ConstraintSettings,
    PromptSettings,
    TranslationOptions,
    validate_options,
)
from adapter.protocols.usage import Usage, parse_usage
from adapter.tools.tool_set import ToolSet
from tests.processor_time import processor_limit
from tests.scripted_server import delta
from tests.server.test_wrap import ASK, CALL, TOOLS, completion

PIECES = ["I look.\n", CALL, "<think>", "Hm. ", "</think>", CALL[:30], "\n\n", "`<tool_call>`", "é😀"]


def request(**fields: Any) -> TranslatedRequest:
    options = TranslationOptions(retry_policy=RetryPolicy(retries=0))
    return translate_chat_request({"model": "qwen3", "messages": ASK, "tools": TOOLS, **fields}, options)


def stream_of(text: str, finish_reason: str = "stop") -> bytes:
    events = [*map(delta, text), delta(finish_reason=finish_reason)]
    return b"".join(map(encode_event, events)) + b"data: [DONE]\n\n"


def joined(sent: bytes) -> tuple[str, str, list[Any], str | None]:
    """Return content, reasoning, calls and finish reason of a stream."""
    content, reasoning, calls, finish_reason = "", "", [], None
    for event in EventReader().feed(sent):
        if event == b"[DONE]":
            continue
        (choice,) = json.loads(event)["choices"]
        content += choice["delta"].get("content") or ""
        reasoning += choice["delta"].get("reasoning_content") or ""
        calls += [call["function"] for call in choice["delta"].get("tool_calls") or ()]
        finish_reason = choice["finish_reason"] or finish_reason
    return content, reasoning, calls, finish_reason


def whole(completion: dict[str, Any], request: TranslatedRequest) -> dict[str, Any]:
    answer = BufferedCompletion(request).feed(completion)
    assert isinstance(answer, dict)
    return answer


@given(text=st.lists(st.sampled_from(PIECES), max_size=6).map("".join), size=st.integers(1, 90))
def test_stream_can_be_split_anywhere(text, size):
    """A server's bytes give the same result in one piece and in pieces of any size."""
    sent = stream_of(text)
    once, split = StreamedExchange(request(), 0), StreamedExchange(request(), 0)
    at_once = once.feed(sent) + once.close()
    in_pieces = b"".join(split.feed(sent[at : at + size]) for at in range(0, len(sent), size)) + split.close()
    assert joined(in_pieces) == joined(at_once)
    assert at_once.endswith(b"data: [DONE]\n\n")


@given(text=st.lists(st.sampled_from(PIECES), max_size=6).map("".join), reason=st.sampled_from(["stop", "length"]))
def test_streamed_and_buffered_answers_are_equal(text, reason):
    """Except for reasoning that is recognized only at its end, after it was sent as content."""
    streamed = StreamedExchange(request(), 0)
    content, reasoning, calls, finish_reason = joined(streamed.feed(stream_of(text, reason)) + streamed.close())
    (choice,) = whole(completion(text, reason), request())["choices"]
    message = choice["message"]
    assert [call["function"] for call in message.get("tool_calls") or ()] == calls
    assert choice["finish_reason"] == finish_reason
    told = (message["content"] or "", message.get("reasoning_content") or "")
    was_content = content.endswith(reasoning) and told == (content, "")
    assert was_content or sorted(told[0] + told[1]) == sorted(content + reasoning)


@pytest.mark.parametrize("fields", [{}, {"parallel_tool_calls": False}, {"tools": None}])
def test_second_answer_may_begin_after_the_end_of_the_first(fields):
    streamed, out = StreamedExchange(request(n=2, **fields), 0), b""
    for index, event in (
        (0, delta("A")),
        (0, delta(finish_reason="stop")),
        (1, delta("B")),
        (1, delta(finish_reason="stop")),
    ):
        event["choices"][0]["index"] = index
        out += b"" if streamed.is_done else streamed.feed(encode_event(event))
    assert b'"content":"B"' in out + streamed.close()


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
    {"type": "text", "text": "I look.\n"},
    {"type": "text", "text": CALL},
]


def test_content_may_be_a_list_of_parts():
    """As in the answers of Mistral's API."""
    streamed = StreamedExchange(request(), 0)
    events = [delta(content=PARTS[:1]), delta(content=PARTS[1:]), delta(finish_reason="stop")]
    content, reasoning, calls, _ = joined(streamed.feed(b"".join(map(encode_event, events))) + streamed.close())
    message = whole(convert_to_chat(completion(cast(Any, PARTS))), request())["choices"][0]["message"]
    assert (content, reasoning, len(calls)) == ("I look.", "Hm.", 1)
    assert (message["content"], message["reasoning_content"], len(message["tool_calls"])) == (content, reasoning, 1)


def test_content_in_parts_is_kept_if_the_first_choice_has_a_string():
    two = completion("A")
    two["choices"].append({**two["choices"][0], "index": 1, "message": {"role": "assistant", "content": PARTS[1:]}})
    first, second = whole(convert_to_chat(two), request(n=2))["choices"]
    assert (first["message"]["content"], second["message"]["content"]) == ("A", "I look.")
    assert second["message"]["tool_calls"]


def test_a_legacy_function_call_of_the_server_is_a_call():
    """As old versions of llama-cpp-python send it."""
    pieces = [{"name": "read_file", "arguments": '{"path": '}, {"arguments": '"a.py"}'}]
    streamed = StreamedExchange(request(), 0)
    events = [*(delta(function_call=piece) for piece in pieces), delta(finish_reason="function_call")]
    _, _, calls, finish_reason = joined(streamed.feed(b"".join(map(encode_event, events))) + streamed.close())
    assert (calls, finish_reason) == ([{"name": "read_file", "arguments": '{"path": "a.py"}'}], "tool_calls")


def test_a_call_of_the_server_may_have_its_name_outside_a_function():
    call = {"name": "read_file", "arguments": {"path": "a.py"}}
    streamed = StreamedExchange(request(), 0)
    events = [delta(tool_calls=[call]), delta(finish_reason="tool_calls")]
    _, _, calls, _ = joined(streamed.feed(b"".join(map(encode_event, events))) + streamed.close())
    assert calls == [{"name": "read_file", "arguments": '{"path": "a.py"}'}]


def test_completion_without_choices_is_an_error():
    """Clients read the first choice without a check."""
    assert "without choices" in whole({"id": "a", "choices": []}, request())["error"]["message"]


@pytest.mark.parametrize("fields", [{}, {"tool_choice": "none"}, {"tools": None}], ids=["free", "none", "no tools"])
def test_copied_result_is_sent_without_markup(fields):
    """A model that may not call continues by copying a result; the copied content stays."""
    calls = [{"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}]
    messages = [*ASK, {"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_call_id": "c", "content": "7"}]
    asked = request(messages=messages, **fields)
    text = "It says:\n<tool_response>\n7\n</tool_response>\nSeven."
    streamed = StreamedExchange(asked, 0)
    content, *_ = joined(streamed.feed(stream_of(text)) + streamed.close())
    (choice,) = whole(completion(text), asked)["choices"]
    assert content == choice["message"]["content"] == "It says:\n7\nSeven."


def test_a_refusal_in_the_history_is_text():
    """In the openai SDK, the content is then null."""
    messages = [*ASK, {"role": "assistant", "content": None, "refusal": "I may not."}, *ASK]
    assert request(messages=messages).body["messages"][-2] == {"role": "assistant", "content": "I may not."}


def test_reasoning_only_answer_becomes_content():
    """The client never gets an empty answer. A stream has sent the text as reasoning before."""
    text = "<think>\nThe file has 3 lines."
    (choice,) = whole(completion(text), request())["choices"]
    assert choice["message"] == {"role": "assistant", "content": "The file has 3 lines.", "refusal": None}
    streamed = StreamedExchange(request(), 0)
    content, reasoning, _, reason = joined(streamed.feed(stream_of(text)) + streamed.close())
    assert (content, reasoning, reason) == ("The file has 3 lines.", "The file has 3 lines.", "stop")
    (cut,) = whole(completion(text, "length"), request())["choices"]
    assert cut["message"]["reasoning_content"] == "The file has 3 lines."


@given(data=st.binary(max_size=200))
def test_exchange_accepts_any_bytes(data):
    """The client always gets JSON events, and an end or an error."""
    streamed = StreamedExchange(request(), 0)
    sent = streamed.feed(data) + streamed.close()
    events = EventReader().feed(sent)
    assert events
    assert all(event == b"[DONE]" or isinstance(json.loads(event), dict) for event in events)


@given(chunk=st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["choices", "delta", "index", "content", "finish_reason", "error", "id"]), inner),
    max_leaves=12,
))  # fmt: skip
def test_completion_accepts_any_chunk(chunk):
    """JSON of any shape instead of a chunk."""
    answer = StreamedCompletion(request())
    for made in [*answer.feed(chunk), *answer.close()]:
        assert made.keys() & {"choices", "error"}


@pytest.mark.parametrize("name", FORMATS)
def test_history_uses_model_format(name):
    """The encoded past call is parsed as that call by its format's parser."""
    call = {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
    history = [
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "x = 1"},
    ]
    made = translate_chat_request(
        {"messages": history, "tools": TOOLS}, TranslationOptions(prompt=PromptSettings(format=name))
    )
    roles = [message["role"] for message in made.body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    turn = parse(made.body["messages"][2]["content"], ToolSet(TOOLS), name)
    assert [(call.name, call.arguments) for call in turn.calls] == [("read_file", {"path": "a.py"})]
    assert "x = 1" in made.body["messages"][3]["content"]


ODD = 'I look.\n\n<tool_call>{\'name\': \'ReadFile\', "arguments": {"file": "a.py",}}</tool_call>'


def asked_again(options: TranslationOptions, message: Any, result: Any = None) -> Any:
    """Return the messages for the model server when a client continues after ``message``."""
    result = result or {"role": "tool", "tool_call_id": message["tool_calls"][0].get("id"), "content": "text"}
    return translate_chat_request(
        {"model": "qwen3", "messages": [*ASK, message, result], "tools": TOOLS}, options
    ).body["messages"]


@pytest.mark.parametrize("is_streamed", [True, False])
def test_past_calls_are_replayed_verbatim(is_streamed):
    """To the byte, repaired or not, so that the prompt begins with text that is in the server's cache."""
    options = TranslationOptions()
    first = translate_chat_request({"model": "qwen3", "messages": ASK, "tools": TOOLS}, options)
    if is_streamed:
        streamed = StreamedExchange(first, 0)
        content, _, (function,), _ = joined(streamed.feed(stream_of("<think>Hm.</think>" + ODD)) + streamed.close())
        message: Any = {"role": "assistant", "content": content, "tool_calls": [{"id": "", "function": function}]}
        message["tool_calls"][0]["id"] = parse(ODD, ToolSet(TOOLS), turn=first.turn).calls[0].id
    else:
        message = whole(completion("<think>Hm.</think>" + ODD), first)["choices"][0]["message"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"path": "a.py"}
    again = asked_again(options, message)
    assert again[: len(first.body["messages"])] == first.body["messages"]
    assert again[2] == {"role": "assistant", "content": ODD}
    without_id = {**message, "tool_calls": [{"function": message["tool_calls"][0]["function"]}]}
    assert asked_again(options, without_id)[2]["content"] == ODD, "Ollama's clients"


@pytest.mark.parametrize(
    ("changed", "value"), [("content", "I do not look."), ("tool_calls", []), ("arguments", '{"path": "b.py"}')]
)
def test_changed_past_call_is_encoded_again(changed, value):
    options = TranslationOptions()
    first = translate_chat_request({"model": "qwen3", "messages": ASK, "tools": TOOLS}, options)
    message = whole(completion(ODD), first)["choices"][0]["message"]
    if changed == "arguments":
        message["tool_calls"][0]["function"]["arguments"] = value
    else:
        message[changed] = value
    shown = asked_again(options, message, {"role": "user", "content": "Go on."})[2]["content"]
    assert shown != ODD
    assert "a.py" not in shown or changed == "content"


NATIVE = TranslationOptions(native=True)


@pytest.mark.parametrize("role", ["function", "ipython", "observation", "tool"])
@pytest.mark.parametrize("native", [True, False])
def test_roles_of_results_and_developers_are_known(role, native):
    messages = [{"role": "developer", "content": "Be brief."}, *ASK, {"role": role, "name": "f", "content": "7"}]
    made = translate_chat_request({"messages": messages, "tools": TOOLS}, TranslationOptions(native=native)).body
    roles = [each["role"] for each in made["messages"]]
    assert roles == ["system", "user", *([role if role == "function" else "tool"] if native else [])]


def test_unknown_role_is_refused():
    body = {"messages": [*ASK, {"role": "critic", "content": "Hm."}]}
    assert needs_translation(body)
    with pytest.raises(RequestError, match=r"messages\[1\].role must be one of system, .*, got 'critic'"):
        translate_chat_request(body, TranslationOptions())


def test_native_calls_are_forwarded():
    """With `native` the request is unchanged; the server's calls are forwarded, and so is one left in the text."""
    asked = {"model": "qwen3", "messages": ASK, "tools": TOOLS}
    first = translate_chat_request(asked, NATIVE)
    assert first.body == asked
    own = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "b.py"}'}}
    answer = completion(CALL)
    answer["choices"][0]["message"]["tool_calls"] = [own]
    (choice,) = whole(answer, first)["choices"]
    assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["read_file"] * 2
    assert choice["message"]["tool_calls"][1] == own
    assert (choice["message"]["content"], choice["finish_reason"]) == (None, "tool_calls")


def test_native_call_deltas_are_renumbered():
    """One call in the text, then two native calls in pieces: indexes have no gaps, and the pieces join."""
    header = {"index": 0, "id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"pa'}}
    other = {"index": 1, "id": "c2", "type": "function", "function": {"name": "read_file", "arguments": {}}}
    rest = {"index": 0, "function": {"arguments": 'th": "b.py"}'}}
    events = [delta(CALL), *(delta(tool_calls=[each]) for each in (header, rest, other)), delta(finish_reason="stop")]
    answer = StreamedCompletion(
        translate_chat_request({"model": "qwen3", "messages": ASK, "tools": TOOLS, "stream": True}, NATIVE)
    )
    chunks = [chunk for event in events for chunk in answer.feed(event)] + answer.close()
    calls: dict[int, str] = {}
    for chunk in chunks:
        for call in chunk["choices"][0]["delta"].get("tool_calls", ()):
            calls[call["index"]] = calls.get(call["index"], "") + call["function"]["arguments"]
    assert [json.loads(calls[index]) for index in range(3)] == [{"path": "a.py"}, {"path": "b.py"}, {}]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_model_setup_applies_only_to_that_model():
    """On a server with several models, each request uses the best setup of the model that it names."""
    known = {"qwen3": CallingSetup(native=True), "phi": CallingSetup(format="mistral", style="compact")}
    options = TranslationOptions(setup_of=known.get)
    asked = {"messages": ASK, "tools": TOOLS}
    assert translate_chat_request({**asked, "model": "qwen3"}, options).is_native
    assert translate_chat_request({**asked, "model": "phi"}, options).parsing.format == "mistral"
    assert "[TOOL_CALLS]" in str(translate_chat_request({**asked, "model": "phi"}, options).body)
    assert translate_chat_request({**asked, "model": "other"}, options).parsing.format == "hermes"


def test_fragments_of_a_native_call_are_joined_in_linear_time():
    """A call of 2 MB in small fragments took minutes, in which no other client got an answer."""
    calls = NativeCalls()
    with processor_limit(10):
        for _ in range(250_000):
            calls.add([{"index": 0, "function": {"name": "read_file", "arguments": "xxxxxxxx"}}])
        assert len(calls.build_events(ToolSet(), "turn")) == 1


def test_verbatim_cache_is_bounded():
    """The oldest answers are evicted; sizes stay correct if an answer is stored again."""
    memory, calls = (
        VerbatimCallCache(max_characters=1_000),
        [[("", "read_file", {"path": str(number)})] for number in range(50)],
    )
    for call in [*calls, *calls]:
        memory.remember("hermes", "", "", call, "x" * 100)
    known = [memory.recall("hermes", "", "", call) is not None for call in calls]
    assert known == sorted(known)
    assert 1 < sum(known) < 10
    assert memory.recall("mistral", "", "", calls[-1]) is None
    assert memory.recall("hermes", "other", "", calls[-1]) is None


def test_prompt_prefix_is_stable():
    """Byte for byte over all turns and tool choices, as the server's cache requires."""
    first = request().body["messages"]
    second = request(tool_choice="required", parallel_tool_calls=False).body["messages"]
    assert first[0] == second[0]
    assert (
        second[-1]["content"]
        == f"{first[-1]['content']}\n\nAnswer with a call to one of the tools. Make one call only."
    )


def test_template_precedes_model_name():
    """llama.cpp reports the template; requests may call the model by any name."""
    made = translate_chat_request(
        {"model": "gpt-4", "messages": ASK, "tools": TOOLS},
        TranslationOptions(prompt=PromptSettings(model="Qwen3-Coder-30B.gguf", template="{{ x }}")),
    )
    assert "<function=read_file>" in made.body["messages"][0]["content"]


def test_required_call_is_enforced_if_supported():
    """With only the named tool; the client's own grammar is kept."""
    options = TranslationOptions(
        constraints=ConstraintSettings(enforce=lambda tools, *_, **__: {"grammar": ",".join(tools)})
    )
    body = {"messages": ASK, "tools": [*TOOLS, {"name": "other"}]}
    named = {"type": "function", "function": {"name": "read_file"}}
    assert translate_chat_request({**body, "tool_choice": "required"}, options).body["grammar"] == "read_file,other"
    assert translate_chat_request({**body, "tool_choice": named}, options).body["grammar"] == "read_file"
    assert "grammar" not in translate_chat_request(body, options).body
    own = {**body, "tool_choice": "required", "grammar": "mine"}
    assert translate_chat_request(own, options).body["grammar"] == "mine"


def test_enforced_call_is_parsed_under_any_policy():
    """A JSON Schema has no markers: text under the strict policy is a call here."""
    options = TranslationOptions(
        constraints=ConstraintSettings(enforce=lambda *_, **__: {"response_format": {"type": "json_schema"}}),
        policy="strict",
    )
    made = translate_chat_request({"messages": ASK, "tools": TOOLS, "tool_choice": "required"}, options)
    (choice,) = whole(completion('{"name": "read_file", "parameters": {"path": "a.py"}}'), made)["choices"]
    assert choice["finish_reason"] == "tool_calls"


def test_allowed_tools_restrict_calls():
    """OpenAI's newer tool choice: all tools are described, some may be called."""
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOLS[0]]}}
    made = translate_chat_request(
        {"messages": ASK, "tools": [*TOOLS, {"name": "other"}], "tool_choice": choice}, TranslationOptions()
    )
    assert list(made.tools) == ["read_file"]
    assert "other" in made.body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('{"path": "a', '{"arguments": "{\\"path\\": \\"a"}'),
        ("", "{}"),
        ("[1]", '{"arguments": [1]}'),
        pytest.param("[" * 300, '{"arguments": "[[[', id="too deep"),
        pytest.param("[" * 100_000, '{"arguments": "[[[', id="much too deep"),
    ],
)
def test_non_object_arguments_are_kept(written, shown):
    """A client may send calls from another provider."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": written}}
    made = translate_chat_request(
        {"messages": [*ASK, {"role": "assistant", "tool_calls": [call]}]}, TranslationOptions()
    )
    assert f'"arguments": {shown}' in made.body["messages"][1]["content"]


def test_images_stay_next_to_text():
    """In their order with other parts."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "See"}, image]}, *ASK]
    made = translate_chat_request({"messages": messages, "tools": TOOLS}, TranslationOptions())
    text = {"type": "text", "text": "Read a.py"}
    assert made.body["messages"][1]["content"] == [{"type": "text", "text": "See"}, image, text]


def test_content_lists_are_accepted():
    """Plain strings, unknown part types and clients' own spellings of images: nothing is lost, nothing crashes."""
    odd = {"type": "video", "video": {"n": 1}}
    bare = {"type": "image_url", "image_url": "data:image/png;base64,AA=="}
    messages = [
        {"role": "user", "content": ["See", bare, odd]},
        {"role": "assistant", "content": [{"type": "text", "text": "Hm."}]},
        {"role": "tool", "tool_call_id": "1", "content": ["It is", bare]},
    ]
    made = translate_chat_request({"messages": messages, "tools": TOOLS}, TranslationOptions())
    _, user, said, result = made.body["messages"]
    assert user["content"] == [{"type": "text", "text": "See"}, bare, odd]
    assert said["content"] == "Hm."
    assert "It is" in result["content"][0]["text"]
    assert result["content"][1:] == [bare]
    native = convert_to_native(made.body | build_extra_fields({"model": "m"}))["messages"]
    assert native[1] == {"role": "user", "content": "See", "images": ["AA=="]}


MEDIA = [
    {"type": "text", "text": "here"},
    {"type": "image", "data": "AA==", "mimeType": "image/png"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,BB=="}},
    {"type": "audio", "data": "CC==", "mimeType": "audio/wav"},
]


def media_result(unsupported: set[str]) -> Any:
    """Return the content that the model server gets for a tool result with images and audio."""
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    messages = [
        *ASK,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": MEDIA},
    ]
    options = TranslationOptions(unsupported_media=frozenset(unsupported))
    return translate_chat_request({"messages": messages, "tools": TOOLS}, options).body["messages"][-1]["content"]


def test_media_in_results_reach_models_that_can_take_them():
    """MCP's notation is converted."""
    _, first, second, sound = media_result(set())
    assert [first["image_url"]["url"], second["image_url"]["url"]] == [
        "data:image/png;base64,AA==",
        "data:image/png;base64,BB==",
    ]
    assert sound == {"type": "input_audio", "input_audio": {"data": "CC==", "format": "wav"}}


def test_media_that_a_model_cannot_take_are_named():
    content = media_result({"image", "audio"})
    assert isinstance(content, str)
    assert "here" in content
    assert content.count("cannot see images") == 2
    assert "cannot hear audio" in content


def test_image_url_is_named_for_ollama():
    """Ollama does not fetch URLs."""
    far = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    plain = {"messages": [{"role": "user", "content": [far]}]}
    (message,) = convert_to_native(plain | build_extra_fields({}))["messages"]
    assert (message["images"], "https://example.com/a.png" in message["content"]) == ([], True)


@pytest.mark.parametrize(("start", "mime"), [("iVBORw0KGgo=", "png"), ("/9j/4AAQ", "jpeg"), ("UklGRg==", "webp")])
def test_ollama_image_type_is_detected(start, mime):
    """From the first bytes, as Ollama's API has no media type."""
    made = convert_to_openai({"messages": [{"role": "user", "content": "See", "images": [start]}]})
    assert made["messages"][0]["content"][1]["image_url"]["url"] == f"data:image/{mime};base64,{start}"


def test_invalid_images_are_rejected():
    with pytest.raises(RequestError, match="images"):
        convert_to_openai({"messages": [{"role": "user", "images": [{"url": "x"}]}]})


RULES = [
    *({"role": "system", "content": "A"}, {"role": "developer", "content": "B"}, {"role": "user", "content": "x"}),
    *(
        {"role": "system", "content": "C"},
        {"role": "assistant", "content": "ok"},
        {"role": "developer", "content": "D"},
    ),
    *({"role": "user", "content": "go"}, {"role": "system", "content": "E"}),
]


@pytest.mark.parametrize("tools", [TOOLS, None], ids=["tools", "no tools"])
def test_system_messages_are_merged_without_loss(tools):
    """As sent by codex (two) and gptme (three): one at the beginning, the others in order with the user's messages."""
    asked: dict[str, Any] = {"model": "qwen3", "messages": RULES, "tools": tools}
    assert needs_translation(asked)
    messages = translate_chat_request(asked, TranslationOptions()).body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[0]["content"].startswith("A\n\nB")
    assert [message["content"] for message in messages[1:]] == ["x\n\nC", "ok", "D\n\ngo\n\nE"]


def test_needs_translation_detects_tools_and_calls():
    assert needs_translation({"tools": TOOLS})
    assert needs_translation({"messages": [{"role": "tool", "content": ""}]})
    assert needs_translation({"messages": [{"role": "developer", "content": ""}]})
    assert not needs_translation({"messages": [{"role": "system", "content": "x"}, *ASK]})
    assert not any(map(needs_translation, ({"messages": ASK}, {"tools": []}, {"messages": "x"}, [], None)))


@pytest.mark.parametrize(
    "options",
    [
        TranslationOptions(prompt=PromptSettings(format="x")),
        TranslationOptions(prompt=PromptSettings(style="x")),
        TranslationOptions(policy="x"),
    ],
)
def test_invalid_options_raise_at_start(options):
    with pytest.raises(ValueError, match="'x'"):
        validate_options(options)


def test_invalid_messages_are_rejected():
    with pytest.raises(RequestError, match="messages"):
        translate_chat_request({"messages": ["hello"], "tools": TOOLS}, TranslationOptions())


@given(
    st.lists(st.sampled_from([b"data: {}", b"\n", b"\r\n", b": ping", b"event: x", b"data:1", b"\xff"])),
    st.integers(1, 9),
)
def test_events_can_be_split_anywhere(pieces, size):
    """As specified, for any sizes of network reads."""
    sent = b"".join(pieces)
    once, split = EventReader(), EventReader()
    at_once = once.feed(sent) + once.close()
    assert [e for at in range(0, len(sent), size) for e in split.feed(sent[at : at + size])] + split.close() == at_once


def test_readers_accept_other_line_ends():
    """CRLF, several data lines, no last empty line."""
    reader = EventReader()
    assert reader.feed(b'event: a\r\ndata: {"a":\r\ndata: 1}\r\n\r\ndata: 2') == [b'{"a":\n1}']
    assert reader.close() == [b"2"]
    lines = LineReader()
    assert lines.feed(b'{"a": 1}\n\n{"b"') + lines.feed(b": 2}") + lines.close() == [b'{"a": 1}', b'{"b": 2}']


@given(st.text(alphabet=st.characters(), max_size=20))
def test_encode_json_accepts_any_text(text):
    """Including lone surrogates, which UTF-8 cannot represent."""
    sent = encode_event({"text": text})
    assert load_json(sent[6:])["text"] == text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>", b'{"error": "words"}', b"[1]", b"\xff", b'{"error": {"message": "slow down", "code": 429}}',
        b'{"error": {}}', b'{"object": "error", "message": "words", "type": "BadRequestError", "code": 400}',
    ],
)  # fmt: skip
def test_relay_error_returns_openai_shape(body):
    """With a code that is text, as strict clients expect it."""
    error = relay_error(500, body)["error"]
    assert {"message", "type", "param", "code"} <= error.keys()
    assert error["message"]
    assert b"words" not in body or "words" in error["message"]
    assert {type(error["type"]), type(error["code"])} <= {str, type(None)}


@pytest.mark.parametrize(("status", "code"), [(400, "context_length_exceeded"), (429, None)])
@pytest.mark.parametrize("body", [b"Too many tokens, please wait.", b'{"error": {"message": "Too many tokens"}}'])
def test_only_a_long_prompt_has_its_code(status, code, body):
    """Agents shorten the conversation then. Status 429 means too many tokens in a minute or day."""
    error = relay_error(status, body)["error"]
    assert error["code"] == code
    assert status == 400 or "does not fit" not in error["message"]


@pytest.mark.parametrize("reason", ["stop", "length", None])
def test_incomplete_streamed_call_is_an_error(reason):
    """Sent arguments cannot be retracted: the stream fails or ends as cut, never as if it had a call."""
    tools = [{"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}]
    made = translate_chat_request(
        {"model": "qwen3", "messages": ASK, "tools": tools}, TranslationOptions(stream_arguments=True)
    )
    streamed = StreamedExchange(made, 0)
    begun = '{"query": "' + "a." * 100  # shorter arguments are sent with their call
    cut = f'<tool_call>\n{{"name": "search", "arguments": {begun}'
    sent = (
        streamed.feed(stream_of(cut, reason) if reason else b"".join(map(encode_event, map(delta, cut))))
        + streamed.close()
    )
    events = [json.loads(event) for event in EventReader().feed(sent) if event != b"[DONE]"]
    arguments = [
        call["function"]["arguments"]
        for event in events
        for choice in event.get("choices", ())
        for call in choice["delta"].get("tool_calls", ())
    ]
    assert any(arguments)
    assert begun.startswith("".join(arguments))
    if reason == "length":
        assert events[-1]["choices"][0]["finish_reason"] == "length"
    else:
        assert events[-1]["error"]["message"]
        assert not sent.endswith(b"data: [DONE]\n\n")


WORDS = [
    "model", "messages", "tools", "tool_choice", "role", "content", "user", "assistant", "tool", "tool_calls",
    "function", "name", "arguments", "type", "text", "image_url", "url", "parameters", "properties", "required",
    "enum", "items", "allowed_tools", "mode", "stop", "stream", "stream_options", "include_usage", "format",
    "options", "num_predict", "system", "input_schema", "tool_result", "tool_use", "tool_use_id", "input",
    "images", "source", "thinking", "auto", "none", "any", "object", "$ref", "read_file", "max_tokens",
    "response_format", "stop_sequences", "tool_name", "id",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.sampled_from(WORDS) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=12,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "developer"]), "content": VALUES},
    optional={"tool_calls": VALUES, "tool_call_id": VALUES, "images": VALUES, "name": VALUES},
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "messages": VALUES | st.lists(MESSAGES, min_size=1, max_size=3),
        "tools": VALUES
        | st.lists(st.just(TOOLS[0]) | VALUES, max_size=2)
        | VALUES.map(lambda parameters: [{"name": "any", "parameters": parameters, "input_schema": parameters}])
        | VALUES.map(lambda value: [{"name": "any", "input_schema": {"properties": {"x": value}, "required": value}}]),
        **dict.fromkeys(("tool_choice", "stop", "stream_options", "options", "format", "system", "model"), VALUES),
    },
)


READERS: dict[str, Callable[[Any], Any]] = {
    "openai": dict,
    "anthropic": anthropic_request.convert_to_openai,
    "ollama": ollama.convert_to_openai,
}


@example(body={"system": [None], "tools": [{"name": "any", "input_schema": None}]}, dialect="anthropic")
@example(body={"system": [None]}, dialect="anthropic")
@given(
    body=FIELDS | st.dictionaries(st.sampled_from(WORDS), VALUES),
    dialect=st.sampled_from(["openai", "anthropic", "ollama"]),
)
def test_any_request_is_accepted_or_rejected(body, dialect):
    """Any JSON object in each API: a request, or an error that names the field."""
    needs_translation(body)
    try:
        translate_chat_request(READERS[dialect](body), TranslationOptions())
    except RequestError as error:
        build_error_body(error)


@given(
    chunks=st.lists(VALUES, max_size=4),
    stream=st.booleans(),
    dialect=st.sampled_from(["openai", "anthropic", "ollama"]),
)
def test_any_upstream_answer_is_converted_or_rejected(chunks, stream, dialect):
    """Any JSON value in a stream or as a buffered answer, in each client's shape."""
    if not stream:
        for chunk in chunks:
            answer = BufferedExchange(request()).feed(json.dumps(chunk).encode())
            assert isinstance(answer, tuple)
            status, completion_ = answer
            assert status in (200, 502)
            if status == 200 and dialect == "anthropic":
                AnthropicWriter("m", "msg").build_response(completion_)
            elif status == 200 and dialect == "ollama":
                ollama.OllamaWriter("m", "now").build_response(completion_)
        return
    writer: Any = {
        "openai": None,
        "anthropic": AnthropicWriter("m", "msg"),
        "ollama": ollama.OllamaWriter("m", "now"),
    }
    streamed = StreamedExchange(request(), 0, writer[dialect])
    sent = b"".join(streamed.feed(encode_event(chunk)) for chunk in chunks) + streamed.close()
    assert sent


def test_schema_const_can_be_null():
    """Unlike other nulls in a definition, which mean a missing value."""
    schema = {"type": "object", "properties": {"p": {"const": None, "type": None}}, "required": ["p"]}
    made = request(tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}])
    assert made.tools["f"].properties["p"] == {"const": None}


def test_referenced_type_is_copied():
    """Bare text becomes an object if the definition refers to an object type."""
    properties = {"p": {"$ref": "#/$defs/node"}, "q": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}
    schema = {"type": "object", "properties": properties, "$defs": {"node": {"type": "object", "properties": {}}}}
    made = request(tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}])
    text = '<tool_call>\n<function=f>\n<parameter=p>\n{"a": 1}\n</parameter>\n</function>\n</tool_call>'
    (call,) = parse(text, made.tools, "qwen3_coder").calls
    assert call.arguments == {"p": {"a": 1}}
    assert made.tools["f"].parameters["properties"]["q"]["type"] == ["null", "object"]


@pytest.mark.parametrize("timings", [{"prompt_ms": 2.5, "predicted_ms": 4}, {"prompt_ms": None}, {"prompt_ms": "x"}, 7])
def test_ollama_durations_prefer_server_timings(timings):
    """llama.cpp's, in nanoseconds; implausible values are ignored."""
    completed = {**completion("Hi."), "timings": timings}
    answer = ollama.OllamaWriter("m", "now", lambda: 9).build_response(completed)
    told = (answer["total_duration"], answer["prompt_eval_duration"], answer["eval_duration"])
    assert told == ((9, 2_500_000, 4_000_000) if isinstance(timings, dict) and "predicted_ms" in timings else (9, 0, 9))


def test_ollama_line_contains_no_other_line_ends():
    """The ollama SDK splits lines like `str.splitlines`."""
    text = "a\u2028b\u2029c\x85d\né"
    writer = ollama.OllamaWriter("m", "now")
    line = writer.write([delta(text)]).decode()
    assert len(line.splitlines()) == 1
    assert json.loads(line)["message"]["content"] == text


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens_details": {"cached_tokens": 6}, "cached_tokens": 7},
        {"prompt_tokens_details": None, "prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 4},
        {"cached_tokens": 6},
        {"cache_read_input_tokens": 6},
    ],
)
def test_cached_tokens_of_each_provider_are_counted(usage):
    answer = {"usage": {"prompt_tokens": 10, "completion_tokens": 2, **usage}, "timings": {"cache_n": 9}}
    assert parse_usage(answer) == Usage(10, 2, reused=6)


@pytest.mark.parametrize("stream", ["true", 1, "", {}])
def test_stream_must_be_true_or_false(stream):
    """vLLM would stream for "true", although the client is answered at once."""
    with pytest.raises(RequestError, match="'stream' must be true or false"):
        request(stream=stream)


def test_stop_string_of_llama_cpp_is_reported():
    """By ``/completion``, which gets the model's own prompt."""
    event = {"content": "Hi.", "stop": True, "stop_type": "word", "stopping_word": "END"}
    asked = request(stop=["END"])
    answer = BufferedExchange(asked).feed(json.dumps(event).encode())
    assert isinstance(answer, tuple)
    message = AnthropicWriter("m", "msg_1", stops=["END"]).build_response(answer[1])
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "END")
