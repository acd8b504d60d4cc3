"""Check whether an object is a `ChatClient` without importing that class, which is slow."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.backends.chat_client import ChatClient


def find_chat_client(chat: object) -> ChatClient | None:
    """Return ``chat`` if it is a `ChatClient`, otherwise None. No object can be one before its module is imported."""
    module = sys.modules.get("adapter.backends.chat_client")
    return chat if module is not None and isinstance(chat, module.ChatClient) else None
