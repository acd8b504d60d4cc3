"""docs/fields.md says of every field of a request what becomes of it, as it is in the code.

    python -m tests.test_fields         writes the page anew

The SDKs' own types (openai, anthropic, ollama) say which fields there are: one that the code does not name fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from adapter.protocols import anthropic_request, ollama, openai_chat_fields, openai_responses_request
from adapter.protocols.dropped_fields import HEADER, FieldHandling, as_header

PAGE = Path(__file__).parent.parent / "docs" / "fields.md"

HEAD = f"""# What becomes of a request's fields

- *taken*: done here, and not said to the model server.
- *mapped*: it goes on under another name or in another shape.
- *passed*: it goes on as it is.
- *left out*: nobody here can do it. The answer names it in a header, `{HEADER}`; it is said once on stderr, and
  `/health` counts it. So are tools that only the provider's own servers run, and blocks and items that say nothing to a
  model here.
- *refused*: a 400 that says why.

A request that needs no translation is passed on whole: a chat without tools, and all that Ollama's clients ask of an
Ollama. This page is made from the code by `python -m tests.test_fields`.

"""


def _named(*types: Any) -> set[str]:
    """The fields of the SDK's types: TypedDicts and pydantic models, or unions of them."""
    found: set[str] = set()
    for each in types:
        for kind in get_args(each) or (each,):
            found |= set(getattr(kind, "model_fields", None) or get_type_hints(kind))
    return found


@cache
def tables() -> Mapping[str, tuple[Mapping[str, FieldHandling], set[str]]]:
    """By protocol, what becomes of each field, and the fields that its SDK knows: those take seconds to import."""
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


def page() -> str:
    parts = [HEAD]
    for title, (fates, _) in tables().items():
        parts.append(f"## {title}\n\n| | |\n|---|---|\n")
        for fate in get_args(FieldHandling):
            names = ", ".join(f"`{name}`" for name, each in fates.items() if each == fate)
            parts.append(f"| {fate} | {names} |\n" if names else "")
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.test_fields"


def test_every_field_that_an_sdk_knows_is_in_the_table():
    for title, (fates, known) in tables().items():
        assert len(known) > 5, title
        assert sorted(known - fates.keys()) == [], title


@pytest.mark.parametrize(
    "protocol", [anthropic_request, openai_responses_request, ollama], ids=lambda module: module.__name__
)
def test_what_the_table_says_is_what_happens(protocol):
    """Fields that are left out are named, those that are passed are there, those that are taken are not."""
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "input": "Hi"}
    plain = set(protocol.as_openai(body, dropped=[]))
    for name, fate in protocol.FIELDS.items():
        left_out: list[str] = []
        if fate in ("left out", "passed"):
            asked = protocol.as_openai({**body, name: "x"}, dropped=left_out)
            assert (name in left_out) is (fate == "left out"), name
            assert (name in asked) is (fate == "passed" or name in plain), name


def test_the_header_is_safe_whatever_a_client_names():
    names = ["tool web_search", "tool web_search", "a\r\nset-cookie: x", "é" * 90, *map(str, range(30))]
    header = as_header(names)
    assert header.isascii()
    assert header.isprintable()
    assert header.startswith("tool web_search, a??set-cookie: x, ")
    assert header.endswith(", and 13 more")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
