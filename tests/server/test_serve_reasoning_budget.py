"""`adapter serve --reasoning-budget` and the clients' own fields, in every protocol and with real servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines import ONLY_ASCII
from tests.live_upstream import LiveUpstream
from tests.scripted_server import CHAT, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.test_serve_context_budget import PROTOCOLS, as_chat, post
from tests.server.test_wrap import ASK, CALL, completion
from tests.serving import serving

WORDS = "I could read it, or I could not. "
REASONING_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)


def think_forever(body: Any) -> Iterator[dict[str, Any]]:
    """Reason without an end, unless the reasoning is closed."""
    last = body["messages"][-1]
    if last["role"] == "assistant":
        assert last["content"].endswith("</think>\n\n")
        yield from map(delta, CALL)
    else:
        yield delta("<think>\n")
        for number in range(1_000_000):
            yield delta(f"{number}: {WORDS}")
    yield delta(finish_reason="stop")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_model_that_never_stops_reasoning_calls_its_tool(protocol):
    """The client gets the reasoning up to the budget, and the call; the upstream request is closed."""
    path, convert = PROTOCOLS[protocol]
    system = {"role": "system", "content": "Be terse."}
    body = {**convert([system, *ASK]), "stream": True}
    with LiveUpstream(think_forever) as upstream, serving(upstream.url, "--reasoning-budget", "200") as url:
        headers, text = post(url.removesuffix("/v1"), path, body)
        assert upstream.hung_up.wait(100)
    assert headers["adapter-reasoning"] == "budget=200"
    assert "read_file" in text
    assert "3: I could" in text
    assert "100: I could" not in text
    assert "limited time" not in text


def test_anthropics_budget_tokens_and_the_effort_are_obeyed():
    with LiveUpstream(think_forever) as upstream, serving(upstream.url, "--reasoning-budget", "400") as url:
        root = url.removesuffix("/v1")
        _, convert = PROTOCOLS["messages"]
        body = convert([{"role": "system", "content": "Be terse."}, *ASK])
        thinking = {"type": "enabled", "budget_tokens": 50}
        headers, _ = post(root, "/v1/messages", {**body, "stream": True, "thinking": thinking})
        assert headers["adapter-reasoning"] == "budget=50"
        assert "adapter-left-out" not in headers
        headers, _ = post(root, CHAT, {**as_chat(ASK), "stream": True, "reasoning_effort": "low"})
        assert headers["adapter-reasoning"] == "budget=100"
        headers, _ = post(root, CHAT, {"model": "qwen3", "messages": ASK, "stream": True})
        assert headers["adapter-reasoning"] == "budget=400"


def test_vllm_without_a_reasoning_parser_is_asked_again_without_the_field():
    refusal = as_error(400, "thinking_token_budget is set but reasoning_config is not configured.")
    with ScriptedServer() as upstream:
        upstream.on("/version", as_json(200, {"version": "0.31.0"})).on(CHAT, refusal, as_json(200, completion(CALL)))
        with serving(upstream.url, "--reasoning-budget", "300", "--prompt", "words") as url:
            for _ in range(2):
                assert "read_file" in post(url.removesuffix("/v1"), CHAT, as_chat(ASK))[1]
        budgets = [body.get("thinking_token_budget") for body in upstream.bodies()]
    assert budgets == [300, None, None]


def test_a_model_has_a_budget_of_its_own(tmp_path: Path):
    file = tmp_path / "serve.toml"
    file.write_text("[models.small]\nreasoning-budget = 60\n", encoding="utf-8")
    with ScriptedServer() as upstream:
        upstream.on(CHAT, as_stream(*map(delta, CALL), delta(finish_reason="stop")))
        with serving(upstream.url, "--config", str(file)) as url:
            for model, header in (("small", "budget=60"), ("large", None)):
                body = {**as_chat(ASK), "model": model, "stream": True}
                assert post(url.removesuffix("/v1"), CHAT, body)[0].get("adapter-reasoning") == header


@pytest.mark.parametrize("prompt", ["own", "words"])
def test_real_llama_cpp_goes_on_after_the_closed_reasoning(random_gguf, prompt):
    """With its own template, whose prompt begins the reasoning, and with a generated prompt. The weights are random."""
    from adapter.backends.in_process_llama_cpp import EmbeddedServer

    fields = {"stream": True, "max_tokens": 600, "seed": 1, **ONLY_ASCII}
    with EmbeddedServer(random_gguf, context_size=4_096, chat_template=REASONING_TEMPLATE) as engine:
        options = ("--reasoning-budget", "20", "--guardrails", "off", "--guide", "off", "--format", "hermes")
        with serving(engine.endpoint.root, *options, *(("--prompt", prompt) if prompt == "words" else ())) as url:
            headers, text = post(url.removesuffix("/v1"), CHAT, as_chat(ASK) | fields)
    assert headers["adapter-reasoning"] == "budget=20"
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    reasoning = "".join(each.get("reasoning_content") or "" for each in deltas)
    content = "".join(each.get("content") or "" for each in deltas)
    assert 0 < len(reasoning) < 400
    assert content.strip()
    assert "think>" not in reasoning + content
