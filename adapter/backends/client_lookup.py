"""Recognize a `ChatClient` without importing its module."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.backends.chat_client import ChatClient


def as_chat_client(chat: object) -> ChatClient | None:
    """Return ``chat`` if it is a `ChatClient`, else None. A `ChatClient` can exist only if its module has been
    imported."""
    transport = sys.modules.get("adapter.backends.chat_client")
    return chat if transport is not None and isinstance(chat, transport.ChatClient) else None
