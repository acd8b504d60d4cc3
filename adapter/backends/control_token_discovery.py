"""The control tokens that a model server tells of its model, for `adapter.prompting.escaping.with_control_tokens`.

Of llama.cpp these are those that ``/props`` names, and those that the chat template spells: what stands in brackets
there is given to ``/tokenize`` twice, and what is one token only where special tokens are read (``parse_special``) is a
control token. Other servers tell none; a template that the user names brings its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.parsing.formats import get_format
from adapter.prompting.escaping import added_control_tokens, with_control_tokens

if TYPE_CHECKING:
    from adapter.backends.endpoint_discovery import Endpoint
    from adapter.backends.template_files import TemplateWorker

ASKING_S = 2.0
"""For one question, of which there are three."""

MAX_ASKED = 200
"""Texts in brackets of one template that are looked up."""

_NAMED = ("bos_token", "eos_token", "media_marker")
"""In ``/props``, as of b11549; the last one stands for a picture."""

_BRACKETED = re.compile(r"<[^<>\s'\"{}%]{2,98}>|\[[^\[\]\s'\"{}%]{2,98}\]")


@runtime_checkable
class HasControlTokens(Protocol):
    """A chat that knows its model's control tokens."""

    def control_tokens(self) -> tuple[str, ...]: ...


def format_with_control_tokens(chat: object, format: str) -> Format:
    """``format`` as `neutralise` takes it for the model behind ``chat``."""
    return with_control_tokens(get_format(format), chat.control_tokens() if isinstance(chat, HasControlTokens) else ())


def discover_control_tokens(endpoint: Endpoint, process: TemplateWorker | None, props: Json = None) -> tuple[str, ...]:
    """Of the model at ``endpoint``. ``process``: of the template that the user named. ``props``: what ``/props`` said,
    where somebody has asked. Asks the server; one that does not answer tells none."""
    template = process.template if process is not None else None
    named = (*template.tokens.values(), *template.control_tokens) if template is not None else ()
    if endpoint.kind != "llama.cpp":
        return added_control_tokens(named)
    if props is None:
        from adapter.backends.endpoint_discovery import get_json

        answer = get_json(f"{endpoint.root}/props", ASKING_S)
        props = answer.body if answer is not None and answer.status == 200 else None
    known: JsonObject = props if isinstance(props, dict) else {}
    told = [token for name in _NAMED if isinstance(token := known.get(name), str)]
    spelled = known.get("chat_template")
    texts = list(dict.fromkeys(_BRACKETED.findall(spelled)))[:MAX_ASKED] if isinstance(spelled, str) else []
    return added_control_tokens((*named, *told, *_control_tokens_among(texts, endpoint)))


def _control_tokens_among(texts: list[str], endpoint: Endpoint) -> list[str]:
    if not texts:
        return []
    special, plain = (_pieces("\n".join(texts), endpoint, parse_special=each) for each in (True, False))
    return [text for text in texts if text in special and text not in plain] if plain else []


def _pieces(text: str, endpoint: Endpoint, *, parse_special: bool) -> frozenset[str]:
    """The texts of the tokens of ``text``; none where the server does not say."""
    from adapter.backends.endpoint_discovery import get_json

    asked = {"content": text, "with_pieces": True, "parse_special": parse_special}
    answer = get_json(f"{endpoint.root}/tokenize", ASKING_S, asked)
    body = answer.body if answer is not None and answer.status == 200 else None
    tokens = body.get("tokens") if isinstance(body, dict) else None
    pieces = [each.get("piece") for each in tokens if isinstance(each, dict)] if isinstance(tokens, list) else []
    return frozenset(piece for piece in pieces if isinstance(piece, str))
