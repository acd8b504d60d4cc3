"""docs/serve.md lists every request field with its treatment, generated from the code by ``python -m tests.generate``.

The types of the SDKs (openai, anthropic, ollama) name the fields that exist: a field that the code does not list fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from adapter.protocols import anthropic_request, ollama, openai_chat_fields, openai_responses_request
from adapter.protocols.dropped_fields import FieldHandling, to_header

PAGE = Path(__file__).parent.parent / "docs" / "serve.md"


def _named(*types: Any) -> set[str]:
    """Return the fields of the SDK's types: TypedDicts and pydantic models, or unions of them."""
    found: set[str] = set()
    for each in types:
        for kind in get_args(each) or (each,):
            found |= set(getattr(kind, "model_fields", None) or get_type_hints(kind))
    return found


@cache
def tables() -> Mapping[str, tuple[Mapping[str, FieldHandling], set[str]]]:
    """Return the handling of each field by protocol, and the fields that its SDK knows, which take seconds to
    import.
    """
    import anthropic.types.beta.message_create_params as beta_params
    import anthropic.types.message_create_params as message_params
    import ollama._types as ollama_types
    from openai.types.chat import completion_create_params
    from openai.types.responses import response_create_params

    options: Mapping[str, FieldHandling] = {name: "mapped" if name in ollama.OPTIONS else "left out" for name in sorted(
        {*ollama.OPTIONS, *_named(ollama_types.Options)})}  # fmt: skip

    return {
        "OpenAI: `/v1/chat/completions`": (
            openai_chat_fields.FIELDS,
            _named(completion_create_params.CompletionCreateParams),
        ),
        "OpenAI: `/v1/responses`": (
            openai_responses_request.FIELDS,
            _named(response_create_params.ResponseCreateParams),
        ),
        "Anthropic: `/v1/messages`": (
            anthropic_request.FIELDS,
            _named(message_params.MessageCreateParams, beta_params.MessageCreateParams) - {"betas"},
        ),
        "Ollama: `/api/chat`": (ollama.FIELDS, _named(ollama_types.ChatRequest)),
        "Ollama: `/api/generate`": (ollama.GENERATE_FIELDS, _named(ollama_types.GenerateRequest)),
        "Ollama: `/api/embed`, `/api/embeddings`": (
            ollama.EMBED_FIELDS,
            _named(ollama_types.EmbedRequest, ollama_types.EmbeddingsRequest),
        ),
        "Ollama: `options`": (options, _named(ollama_types.Options)),
    }


def with_tables(text: str) -> str:
    before, rest = text.split("<!-- table: fields -->\n")
    parts = []
    for title, (fates, _) in tables().items():
        rows = [f"### {title}\n\n| handling | fields |\n|---|---|"]
        for fate in get_args(FieldHandling):
            names = ", ".join(f"`{name}`" for name, each in fates.items() if each == fate)
            rows += [f"| {fate} | {names} |"] if names else []
        parts.append("\n".join(rows))
    return f"{before}<!-- table: fields -->\n" + "\n\n".join(parts) + rest[rest.index("\n<!-- end -->") :]


def test_every_field_that_an_sdk_knows_is_in_the_table():
    for title, (fates, known) in tables().items():
        assert len(known) > 5, title
        assert sorted(known - fates.keys()) == [], title


@pytest.mark.parametrize(
    "protocol", [anthropic_request, openai_responses_request, ollama], ids=lambda module: module.__name__
)
def test_fields_are_handled_as_in_the_table(protocol):
    """Dropped fields are named, passed fields are sent, handled fields are not sent."""
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "input": "Hi"}
    plain = set(protocol.convert_to_openai(body, dropped=[]))
    for name, fate in protocol.FIELDS.items():
        left_out: list[str] = []
        if fate in ("left out", "passed"):
            asked = protocol.convert_to_openai({**body, name: "x"}, dropped=left_out)
            assert (name in left_out) is (fate == "left out"), name
            assert (name in asked) is (fate == "passed" or name in plain), name


def test_the_header_is_safe_whatever_a_client_names():
    names = ["tool web_search", "tool web_search", "a\r\nset-cookie: x", "é" * 90, *map(str, range(30))]
    header = to_header(names)
    assert header.isascii()
    assert header.isprintable()
    assert header.startswith("tool web_search, a??set-cookie: x, ")
    assert header.endswith(", and 13 more")
