"""Find the point where a model continues its answer with an invented user message, and cut the answer there."""

from __future__ import annotations

import re

from adapter.core.events import ContentReclassified, Event, InvalidToolCall, TextDelta, ToolCall
from adapter.core.turn import Turn

_USER_SAYS = re.compile(r"\n[ \t]*(?:\**(?:human|user)\**\s*:|###\s*(?:human|instruction|user)\b)", re.IGNORECASE)
_MODEL_SAYS = re.compile(r"\n[ \t]*(?:\**(?:ai|assistant|bot)\**\s*:|###\s*(?:assistant|response)\b)", re.IGNORECASE)
_CODE = re.compile(r"^[ \t]*(?P<fence>```|~~~)[^\n]*\n.*?^[ \t]*(?P=fence)", re.DOTALL | re.MULTILINE)
_ABOUT_TALK = re.compile(
    r"(?i)\b(?:chats?|conversations?|dialog(?:ue)?s?|examples?|interviews?|prompts?|role|scripts?|transcripts?)\b"
)


def find_answer_end(content: str, request: str) -> int:
    """Return the index at which the answer ends.

    The answer ends before a user message that the model has invented and answered, unless ``request`` is about
    dialogues. Code blocks are not searched, because YAML may have the keys ``user:`` and ``bot:``.
    """
    prose = _CODE.sub(lambda code: " " * len(code[0]), content)
    user = _USER_SAYS.search(prose)
    is_invented = user is not None and _MODEL_SAYS.search(prose, user.end()) and not _ABOUT_TALK.search(request)
    return user.start() if user is not None and is_invented else len(content)


def cut_turn(turn: Turn, end: int) -> Turn:
    """Return ``turn`` without the first call that follows more than ``end`` characters of content, and without all that
    follows this call."""
    length, events = 0, list[Event]()
    for event in turn.events:
        match event:
            case TextDelta(text=text):
                length += len(text)
            case ContentReclassified():
                length = 0
            case ToolCall() | InvalidToolCall() if length > end:
                break
            case _:
                pass
        events.append(event)
    return Turn.from_events(events)
