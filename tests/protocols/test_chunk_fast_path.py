"""The fast path for events that differ only in their text must not change the output."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.protocols.answer_translation import StreamedExchange
from adapter.protocols.anthropic_response import AnthropicWriter
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.chunk_fast_path import build_chunk_template
from adapter.protocols.translation_options import TranslationOptions
from tests.scripted_server import delta
from tests.server.test_wrap import ASK, CALL, TOOLS

EVENT = b'{"id": "1", "choices": [{"index": 0, "delta": {"content": "a\\"b"}, "finish_reason": null}], "created": 7}'


def test_template_matches_text_only_changes():
    """For each way in which servers encode JSON."""
    like = build_chunk_template(EVENT, json.loads(EVENT))
    assert like is not None
    assert like.find_text(EVENT.replace(b'"a\\"b"', b'"\\u00e9\\n"')) == "\xe9\n"
    assert like.find_text(EVENT.replace(b"7", b"8")) is None
    assert like.find_text(EVENT.replace(b'"a\\"b"', b'"a", "tool_calls": "b"')) is None
    assert like.find_text(EVENT.replace(b'"a\\"b"', b"null")) is None
    assert like.find_text(EVENT.replace(b'"a\\"b"', b"")) is None
    assert like.find_text(EVENT[:60]) is None


@pytest.mark.parametrize(
    "chunk",
    [
        delta("x", "stop"),
        delta(""),
        delta("x", reasoning_content="y"),
        delta("x", tool_calls=[]),
        delta("x") | {"usage": {"prompt_tokens": 1}},
        delta("x") | {"error": {"message": "y"}},
        delta("x") | {"choices": delta("x")["choices"] * 2},
        delta("x") | {"choices": [{"delta": {"content": "x"}}]},
        delta("x") | {"choices": []},
        delta("x") | {"system": {"content": "x"}},
        [],
    ],
)
def test_chunk_with_other_fields_has_no_template(chunk):
    assert build_chunk_template(json.dumps(chunk).encode(), chunk) is None


texts = st.one_of(
    st.text(max_size=5),
    st.sampled_from(["<think>", "</think>", "\n", '"', "\\", *CALL, CALL, "<tool_call>", '{"name": "read_file"', "\0"]),
)
chunks = st.one_of(
    texts.map(delta),
    st.builds(lambda text, index: _of_choice(delta(text), index), texts, st.integers(0, 1)),
    st.builds(lambda text: delta(None, reasoning_content=text), texts),
    st.builds(lambda text, created: delta(text) | {"created": created}, texts, st.integers(1, 2)),
    st.builds(lambda text: delta(text) | {"usage": {"completion_tokens": 1}}, texts),
    st.sampled_from(
        [delta("x", "stop"), delta(None, "stop"), delta("x", "length"), {"error": "y"}, delta() | {"choices": []}]
    ),
)


def _of_choice(chunk: dict[str, Any], index: int) -> dict[str, Any]:
    return chunk | {"choices": [{**chunk["choices"][0], "index": index}]}


@given(
    st.lists(st.tuples(chunks, st.booleans()), max_size=30),
    st.booleans(),
    st.sampled_from([{}, {"parallel_tool_calls": False}, {"stream_options": {"include_usage": True}}, {"n": 2}]),
)
def test_fast_path_output_is_identical(events, is_anthropic, fields):
    """The client gets the same bytes as if every event were decoded, however it is encoded."""
    request = translate_chat_request(
        {"model": "m", "messages": ASK, "tools": TOOLS, "stream": True, **fields}, TranslationOptions()
    )

    def written(*, by_likeness: bool) -> bytes:
        streamed = StreamedExchange(request, 1, AnthropicWriter("m", "id") if is_anthropic else None)
        if not by_likeness:
            streamed._misses = 10**9
        sent = (json.dumps(chunk, ensure_ascii=is_ascii).encode("utf-8", "replace") for chunk, is_ascii in events)
        return b"".join(streamed.feed(b"data: " + each + b"\n\n") for each in sent) + streamed.close()

    assert written(by_likeness=True) == written(by_likeness=False)


def test_matching_events_are_not_decoded(monkeypatch):
    """Almost no event of a stream is decoded."""
    read: list[bytes] = []

    def load_json(event: bytes) -> Any:
        read.append(event)
        return json.loads(event)

    monkeypatch.setattr("adapter.protocols.answer_translation._read", load_json)
    streamed = StreamedExchange(
        translate_chat_request({"messages": ASK, "tools": TOOLS, "stream": True}, TranslationOptions()), 1
    )
    for word in range(50):
        streamed.feed(b"data: " + json.dumps(delta(f"{word} ")).encode() + b"\n\n")
    assert len(read) == 1
