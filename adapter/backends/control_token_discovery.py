"""Discover a model's control tokens, for `adapter.prompting.escaping.with_control_tokens`.

llama.cpp lists some control tokens in ``/props``. More of them occur in the chat template as strings in brackets. Each
such string is sent to ``/tokenize`` twice, with and without ``parse_special``. It is a control token if it becomes a
single token only with ``parse_special``. Other servers report no control tokens, but a template file from the user may
list them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from adapter.core.events import Json
from adapter.parsing.format import Format
from adapter.parsing.formats import get_format
from adapter.prompting.escaping import select_added_control_tokens, with_control_tokens

if TYPE_CHECKING:
    from adapter.backends.endpoint_discovery import Endpoint
    from adapter.backends.template_files import TemplateWorker

MAX_LOOKUPS = 200
"""Maximum number of bracketed strings that are looked up."""
_PROPS = ("bos_token", "eos_token", "media_marker")
"""Keys of control tokens in ``/props``, as of llama.cpp b11549. ``media_marker`` is the placeholder for an image."""

_BRACKETED = re.compile(r"<[^<>\s'\"{}%]{2,98}>|\[[^\[\]\s'\"{}%]{2,98}\]")


@runtime_checkable
class HasControlTokens(Protocol):
    """A chat that can report its model's control tokens."""

    def control_tokens(self) -> tuple[str, ...]: ...


def format_with_control_tokens(chat: object, format: str) -> Format:
    """Return ``format`` with the control tokens of the model behind ``chat``."""
    return with_control_tokens(get_format(format), chat.control_tokens() if isinstance(chat, HasControlTokens) else ())


def discover_control_tokens(endpoint: Endpoint, worker: TemplateWorker | None, props: Json = None) -> tuple[str, ...]:
    """Query the server for the control tokens of its model, and add the control tokens of the user's template.

    ``worker`` renders the user's template, if there is one. ``props`` is the server's answer to ``/props``, if it was
    already requested.
    """
    template = worker.template if worker is not None else None
    tokens = [*template.tokens.values(), *template.control_tokens] if template is not None else []
    if endpoint.kind == "llama.cpp":
        if not isinstance(props, dict):
            from adapter.backends.endpoint_discovery import get_object

            props = get_object(f"{endpoint.root}/props")
        tokens += [token for name in _PROPS if isinstance(token := props.get(name), str)]
        source = props.get("chat_template")
        texts = list(dict.fromkeys(_BRACKETED.findall(source)))[:MAX_LOOKUPS] if isinstance(source, str) else []
        tokens += _select_control_tokens(texts, endpoint)
    return select_added_control_tokens(tokens)


def _select_control_tokens(texts: list[str], endpoint: Endpoint) -> list[str]:
    if not texts:
        return []
    special, plain = (_tokenize("\n".join(texts), endpoint, parse_special=each) for each in (True, False))
    return [text for text in texts if text in special and text not in plain] if plain else []


def _tokenize(text: str, endpoint: Endpoint, *, parse_special: bool) -> frozenset[str]:
    """Return the tokens of ``text`` as strings, or an empty set if the server does not report them."""
    from adapter.backends.endpoint_discovery import get_object

    query = {"content": text, "with_pieces": True, "parse_special": parse_special}
    tokens = get_object(f"{endpoint.root}/tokenize", query).get("tokens")
    pieces = [each.get("piece") for each in tokens if isinstance(each, dict)] if isinstance(tokens, list) else []
    return frozenset(piece for piece in pieces if isinstance(piece, str))
