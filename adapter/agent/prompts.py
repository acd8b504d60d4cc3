"""How an agent's model is told of its tools: by its own template, or in words, and in which style."""

from __future__ import annotations

from adapter.constraints.modes import Constraint
from adapter.prompting.prompt import Style
from adapter.reading.format import Format
from adapter.tools.definition import ToolSet
from adapter.upstream.own_chat import OwnChat
from adapter.upstream.transport import ChatClient
from adapter.values.errors import UsageError
from adapter.wire.own_prompt import PROMPT_MODES


def style_for(constraint: Constraint | None) -> Style:
    """How tools are described: where calls are enforced without an example, whose values small models copy."""
    return "bare" if constraint in ("prefer", "required") else "compact"


def check_prompt(prompt: str) -> None:
    """Raises UsageError for none of `PROMPT_MODES`."""
    if prompt not in PROMPT_MODES:
        raise UsageError(f"unknown prompt {prompt!r}; expected {', '.join(PROMPT_MODES)}")


def derived_for(chat: object, prompt: str) -> str | None:
    """The format derived from the template of the model behind ``chat``, where no table reads what that writes."""
    told = chat.own_prompt().recognised if isinstance(chat, ChatClient) and prompt != "words" else None
    return told.format if told is not None and told.by == "template" else None


def own_chat(chat: object, tools: ToolSet, format: str | Format, prompt: str) -> OwnChat | None:
    """How ``chat`` gets the prompts of the model's own template; None for words. ``prompt``: one of `PROMPT_MODES`.

    Raises UsageError for ``own`` where that cannot be had.
    """
    check_prompt(prompt)
    found = chat.own_prompt() if isinstance(chat, ChatClient) and prompt != "words" else None
    if prompt == "own" and (found is None or found.own is None):
        raise UsageError(f"the model's own prompt cannot be had: {found.told if found else 'this is no ChatClient'}")
    return OwnChat(tools, format, found.own) if found is not None and found.own is not None else None
