"""The arguments of the Ray deployment and its choice of model servers. `python -m benchmarks.bench_ray` runs one."""

from __future__ import annotations

import json

import pytest

from adapter.core.errors import UsageError
from adapter.integrations.ray_serve_config import build_conversation_key, choose_upstream, load_config


def conversation(messages, headers=(), **body):
    return build_conversation_key(dict(headers), json.dumps({"model": "m", "messages": messages, **body}).encode())


def test_conversation_key_is_stable_while_it_grows():
    """The user's first words; a header or the prompt cache key takes precedence."""
    first, other = {"role": "user", "content": "Hi"}, {"role": "user", "content": "Hello"}
    system = {"role": "system", "content": "It is noon."}
    begun = conversation([first])
    assert begun == conversation([system, first, {"role": "assistant", "content": "Yes?"}, other])
    assert begun != conversation([other])
    for key, value in (("input", [first]), ("prompt", "Hi")):
        assert build_conversation_key({}, json.dumps({"model": "m", key: value}).encode()) == begun
    assert conversation([first], prompt_cache_key="") == begun
    assert conversation([system]) == ""
    assert conversation([first], prompt_cache_key="k") == "k"
    assert conversation([first], {"x-session-id": "s"}, prompt_cache_key="k") == "s"


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"5", b"\xff", b'{"messages": 5}', b'{"messages": [5]}'])
def test_conversation_key_accepts_any_body(body):
    """Nothing is raised: the server reports invalid bodies."""
    assert isinstance(build_conversation_key({}, body), str)


def test_added_upstream_moves_few_conversations():
    """Rendezvous hashing: only conversations of the new upstream move."""
    two, three = dict.fromkeys("ab"), dict.fromkeys("abc")
    moved = [n for n in map(str, range(300)) if choose_upstream(n, two) != choose_upstream(n, three)]
    assert {choose_upstream(n, three) for n in moved} == {"c"}
    assert 50 < len(moved) < 150


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({}, "upstream"),
        ({"upstream": "http://127.0.0.1:1", "polcy": "safe"}, "polcy"),
        ({"upstream": "http://127.0.0.1:1", "policy": "kind"}, "policy"),
        ({"upstream": "http://127.0.0.1:1", "host": "models.example"}, "api_key"),
    ],
)
def test_invalid_arguments_raise_at_start(args, why, monkeypatch):
    """With the available choices, before any replica starts."""
    monkeypatch.delenv("ADAPTER_API_KEY", raising=False)
    with pytest.raises(UsageError, match=why):
        load_config(args)


def test_upstreams_can_be_a_list_or_one_comma_separated_value():
    """As passed by `serve run`."""
    for upstream in ("http://a, http://b", ["http://a", "http://b"]):
        assert load_config({"upstream": upstream}).upstream == ["http://a", "http://b"]


@pytest.mark.parametrize("environ", [True, False])
def test_other_machines_need_the_key(environ, monkeypatch):
    """From the arguments or the environment."""
    monkeypatch.setenv("ADAPTER_API_KEY", "k" if environ else "")
    args = {"upstream": "http://127.0.0.1:1", "host": "models.example", **({} if environ else {"api_key": "k"})}
    assert load_config(args).build_settings("http://127.0.0.1:1").api_key == "k"
