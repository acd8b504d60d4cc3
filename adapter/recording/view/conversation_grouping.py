"""Group exchanges by conversation, and find the user's question in a request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import accumulate

from adapter.conversation.message_content import get_text
from adapter.core.events import JsonObject

MAX_PROMPTS = 20_000
"""Maximum number of prompts that are remembered. The oldest are forgotten first."""


class Conversations:
    """Assigns exchanges to conversations. The exchanges must be passed in the order of their requests.

    An exchange continues the conversation with the longest earlier prompt that is a prefix of its own prompt. If both
    prompts are equal, the exchange is a retry, or begins a new conversation.
    """

    def __init__(self) -> None:
        self._prompts: OrderedDict[int, int] = OrderedDict()
        self._ids: dict[str, int] = {}

    def assign(self, number: int, messages: Sequence[JsonObject], *, id: str = "", is_retry: bool = False) -> int:
        """Assign the exchange ``number`` to a conversation. Return the number of the conversation's first exchange.

        ``messages`` are the messages of its request, and ``id`` is the recorded id of the conversation, or "".
        """
        if id:
            return self._ids.setdefault(id, number)
        prefixes = list(accumulate(map(_hash_message, messages), lambda before, last: hash((before, last))))
        if not prefixes:
            return number
        earlier = prefixes if is_retry else prefixes[:-1]
        first = next((self._prompts[each] for each in reversed(earlier) if each in self._prompts), number)
        self._prompts[prefixes[-1]] = first
        self._prompts.move_to_end(prefixes[-1])
        if len(self._prompts) > MAX_PROMPTS:
            self._prompts.popitem(last=False)
        return first


def find_question(messages: Iterable[JsonObject]) -> str:
    """Return the text of the last user message, or "" if there is none."""
    questions = [message for message in messages if message.get("role") == "user"]
    return get_text(questions[-1].get("content")) if questions else ""


def _hash_message(message: JsonObject) -> int:
    return hash((str(message.get("role")), get_text(message.get("content"))))
