"""Withdrawing the tools with a grammar, on a real llama.cpp with random weights."""

from __future__ import annotations

import pytest

from adapter.backends.chat_client import ChatClient
from adapter.backends.constraint_fields import build_no_call_fields


@pytest.mark.parametrize("seed", range(3))
def test_answer_in_words_contains_no_call(random_engine, seed):
    with ChatClient(random_engine.endpoint) as chat:
        fields = {**build_no_call_fields("llama.cpp"), "seed": seed, "temperature": 2.0, "max_tokens": 100}
        chunks = chat.stream([{"role": "user", "content": "Hi"}], extra=fields)
        text = "".join(chunk.text for chunk in chunks)
    assert text
    assert not set("{<`") & set(text)
    assert text[0] not in "[ \t\n"


def test_server_without_grammars_gets_no_fields():
    assert build_no_call_fields("ollama") == {}
