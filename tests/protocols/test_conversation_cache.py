"""Each request of a conversation is translated as if it were the first, but its earlier messages only once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.conversation.guardrails.call_history import CallHistory, read_call_history
from adapter.protocols.conversation_cache import (
    MAX_CONVERSATIONS,
    NOTHING,
    CachedConversation,
    ConversationCache,
    encode_messages,
)
from adapter.protocols.openai_errors import RequestError
from adapter.protocols.translate import translate_chat_request
from adapter.protocols.translation_options import TranslationOptions
from adapter.protocols.verbatim_calls import VerbatimCallCache
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
    encoded = encode_messages(body["messages"])
    request = translate_chat_request(body, replace(TranslationOptions(), memory=memory), encoded=encoded)
    assert translate_chat_request(body, TranslationOptions()).body == request.body
    assert request.follow_up.guard is not None
    past = request.follow_up.guard.past
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


def test_size_of_new_messages_is_known():
    memory = VerbatimCallCache()
    first, further = (encode_messages(conversation(turns)["messages"]) for turns in (20, 21))
    assert memory.count_new_bytes(first) is None
    translated(conversation(20), memory)
    assert (memory.count_new_bytes(first), memory.count_new_bytes(further)) == (0, len(further) - len(first))


def test_the_error_for_a_later_message_names_its_index():
    memory = VerbatimCallCache()
    translated(conversation(3), memory)
    body = conversation(3)
    body["messages"] += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": 1}]
    with pytest.raises(RequestError, match=rf"messages\[{len(body['messages']) - 1}\]"):
        translated(body, memory)


def cached(*contents: str) -> CachedConversation[Any]:
    return CachedConversation(encode_messages([{"content": each} for each in contents]), "key", NOTHING)


def test_the_longest_beginning_of_a_conversation_is_found():
    cache, short, long = ConversationCache[Any](), cached("a"), cached("a", "b")
    cache.store(short, None)
    cache.store(long, None)
    assert cache.find(cached("a", "b", "c").encoded, "key") is long
    assert cache.find(cached("a", "c").encoded, "key") is short
    assert cache.find(cached("b").encoded, "key") is None
    assert cache.find(long.encoded, "other key") is None


def test_a_conversation_takes_the_place_of_its_beginning():
    cache, short, long = ConversationCache[Any](), cached("a"), cached("a", "b")
    cache.store(short, None)
    cache.store(long, short)
    assert cache.find(short.encoded, "key") is None


def test_the_oldest_conversations_are_evicted():
    cache = ConversationCache[Any]()
    for number in range(MAX_CONVERSATIONS + 1):
        cache.store(cached(f"{number}."), None)
    assert [cache.find(cached(each).encoded, "key") is None for each in ("0.", "1.")] == [True, False]
    small = ConversationCache[Any](max_bytes=len(cached("a").encoded))
    small.store(cached("a"), None)
    small.store(cached("b"), None)
    assert small.find(cached("a").encoded, "key") is None
    assert small.find(cached("b").encoded, "key") is not None
