"""Each request of a conversation is translated as if it were the first, but its earlier messages only once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.conversation.guardrails.call_history import CallHistory, read_call_history
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.conversation_cache import (
    MAX_BUILT,
    MAX_CONVERSATIONS,
    Conversation,
    ConversationCache,
    VerbatimCallCache,
    encode_messages,
)
from adapter.protocols.request_errors import RequestError
from adapter.protocols.translation_options import TranslationOptions
from tests.server.test_serve_bombs import asking, steps

TEXTS = st.sampled_from(["", "Go on.", "<tool_call>", "é\ud800", [{"type": "text", "text": "a"}, {"type": "x"}], None])
IDS = st.sampled_from(["c", "d", ""])


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


CALLS = st.builds(call, IDS, st.sampled_from(["t_0", "u"]), st.sampled_from(["{}", '{"a": "<b>"}', "[", "1"]))
MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "developer", "assistant"]), "content": TEXTS}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": TEXTS, "tool_calls": st.lists(CALLS, min_size=1, max_size=2)}
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": IDS, "content": TEXTS}),
)


def translated(body: dict[str, Any], memory: VerbatimCallCache) -> tuple[str, str, CallHistory]:
    request = translate_chat_request(body, replace(TranslationOptions(), memory=memory))
    assert translate_chat_request(body, TranslationOptions()).body == request.body
    assert request.follow_up.guardrails is not None
    past = request.follow_up.guardrails.history
    assert past == read_call_history(body["messages"], request.tools)
    return json.dumps(request.body), request.turn, past


@given(
    st.lists(MESSAGES, min_size=1, max_size=12),
    st.lists(st.integers(1, 12), max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_earlier_requests_do_not_change_a_translation(messages, lengths, parallel):
    memory = VerbatimCallCache()
    for length, is_parallel in zip(lengths, parallel, strict=False):
        body = asking() | {"messages": messages[:length], "parallel_tool_calls": is_parallel}
        assert translated(body, memory) == translated(body, VerbatimCallCache())


def conversation(turns: int) -> dict[str, Any]:
    body = asking()
    for turn in range(turns):
        answer = {"role": "assistant", "content": "", "tool_calls": [call(f"c{turn}", "t_0", json.dumps({"a": turn}))]}
        body["messages"] += [answer, {"role": "tool", "tool_call_id": f"c{turn}", "content": f"<b>{turn}</b>" * 100}]
    return body


def test_a_further_turn_of_a_long_conversation_takes_few_steps():
    memory = VerbatimCallCache()
    translated(conversation(200), memory)
    whole, further = (
        steps(conversation(201), replace(TranslationOptions(), memory=each)) for each in (VerbatimCallCache(), memory)
    )
    assert further < whole / 6


def test_messages_that_a_caller_changes_later_are_read_again():
    """The in-process client appends to its own list, and may edit it."""
    memory, body = VerbatimCallCache(), conversation(3)
    translate_chat_request(body, replace(TranslationOptions(), memory=memory))
    body["messages"][-1]["content"] = "something else"
    body["messages"].append({"role": "assistant", "content": "Done."})
    assert translated(body, memory) == translated(body, VerbatimCallCache())


def test_images_are_left_out_once_the_model_cannot_see_them():
    """A server may load another model between two requests of a conversation."""
    memory, body = VerbatimCallCache(), conversation(3)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    body["messages"].append({"role": "user", "content": [image]})
    for unsupported in ((), ("image",), ()):
        options = replace(TranslationOptions(), memory=memory, unsupported_media=frozenset(unsupported))
        sent = json.dumps(translate_chat_request(body, options).body)
        assert ("AA==" in sent, "left out" in sent) == (not unsupported, bool(unsupported))


def test_the_error_for_a_later_message_names_its_index():
    memory = VerbatimCallCache()
    translated(conversation(3), memory)
    body = conversation(3)
    body["messages"] += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": 1}]
    with pytest.raises(RequestError, match=rf"messages\[{len(body['messages']) - 1}\]"):
        translated(body, memory)


def opened(cache: ConversationCache, *contents: str) -> Conversation:
    return cache.continue_longest(Conversation([{"content": each} for each in contents]))


def test_the_longest_beginning_of_a_conversation_is_found():
    cache = ConversationCache()
    for contents in (("a", "c", "d"), ("a",)):
        cache.store(opened(cache, *contents))
    cache.store(Conversation([{"content": "a"}, {"content": "b"}]))
    known = [opened(cache, *contents).known for contents in (("a", "b", "c"), ("a", "c"), ("b",), ("a", "b"))]
    assert known == [2, 1, 0, 2]


def test_built_data_is_that_of_the_beginning():
    cache, first = ConversationCache(), Conversation([{"content": "a"}])
    first.store_built("key", 1)
    cache.store(first)
    further = opened(cache, "a", "b")
    assert [further.get_built(key, 0) for key in ("key", "other")] == [1, 0]
    for number in range(MAX_BUILT):
        further.store_built(number, 2)
    assert first.get_built("key", 0) == 1
    cache.store(further)
    assert opened(cache, "a", "b", "c").get_built("key", 0) == 0


def test_a_conversation_takes_the_place_of_its_beginning():
    cache = ConversationCache()
    cache.store(opened(cache, "a"))
    cache.store(opened(cache, "a", "b"))
    assert opened(cache, "a").known == 0


def test_the_oldest_conversations_are_evicted():
    cache = ConversationCache()
    for number in range(MAX_CONVERSATIONS + 1):
        cache.store(opened(cache, f"{number}."))
    assert [opened(cache, each).known for each in ("0.", "1.")] == [0, 1]
    small = ConversationCache(max_bytes=len(encode_messages([{"content": "a"}])))
    small.store(opened(small, "a"))
    small.store(opened(small, "b"))
    assert [opened(small, each).known for each in ("a", "b")] == [0, 1]
    small.store(opened(small, "b", "c"))
    assert opened(small, "b").known == 0
