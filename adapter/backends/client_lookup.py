"""Which chats are clients of model servers, said without loading what a client is made of."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.backends.chat_client import ChatClient


def as_chat_client(chat: object) -> ChatClient | None:
    """``chat`` itself, where it is a `ChatClient`: then its module was loaded, by whoever made it."""
    transport = sys.modules.get("adapter.backends.chat_client")
    return chat if transport is not None and isinstance(chat, transport.ChatClient) else None
